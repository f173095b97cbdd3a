"""Mondrian with every property and combination against the separately written reference, with and without each record."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dit_dask.engines import brute_force, exact
from dit_dask.errors import InputError
from dit_dask.sanitizers.claims import recheck
from dit_dask.seeds import stream
from tests.audits import points
from tests.oracles import reference
from tests.properties.strategies import People, people
from tests.properties.test_mondrian import expected, published, rows_of

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
    (point,) = points(rows_of(People(table.frame, ordered(table), table.hierarchies, table.attributes)), ordered(table), [
        {"sanitizer": {"name": "mondrian", **parameters}}
    ])
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
