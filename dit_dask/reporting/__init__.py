"""What people read: HTML report, text tables, charts, comparisons and the history of an output."""
