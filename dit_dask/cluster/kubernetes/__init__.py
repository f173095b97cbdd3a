"""A Dask cluster on Kubernetes: its life, the Kubernetes API, and the objects."""
