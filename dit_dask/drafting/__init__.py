"""Drafts a config for a table that nobody has described yet: every guess is written beside its evidence."""
