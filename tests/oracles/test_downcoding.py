"""Downcoding against all tables: what is proved must be so in every table that the same release can be made from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dit_dask as dit
from dit_dask.measures.downcoding.proofs import Proofs, prove
from dit_dask.sanitizers.full_domain import FullDomain
from dit_dask.sanitizers.mondrian import Mondrian
from dit_dask.sanitizers.predicates import Predicates
from dit_dask.values.hierarchy import parse
from dit_dask.values.release import Release
from dit_dask.values.schema import Attribute, Schema, Secret
from dit_dask.values.table import Table, collapse

PAIRS = parse("a;ab;*\nb;ab;*\nc;cd;*\nd;cd;*", "pairs")
THREE = parse("a;*\nb;*\nc;*", "three")
NUMBERS = np.array([1.0, 2.0, 4.0])
NUMBER = Attribute("number", "numeric", tuple(NUMBERS.tolist()), NUMBERS)
TOWN = Attribute("town", "categorical", PAIRS.leaves, None, PAIRS)
KIND = Attribute("kind", "categorical", THREE.leaves, None, THREE)
Cells = tuple[tuple[int, ...], ...]


def table_of(schema: Schema, rows: Cells) -> Table:
    return collapse(schema, np.array(rows, np.int32), np.zeros(len(rows), np.int32))[0]


def every_table(schema: Schema, rows: int) -> Iterator[Cells]:
    levels = [range(len(one.levels)) for one in schema.quasi_identifiers]
    yield from combinations_with_replacement(list(product(*levels)), rows)


def seen(release: Release) -> tuple[Any, ...]:
    """What everybody sees: the published values and how many rows have them."""
    size = release.counts.sum(axis=1)
    return tuple(
        sorted((*low, *high, n) for low, high, n in zip(*map(np.ndarray.tolist, ends(release)), size.tolist(), strict=True))
    )


def ends(release: Release) -> tuple[Any, Any]:
    return release.published.low, release.published.high


@cache
def consistent(schema: Schema, sanitizer: Any, rows: int) -> dict[Any, list[tuple[Cells, Table, Release]]]:
    """All tables of so many rows by what is published of them."""
    found = defaultdict(list)
    for cells in every_table(schema, rows):
        table = table_of(schema, cells)
        release = sanitizer.release(table, np.random.default_rng(0))
        found[seen(release)].append((cells, table, release))
    return found


def fewest(worlds: list[tuple[Cells, Table, Release]], low: Any, high: Any, place: int, first: int, last: int) -> int:
    """In how many rows of a class an attribute is first..last, in the table that has fewest."""
    counts = []
    for cells, _, _ in worlds:
        held = [row for row in cells if all(low <= row) and all(row <= high)]
        counts.append(sum(first <= row[place] <= last for row in held))
    return min(counts)


def check_sound(worlds: list[tuple[Cells, Table, Release]], proofs: Proofs, release: Release) -> None:
    low, high = ends(release)
    for group, place in np.argwhere(proofs.proved):
        first, last = int(low[group, place]), int(high[group, place])
        left, right = int(proofs.left[group, place]), int(proofs.right[group, place])
        assert first <= left < right <= last
        assert (first, left) != (first, last), "a proof must be finer than what is published"
        assert fewest(worlds, low[group], high[group], place, first, left) >= 1
        assert fewest(worlds, low[group], high[group], place, right, last) >= 1


CASES = {
    "mondrian, k = 2": (Mondrian(Predicates(k=2)), (NUMBER, TOWN), 4),
    "mondrian, k = 3": (Mondrian(Predicates(k=3)), (NUMBER, TOWN), 4),
    "mondrian, three children": (Mondrian(Predicates(k=2)), (NUMBER, KIND), 5),
    "basic mondrian": (Mondrian(Predicates(k=2, strict=False)), (NUMBER, TOWN), 4),
    "full-domain, k = 2": (FullDomain(Predicates(k=2)), (TOWN, KIND), 4),
    "full-domain, bands": (FullDomain(Predicates(k=2), bands=(("number", (2.0,)),)), (NUMBER, TOWN), 4),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_proved_is_so_in_every_table_of_the_same_release(case: str) -> None:
    sanitizer, attributes, rows = CASES[case]
    schema = Schema(attributes, Secret("secret", ("s",)))
    proved = 0
    for worlds in consistent(schema, sanitizer, rows).values():
        _, table, release = worlds[0]
        proofs, _ = prove(sanitizer, release, table)
        if proofs is None:
            continue
        proved += int(proofs.proved.sum())
        check_sound(worlds, proofs, release)
    assert proved > 0, "a case that proves nothing checks nothing"


def test_intervals_alone_are_proved_completely_at_their_ends() -> None:
    """No code of an interval but its ends is in every consistent table, where classes are too small to be split anyway."""
    sanitizer, schema = Mondrian(Predicates(k=3)), Schema((NUMBER,), Secret("secret", ("s",)))
    for worlds in consistent(schema, sanitizer, 4).values():
        _, table, release = worlds[0]
        proofs, _ = prove(sanitizer, release, table)
        assert proofs is not None
        (low,), (high,) = ends(release)
        sure = sum(fewest(worlds, low, high, 0, code, code) for code in range(3))
        assert sure == (2 * int(proofs.proved.sum()) if low[0] < high[0] else 4)


def test_a_category_of_three_children_is_said_to_be_mixed_but_nobody_is_proved_finer() -> None:
    sanitizer, schema = Mondrian(Predicates(k=2)), Schema((KIND,), Secret("secret", ("s",)))
    table = table_of(schema, ((0,), (0,), (1,)))
    proofs, _ = prove(sanitizer, sanitizer.release(table, np.random.default_rng(0)), table)
    assert proofs is not None
    assert (int(proofs.mixed.sum()), bool(proofs.proved.any())) == (1, False)


def test_the_worked_example_of_the_docs() -> None:
    """Ages 20, 24, 30, 34 with k = 2 are published as [20, 24] and [30, 34]: all four cells are proved."""
    frame = pd.DataFrame({"age": [20, 24, 30, 34], "town": ["a"] * 4, "illness": ["x", "y", "x", "y"]})
    schema = {"quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}}, "sensitive": "illness"}
    tests = [{"sanitizer": {"name": "mondrian", "k": 2}}]
    measures = [{"name": "downcoding", "records": True}]
    result = dit.audit(frame, schema=schema, tests=tests, measures=measures, gates=["downcoding <= 0.5"], controls=False)
    (entry,) = result.measures
    assert (entry["value"], entry["proved_cells"], entry["generalised_cells"]) == (1.0, 4, 4)
    assert [one.status for one in result.verdict.verdicts] == ["failed"]
    assert result.measured(entry["id"])["proved"].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("sanitizer", "reason"),
    [
        ({"name": "suppressed"}, "nothing is known of what the sanitizer minimises"),
        ({"name": "full-domain", "k": 2, "suppression": 0.2, "bands": {"age": [10]}}, "with suppression a lower level"),
    ],
)
def test_a_sanitizer_of_which_nothing_is_known_is_inconclusive(sanitizer: dict[str, Any], reason: str) -> None:
    frame = pd.DataFrame({"age": [*range(20, 32)], "illness": ["x", "y"] * 6})
    schema = {"quasi_identifiers": {"age": {"kind": "numeric"}}, "sensitive": "illness"}
    result = dit.audit(
        frame,
        schema=schema,
        tests=[{"sanitizer": sanitizer}],
        measures=["downcoding"],
        gates=["downcoding <= 1"],
        controls=False,
    )
    (verdict,) = result.verdict.verdicts
    assert verdict.status == "inconclusive"
    assert reason in verdict.reason


@pytest.mark.parametrize(
    ("sanitizer", "gate", "status"),
    [
        ({"name": "full-domain", "k": 5, "bands": {"age": [4, 12]}}, "downcoding <= 0.2", "inconclusive"),  # 2 of 12 rows
        ({"name": "full-domain", "k": 5, "bands": {"age": [4, 12]}}, "downcoding <= 0.1", "passed"),
        ({"name": "mondrian", "k": 5}, "downcoding <= 1", "inconclusive"),
        ({"name": "mondrian", "k": 5}, "downcoding <= 0.5", "passed"),
    ],
)
def test_a_limit_that_no_proof_could_exceed_is_no_pass(sanitizer: dict[str, Any], gate: str, status: str) -> None:
    frame = pd.DataFrame({"age": [*range(20, 32)], "illness": ["x", "y"] * 6})
    schema = {"quasi_identifiers": {"age": {"kind": "numeric"}}, "sensitive": "illness"}
    tests = [{"sanitizer": sanitizer}]
    result = dit.audit(frame, schema=schema, tests=tests, measures=["downcoding"], gates=[gate], controls=False)
    assert [one.status for one in result.verdict.verdicts if one.gate == gate] == [status]


def test_a_measure_of_releases_needs_one() -> None:
    frame = pd.DataFrame({"age": [*range(20, 32)], "illness": ["x", "y"] * 6})
    schema = {"quasi_identifiers": {"age": {"kind": "numeric"}}, "sensitive": "illness"}
    with pytest.raises(dit.InputError, match=r"measures\[0\]: downcoding is of releases, and no test"):
        dit.audit(frame, schema=schema, tests=[{"sanitizer": "raw"}], measures=["downcoding"])
