"""Mondrian, naive Bayes and conditional frequency against the slow, separately written reference."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings

from dit_dask.engines.brute_force import influence
from dit_dask.inputs.load import load
from dit_dask.sanitizers.claims import recheck
from dit_dask.seeds import stream
from dit_dask.values.release import Release
from dit_dask.values.table import Rows
from tests.audits import checked, points
from tests.oracles import reference
from tests.properties.strategies import People, people, sanitizers


def rows_of(table: People) -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        return load(checked(table.schema_in(Path(folder)), folder=folder), table.frame)


def published(release: Release) -> set[tuple[object, ...]]:
    """Each class as the sets of values it covers and its counts."""
    classes = set()
    for low, high, counts in zip(release.published.low, release.published.high, release.counts, strict=True):
        covered = []
        for attribute, first, last in zip(release.schema.quasi_identifiers, low, high, strict=True):
            ends = (attribute.levels[first], attribute.levels[last])
            covered.append(ends if attribute.kind == "numeric" else frozenset(attribute.levels[first : last + 1]))
        classes.add((*covered, tuple(counts)))
    return classes


def expected(table: People, root: reference.Node, levels: tuple[str, ...]) -> set[tuple[object, ...]]:
    classes = set()
    for leaf in reference.leaves(root):
        covered = []
        for attribute, value in zip(table.attributes, leaf.generalised, strict=True):
            if isinstance(attribute, reference.Tree):
                covered.append(frozenset(path[0] for path in attribute.paths if value in path))
            else:
                covered.append(tuple(value))
        held = [table.secrets[row] for row in leaf.rows]
        classes.add((*covered, tuple(held.count(level) for level in levels)))
    return classes


@settings(max_examples=300, deadline=None)
@given(people(), sanitizers)
def test_every_release_is_that_of_the_reference(table: People, sanitizer: dict[str, object]) -> None:
    assume(sanitizer.get("l", 0) <= len(set(table.secrets)))
    rows = rows_of(table)
    (point,) = points(rows, table.schema, [{"sanitizer": {"name": "mondrian", **sanitizer}}])
    release = point.procedure.sanitizer.release(rows.table, stream(0))
    root = reference.mondrian(table.records, table.secrets, table.attributes, **sanitizer)
    assert published(release) == expected(table, root, rows.table.schema.sensitive.levels)
    assert release.counts.sum() == len(table.frame)


@settings(max_examples=300, deadline=None)
@given(people(), sanitizers)
def test_strict_classes_keep_their_claim_unless_there_is_only_one(table: People, sanitizer: dict[str, object]) -> None:
    assume(sanitizer.get("l", 0) <= len(set(table.secrets)))
    rows = rows_of(table)
    (point,) = points(rows, table.schema, [{"sanitizer": {"name": "mondrian", **sanitizer}}])
    release = point.procedure.sanitizer.release(rows.table, stream(0))
    found = recheck(release, point.procedure.sanitizer.claim)
    if sanitizer.get("variant") != "basic" and found.classes > 1:
        assert found.holds
        assert found.smallest_class >= sanitizer.get("k", sanitizer.get("l"))


@pytest.mark.parametrize(
    ("adversary", "believe"),
    [("bernoulli-nb", reference.naive_bayes), ("conditional-frequency", reference.conditional_frequency)],
)
@settings(max_examples=60, deadline=None)
@given(table=people(most_rows=18), sanitizer=sanitizers)
def test_every_leave_one_out_is_that_of_the_reference(adversary, believe, table: People, sanitizer: dict[str, object]) -> None:
    assume(sanitizer.get("l", 0) <= len(set(table.secrets)))
    rows = rows_of(table)
    (point,) = points(rows, table.schema, [{"sanitizer": {"name": "mondrian", **sanitizer}, "adversary": adversary}])
    mine = influence(rows.table, np.arange(rows.table.distinct), point.procedure)
    pairs = reference.leave_one_out(table.records, table.secrets, table.attributes, believe, **sanitizer)
    theirs = [reference.emd(p, q) for p, q in pairs]
    # rounding of a handful of multiplications on each side
    np.testing.assert_allclose(mine.distance[rows.index], theirs, atol=1e-12)


@settings(max_examples=100, deadline=None)
@given(people())
def test_the_order_of_rows_changes_no_bit(table: People) -> None:
    rows = rows_of(table)
    shuffled = People(table.frame.iloc[::-1], table.schema, table.hierarchies, table.attributes)
    other = rows_of(shuffled)
    test = {"sanitizer": {"name": "mondrian", "k": 2}}
    results = []
    for one in (rows, other):
        (point,) = points(one, table.schema, [test])
        results.append(influence(one.table, np.arange(one.table.distinct), point.procedure).distance[one.index])
    np.testing.assert_array_equal(results[0], results[1][::-1])
