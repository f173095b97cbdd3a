"""Raw and suppressed tables against plain loops over their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from dit_dask.adversaries.bernoulli_nb import BernoulliNB
from dit_dask.adversaries.conditional_frequency import ConditionalFrequency
from dit_dask.engines import exact
from dit_dask.inputs import datasets
from dit_dask.sanitizers import Sanitizer
from dit_dask.sanitizers.raw import Raw
from dit_dask.sanitizers.suppressed import Suppressed
from tests.audits import loaded

QUASI, SECRET = ("age", "education", "sex"), "occupation"
SCHEMA = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "education": {"kind": "categorical"}, "sex": {"kind": "categorical"}},
    "sensitive": SECRET,
}
Row = tuple[object, ...]
Agrees = Callable[[object, object], bool]


def equal(published: object, value: object) -> bool:
    """A raw value covers itself only."""
    return published == value


def anything(_published: object, _value: object) -> bool:
    """A suppressed value covers every value."""
    return True


def naive_bayes(rows: Sequence[Row], target: Row, domain: Sequence[str], agrees: Agrees) -> list[float]:
    """Multiply the smoothed shares of the rows of each secret that agree with the target, column by column."""
    scores = []
    for secret in domain:
        mine = [row for row in rows if row[-1] == secret]
        score = float(len(mine))
        for column in range(len(target) - 1):
            hits = sum(agrees(row[column], target[column]) for row in mine)
            score *= (hits + 1) / (len(mine) + 2)
        scores.append(score)
    return [score / sum(scores) for score in scores]


def conditional_frequency(rows: Sequence[Row], target: Row, domain: Sequence[str], agrees: Agrees) -> list[float]:
    """Count the secrets of the rows that agree with the target everywhere, or of all rows if none does."""
    mine = [row for row in rows if all(agrees(a, b) for a, b in zip(row[:-1], target[:-1], strict=True))] or list(rows)
    return [sum(row[-1] == secret for row in mine) / len(mine) for secret in domain]


@pytest.mark.parametrize(("sanitizer", "agrees"), [(Raw(), equal), (Suppressed(), anything)], ids=["raw", "suppressed"])
def test_beliefs_are_those_of_a_loop_over_the_rows(sanitizer: Sanitizer, agrees: Agrees) -> None:
    frame = datasets.census(150)
    rows = list(frame[[*QUASI, SECRET]].itertuples(index=False, name=None))
    read = loaded(frame, SCHEMA)
    domain = read.table.schema.sensitive.levels
    assert set(domain) == {row[-1] for row in rows}
    everyone = np.arange(read.table.distinct)
    bayes, frequency = exact.beliefs(read.table, everyone, sanitizer, [BernoulliNB(), ConditionalFrequency()])
    for place, target in enumerate(rows):
        others, record = rows[:place] + rows[place + 1 :], read.index[place]
        for side, published in enumerate((rows, others)):
            assert frequency[side][record].tolist() == conditional_frequency(published, target, domain, agrees)
            expected = naive_bayes(published, target, domain, agrees)
            np.testing.assert_allclose(bayes[side][record], expected, rtol=1e-12)  # the factors are rounded in another order
