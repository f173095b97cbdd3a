"""Published tables: the reader against enumeration of all tables that fit, closed forms and hand-worked examples."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dit_dask as dit
from dit_dask.adversaries.published_tables import PublishedTables, solve
from dit_dask.adversaries.subtraction import subtract_counts
from dit_dask.engines import brute_force
from dit_dask.kernels.exchangeable import term_shares
from dit_dask.sanitizers.tables import Protection, suppress_more
from dit_dask.values.published_tables import OUTSIDE, Grouping, TableLayout
from tests.audits import loaded, points

SCHEMA = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}},
    "sensitive": "illness",
}


def built(frame: pd.DataFrame, tables: list[object], **keys: object) -> tuple[object, object]:
    test = {"sanitizer": {"name": "tables", "tables": tables, **keys}}
    (point,) = points(loaded(frame, SCHEMA), SCHEMA, [test])
    return point.rows.table, point.procedure


def people(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    ages, towns, ills = rng.integers(30, 34, rows), rng.choice(["a", "b"], rows), rng.choice(["x", "y", "z"], rows)
    return pd.DataFrame({"age": ages, "town": towns, "illness": ills})


def reader_counts(frame: pd.DataFrame, tables: list[object], **keys: object) -> tuple[np.ndarray, object, object]:
    table, procedure = built(frame, tables, **keys)
    release = procedure.sanitizer.release(table, np.random.default_rng(0))
    return PublishedTables().counts(release), table, release


def test_two_tables_that_differ_by_one_person_reveal_that_person() -> None:
    """By hand: persons up to 64 and persons up to 65; the only person aged 65 is the difference."""
    frame = pd.DataFrame({"age": [20, 30, 40, 64, 65, 70, 80], "town": ["a"] * 7, "illness": list("xyxyzxy")})
    bands = [[{"age": [20, 64, 80]}, "illness"], [{"age": [20, 65, 80]}, "illness"]]
    table, procedure = built(frame, bands)
    found = brute_force.influence(table, np.arange(7), procedure)
    place = int(np.flatnonzero(table.codes[:, 0] == 4)[0])
    assert found.predicted[place] == 2  # z, with certainty
    # without the person nobody is in the group, so the reader falls back to x 3, y 3 of the others: 2 * (1 - 0)
    assert found.distance[place] == pytest.approx(2.0)
    assert found.distance[np.arange(7) != place].max() == pytest.approx(1.0)  # of two persons above 65: 1/2 or 1
    one_table, alone = built(frame, bands[:1])
    assert brute_force.influence(one_table, np.arange(7), alone).distance[place] == pytest.approx(2 / 3)


def test_one_table_gives_the_shares_of_the_cell() -> None:
    """By hand: town a has x 2, y 1. Without one x the shares are 1/2 and 1/2: d = 2 * (2/3 - 1/2) = 1/3."""
    frame = pd.DataFrame({"age": [30, 30, 30, 31], "town": list("aaab"), "illness": list("xxyy")})
    table, procedure = built(frame, [["town", "illness"]])
    found = brute_force.influence(table, np.arange(table.distinct), procedure)
    assert found.distance[0] == pytest.approx(1 / 3)


@pytest.mark.parametrize("seed", range(4))
def test_tables_of_different_columns_are_combined_as_if_independent_within_a_value(seed: int) -> None:
    frame = people(60, seed)
    counts, table, release = reader_counts(frame, [["age", "illness"], ["town", "illness"]])
    by_age, by_town = (pd.crosstab(frame[column], frame["illness"]) for column in ("age", "town"))
    totals = frame["illness"].value_counts()
    for codes in table.codes:
        age, town = 30 + codes[0], ["a", "b"][codes[1]]
        wanted = [by_age.loc[age, ill] * by_town.loc[town, ill] / totals[ill] for ill in ("x", "y", "z")]
        np.testing.assert_allclose(counts[release.layout.atoms_of(codes[None])[0]], wanted, rtol=1e-7, atol=1e-6)


def fitting(known: list[object], layout: object, atoms: int, most: int) -> np.ndarray:
    """All counts of one value, by plain enumeration, that every published number allows."""
    counts = np.indices((most + 1,) * atoms).reshape(atoms, -1).T
    is_fit = np.ones(len(counts), bool)
    for grouping, one in zip(layout.groupings, known, strict=True):
        for cell in range(grouping.cells):
            total = counts[:, grouping.cell_of == cell].sum(axis=1)
            is_fit &= (one.low[cell, 0] <= total) & (total <= one.high[cell, 0])
    return counts[is_fit]


BANDS = [[{"age": [30, 31, 33]}, "town", "illness"], [{"age": [30, 32, 33]}, "illness"]]


@pytest.mark.parametrize("keys", [{}, {"rounding": "conventional", "base": 3}, {"threshold": 3}])
@pytest.mark.parametrize("seed", range(3))
def test_counts_fit_what_is_published_and_are_exact_where_only_one_table_fits(seed: int, keys: dict[str, object]) -> None:
    frame = people(7, seed).assign(illness="x")
    frame.loc[0, "illness"] = "y"
    counts, _, release = reader_counts(frame, BANDS, **keys)
    atoms = len(release.layout.weights)
    known = [type(one)(one.low[:, :1], one.high[:, :1], one.guess[:, :1]) for one in release.known]
    fits = fitting(known, release.layout, atoms, 7)
    assert len(fits)
    for atom in range(atoms):
        low, high = fits[:, atom].min(), fits[:, atom].max()
        assert low - 1e-5 <= counts[atom, 0] <= high + 1e-5
    if not keys:
        for grouping, one in zip(release.layout.groupings, release.known, strict=True):
            sums = np.bincount(grouping.cell_of[grouping.cell_of >= 0], counts[grouping.cell_of >= 0, 0], grouping.cells)
            np.testing.assert_allclose(sums, one.low[:, 0], atol=1e-5)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 999),
    st.sampled_from([{}, {"rounding": "conventional", "base": 5}, {"threshold": 3}, {"threshold": 3, "complementary": True}]),
)
def test_what_is_known_without_a_person_is_what_a_new_release_says(seed: int, keys: dict[str, object]) -> None:
    table, procedure = built(people(14, seed), [*BANDS, ["town"]], **keys)
    records = np.arange(table.distinct)
    for record, found in zip(records, procedure.sanitizer.leave_one_out(table, records), strict=True):
        again = procedure.sanitizer.release(table.without(int(record)), np.random.default_rng(1))
        np.testing.assert_array_equal(found.counts, again.counts)
        for one, other in zip(found.known, again.known, strict=True):
            for name in ("low", "high", "guess"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


counts = st.lists(st.lists(st.integers(0, 12), min_size=3, max_size=3), min_size=2, max_size=5).map(np.array)


@given(counts, st.integers(2, 10), st.integers(1, 6), st.sampled_from(["none", "conventional", "random"]), st.integers(0, 99))
def test_bounds_hold_the_true_counts_and_small_ones_are_not_shown(
    true: np.ndarray, base: int, threshold: int, rounding: str, seed: int
) -> None:
    known = Protection(rounding, base, threshold).protect(true, 1, np.random.default_rng(seed))
    assert (known.low <= true).all()
    assert (true <= known.high).all()
    assert ((known.low <= known.guess) & (known.guess <= known.high)).all()
    hidden = (true > 0) & (true < threshold)
    assert (known.low[hidden] == 1).all()
    assert (known.high[hidden] == threshold - 1).all()
    if rounding == "conventional" and threshold == 1:
        assert (known.guess % base == 0).all()
        assert (np.abs(known.guess - true) <= base / 2).all()
    if rounding == "random" and threshold == 1:
        assert (known.guess % base == 0).all()
        assert (np.abs(known.guess - true) < base).all()


def test_random_rounding_keeps_the_expected_count() -> None:
    true, rng = np.tile(np.arange(7)[:, None], 20_000), np.random.default_rng(4)
    shown = Protection("random", 3).protect(true, 1, rng).guess
    np.testing.assert_allclose(shown.mean(axis=1), np.arange(7), atol=5 * 1.5 / np.sqrt(20_000))


@given(counts, st.integers(2, 6))
def test_no_row_or_column_has_a_single_suppressed_count_that_could_be_subtracted(true: np.ndarray, threshold: int) -> None:
    primary = (true > 0) & (true < threshold)
    hidden = suppress_more(true, primary)
    assert (hidden | ~primary).all()
    for side, values in ((hidden, true), (hidden.T, true.T)):
        for line, count in zip(side, values, strict=True):
            assert line.sum() != 1 or not (count[~line] > 0).any()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"tables": [["town"]]}, "no table has the sensitive column 'illness'"),
        ({"tables": [["twon", "illness"]]}, "column: unknown 'twon'; did you mean 'town'"),
        ({"tables": []}, "tables"),
        ({"tables": [[]]}, r"tables\[0\] must be a list of columns"),
        ({"tables": ["town"]}, r"tables\[0\] must be a list of columns"),
        ({"tables": [["town", "town", "illness"]]}, "has column 'town' twice"),
        ({"tables": [[{"age": [40, 30]}, "illness"]]}, "at least 2 edges in ascending order"),
        ({"tables": [[{"town": [1, 2]}, "illness"]]}, "only numeric columns have edges"),
        ({"tables": [[{"town": {"g": ["q"]}}, "illness"]]}, "has no value"),
        ({"tables": [["town", "illness"]], "noise": "laplace"}, "noise and epsilon go together; got noise alone"),
        ({"tables": [["town", "illness"]], "epsilon": 1}, "noise and epsilon go together; got epsilon alone"),
        ({"tables": [["town", "illness"]], "noise": "laplace", "epsilon": 1, "threshold": 3}, "neither rounding nor threshold"),
        ({"tables": [["town", "illness"]], "complementary": True}, "goes with a threshold above 1"),
        ({"tables": [["town", "illness"]], "rounding": "random"}, "repeats is missing"),
        ({"tables": [["town", "illness"]], "rounding": "up"}, "rounding"),
        ({"tables": [["town", "illness"]], "threshold": 0}, "threshold must be an integer >= 1"),
    ],
)
def test_wrong_tables_are_one_clear_line(keys: dict[str, object], message: str) -> None:
    with pytest.raises(dit.InputError, match=message) as caught:
        dit.audit(people(20, 1), schema=SCHEMA, tests=[{"sanitizer": {"name": "tables", **keys}}])
    assert "\n" not in str(caught.value)


def test_an_audit_of_tables_has_controls_power_and_a_claim() -> None:
    result = dit.audit(
        people(80, 2),
        schema=SCHEMA,
        tests=[
            {"label": "differenced", "sanitizer": {"name": "tables", "tables": BANDS}},
            {"label": "coarse", "sanitizer": {"name": "tables", "tables": [["illness"]], "threshold": 5}},
            {
                "label": "noisy",
                "sanitizer": {"name": "tables", "tables": BANDS, "noise": "geometric", "epsilon": 2},
                "repeats": 4,
            },
        ],
        gates=["delta <= 0.15", "claims hold"],
    )
    summary = result.summary
    assert summary.loc["differenced", "delta"] > summary.loc["coarse", "delta"] > 0
    assert summary.loc["coarse", "claim_holds"]
    verdicts = {(one.test, one.gate): one.status for one in result.verdict.verdicts}
    assert verdicts["coarse", "delta <= 0.15"] == "passed"
    assert verdicts["differenced", "delta <= 0.15"] == "failed"
    assert verdicts["noisy", "delta <= 0.15"] == "inconclusive"
    assert {one.control for one in result.verdict.controls} == {"raw", "suppressed"}
    assert summary["attainable"].map(lambda reached: reached["distance"] > 0.15).all()


PAY = {"quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}}, "sensitive": "pay"}


def paid(frame: pd.DataFrame, tables: list[object], **keys: object) -> tuple[object, object]:
    test = {"sanitizer": {"name": "tables", "tables": tables, "statistic": "sums", **keys}}
    (point,) = points(loaded(frame, PAY), PAY, [test])
    return point.rows.table, point.procedure


@pytest.mark.parametrize(
    ("values", "terms", "low", "high"),
    [([0, 1, 3], 3, 4, 4), ([0, 1, 3], 1, 3, 3), ([0, 2, 5, 7], 4, 9, 12), ([0, 1], 5, 1.5, 3.2), ([0, 1, 3], 2, 5, 5)],
)
def test_a_term_of_a_sum_has_the_shares_of_all_ways_to_make_it(values: list[int], terms: int, low: float, high: float) -> None:
    ways = np.zeros(len(values))
    for chosen in product(range(len(values)), repeat=terms):
        ways[chosen[0]] += low <= sum(values[one] for one in chosen) <= high
    wanted = ways / ways.sum() if ways.any() else ways
    np.testing.assert_allclose(term_shares(np.array(values), terms, low, high), wanted, atol=1e-12)


def test_many_terms_are_close_to_counting() -> None:
    values = np.array([0, 1, 3, 4, 9])
    counted, many = term_shares(values, 64, 160, 160), term_shares(values, 65, 162.5, 162.5)
    np.testing.assert_allclose(many, counted, atol=0.005)


def test_the_sum_of_two_is_the_example_of_the_docs() -> None:
    frame = pd.DataFrame({"age": [30, 30, 31], "town": ["a", "a", "b"], "pay": [1, 4, 2]})
    table, procedure = paid(frame, [["town"]])
    found = brute_force.influence(table, np.arange(3), procedure)
    place = int(np.flatnonzero(np.array(table.schema.sensitive.levels)[table.secret] == "4")[0])
    assert found.distance[place] == pytest.approx(1.0)


@pytest.mark.parametrize("statistic", ["sums", "means"])
def test_sums_of_populations_that_differ_by_one_person_reveal_the_pay(statistic: str) -> None:
    frame = pd.DataFrame({"age": [20, 30, 40, 50, 65, 70, 80], "town": ["a"] * 7, "pay": [10, 20, 30, 20, 50, 10, 30]})
    bands = [[{"age": [20, 64, 80]}], [{"age": [20, 65, 80]}]]
    table, procedure = paid(frame, bands, statistic=statistic)
    place = int(np.flatnonzero(table.codes[:, 0] == 4)[0])
    found = brute_force.influence(table, np.arange(7), procedure)
    assert found.predicted[place] == table.secret[place]
    assert found.distance[place] > 1.5
    one_table, alone = paid(frame, bands[:1], statistic=statistic)
    assert brute_force.influence(one_table, np.arange(7), alone).distance[place] < 1.5
    hidden, protected = paid(frame, bands[:1], statistic=statistic, threshold=10)
    assert brute_force.influence(hidden, np.arange(7), protected).distance.max() == 0


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 99), st.sampled_from([{}, {"rounding": "conventional", "base": 7}, {"threshold": 3}]), st.booleans())
def test_sums_without_a_person_are_those_of_a_new_release(seed: int, keys: dict[str, object], is_mean: bool) -> None:
    frame = people(12, seed).drop(columns="illness").assign(pay=np.random.default_rng(seed).choice([5, 12.5, 30], 12))
    frame.loc[:1, "pay"] = [5, 30]
    bands = [[{"age": [30, 31, 33]}, "town"], [{"age": [30, 32, 33]}]]
    table, procedure = paid(frame, bands, statistic="means" if is_mean else "sums", **keys)
    truth = procedure.sanitizer.add_up(table)
    for (persons, steps), known in zip(truth, procedure.sanitizer.publish(table.schema, truth).sums, strict=True):
        assert ((known.low <= steps) & (steps <= known.high))[known.is_shown & (persons > 0)].all()
    records = np.arange(table.distinct)
    for record, found in zip(records, procedure.sanitizer.leave_one_out(table, records), strict=True):
        again = procedure.sanitizer.release(table.without(int(record)), np.random.default_rng(1))
        for one, other in zip(found.sums, again.sums, strict=True):
            for name in ("persons", "is_shown", "low", "high"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"tables": [["town", "pay"]]}, "'pay' is summed, so no table is by it"),
        ({"tables": [["town"]], "noise": "laplace", "epsilon": 1}, "sums and means take conventional rounding"),
        ({"tables": [["town"]], "rounding": "random"}, "got rounding: random"),
    ],
)
def test_wrong_sums_are_one_clear_line(keys: dict[str, object], message: str) -> None:
    frame = people(20, 1).rename(columns={"illness": "pay"}).assign(pay=np.arange(20) % 3)
    with pytest.raises(dit.InputError, match=message):
        dit.audit(frame, schema=PAY, tests=[{"sanitizer": {"name": "tables", "statistic": "sums", **keys}}])
    test = {"sanitizer": {"name": "tables", "statistic": "means", "tables": [["town"]]}}
    with pytest.raises(dit.InputError, match="need a sensitive column of numbers"):
        dit.audit(people(20, 1), schema=SCHEMA, tests=[test])


CHAIN = [[{"age": [0, 30]}, "illness"], [{"age": [31, 64]}, "illness"], [{"age": [0, 65]}, "illness"]]


@pytest.mark.parametrize("tables", [CHAIN, [*CHAIN[:2], ["illness"]], [CHAIN[2], [{"age": [31, 65]}, "illness"], *CHAIN[:2]]])
def test_a_person_whom_only_three_tables_together_reveal_is_found(tables: list[object]) -> None:
    """All minus two parts is the person aged 65: certain with the person; without, the shares of all other persons."""
    rng = np.random.default_rng(0)
    ages = np.concatenate([rng.integers(1, 31, 1000), rng.integers(31, 65, 1000), [65]])
    ills = np.concatenate([rng.choice(list("xyz"), 2000), ["z"]])
    table, procedure = built(pd.DataFrame({"age": ages, "town": "a", "illness": ills}), tables)
    last = np.flatnonzero(table.codes[:, 0] == table.codes[:, 0].max())
    (distance,) = brute_force.influence(table, last, procedure).distance
    assert distance == pytest.approx(2 * (1 - np.mean(ills[:-1] == "z")))


def test_sums_of_three_tables_that_differ_by_one_person_reveal_that_person() -> None:
    """Up to 65 minus up to 30 minus 31 to 64 leaves one pay, 4; without, two persons aged 20, 30 or 65 have 3: 1 and 2."""
    frame = pd.DataFrame({"age": [20, 30, 31, 50, 64, 65], "town": list("abaaba"), "pay": [1, 2, 1, 2, 1, 4]})
    tables = [table[:1] for table in CHAIN]
    schema = {**SCHEMA, "sensitive": "pay"}
    result = dit.audit(frame, schema=schema, tests=[{"sanitizer": {"name": "tables", "statistic": "sums", "tables": tables}}])
    assert result.tests[0]["delta"] == pytest.approx(2.0)


PROTECTIONS = [
    Protection(),
    Protection("conventional", 3),
    Protection(threshold=3),
    Protection(threshold=3, complementary=True),
]
part_tables = st.lists(st.lists(st.integers(0, 5), min_size=2, max_size=3, unique=True).map(sorted), min_size=2, max_size=4)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=5, max_size=5), part_tables, st.sampled_from(PROTECTIONS))
def test_tables_of_parts_fit_and_are_exact_where_enumeration_leaves_one_count(
    true: list[int], edges: list[list[int]], protection: Protection
) -> None:
    """Tables of any parts of five groups, which overlap, lie inside each other, or leave groups out."""
    groupings = []
    for limits in edges:
        cell_of = np.searchsorted(limits, np.arange(5), side="right") - 1
        groupings.append(Grouping(np.where(cell_of < len(limits) - 1, cell_of, OUTSIDE), len(limits) - 1, True))
    layout = TableLayout((np.arange(5),), np.ones(5), tuple(groupings))
    exact = [np.array([[sum(true[low:high])] for low, high in pairwise(limits)]) for limits in edges]
    known = [protection.protect(counts, len(edges), None) for counts in exact]
    fits = fitting(known, layout, 5, 6)
    for grouping, one in subtract_counts(layout.groupings, known):
        for cell in np.unique(grouping.cell_of[grouping.cell_of != OUTSIDE]):
            total = np.array(true)[grouping.cell_of == cell].sum()
            assert one.low[cell, 0] <= total <= one.high[cell, 0]
    found = solve(layout, known, 1)[:, 0]
    for atom in np.flatnonzero(np.any([grouping.cell_of != OUTSIDE for grouping in groupings], axis=0)):
        low, high = fits[:, atom].min(), fits[:, atom].max()
        assert low - 0.05 <= found[atom] <= (high if high < 6 else np.inf) + 0.05


def test_counts_keep_all_published_numbers_though_the_steps_of_a_sweep_undo_each_other() -> None:
    """By hand: 4 persons up to 31, 3 of them x; y is 1 or 2 there, so 1, which is aged 31: aged 30 are three x."""
    layouts = [([-1, 0, 1], True), ([0, 0, 1], False), ([0, 0, -1], True)]
    groupings = tuple(Grouping(np.array(cells), max(cells) + 1, by_secret) for cells, by_secret in layouts)
    true = [np.array([[0, 1], [1, 1]]), np.array([[4], [2]]), np.array([[3, 1]])]
    known = [Protection(threshold=3).protect(counts, 3, None) for counts in true]
    found = solve(TableLayout((np.arange(3),), np.ones(3), groupings), known, 2)
    np.testing.assert_allclose(found[:2], [[3, 0], [0, 1]], atol=0.02)
