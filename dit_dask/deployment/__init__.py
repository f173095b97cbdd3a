"""Kubernetes deployments of an audit: manifests, the launcher inside the cluster, cron schedules, certificates."""
