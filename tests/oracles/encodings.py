"""The 24 encodings of v1, appendix A.1, in plain Python on labels, written apart from the package they check."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from sklearn.naive_bayes import BernoulliNB

from tests.oracles import reference

Vector = list[float]


def bits(number: int, length: int) -> Vector:
    """Write a number in binary."""
    return [float(digit) for digit in format(number, "b").zfill(length)]


def quantile_of(values: Sequence[float], count: int) -> Callable[[float], int]:
    """Cut after the first value up to which at least j / count of the rows lie, for j = 1, 2, …; no cut after the last."""
    ordered, count = sorted(values), min(count, len(values))
    cuts = {ordered[math.ceil(j * len(ordered) / count) - 1] for j in range(1, count)} - {ordered[-1]}
    return lambda value: sum(cut < value for cut in cuts)


def encode_interval(encoding: str, column: Sequence[float], interval: tuple[float, float]) -> Vector:
    """Encode an interval, or a value as the interval from it to itself."""
    least, most = min(column), max(column)
    span = most - least or 1
    middle = (interval[0] + interval[1]) / 2
    if encoding == "scaling":
        return [(middle - least) / span]
    if encoding == "bounds":
        return [(end - least) / span for end in interval]
    if encoding == "binary":
        return bits(math.floor(middle - least), max(1, math.floor(most - least).bit_length()))
    quantile = quantile_of(column, 5)
    met = range(quantile(interval[0]), quantile(interval[1]) + 1)
    return [float(number in met) for number in range(quantile(most) + 1)]


def encode_set(encoding: str, leaves: Sequence[str], published: set[frozenset[str]], value: frozenset[str]) -> Vector:
    """Encode a published set of leaves."""
    if encoding == "hot":
        return [float(leaf in value) for leaf in leaves]
    place = {leaf: number for number, leaf in enumerate(leaves)}
    ordered = sorted(published, key=lambda one: (len(one), sorted(place[leaf] for leaf in one)))
    if encoding == "hot-after":
        return [float(one == value) for one in ordered]
    return bits(ordered.index(value) + 1 if value in published else 0, len(ordered).bit_length())


def narrowest(leaves: Sequence[str], published: set[frozenset[str]], leaf: str) -> frozenset[str]:
    """The smallest published set that has a leaf; nothing if none does."""
    place = {one: number for number, one in enumerate(leaves)}
    covering = [one for one in published if leaf in one]
    return min(covering, key=lambda one: (len(one), sorted(place[x] for x in one)), default=frozenset())


def leaves_of(tree: reference.Tree, node: str) -> frozenset[str]:
    """The leaves under a node."""
    return frozenset(path[0] for path in tree.paths if node in path)


def features(
    pair: tuple[str, str], attributes: reference.Attributes, classes: list[list[Any]], target: Sequence[Any]
) -> tuple[list[Vector], Vector]:
    """Encode the published classes, and the target."""
    encoded: list[Vector] = [[] for _ in classes]
    own: Vector = []
    for place, (attribute, value) in enumerate(zip(attributes, target, strict=True)):
        column = [one[place] for one in classes]
        if pair[isinstance(attribute, reference.Tree)] == "tf":
            parts = [[float(attribute.covers(one, value))] for one in column]
            own += [1.0]
        elif isinstance(attribute, reference.Numeric):
            parts = [encode_interval(pair[0], attribute.values, one) for one in column]
            own += encode_interval(pair[0], attribute.values, (value, value))
        else:
            leaves = [path[0] for path in attribute.paths]
            sets = [leaves_of(attribute, one) for one in column]
            parts = [encode_set(pair[1], leaves, set(sets), one) for one in sets]
            mine = frozenset([value]) if pair[1] == "hot" else narrowest(leaves, set(sets), value)
            own += encode_set(pair[1], leaves, set(sets), mine)
        for row, part in zip(encoded, parts, strict=True):
            row += part
    return encoded, own


def believe_with(pair: tuple[str, str], model: BernoulliNB) -> Callable[..., list[float]]:
    """Train scikit-learn's model on every published row under a pair of encodings."""

    def believe(
        root: reference.Node,
        secrets: reference.Secrets,
        attributes: reference.Attributes,
        target: Sequence[Any],
        domain: Sequence[Any],
    ) -> list[float]:
        classes = reference.leaves(root)
        encoded, own = features(pair, attributes, [leaf.generalised for leaf in classes], target)
        rows = [row for row, leaf in zip(encoded, classes, strict=True) for _ in leaf.rows]
        labels = [secrets[row] for leaf in classes for row in leaf.rows]
        if len(set(labels)) == 1:
            return [float(secret == labels[0]) for secret in domain]
        trained = model.fit(rows, labels)
        known = dict(zip(trained.classes_.tolist(), trained.predict_proba([own])[0].tolist(), strict=True))
        return [known.get(secret, 0.0) for secret in domain]

    return believe


def with_quantiles(
    records: Sequence[Sequence[Any]], attributes: reference.Attributes
) -> tuple[list[tuple[Any, ...]], list[reference.Attribute]]:
    """Make numbers categories of quantiles, without order, before anything is sanitised."""
    columns, changed = [list(column) for column in zip(*records, strict=True)], list(attributes)
    for place, attribute in enumerate(attributes):
        if isinstance(attribute, reference.Numeric):
            quantile = quantile_of(attribute.values, 5)
            columns[place] = [f"q{quantile(value)}" for value in columns[place]]
            labels = [f"q{number}" for number in range(quantile(max(attribute.values)) + 1)]
            changed[place] = reference.Tree(tuple((label, "all") for label in labels))
    return list(zip(*columns, strict=True)), changed
