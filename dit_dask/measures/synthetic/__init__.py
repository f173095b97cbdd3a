"""Accuracy and closeness of synthetic data."""
