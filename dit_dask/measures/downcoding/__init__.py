"""Downcoding: cells that the minimality of a sanitizer proves finer than it published them."""
