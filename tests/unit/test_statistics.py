from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dit_dask.audit import manifest
from dit_dask.audit.disclosure import results_are_complete
from dit_dask.audit.statistics import MOST_POINTS, Distribution, Statistics, describe, points
from dit_dask.audit.summary import Description, Outcome, extrapolate, read_complete, read_curves, write_results
from dit_dask.audit.summary import TestSummary as Summary
from dit_dask.audit.verdict import RunVerdict, write_verdict
from dit_dask.errors import InputError
from dit_dask.measures.base import MeasureEntry
from dit_dask.sanitizers.claims import Recheck
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location
from dit_dask.values.intervals import lower_limit, upper_limit
from tests.manifests import new_manifest
from tests.unit.summaries import DOCUMENT

distances = st.lists(st.sampled_from([0.0, 0.002, 0.004, 0.05, 0.25, 1 / 3, 2.0]), min_size=1, max_size=60)


def distribution(values: list[float], changed: int = 0) -> Distribution:
    return Distribution.of(np.array(values), np.ones(len(values), np.int64), changed)


def described(found: Distribution) -> str:
    return json.dumps(describe(found).document(), allow_nan=False)


@given(distances)
def test_statistics_are_numpys_over_rows(values: list[float]) -> None:
    found = describe(distribution(values)).document()
    assert found["delta"] == max(values)
    assert found["mean"] == pytest.approx(np.mean(values), abs=1e-14)  # another order of additions
    assert found["std"] == pytest.approx(np.std(values), abs=1e-12)
    for level, value in found["quantiles"].items():
        assert value == pytest.approx(np.quantile(values, float(level)), abs=1e-14)
    assert found["share_over"]["0.00316"] == np.mean(np.array(values) > 10**-2.5)
    assert found["records"] == len(values)


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.002, 0.25, 1 / 3, math.nan]), st.integers(1, 5)), min_size=1), st.data())
def test_records_in_any_order_with_their_rows_are_the_rows_to_the_bit(
    records: list[tuple[float, int]], data: st.DataObject
) -> None:
    """A distinct record that stands for several rows counts as each of them alone; one that was skipped skips them all."""
    records = [*records, (2.0, 1)]  # a test of nobody is refused
    ordered = data.draw(st.permutations(records))
    counted = Distribution.of(np.array([d for d, _ in ordered]), np.array([rows for _, rows in ordered]), 2)
    rows = distribution([distance for distance, rows in records for _ in range(rows)], 2)
    figures, expected = (json.loads(described(found)) for found in (counted, rows))
    distinct = sum(not math.isnan(distance) for distance, _ in records)
    assert (figures.pop("distinct"), expected.pop("distinct")) == (distinct, rows.total)
    assert figures == expected
    assert counted.skipped == sum(rows for distance, rows in records if math.isnan(distance))


def test_infinite_distances_are_words_and_never_nan() -> None:
    found = describe(distribution([0.0, math.inf])).document()
    assert (found["delta"], found["mean"], found["std"]) == ("inf", "inf", None)
    assert found["quantiles"]["0.5"] == "inf"
    json.dumps(found, allow_nan=False)


def test_the_distribution_is_exact_at_both_ends_and_bounded_between() -> None:
    values = np.random.default_rng(1).random(30_000)
    drawn = points(Distribution.of(values, np.ones(len(values), np.int64), 0))
    assert len(drawn["distance"]) == MOST_POINTS
    assert (drawn["distance"][0], drawn["distance"][-1]) == (values.min(), values.max())
    assert drawn["cumulative"][-1] == drawn["cumulative_distinct"][-1] == 1
    share = (values[:, None] <= drawn["distance"][[7, 500, 9000]]).mean(axis=0)
    np.testing.assert_array_equal(drawn["cumulative"][[7, 500, 9000]], share)


def test_duplicates_count_once_among_distinct_records() -> None:
    both = Distribution.of(np.array([0.1, 0.3]), np.array([2, 1]), 0)
    drawn = points(both)
    assert drawn["cumulative"].tolist() == [2 / 3, 1.0]
    assert drawn["cumulative_distinct"].tolist() == [0.5, 1.0]


SHARES = {"mean": 0.25, "worst": 0.5, "worst_at_most": 0.75, "noise_mean": 0.125, "noise_worst": 0.25}
BIAS = {"delta": 0.1, "mean": 0.05}
CURVE = [{"epsilon": 0.5, "mean": 0.1, "worst": 0.4, "at_least": 0.1, "at_most": 0.8, "noise_worst": 0.2}]
EXCESS = {"mean": {"estimate": 0.125, "interval": [0.0, 0.5]}, "share_over[0.1]": {"estimate": 0.5, "interval": [0.0, 1.0]}}
REPEATS = {"count": 30, "noise": 0.125, "over": {"0.001": SHARES, "0.1": SHARES}, "expected_noise": 0.0625}
UTILITY = {
    "certainty_penalty": 0.25,
    "discernibility": 90,
    "average_class": 6.0,
    "average_class_over_k": None,
    "query_error": {"0.25": 0.0, "0.5": 0.125, "0.75": 0.25, "0.95": 1.5},
    "tvd": {"1": 0.0, "2": 0.125},
}
OPTIONAL = {
    "exact": {},
    "repeated": {"repeats": REPEATS | {"p_value": 0.01, "significant": 3, "excess": EXCESS, "bias": BIAS, "curve": CURVE}},
    "simulated": {
        "largest_unbiased": 0.5,
        "delta_interval": [0.25, 0.75],
        "effective_epsilon": {"at_least": "inf", "confidence": 0.99},
    },
    "simulated without a claim": {"largest_unbiased": "inf", "delta_interval": [0.0, 2.0], "effective_epsilon": None},
    "sampled": {"sampling": {"rows": 900, "confidence": 0.95, "share_over": {"0.01": [0.1, 0.2]}, "above_delta_at_most": None}},
    "external": {"oracle": {"deterministic": None, "rows": 60, "nearest": 0}, "skipped_records": [3, 9]},
}


