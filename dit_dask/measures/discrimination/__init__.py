"""The discrimination rate and its attacks."""
