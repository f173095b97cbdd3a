"""Effect sizes of distances against scipy and plain counting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dit_dask.measures.synthetic.dominance import Effect, smaller, tail, wilson

samples = st.lists(st.integers(0, 12), min_size=3, max_size=60)


@settings(deadline=None, max_examples=100)
@given(x=samples, y=samples)
def test_smaller_has_the_effect_and_the_interval_of_brunner_and_munzel(x: list[int], y: list[int]) -> None:
    sample, reference = np.array(x, float), np.array(y, float)
    found = smaller("dcr", sample, reference, 0.01)
    pairs = np.sign(reference[None, :] - sample[:, None])
    assert found.effect == pytest.approx(((pairs > 0) + 0.5 * (pairs == 0)).mean(), abs=1e-12)
    assert found.interval[0] <= found.effect <= found.interval[1]
    if found.interval[0] > 0 and found.interval[1] < 1 and len({*x, *y}) > 1:
        with np.errstate(all="ignore"):
            theirs = stats.brunnermunzel(sample, reference)
        if np.isfinite(theirs.pvalue):  # the interval leaves out the half if and only if the test rejects
            assert (theirs.pvalue < 0.01) == (not found.interval[0] <= 0.5 <= found.interval[1])


def test_complete_separation_and_complete_ties() -> None:
    found = smaller("dcr", np.arange(5.0), np.arange(5.0) + 10, 0.01)
    assert (found.effect, found.interval[1]) == (1.0, 1.0)
    assert smaller("dcr", np.zeros(5), np.zeros(5), 0.01) == Effect("dcr", 0.5, (0.5, 0.5))


@settings(deadline=None, max_examples=60)
@given(x=samples, y=samples, share=st.sampled_from([0.01, 0.05, 0.3]))
def test_tail_is_a_difference_of_shares(x: list[int], y: list[int], share: float) -> None:
    found = tail("dcr", np.array(x, float), np.array(y, float), share, 0.01)
    threshold = np.quantile([*x, *y], share, method="inverted_cdf")
    low, low_reference = sum(value <= threshold for value in x), sum(value <= threshold for value in y)
    assert found.effect == pytest.approx(low / len(x) - low_reference / len(y))
    assert found.interval[0] <= found.effect <= found.interval[1]
    theirs = stats.binomtest(low, len(x)).proportion_ci(0.99, "wilson")
    assert wilson(low / len(x), len(x), 0.01) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
