"""From files, URLs and frames to a table of codes."""
