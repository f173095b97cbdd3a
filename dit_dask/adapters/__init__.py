"""Third-party anonymisation libraries as functions for the `python` sanitizer; nothing else in the package imports them."""
