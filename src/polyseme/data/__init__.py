"""Counts in memory, in files and on Dask workers."""
