"""Random tables that reach the corners of Mondrian: ties, duplicates, constant columns, odd hierarchies, rare secrets."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from dit_dask.adversaries.bernoulli_nb import BernoulliNB
from dit_dask.distances import SIMPLE
from dit_dask.encoders.tf import TF
from dit_dask.engines import ReleaseProcedure
from dit_dask.sanitizers.mondrian import Mondrian
from dit_dask.sanitizers.predicates import Predicates
from dit_dask.values.arrays import Codes
from dit_dask.values.hierarchy import Hierarchy, flat, parse
from dit_dask.values.release import Release
from dit_dask.values.schema import Attribute, Schema, Secret
from dit_dask.values.table import Table, collapse

SHAPES = ("flat", "deep", "chain", "unbalanced")


def hierarchy(shape: str, leaves: int) -> Hierarchy:
    """Put the leaves under one root: directly, two by two, below chains of single children, or at different depths."""
    if shape == "flat":
        return flat([f"v{leaf}" for leaf in range(leaves)])
    paths = []
    for leaf in range(leaves):
        if shape == "deep":
            above = [f"g{leaf // 2}", f"h{leaf // 4}", f"i{leaf // 8}"]
        elif shape == "chain":
            above = [f"a{leaf}", f"b{leaf // 3}", f"c{leaf // 3}", "only"]
        else:
            above = [f"left{depth}" for depth in range(min(leaf, leaves - 2), -1, -1)]
        paths.append(";".join([f"v{leaf}", *above, "*"]))
    return parse("\n".join(paths), shape)


def attribute(kind: str, levels: int, rng: np.random.Generator) -> Attribute:
    """Describe a numeric attribute of unevenly spaced values, or a categorical one of the given shape."""
    if kind == "numeric":
        values = np.cumsum(rng.integers(1, 4, levels)).astype(float)
        return Attribute("number", "numeric", tuple(values.tolist()), values)
    tree = hierarchy(kind, levels)
    return Attribute(kind, "categorical", tree.leaves, None, tree)


def draw_codes(levels: int, rows: int, law: str, rng: np.random.Generator) -> np.ndarray:
    """Draw codes: all equal, evenly, with one that prevails, or nearly all different."""
    if law == "constant":
        return np.full(rows, rng.integers(levels))
    if law == "skewed":
        return np.where(rng.random(rows) < 0.6, rng.integers(levels), rng.integers(0, levels, rows))
    if law == "distinct":
        return rng.permutation(max(rows, levels))[:rows] % levels
    return rng.integers(0, levels, rows)


@st.composite
def tables(draw: st.DrawFn, most_rows: int = 60, fewest_rows: int = 8, fewest_secrets: int = 2) -> Table:
    """Draw a small table: the shape by hypothesis, so that it shrinks, the cells from a seed."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    rows = draw(st.integers(fewest_rows, most_rows), label="rows")
    attributes, codes = [], []
    for _ in range(draw(st.integers(2, 6), label="attributes")):
        kind = draw(st.sampled_from(("numeric", "numeric", "numeric", *SHAPES)))
        levels = draw(st.sampled_from((1, 2, 3, 5, 9, 40, 400))) if kind == "numeric" else draw(st.integers(2, 9))
        law = draw(st.sampled_from(("even", "even", "even", "distinct", "distinct", "skewed", "skewed", "constant")))
        attributes.append(attribute(kind, levels, rng))
        codes.append(draw_codes(levels, rows, law, rng))
    secrets = draw(st.integers(fewest_secrets, 6), label="secrets")
    prevalence = rng.dirichlet(np.full(secrets, draw(st.sampled_from((0.3, 2.0, 20.0)))))
    secret = rng.choice(secrets, rows, p=prevalence)
    matrix = np.array(codes, np.int32).T
    for _ in range(draw(st.integers(0, 3), label="duplicated")):  # whole records more than once
        source, copies = rng.integers(rows), rng.integers(0, rows, rng.integers(1, 6))
        matrix[copies], secret[copies] = matrix[source], secret[source]
    schema = Schema(tuple(attributes), Secret("secret", tuple(f"s{value}" for value in range(secrets))))
    table, _ = collapse(_public(schema, matrix), _recode(schema, matrix), secret.astype(np.int32))
    return table


def _public(schema: Schema, matrix: np.ndarray) -> Schema:
    """Keep, as loading does, only the numeric levels that occur."""
    kept = []
    for place, described in enumerate(schema.quasi_identifiers):
        if described.values is None:
            kept.append(described)
        else:
            values = described.values[np.unique(matrix[:, place])]
            kept.append(Attribute(described.name, "numeric", tuple(values.tolist()), values))
    return Schema(tuple(kept), schema.sensitive)


def _recode(schema: Schema, matrix: np.ndarray) -> np.ndarray:
    codes: np.ndarray = matrix.copy()
    for place, described in enumerate(schema.quasi_identifiers):
        if described.values is not None:
            codes[:, place] = np.unique(matrix[:, place], return_inverse=True)[1]
    return codes


KEYS = ("k", "l", "entropy_l", "recursive_cl", "t")


@st.composite
def predicates(draw: st.DrawFn, *more: str) -> Predicates:
    """Draw one property or several at once; those named are among them."""
    asked = draw(st.sets(st.sampled_from(KEYS), min_size=0 if more else 1, max_size=3), label="asked") | set(more)
    drawn = {
        "k": st.integers(2, 8),
        "l": st.integers(2, 4),
        "entropy_l": st.sampled_from((1.2, 1.5, 2, 2.5, 3)),
        "recursive_cl": st.tuples(st.sampled_from((Fraction(1, 2), Fraction(1), Fraction(3), Fraction(8))), st.integers(2, 4)),
        "t": st.sampled_from((Fraction(1, 20), Fraction(1, 5), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10), Fraction(1))),
    }
    keys = {key: draw(drawn[key], label=key) for key in KEYS if key in asked}
    return Predicates(**keys, ground=draw(st.sampled_from(("equal", "ordered"))))


@st.composite
def procedures(draw: st.DrawFn) -> ReleaseProcedure:
    """Draw k-anonymity, strict or basic, l-diversity, or other properties, with the distance of the papers."""
    kind = draw(st.sampled_from(("diverse", "anonymous", "any")))
    if kind == "any":
        asked = draw(predicates())
    elif kind == "diverse":
        tighten = draw(st.sampled_from((True, True, False)), label="tighten")
        asked = Predicates(l=draw(st.integers(2, 5), label="l"), tighten=tighten)
    else:
        asked = Predicates(k=draw(st.integers(2, 8), label="k"), strict=draw(st.booleans(), label="strict"))
    return ReleaseProcedure(Mondrian(asked), TF(), {"bernoulli-nb": BernoulliNB()}, SIMPLE["emd"], 0, "test")


def assert_same_release(found: Release, expected: Release, targets: Sequence[Codes]) -> None:
    """Two releases publish the same classes, and their trees lead each target to the same ones."""
    np.testing.assert_array_equal(found.published.keys(), expected.published.keys())
    np.testing.assert_array_equal(found.counts, expected.counts)
    assert found.tree is not None
    assert expected.tree is not None
    for target in targets:
        assert found.tree.descend(target) == expected.tree.descend(target)
