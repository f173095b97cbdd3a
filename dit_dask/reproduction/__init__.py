"""The papers' tables and figures, computed again beside the published numbers (docs/reproduction.md)."""
