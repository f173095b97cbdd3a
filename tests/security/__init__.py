"""Attacks that were found once; each test is named after its attack."""