@pytest.mark.parametrize("kind", OPTIONAL)
def test_a_summary_is_read_and_written_without_any_change(kind: str) -> None:
    statistics = describe(distribution([0.0, 0.25, math.inf])).document()
    document = DOCUMENT | statistics | UTILITY | OPTIONAL[kind]
    names = ["test", "parameters", "engine", "engine_reason", *statistics]
    names += ["classes", "smallest_class", *UTILITY, "claim_holds", "claim_broken"]
    names += ["worst_adversary", "adversaries", "attainable", *OPTIONAL[kind], "seconds"]
    ordered = {name: document.get(name) for name in names}
    summary = Summary.read(json.loads(json.dumps(ordered)))
    assert json.dumps(summary.document()) == json.dumps(ordered)
    assert summary.delta == math.inf


@pytest.mark.parametrize("value", [0.5, None, "inf"])
def test_a_measure_entry_is_read_and_written_without_any_change(value: float | str | None) -> None:
    document = {
        "measure": "accuracy",
        "id": "accuracy.raw",
        "parameters": {"bins": 10},
        "sanitizer": None,
        "value": value,
        "by_value": [{"columns": ["age"], "tvd": 0.5}],
        "records": 60,
        "tvd": 0.5,
        "rows": [60, 60],
        "columns": ["rate"],
    }
    entry = MeasureEntry.read(document)
    assert json.dumps(entry.document()) == json.dumps(document)
    assert entry.value == (math.inf if value == "inf" else value)
    assert (entry.id, entry.more) == ("accuracy.raw", {"tvd": 0.5, "rows": [60, 60]})


@pytest.mark.parametrize("trials", [1, 7, 40, 999])
@pytest.mark.parametrize("tail", [0.025, 0.05 / 40])
def test_limits_are_those_of_an_exact_binomial_test(trials: int, tail: float) -> None:
    for successes in {0, 1, trials // 3, trials - 1, trials}:
        exact = stats.binomtest(successes, trials).proportion_ci(1 - 2 * tail, "exact")
        found = lower_limit(successes, trials, tail), upper_limit(successes, trials, tail)
        assert found == pytest.approx((exact.low, exact.high), abs=1e-12)  # scipy searches for a root


def test_rows_that_were_skipped_may_lie_on_either_side_of_a_limit() -> None:
    shares = {"0.01": 0.25}
    skipped = extrapolate(Statistics({"subjects": 40, "skipped": 10, "share_over": shares}), 900)
    assert skipped.share_over["0.01"] == (lower_limit(10, 50, 0.025000000000000022), upper_limit(20, 50, 0.025000000000000022))
    assert skipped.above_delta_at_most is None
    whole = extrapolate(Statistics({"subjects": 40, "skipped": 0, "share_over": shares}), 900)
    assert (whole.rows, whole.confidence) == (900, 0.95)
    assert whole.above_delta_at_most == pytest.approx(1 - 0.05 ** (1 / 40), rel=1e-12)


FILES = ("manifest.json", "summary.json", "measures.json", "verdict.json")
HARM = [(name, content) for name in FILES for content in (None, b"", b"[{}]")] + [("distributions.parquet", None)]


@pytest.mark.parametrize(("name", "content"), HARM)
def test_results_are_complete_only_if_all_can_be_read(tmp_path: Path, name: str, content: bytes | None) -> None:
    folder = Folder(Location(str(tmp_path), {}))
    statistics = describe(distribution([0.0, 0.25]))
    summary = Summary.read(DOCUMENT | statistics.document())
    outcome = Outcome(Description(statistics, {}, {}), points(distribution([0.0, 0.25])), Recheck(7, 5, True, 0, 0), None)
    manifest.write(folder, new_manifest(status="complete"))
    write_results(folder, [summary], {summary.test: outcome.points}, [])
    write_verdict(folder, RunVerdict())
    assert results_are_complete(folder)
    assert read_complete(folder)[1] == [summary]
    assert read_curves(folder)["mondrian-k5"][1].tolist() == [0.5, 1.0]
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    assert not results_are_complete(folder)


def test_damaged_distributions_are_one_clear_line(tmp_path: Path) -> None:
    folder = Folder(Location(str(tmp_path), {}))
    folder.write("distributions.parquet", b"junk")
    with pytest.raises(InputError, match=r"distributions\.parquet cannot be read; run it again"):
        read_curves(folder)
