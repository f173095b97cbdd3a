"""Attackers who try to rebuild the table under audit from what an audit writes."""
