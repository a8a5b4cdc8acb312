"""Corpora of counts: in memory, on disk and on Dask workers."""
