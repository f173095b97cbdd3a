"""Mondrian with every property and combination against the separately written reference, with and without each record."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dit_dask.engines import brute_force, exact
from dit_dask.errors import InputError
from dit_dask.sanitizers.claims import recheck
from dit_dask.seeds import stream
from dit_dask.values.release import Release
from tests.audits import WORKED, WORKED_SCHEMA, loaded, points
from tests.oracles import reference
from tests.properties.strategies import People, people
from tests.properties.test_mondrian import expected, published, rows_of
from tests.third_party import environment

KEYS = ("k", "l", "entropy_l", "recursive_cl", "t")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "k": st.integers(2, 6),
    "l": st.just(2),
    "entropy_l": st.sampled_from((1.1, 1.3, 1.7, 2)),
    "recursive_cl": st.sampled_from(([0.5, 2], [1, 2], [3, 2], [2.5, 2], [10, 2])),
    "t": st.sampled_from((0.05, 0.1, 0.25, 0.3, 0.5, 0.75, 1)),
}


@st.composite
def asked(draw: st.DrawFn) -> dict[str, Any]:
    """The parameters of Mondrian: one property, or several."""
    keys = draw(st.sets(st.sampled_from(KEYS), min_size=1, max_size=3))
    parameters = {key: draw(VALUES[key]) for key in KEYS if key in keys}
    if "t" in parameters and draw(st.booleans()):
        parameters["ground"] = "ordered"
    return parameters


def reference_keys(parameters: dict[str, Any], domain: tuple[str, ...]) -> dict[str, Any]:
    """The same for the reference."""
    exactly = {"domain": domain, "ground": parameters.get("ground", "equal"), "entropy_l": parameters.get("entropy_l")}
    if "recursive_cl" in parameters:
        c, diversity = parameters["recursive_cl"]
        exactly["recursive_cl"] = Fraction(str(c)), diversity
    if "t" in parameters:
        exactly["t"] = Fraction(str(parameters["t"]))
    return {"k": parameters.get("k"), "l": parameters.get("l"), "properties": reference.Properties(**exactly)}


def ordered(table: People) -> dict[str, Any]:
    return table.schema | {"sensitive": {"name": "secret", "order": sorted(set(table.secrets))}}


@settings(max_examples=150, deadline=None)
@given(people(most_rows=40), asked())
def test_every_release_is_that_of_the_reference(table: People, parameters: dict[str, Any]) -> None:
    rows = rows_of(table)
    (point,) = points(
        rows_of(People(table.frame, ordered(table), table.hierarchies, table.attributes)),
        ordered(table),
        [{"sanitizer": {"name": "mondrian", **parameters}}],
    )
    levels = rows.table.schema.sensitive.levels
    release = point.procedure.sanitizer.release(rows.table, stream(0))
    root = reference.mondrian(table.records, table.secrets, table.attributes, **reference_keys(parameters, levels))
    assert published(release) == expected(table, root, levels)
    found = recheck(release, point.procedure.sanitizer.claim, rows.table)
    assert found.holds or found.classes == 1


@pytest.mark.parametrize(
    ("adversary", "believe"),
    [("bernoulli-nb", reference.naive_bayes), ("conditional-frequency", reference.conditional_frequency)],
)
@settings(max_examples=60, deadline=None)
@given(table=people(most_rows=16), parameters=asked())
def test_every_leave_one_out_is_that_of_the_reference(adversary, believe, table: People, parameters: dict[str, Any]) -> None:
    schema = ordered(table)
    rows = rows_of(People(table.frame, schema, table.hierarchies, table.attributes))
    (point,) = points(rows, schema, [{"sanitizer": {"name": "mondrian", **parameters}, "adversary": adversary}])
    assert point.engine == "exact"
    domain = rows.table.schema.sensitive.levels
    keys = reference_keys(parameters, domain)
    pairs = reference.leave_one_out(table.records, table.secrets, table.attributes, believe, domain=domain, **keys)
    theirs = [reference.emd(p, q) for p, q in pairs]
    for engine in (exact, brute_force):
        mine = engine.influence(rows.table, np.arange(rows.table.distinct), point.procedure)
        # rounding of a handful of multiplications on each side
        np.testing.assert_allclose(mine.distance[rows.index], theirs, atol=1e-12)


def cells(release: Release) -> pd.DataFrame:
    """The rows that a release publishes, each class with values of its own."""
    keys = release.published.keys()
    repeated = np.repeat(np.arange(len(keys)), release.counts.sum(axis=1))
    frame = pd.DataFrame({f"q{place}": keys[repeated, place].astype(str) for place in range(keys.shape[1])})
    values = np.array(release.schema.sensitive.levels, object)
    frame["secret"] = np.concatenate([np.repeat(values, counts) for counts in release.counts])
    return frame


@pytest.mark.parametrize(
    "parameters",
    [
        {"k": 7, "l": 2},
        {"entropy_l": 2.2},
        {"entropy_l": 3, "k": 4},
        {"recursive_cl": {"c": 3, "l": 2}},
        {"recursive_cl": [1.5, 3], "k": 9},
        {"t": 0.3},
        {"t": 0.35, "k": 5, "l": 2},
    ],
    ids=str,
)
def test_pycanon_finds_what_is_claimed(parameters: dict[str, Any], tmp_path: Path) -> None:
    environment.required()
    rng = np.random.default_rng(8)
    rows = 1200
    frame = pd.DataFrame({"a": rng.integers(0, 60, rows), "b": rng.choice(list("uvwxyz"), rows)})
    frame["s"] = np.array(list("pqrst"))[(frame["a"] // 45 + rng.choice(5, rows, p=[0.5, 0.2, 0.15, 0.1, 0.05])) % 5]
    schema = {"quasi_identifiers": {"a": {"kind": "numeric"}, "b": {"kind": "categorical"}}, "sensitive": "s"}
    loaded_rows = loaded(frame, schema)
    (point,) = points(loaded_rows, schema, [{"sanitizer": {"name": "mondrian", **parameters}}])
    release = point.procedure.sanitizer.release(loaded_rows.table, stream(0))
    assert len(release.counts) > 3, "one class would keep any promise"
    table = cells(release)
    (theirs,) = environment.pycanon([table], [name for name in table if name != "secret"], "secret", tmp_path)
    assert theirs["k"] >= parameters.get("k", 1)
    assert theirs["l"] >= parameters.get("l", 1)
    assert theirs["entropy_l"] >= np.floor(parameters.get("entropy_l", 1))
    assert theirs["t"] <= parameters.get("t", 1) + 1e-12  # sums of floats
    assert theirs["k"] == release.counts.sum(axis=1).min()
    sizes = release.counts.sum(axis=1, keepdims=True)
    distances = np.abs(release.counts / sizes - release.counts.sum(axis=0) / rows).sum(axis=1) / 2
    assert theirs["t"] == pytest.approx(distances.max(), abs=1e-12)
    # pycanon takes the l that it finds, and ranks ascending where the definition ranks descending: its figure, from our counts
    c, diversity = theirs["recursive_cl"]
    assert diversity == (release.counts > 0).sum(axis=1).min()
    ranked = [sorted(count for count in counts if count) for counts in release.counts.tolist()]
    if diversity > 1:
        assert c == max(ascending[0] // sum(ascending[int(diversity) - 1 :]) + 1 for ascending in ranked)
    if "recursive_cl" in parameters:
        asked_c, asked_l = point.config.sanitizer.parameters["recursive_cl"]
        descending = -np.sort(-release.counts, axis=1)
        assert (descending[:, 0] < asked_c * descending[:, int(asked_l) - 1 :].sum(axis=1)).all()


LIMITS = {  # four of a, four of b in every class: each property is met with equality
    "l": ({"l": 2}, {"l": 3}),
    "entropy": ({"entropy_l": 2}, {"entropy_l": 2.001}),
    "recursive": ({"recursive_cl": [1.001, 2]}, {"recursive_cl": [1, 2]}),
    "t": ({"t": 0.25}, {"t": 0.249}),
    "t of ordered": ({"t": 0.25, "ground": "ordered"}, {"t": 0.249, "ground": "ordered"}),
}


@pytest.mark.parametrize(("met", "missed"), LIMITS.values(), ids=LIMITS)
def test_a_part_exactly_at_the_limit_is_valid_in_every_path(met: dict[str, Any], missed: dict[str, Any]) -> None:
    # halves at age 0 and 1 of eight rows each; in the table a: 8, b: 4, c: 4, in the halves a: 4, b: 4 or c: 4
    frame = pd.DataFrame({"age": [0] * 8 + [1] * 8, "s": list("aaaabbbb" + "aaaacccc")})
    schema = {"quasi_identifiers": {"age": {"kind": "numeric"}}, "sensitive": {"name": "s", "order": ["b", "a", "c"]}}
    rows = loaded(frame, schema)
    for parameters, classes in ((met, 2), (missed, 1)):
        (point,) = points(rows, schema, [{"sanitizer": {"name": "mondrian", **parameters}}])
        release = point.procedure.sanitizer.release(rows.table, stream(0))
        assert len(release.counts) == classes
        split = points(rows, schema, [{"sanitizer": {"name": "mondrian", "k": 8}}])[0].procedure.sanitizer
        halves = split.release(rows.table, stream(0))
        assert recheck(halves, point.procedure.sanitizer.claim, rows.table).holds is (classes == 2)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "mondrian needs at least one of k, l, entropy_l, recursive_cl, t; got none"),
    "t": ({"t": 1.5}, "tests[0].sanitizer.t must be a number above 0 and at most 1; got 1.5"),
    "no t": ({"t": 0}, "tests[0].sanitizer.t must be a number > 0; got 0"),
    "c": ({"recursive_cl": [0, 2]}, "tests[0].sanitizer.recursive_cl[0] must be a number > 0; got 0"),
    "infinite c": ({"recursive_cl": {"c": "inf", "l": 2}}, "recursive_cl.c must be a number from 1e-9 to 1,000,000; got inf"),
    "recursive l": ({"recursive_cl": {"c": 3, "l": 1.5}}, "recursive_cl.l must be an integer >= 2; got 1.5"),
    "three": ({"recursive_cl": [3, 2, 1]}, "recursive_cl must be c and l; got a list of 3"),
    "many values": ({"entropy_l": 3}, "tests[0].sanitizer.entropy_l must be at most the 2 values of disease; got 3"),
    "tail": ({"recursive_cl": [3, 4]}, "recursive_cl.l must be at most the 2 values of disease; got 4"),
    "ground alone": ({"k": 2, "ground": "ordered"}, "tests[0].sanitizer.ground is for t, which is not given"),
    "no order": ({"t": 0.2, "ground": "ordered"}, "ordered needs schema.sensitive.order or bins"),
    "basic": ({"k": 2, "t": 0.2, "variant": "basic"}, "tests[0].sanitizer.variant: basic is for k alone"),
}


@pytest.mark.parametrize(("parameters", "message"), BAD.values(), ids=BAD)
def test_bad_parameters_are_one_clear_line(parameters: dict[str, Any], message: str) -> None:
    rows = loaded(WORKED, WORKED_SCHEMA)
    with pytest.raises(InputError) as refused:
        points(rows, WORKED_SCHEMA, [{"sanitizer": {"name": "mondrian", **parameters}}])
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
