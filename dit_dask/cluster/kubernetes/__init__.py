"""A Dask cluster on Kubernetes: creation and removal, the Kubernetes API, and the objects."""
