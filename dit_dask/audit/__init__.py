"""One audit: its tests, plan, state, parts, statistics, gates and manifest."""
