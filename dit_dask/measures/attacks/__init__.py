"""Attacks with a control group: singling out, linkability and inference from a release, on every record."""
