"""Compiled and vectorised functions on plain arrays: without tables, configs or clients."""
