"""Composition: what two releases of overlapping tables reveal together."""
