"""Classifiers of the gallery that fail on some tables; their messages hold what no output may show."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.naive_bayes import BernoulliNB

MANY_ROWS = 30  # only a raw table of the gallery has so many different rows


class RefusesRaw(BernoulliNB):
    """Naive Bayes that cannot learn from many rows."""

    def fit(self, features: Any, secrets: Any, sample_weight: Any = None) -> RefusesRaw:
        """Quote what it was given."""
        if len(features) > MANY_ROWS:
            raise ValueError(f"cannot learn 'illness 3' from {features[0]}")
        return super().fit(features, secrets, sample_weight)


class UnsureOfSuppressed(BernoulliNB):
    """Naive Bayes that does not know anything where all features are equal."""

    def fit(self, features: Any, secrets: Any, sample_weight: Any = None) -> UnsureOfSuppressed:
        """Remember whether there is anything to learn."""
        self.is_blind = bool(np.all(features))
        return super().fit(features, secrets, sample_weight)

    def predict_proba(self, features: Any) -> Any:
        """No numbers, where there was nothing."""
        return super().predict_proba(features) * (np.nan if self.is_blind else 1.0)
