"""What follows from an audit: which persons are at risk and why, what to leave out, which parameter to choose."""
