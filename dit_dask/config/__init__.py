"""The config document: constraints, sweeps, and the registry of named components."""
