"""Exact neighbours: the tree gives what comparing with all records gives, to the bit."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dit_dask.measures.synthetic import closeness as closest
from dit_dask.measures.synthetic import space
from dit_dask.measures.synthetic.closeness import closeness
from dit_dask.measures.synthetic.columns import align
from tests.oracles.nearest import nearest_two
from tests.properties.mixed_frames import mixed_frames


@settings(deadline=None, max_examples=30)
@given(frames=mixed_frames(), distance=st.sampled_from(space.DISTANCES), bins=st.integers(2, 6))
def test_neighbours_equal_brute_force_to_the_bit(frames: list[pd.DataFrame], distance: str, bins: int) -> None:
    training, synthetic, holdout = frames
    found = closeness(training, synthetic, holdout, distance, bins=bins)
    for queries, dcr, nndr in ((synthetic, found.dcr, found.nndr), (holdout, found.holdout_dcr, found.holdout_nndr)):
        expected = nearest_two(training, queries, training, distance, bins)
        assert dcr.tolist() == [first for first, _ in expected]
        assert nndr.tolist() == [1.0 if second == 0 else first / second for first, second in expected]


@settings(deadline=None, max_examples=12)
@given(frames=mixed_frames(most=60), distance=st.sampled_from(space.DISTANCES))
def test_neither_blocks_nor_trees_change_a_bit(frames: list[pd.DataFrame], distance: str) -> None:
    whole = closeness(*frames, distance)
    with patch.object(space, "TREE_ROWS", 5), patch.object(closest, "BLOCK", 7):
        cut = closeness(*frames, distance)
    for name in ("dcr", "nndr", "holdout_dcr", "holdout_nndr"):
        assert getattr(cut, name).tobytes() == getattr(whole, name).tobytes()


ALWAYS = dict.fromkeys(space.DISTANCES, -1.0)


@settings(deadline=None, max_examples=60)
@given(frames=mixed_frames(frames=2), distance=st.sampled_from(space.DISTANCES), bins=st.integers(2, 6))
def test_comparing_all_rows_equals_brute_force_to_the_bit(frames: list[pd.DataFrame], distance: str, bins: int) -> None:
    training, queries = frames
    metric, (known, new) = space.encode(align({"training": training, "synthetic": queries}), distance, bins)
    with (
        patch.object(space, "FEWEST_ROWS", 1),
        patch.object(space, "MOST_EFFORT", ALWAYS),
        patch.object(space, "ROUGH_CELLS", 64),
    ):
        index = space.build_index(metric, known)
        found = index.nearest(new)
    assert bool(index.scans) == (not np.isnan(known).any())
    expected = nearest_two(training, queries, training, distance, bins)
    assert list(zip(found.first.tolist(), found.second.tolist(), strict=True)) == expected


@pytest.mark.parametrize("distance", ["gower", "euclidean"])
def test_the_way_to_search_follows_from_the_data_and_changes_no_bit(distance: str) -> None:
    rng = np.random.default_rng(3)
    for columns, is_scanned in ((30, True), (2, False)):
        frames = [pd.DataFrame(rng.normal(size=(rows, columns))).add_prefix("c") for rows in (3000, 300)]
        frames[1] *= 3  # many are outside the range of training
        metric, (known, new) = space.encode(align(dict(zip(("training", "synthetic"), frames, strict=True))), distance, 10)
        index = space.build_index(metric, known)
        assert bool(index.scans) == is_scanned
        found, by_tree = index.nearest(new), space.Index(metric, index.trees, {}).nearest(new)
        assert (found.first == by_tree.first).all()
        assert (found.second == by_tree.second).all()


@settings(deadline=None, max_examples=12)
@given(frames=mixed_frames(most=60), seed=st.integers(0, 99))
def test_row_order_does_not_matter(frames: list[pd.DataFrame], seed: int) -> None:
    training, synthetic, holdout = frames
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(synthetic))
    shuffled = [training.iloc[rng.permutation(len(training))], synthetic.iloc[order], holdout.iloc[::-1]]
    one, other = closeness(*frames), closeness(*shuffled)
    assert other.dcr.tolist() == one.dcr[order].tolist()
    assert other.share_nearer_training == pytest.approx(one.share_nearer_training, abs=1e-12)  # sums in another order
    assert [test.p for test in other.tests] == pytest.approx([test.p for test in one.tests], rel=1e-9)


@pytest.mark.parametrize("distance", space.DISTANCES)
def test_many_rows_and_deep_trees_equal_brute_force(distance: str) -> None:
    rng = np.random.default_rng(5)

    def table(rows: int) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "income": np.round(rng.lognormal(3, 2, rows), 2),
                "zero": np.where(rng.random(rows) < 0.9, 0, rng.integers(1, 99, rows)),
                "town": rng.choice([f"t{n}" for n in range(90)], rows),  # more than a mask has bits
                "id": [f"p{n}" for n in rng.integers(0, 10**6, rows)],  # hardly ever the same
            }
        )

    training, queries = table(3000), table(40)
    metric, (known, new) = space.encode(align({"training": training, "synthetic": queries}), distance, 10)
    found = space.build_index(metric, known).nearest(new)
    expected = nearest_two(training, queries, training, distance)
    assert list(zip(found.first.tolist(), found.second.tolist(), strict=True)) == expected
    assert (metric.finish(_totals(metric, new, space.unique_rows(known)[0][found.row])) == found.first).all()


def _totals(metric: space.Metric, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The distance to the very record that is said to be nearest."""
    total = np.zeros(len(left))
    for column, (kind, scale) in enumerate(zip(metric.kinds, metric.scales, strict=True)):
        gap = np.abs(left[:, column] - right[:, column])
        total += [np.where(gap > 0, scale, 0.0), np.minimum(1, gap / scale), (gap / scale) ** 2][kind]
    return total
