"""An adversary that takes more memory than a small worker has, if its environment says so."""

from __future__ import annotations

import os

import numpy as np
from sklearn.tree import DecisionTreeClassifier


class MemoryHungryTree(DecisionTreeClassifier):
    """A decision tree; with FILL_MEMORY in the environment it first fills a gigabyte."""

    def fit(self, features, secret, sample_weight=None):
        if os.environ.get("FILL_MEMORY"):
            np.ones(2**27)
        return super().fit(features, secret, sample_weight)
