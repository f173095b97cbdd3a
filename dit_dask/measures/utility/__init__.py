"""The utility of a release, as figures of every audit and as a measure."""
