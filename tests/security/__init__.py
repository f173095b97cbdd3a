"""Attacks that were found, each as a test whose name is the attack."""
