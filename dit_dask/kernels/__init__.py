"""Compiled and vectorised functions on plain arrays: no table, no config, no client in here."""
