"""The narrowest class against loops in plain Python: over the published labels, and over sets with exact integers."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dit_dask.adversaries.conditional_frequency import ConditionalFrequency
from dit_dask.adversaries.narrowest_class import NarrowestClass
from dit_dask.audit import identity as naming
from dit_dask.encoders.tf import TF
from dit_dask.sanitizers.mondrian import Mondrian
from dit_dask.sanitizers.raw import Raw
from dit_dask.sanitizers.suppressed import Suppressed
from dit_dask.values.release import Ranges, Release, Sets
from dit_dask.values.schema import Attribute, Schema, Secret
from dit_dask.values.table import Table
from tests.audits import checked
from tests.properties.code_tables import procedures, tables
from tests.unsafe import sanitizers
from tests.unsafe.gallery import audit_external
from tests.unsafe.tables import CLINIC, clinic

UNHURRIED = settings(deadline=None, derandomize=True, database=None)


def covered(published: str, domain: list[Any]) -> set[Any]:
    """The values that a label of the gallery's functions stands for: *, [low, high), or itself."""
    if published == "*":
        return set(domain)
    if published.startswith("["):
        low, high = (int(end) for end in published.strip("[)").split(", "))
        return {value for value in domain if low <= value < high}
    return {value for value in domain if str(value) == published}


def believed(release: pd.DataFrame, whole: pd.DataFrame, age: int, town: str) -> dict[str, float]:
    """Shares among the published rows that cover the target and the fewest pairs of an age and a town."""
    ages, towns = sorted(set(whole["age"])), sorted(set(whole["town"]))
    rows = []
    for published_age, published_town, illness in release[["age", "town", "illness"]].astype(str).itertuples(index=False):
        if published_age == published_town == "*":  # a suppressed row is none of the release
            continue
        some_ages, some_towns = covered(published_age, ages), covered(published_town, towns)
        rows.append((age in some_ages and town in some_towns, len(some_ages) * len(some_towns), illness))
    fewest = min((pairs for covers, pairs, _ in rows if covers), default=None)
    chosen = [illness for covers, pairs, illness in rows if fewest is None or (covers and pairs == fewest)]
    return {illness: count / len(chosen) for illness, count in Counter(chosen).items()}


@pytest.mark.parametrize("function", ["exposes_one_person", "bands", "suppresses_outliers", "publishes_everything"])
def test_an_external_release_is_read_as_a_loop_over_its_labels_reads_it(function: str) -> None:
    frame, sanitize = clinic(60), getattr(sanitizers, function)
    expected = []
    for record, (age, town) in enumerate(zip(frame["age"], frame["town"], strict=True)):
        with_record, without = (
            believed(sanitize(table), frame, age, town) for table in (frame, frame.drop(index=record).reset_index(drop=True))
        )
        values = set(with_record) | set(without)
        expected.append(sum(abs(with_record.get(value, 0) - without.get(value, 0)) for value in values))
    found = audit_external(function, frame, []).distances()["distance.narrowest-class"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@st.composite
def overlapping(draw: st.DrawFn) -> tuple[Release, np.ndarray]:
    """A release of any ranges or sets that overlap as they like, and a target."""
    levels = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    classes, secrets = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    attributes = tuple(
        Attribute(f"q{n}", "numeric", tuple(range(size)), np.arange(float(size))) for n, size in enumerate(levels)
    )
    schema = Schema(attributes, Secret("s", tuple(f"s{n}" for n in range(secrets))))
    counts = np.array(
        draw(st.lists(st.lists(st.integers(0, 3), min_size=secrets, max_size=secrets), min_size=classes, max_size=classes))
    )
    counts[:, 0] += counts.sum(axis=1) == 0
    target = np.array([draw(st.integers(0, size - 1)) for size in levels], np.int32)
    if draw(st.booleans()):
        ends = [
            [sorted(draw(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)))) for size in levels]
            for _ in range(classes)
        ]
        both = np.array(ends, np.int32)
        return Release(schema, Ranges(both[..., 0], both[..., 1]), counts), target
    masks = []
    for size in levels:
        drawn = draw(
            st.lists(st.lists(st.booleans(), min_size=size, max_size=size).filter(any), min_size=classes, max_size=classes)
        )
        masks.append(np.array(drawn))
    unique = [np.unique(mask, axis=0, return_inverse=True) for mask in masks]
    value = np.column_stack([inverse.ravel() for _, inverse in unique]).astype(np.int32)
    return Release(schema, Sets(value, tuple(kinds for kinds, _ in unique)), counts), target


def covered_codes(release: Release, place: int, attribute: int) -> set[int]:
    published = release.published
    if isinstance(published, Ranges):
        return set(range(int(published.low[place, attribute]), int(published.high[place, attribute]) + 1))
    return {code for code, hit in enumerate(published.sets[attribute][published.value[place, attribute]].tolist()) if hit}


@settings(UNHURRIED, max_examples=300)
@given(overlapping())
def test_the_covering_class_of_the_fewest_tuples_decides_and_ties_count_together(drawn: tuple[Release, np.ndarray]) -> None:
    release, target = drawn
    volumes: dict[int, int] = {}
    for place in range(len(release.counts)):
        values = [covered_codes(release, place, attribute) for attribute in range(len(target))]
        if all(code in some for code, some in zip(target.tolist(), values, strict=True)):
            volumes[place] = math.prod(map(len, values))
    chosen = [place for place, volume in volumes.items() if volume == min(volumes.values())] or range(len(release.counts))
    counts = [sum(int(release.counts[place, secret]) for place in chosen) for secret in range(release.counts.shape[1])]
    expected = [float(Fraction(count, sum(counts))) for count in counts]
    assert NarrowestClass().beliefs(release, TF(), target).tolist() == expected


@settings(UNHURRIED, max_examples=40)
@given(tables(25), procedures(), st.integers(0, 1000))
def test_with_a_split_tree_or_disjoint_classes_it_is_conditional_frequency(table: Table, procedure: Any, number: int) -> None:
    assert isinstance(procedure.sanitizer, Mondrian)
    record = number % table.distinct
    rng, target = np.random.default_rng(0), table.codes[record]
    for sanitizer in (procedure.sanitizer, Raw(), Suppressed()):
        for some in (table, table.without(record)):
            if not some.rows:
                continue
            release = sanitizer.release(some, rng)
            narrow, usual = (one.beliefs(release, TF(), target) for one in (NarrowestClass(), ConditionalFrequency()))
            assert narrow.tolist() == usual.tolist()


def test_it_joins_the_panel_only_where_classes_may_overlap() -> None:
    usual = ["bernoulli-nb", "conditional-frequency"]
    external = {"name": "python", "target": "sanitizers:bands"}
    expected: list[tuple[Any, Any, list[str], str]] = [
        ({"name": "mondrian", "k": 5}, "panel", usual, "mondrian-k5"),
        ("raw", "panel", usual, "raw"),
        ("suppressed", "panel", usual, "suppressed"),
        ("resample", "panel", usual, "resample"),
        (external, "panel", [*usual, "narrowest-class"], "python-sanitizers.bands"),
        (external, "narrowest-class", ["narrowest-class"], "python-sanitizers.bands.narrowest-class"),
        (external, usual, usual, "python-sanitizers.bands.bernoulli-nb-conditional-frequency"),
    ]
    for sanitizer, adversary, names, identity in expected:
        default = [{"sanitizer": sanitizer}] if adversary == "panel" else []
        for point in checked(CLINIC, [*default, {"sanitizer": sanitizer, "adversary": adversary}]).tests:
            assert [component.name for component in point.adversary or ()] == names
            assert naming.test_id(point.identity()) == identity
