"""Work on a Dask cluster: tests, measures, and the task runner that both share. Dask is imported only here and in cluster."""
