"""Full-domain generalisation against an exhaustive search in plain Python, and all removals against searching again."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dit_dask.engines import brute_force
from dit_dask.errors import InputError
from dit_dask.sanitizers.claims import recheck
from dit_dask.sanitizers.full_domain import FullDomain
from dit_dask.sanitizers.predicates import Predicates
from dit_dask.values.schema import Attribute, Schema
from dit_dask.values.table import Table, collapse
from tests.audits import loaded, points
from tests.oracles.reference import Properties
from tests.properties.code_tables import predicates, tables

RNG = np.random.default_rng(0)
UNHURRIED = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
SUPPRESSION = st.sampled_from((Fraction(0), Fraction(1, 20), Fraction(1, 4), Fraction(3, 5)))


@st.composite
def sanitizers(draw: st.DrawFn) -> FullDomain:
    asked = draw(st.one_of(st.integers(2, 6).map(lambda k: Predicates(k=k)), predicates()))
    return FullDomain(asked, draw(SUPPRESSION), draw(st.sampled_from(("certainty", "discernibility"))))


def few_attributes(table: Table, sanitizer: FullDomain) -> tuple[Table, FullDomain]:
    """At most three attributes, so that plain Python can search, and bands for those that are numeric."""
    chosen = table.schema.quasi_identifiers[:3]
    named = tuple(replace(one, name=f"{one.name}-{place}") for place, one in enumerate(chosen))
    schema = Schema(named, table.schema.sensitive)
    codes = np.repeat(table.codes[:, :3], table.weights, axis=0)
    small = collapse(schema, codes, np.repeat(table.secret, table.weights))[0]
    bands = tuple((one.name, (4.0, 8.0)) for one in named if one.hierarchy is None)
    return small, replace(sanitizer, bands=tuple(sorted(bands)))


def values_at_levels(attribute: Attribute) -> list[dict[int, tuple[tuple[int, int], Fraction]]]:
    """For each level and code: the codes that are published together, and the share of the domain that is lost."""
    codes = range(len(attribute.levels))
    if attribute.hierarchy is None:
        values = [Fraction(value) for value in attribute.levels]
        span = values[-1] - values[0]
        keys = [list(codes), [value // 4 for value in values], [value // 8 for value in values], [0 for _ in codes]]
        levels = []
        for level in keys:
            found = {}
            for code in codes:
                alike = [other for other in codes if level[other] == level[code]]
                share = (values[alike[-1]] - values[alike[0]]) / span if span else Fraction(0)
                found[code] = ((alike[0], alike[-1]), share)
            levels.append(found)
        return levels
    hierarchy, paths = attribute.hierarchy, {}
    for node, count in enumerate(hierarchy.child_count):
        if count == 0:
            path = [node]
            while hierarchy.parent[path[-1]] >= 0:
                path.append(int(hierarchy.parent[path[-1]]))
            paths[int(hierarchy.low[node])] = path
    height = max(map(len, paths.values())) - 1
    levels = []
    for up in range(height + 1):
        found = {}
        for code in codes:
            path = paths[code]
            node = path[max(0, len(path) - 1 - (height - up))]
            low, high = int(hierarchy.low[node]), int(hierarchy.high[node])
            found[code] = (
                (low, high),
                Fraction(0) if hierarchy.child_count[node] == 0 else Fraction(high - low + 1, len(codes)),
            )
        levels.append(found)
    return levels


def is_valid(held: list[int], everywhere: list[int], asked: Predicates, domain: range) -> bool:
    counts = Counter(held)
    if len(held) < asked.need or (asked.l and max(counts.values()) * asked.l > len(held)):
        return False
    return Properties(domain, asked.entropy_l, asked.recursive_cl, asked.t, asked.ground).hold(held, everywhere)


def search(table: Table, sanitizer: FullDomain) -> dict[tuple[tuple[int, int], ...], Counter[int]]:
    """Try every node; return the published classes of the best: fewest steps, then the smaller levels, of equal losses."""
    rows = [
        (tuple(codes), int(s))
        for codes, s, w in zip(table.codes.tolist(), table.secret, table.weights, strict=True)
        for _ in range(w)
    ]
    everywhere, domain = [secret for _, secret in rows], range(len(table.schema.sensitive.levels))
    attributes = [values_at_levels(attribute) for attribute in table.schema.quasi_identifiers]
    whole = tuple((0, len(attribute.levels) - 1) for attribute in table.schema.quasi_identifiers)
    best = None
    for node in itertools.product(*(range(len(levels)) for levels in attributes)):
        classes, lost = defaultdict(list), {}
        for codes, secret in rows:
            cells = [levels[level][code] for levels, level, code in zip(attributes, node, codes, strict=True)]
            key = tuple(published for published, _ in cells)
            classes[key].append(secret)
            lost[key] = sum(share for _, share in cells)
        kept = {key: held for key, held in classes.items() if is_valid(held, everywhere, sanitizer.predicates, domain)}
        gone = [secret for key, held in classes.items() if key not in kept for secret in held]
        if len(gone) > sanitizer.suppression * len(rows) or (
            gone and not is_valid(gone, everywhere, sanitizer.predicates, domain)
        ):
            continue
        if sanitizer.loss == "certainty":
            loss = sum(len(held) * lost[key] for key, held in kept.items()) + len(gone) * len(attributes)
        else:
            loss = sum(len(held) ** 2 for held in kept.values()) + len(gone) * len(rows)
        found = (loss, sum(node), node)
        if best is None or found < best[0]:
            best = found, {key: Counter(held) for key, held in kept.items()}, Counter(gone)
    if best is None:
        return {whole: Counter(everywhere)}
    _, kept, gone = best
    return kept | ({whole: kept.get(whole, Counter()) + gone} if gone else {})


def published(release: Any) -> dict[tuple[tuple[int, int], ...], Counter[int]]:
    classes: dict[tuple[tuple[int, int], ...], Counter[int]] = {}
    for low, high, counts in zip(release.published.low.tolist(), release.published.high.tolist(), release.counts, strict=True):
        held = Counter({secret: int(count) for secret, count in enumerate(counts) if count})
        key = tuple(zip(low, high, strict=True))
        classes[key] = classes.get(key, Counter()) + held
    return classes


def test_the_best_node_is_that_of_an_exhaustive_search() -> None:
    seen: Counter[str] = Counter()

    @settings(UNHURRIED, max_examples=120)
    @given(tables(30), sanitizers())
    def check(table: Table, sanitizer: FullDomain) -> None:
        small, sanitizer = few_attributes(table, sanitizer)
        release = sanitizer.release(small, RNG)
        assert published(release) == search(small, sanitizer)
        checked = recheck(release, sanitizer.claim, small)
        assert checked.holds or checked.classes == 1
        is_whole = (release.published.low[-1] == 0).all() and len(release.counts) > 1
        seen.update(["several classes"] * int(checked.classes > 1) + ["suppressed"] * int(is_whole))

    check()
    assert seen["several classes"] >= 30
    assert seen["suppressed"] >= 10


@settings(UNHURRIED, max_examples=150)
@given(tables(60), sanitizers())
def test_every_release_without_a_record_equals_searching_again(table: Table, sanitizer: FullDomain) -> None:
    small, sanitizer = few_attributes(table, sanitizer)
    everyone = np.arange(small.distinct)
    for record, found in zip(everyone, sanitizer.leave_one_out(small, everyone), strict=True):
        expected = sanitizer.release(small.without(int(record)), RNG)
        np.testing.assert_array_equal(found.published.keys(), expected.published.keys())
        np.testing.assert_array_equal(found.counts, expected.counts)


@settings(UNHURRIED, max_examples=40)
@given(tables(40), sanitizers(), st.randoms(use_true_random=False))
def test_the_order_of_records_changes_nothing(table: Table, sanitizer: FullDomain, random: Any) -> None:
    small, sanitizer = few_attributes(table, sanitizer)
    order = np.array(random.sample(range(small.distinct), small.distinct))
    assert published(sanitizer.release(small.reordered(order), RNG)) == published(sanitizer.release(small, RNG))


SCHEMA = {
    "quasi_identifiers": {
        "age": {"kind": "categorical", "hierarchy": {"bands": [5, 10, 20]}},
        "zone": {"kind": "categorical", "hierarchy": {"prefix": [2, 1]}},
        "pay": {"kind": "numeric"},
    },
    "sensitive": "illness",
}
PEOPLE = pd.DataFrame(
    {
        "age": np.random.default_rng(1).integers(20, 60, 200).astype(str),
        "zone": np.random.default_rng(2).choice(["101", "102", "111", "201", "211"], 200),
        "pay": np.random.default_rng(3).integers(10, 90, 200),
        "illness": np.random.default_rng(4).choice(["flu", "cold", "gout"], 200),
    }
)


def test_an_audit_of_the_default_panel_has_three_adversaries_and_a_claim_that_holds() -> None:
    rows = loaded(PEOPLE, SCHEMA)
    test = {"sanitizer": {"name": "full-domain", "k": 5, "suppression": 0.1, "bands": {"pay": [10, 40]}}}
    (point,) = points(rows, SCHEMA, [test])
    assert tuple(point.procedure.adversaries) == ("bernoulli-nb", "conditional-frequency", "narrowest-class")
    assert point.engine == "brute-force"
    checked = recheck(point.procedure.publish(rows.table), point.procedure.sanitizer.claim, rows.table)
    assert checked.holds
    assert checked.smallest_class >= 5
    assert checked.classes > 3
    found = brute_force.influence(rows.table, np.arange(rows.table.distinct), point.procedure)
    again = replace(point.procedure, sanitizer=_Plain(point.procedure.sanitizer))
    np.testing.assert_array_equal(
        found.distance, brute_force.influence(rows.table, np.arange(rows.table.distinct), again).distance
    )


class _Plain:
    """A sanitizer without leave_one_out."""

    def __init__(self, sanitizer: Any) -> None:
        self.claim, self.release = sanitizer.claim, sanitizer.release


BAD = {
    "no hierarchy": (
        {"k": 5},
        "full-domain needs a hierarchy of every attribute, or bands such as {pay: [5, 10]}; missing for pay",
    ),
    "suppression": ({"k": 5, "suppression": 1}, "suppression must be a share of at least 0 and below 1; got 1"),
    "negative": ({"k": 5, "suppression": -0.1}, "suppression must be a share of at least 0 and below 1; got -0.1"),
    "nothing": ({"suppression": 0.1}, "full-domain needs at least one of k, l, entropy_l, recursive_cl, t; got none"),
    "unknown band": ({"k": 5, "bands": {"pai": [5]}}, "pai"),
    "no number": ({"k": 5, "bands": {"zone": [5]}}, "bands.zone: bands are for numeric attributes; this one is categorical"),
    "multiples": ({"k": 5, "bands": {"pay": [5, 12]}}, "bands.pay: every width must be a multiple of the one before"),
    "l": ({"l": 9, "bands": {"pay": [5]}}, "l must be at most the 3 values of illness; got 9"),
    "loss": ({"k": 5, "loss": "entropy"}, "loss"),
}


@pytest.mark.parametrize(("parameters", "message"), BAD.values(), ids=BAD)
def test_bad_parameters_are_one_clear_line(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        points(loaded(PEOPLE, SCHEMA), SCHEMA, [{"sanitizer": {"name": "full-domain", **parameters}}])
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_lattice_that_is_too_large_is_refused_with_its_size() -> None:
    frame = pd.DataFrame({f"q{place}": [f"{value:09d}" for value in range(20)] for place in range(6)} | {"s": ["a", "b"] * 10})
    described = {
        name: {"kind": "categorical", "hierarchy": {"prefix": [8, 7, 6, 5, 4, 3, 2, 1]}} for name in frame if name != "s"
    }
    schema = {"quasi_identifiers": described, "sensitive": "s"}
    with pytest.raises(InputError, match=r"the lattice has [\d,]+ nodes \(\d+ × .*\); at most 100,000 can be searched"):
        points(loaded(frame, schema), schema, [{"sanitizer": {"name": "full-domain", "k": 2}}])


def test_persons_with_several_rows_are_refused() -> None:
    schema = SCHEMA | {"subject": "who"}
    frame = PEOPLE.assign(who=[place // 2 for place in range(200)])
    with pytest.raises(InputError, match=r"full-domain counts rows; schema\.subject says that some persons have several"):
        points(loaded(frame, schema), schema, [{"sanitizer": {"name": "full-domain", "k": 5, "bands": {"pay": [5]}}}])
