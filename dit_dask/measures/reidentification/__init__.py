"""Re-identification: how likely it is that a published row is linked to the person it is about."""
