"""An adversary that takes more memory than a small worker has, when told to."""

from __future__ import annotations

import os

import numpy as np
from sklearn.tree import DecisionTreeClassifier


class Hungry(DecisionTreeClassifier):
    """A decision tree; where the environment says HUNGRY it first fills a gigabyte."""

    def fit(self, features, secret, sample_weight=None):
        if os.environ.get("HUNGRY"):
            np.ones(2**27)
        return super().fit(features, secret, sample_weight)
