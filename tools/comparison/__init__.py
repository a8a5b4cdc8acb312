"""The cases that tools/compare_builds.py runs with each of two builds.

`python -m comparison OUTPUT CASE ...` runs cases with the polyseme that this interpreter imports and writes their
results to OUTPUT.npz and OUTPUT.json. No module of this package imports polyseme when it is imported itself, so
`compare_builds.py` can list the cases without a build.

| module | purpose |
|---|---|
| `names.py` | public names of polyseme, and the table of those that were renamed |
| `registry.py` | the table of cases |
| `data.py` | counts and texts |
| `estimators.py` | cases: estimators, solvers, priors, backgrounds, dtypes |
| `corpora.py` | cases: shards, Dask, checkpoints, text counting, readers |
| `results.py` | cases: search, selection, metrics, pages, files, the command line |
| `values.py` | results as a flat mapping from names to arrays and strings, and its files |
| `compare.py` | the comparison of two such mappings |
"""
