"""Measures of a release beside the inference test: pure functions from frames to frozen results."""
