"""Which scikit-learn classifiers are functions of statistics of an encoded release, and with which parameters.

A parameter that is not named here must have its default. Statistics of a release without a record are those of the whole one,
updated by the classes that differ; the rest is trained on the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dit_dask.adversaries.discrete_nb import bernoulli_sums, categorical_sums, complement_sums, multinomial_sums
from dit_dask.adversaries.discriminant import discriminant_sums
from dit_dask.adversaries.encoded import Change, Encoded, Statistics
from dit_dask.adversaries.gaussian_nb import gaussian_sums
from dit_dask.adversaries.neighbours import MEASURES, find_neighbours
from dit_dask.adversaries.parameters import Condition, has_parameters, integer, jobs, number, one_of, sklearn_name, switch
from dit_dask.encoders import ChangeEncoder

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats
    from dit_dask.values.release import Difference, Release


@dataclass(frozen=True)
class Summary:
    """How the statistics for a model of this class are found, with which parameters, and whether it is trained on weights."""

    find: Callable[[Any, Encoded], Statistics]
    parameters: Mapping[str, Condition]
    weighted: bool


_COUNTS = {"alpha": number(1e-3, 1e6), "force_alpha": switch, "fit_prior": switch}
_NEIGHBOURS = {
    "n_neighbors": integer(1),
    "leaf_size": integer(1),
    "algorithm": one_of("auto", "brute", "kd_tree", "ball_tree"),
    "p": lambda value: value in (1, 2),
    "metric": one_of("minkowski", *(name for name in MEASURES if isinstance(name, str))),
    "n_jobs": jobs,
}

SUMMARIES: dict[str, Summary] = {
    "GaussianNB": Summary(gaussian_sums, {"var_smoothing": number(0, 1e300)}, weighted=True),
    "BernoulliNB": Summary(bernoulli_sums, {"binarize": number(0, 1e300), **_COUNTS}, weighted=True),
    "CategoricalNB": Summary(
        categorical_sums, {"min_categories": lambda value: value is None or integer(1)(value), **_COUNTS}, weighted=True
    ),
    "MultinomialNB": Summary(multinomial_sums, _COUNTS, weighted=True),
    "ComplementNB": Summary(complement_sums, {"norm": switch, **_COUNTS}, weighted=True),
    "LinearDiscriminantAnalysis": Summary(
        discriminant_sums, {"tol": number(1e-6, 1e-2), "store_covariance": switch}, weighted=False
    ),
    "KNeighborsClassifier": Summary(find_neighbours, _NEIGHBOURS, weighted=False),
}


def summary_of(model: Any, *, weighted: bool) -> Summary | None:
    """How statistics for a model are found; None if it must be trained."""
    row = SUMMARIES.get(sklearn_name(model))
    return row if row is not None and row.weighted == weighted and has_parameters(model, row.parameters) else None


@dataclass(frozen=True, eq=False)
class Summarised:
    """A model that learns from statistics of encoded releases."""

    model: Any
    summary: Summary

    def learn(self, release: Release, encoder: Any, target: Codes) -> Callable[[Codes], Floats | None] | None:
        """Return what predicts a target as the trained model would, or None where rounding could decide."""
        if not isinstance(encoder, ChangeEncoder):
            return None
        changes, difference, encoded = encoder.changes(release), release.difference, release
        if changes is None or difference is None:
            statistics = self.find(release, encoder, target)
        else:  # a target has the same features as for the whole release
            encoded, statistics = difference.base, _known(self, cast("Any", encoder), difference.base)
            if statistics is not None:
                statistics = statistics.update(self.model, _change(release, difference, encoder, changes))
        predict = None if statistics is None else statistics.learn(self.model)
        return None if predict is None else lambda target: predict(encoder.target(encoded, target))

    def find(self, release: Release, encoder: ChangeEncoder, target: Codes) -> Statistics | None:
        """The statistics of a release; None if it has too many records."""
        encoded = Encoded(encoder.classes(release, target), encoder.fractions(release), release.counts)
        return self.summary.find(self.model, encoded) if encoded.is_countable else None


@lru_cache(maxsize=32)  # a base for each sensitive value (t-closeness), times the adversaries of a panel
def _known(summarised: Summarised, encoder: Any, base: Release) -> Statistics | None:
    """The statistics of the whole release, once for all removals: no target affects them."""
    return summarised.find(base, encoder, np.zeros(len(base.schema.quasi_identifiers), np.int32))


def _change(release: Release, difference: Difference, encoder: ChangeEncoder, features: tuple[Floats, Floats]) -> Change:
    gone, new = features
    fractions = encoder.fractions(difference.base)
    return Change(
        difference.gone,
        Encoded(gone, fractions, difference.base.counts[difference.gone]),
        Encoded(new, fractions, release.counts[difference.new]),
    )
