"""Work on a Dask cluster or in this process: tests, measures, and the task runner that both share.

Dask is imported only here and in cluster.
"""
