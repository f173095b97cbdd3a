"""Row-by-row reference of the published procedure (METHODS.md, section 1), written apart from the package it checks."""

# ruff: noqa: E741, PLR0913, RUF100
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any

from sklearn.naive_bayes import BernoulliNB

Interval = tuple[float, float]
Record = tuple[Any, ...]
Records = Sequence[Record]
Secrets = Sequence[Any]
Cut = tuple[Any, float | None, list[tuple[str, Any]]]
VARIANTS = ("strict", "basic")


@dataclass(frozen=True)
class Numeric:
    """An ordered attribute whose public domain is the span of all its values in the full table D."""

    values: Sequence[float]

    @cached_property
    def top(self) -> Interval:
        """Return the interval that every table starts from, D without a record too."""
        return min(self.values), max(self.values)

    def width(self, current: Interval) -> float:
        """Return the share of the domain range between the current bounds."""
        low, high = self.top
        return (current[1] - current[0]) / (high - low) if high > low else 0.0

    def covers(self, current: Interval, value: float) -> bool:
        """Return whether the closed interval holds the value."""
        return current[0] <= value <= current[1]

    def cut(self, current: Interval, values: list[float], level: int, tighten: bool = True) -> Cut:
        """Return the bounds, the split value and both sides: none where the median leaves no right side."""
        half, low, high = len(values) // 2, *((min(values), max(values)) if tighten else current)
        # the m-th smallest value is the first one whose cumulative count reaches m
        split = sorted(values)[half - 1]
        if half < level or split == max(values):
            return (low, high), None, []
        following = min(value for value in values if value > split)
        return (low, high), split, [("left", (low, split)), ("right", (following, high))]


@dataclass(frozen=True)
class Tree:
    """A categorical attribute with its hierarchy, one path leaf, parent, ..., root for every leaf."""

    paths: tuple[tuple[str, ...], ...]

    @cached_property
    def path_of(self) -> dict[str, tuple[str, ...]]:
        """Return the path that starts at each leaf."""
        return {path[0]: path for path in self.paths}

    @cached_property
    def top(self) -> str:
        """Return the root."""
        return self.paths[0][-1]

    def width(self, current: str) -> float:
        """Return the share of the tree's leaves under the current node, where a leaf counts 0."""
        if current in self.path_of:
            return 0.0
        return sum(current in path for path in self.paths) / len(self.paths)

    def covers(self, current: str, value: str) -> bool:
        """Return whether the value is the node itself or a leaf under it."""
        return current in self.path_of.get(value, ())

    def cut(self, current: str, _values: list[str], _level: int, _tighten: bool = True) -> Cut:
        """Return the node unchanged and its children in order of first appearance, none for a leaf."""
        below = [path[path.index(current) - 1] for path in self.paths if current in path[1:]]
        return current, None, [(child, child) for child in dict.fromkeys(below)]


Attribute = Numeric | Tree
Attributes = Sequence[Attribute]


@dataclass
class Node:
    """A part of the table with its generalisation, and how it was split; a leaf is an equivalence class."""

    rows: list[int]
    generalised: list[Any]
    attribute: int | None = None
    split: float | None = None
    children: list[tuple[str, Node]] = field(default_factory=list)


@dataclass(frozen=True)
class Properties:
    """What classes must satisfy beside k and l, by the definitions; `domain` has all secrets in order."""

    domain: Secrets
    entropy_l: float | None = None
    recursive_cl: tuple[Fraction, int] | None = None
    t: Fraction | None = None
    ground: str = "equal"

    def hold(self, held: Secrets, everywhere: Secrets) -> bool:
        """Return whether a part with these secrets, one for each record, has the properties in the table with those."""
        counts = [held.count(secret) for secret in self.domain]
        shares = [Fraction(count, len(held)) for count in counts]
        if self.entropy_l is not None:
            entropy = -math.fsum(share * math.log(share) for share in shares if share)
            if entropy < math.log(self.entropy_l) - 1e-9:
                return False
        if self.recursive_cl is not None:
            (c, l), ranked = self.recursive_cl, sorted(counts, reverse=True)
            if not ranked[0] < c * sum(ranked[l - 1 :]):
                return False
        if self.t is None:
            return True
        whole = [Fraction(everywhere.count(secret), len(everywhere)) for secret in self.domain]
        differences = [share - other for share, other in zip(shares, whole, strict=True)]
        if self.ground == "equal":
            return sum(abs(difference) for difference in differences) / 2 <= self.t
        return sum(abs(total) for total in accumulate(differences)) <= self.t * (len(self.domain) - 1)


@dataclass(frozen=True)
class Run:
    """One run of Mondrian over the rows of a table: `level` is k or l, by `diversity`; `persons` are those of the rows.

    `properties` are further ones; with them a part needs at least `least` records, or persons.
    """

    records: Records
    secrets: Secrets
    attributes: Attributes
    level: int
    diversity: bool
    variant: str
    persons: Sequence[Any] | None = None
    properties: Properties | None = None
    least: int = 1
    tighten: bool = True

    def valid(self, part: Node) -> bool:
        """Return whether the part is large enough, for l-diversity also varied and level enough, and has all properties."""
        if self.properties is not None and not self.has_properties(part, self.properties):
            return False
        if self.persons is not None:
            return self.valid_in_persons(part, self.persons)
        counts = Counter(self.secrets[row] for row in part.rows)
        varied = len(counts) >= self.level and max(counts.values()) * self.level <= len(part.rows)
        return len(part.rows) >= self.level and (varied or not self.diversity)

    def has_properties(self, part: Node, properties: Properties) -> bool:
        """Return whether the part has enough records, or persons, and the properties; a person has each secret once."""
        persons = list(range(len(self.records))) if self.persons is None else self.persons
        held = {(persons[row], self.secrets[row]) for row in part.rows}
        everywhere = set(zip(persons, self.secrets, strict=True))
        is_large = len({person for person, _ in held}) >= self.least
        return is_large and properties.hold([secret for _, secret in held], [secret for _, secret in everywhere])

    def valid_in_persons(self, part: Node, persons: Sequence[Any]) -> bool:
        """Return the same where a person counts once, and once for each of its secrets."""
        size = len({persons[row] for row in part.rows})
        counts = Counter(secret for _, secret in {(persons[row], self.secrets[row]) for row in part.rows})
        varied = len(counts) >= self.level and max(counts.values()) * self.level <= size
        return size >= self.level and (varied or not self.diversity)

    def attempt(self, node: Node, index: int) -> bool:
        """Split the node on one attribute if every part allows it; its bounds are tightened even if not."""
        attribute = self.attributes[index]
        values = [self.records[row][index] for row in node.rows]
        node.generalised[index], split, options = attribute.cut(node.generalised[index], values, self.level, self.tighten)
        parts = []
        for key, narrowed in options:
            rows = [row for row in node.rows if attribute.covers(narrowed, self.records[row][index])]
            generalised = [*node.generalised[:index], narrowed, *node.generalised[index + 1 :]]
            if rows:
                parts.append((key, Node(rows, generalised)))
        # the basic program of the papers never looks at the right side of a numeric split
        right_unchecked = self.variant == "basic" and not self.diversity and split is not None
        if not parts or not all(self.valid(part) for _, part in (parts[:1] if right_unchecked else parts)):
            return False
        node.attribute, node.split, node.children = index, split, parts
        return True

    def grow(self, node: Node) -> Node:
        """Split the node and all its descendants until no attribute is allowed any more."""
        allowed = list(range(len(self.attributes)))
        while allowed:
            # max returns the first of equal widths, so ties go to the first attribute
            widest = max(allowed, key=lambda index: self.attributes[index].width(node.generalised[index]))
            if self.attempt(node, widest):
                break
            allowed.remove(widest)
        for _, child in node.children:
            self.grow(child)
        return node


def mondrian(
    records: Records,
    secrets: Secrets,
    attributes: Attributes,
    *,
    k: int | None = None,
    l: int | None = None,
    variant: str = "strict",
    persons: Sequence[Any] | None = None,
    properties: Properties | None = None,
    tighten: bool = True,
) -> Node:
    """Return the split tree of the table; its leaves are the published classes."""
    level = k if l is None else l
    if level is None and properties is None:
        raise ValueError("k, l or properties must be given")
    if variant not in VARIANTS:
        raise ValueError(f"variant must be one of {VARIANTS}; got {variant!r}")
    if k is not None and l is not None and properties is None:
        properties = Properties(sorted(set(secrets)))
    least = 1
    if properties is not None:
        tail = 1 if properties.recursive_cl is None else properties.recursive_cl[1]
        least = max(k or 1, math.ceil(properties.entropy_l or 1), tail)
    run = Run(records, secrets, attributes, level or 1, l is not None, variant, persons, properties, least, tighten)
    return run.grow(Node(list(range(len(records))), [attribute.top for attribute in attributes]))


def leaves(node: Node) -> list[Node]:
    """Return the published classes, depth first."""
    return [leaf for _, child in node.children for leaf in leaves(child)] if node.children else [node]


def covers(attribute: Attribute, generalised: Any, value: Any) -> bool:
    """Return whether the generalised value stands for the value."""
    return attribute.covers(generalised, value)


def naive_bayes(root: Node, secrets: Secrets, attributes: Attributes, target: Record, domain: Secrets) -> list[float]:
    """Return the belief of scikit-learn's BernoulliNB, trained on the release encoded relative to the target."""
    encoded, labels = [], []
    for leaf in leaves(root):
        published = zip(attributes, leaf.generalised, target, strict=True)
        bits = [int(covers(attribute, generalised, value)) for attribute, generalised, value in published]
        encoded += [bits] * len(leaf.rows)
        labels += [secrets[row] for row in leaf.rows]
    if len(set(labels)) == 1:
        return [float(secret == labels[0]) for secret in domain]
    model = BernoulliNB().fit(encoded, labels)
    (belief,) = model.predict_proba([[1] * len(attributes)]).tolist()
    known = dict(zip(model.classes_.tolist(), belief, strict=True))
    return [known.get(secret, 0.0) for secret in domain]


def conditional_frequency(root: Node, secrets: Secrets, attributes: Attributes, target: Record, domain: Secrets) -> list[float]:
    """Return the frequencies of the secrets in the last node that lies on the target's side of every split."""
    if root.attribute is not None:
        attribute, value, split = attributes[root.attribute], target[root.attribute], root.split
        for key, child in root.children:
            if covers(attribute, key, value) if split is None else (key == "left") == (value <= split):
                return conditional_frequency(child, secrets, attributes, target, domain)
    counts = Counter(secrets[row] for row in root.rows)
    return [counts[secret] / len(root.rows) for secret in domain]


def leave_one_out(
    records: Records,
    secrets: Secrets,
    attributes: Attributes,
    believe: Callable[..., list[float]],
    *,
    k: int | None = None,
    l: int | None = None,
    variant: str = "strict",
    domain: Secrets | None = None,
    tighten: bool = True,
    properties: Properties | None = None,
) -> list[tuple[list[float], list[float]]]:
    """Return every row's belief from the release of D and from the release of D without that row."""
    domain = sorted(set(secrets)) if domain is None else domain
    full = mondrian(records, secrets, attributes, k=k, l=l, variant=variant, properties=properties, tighten=tighten)
    beliefs = []
    for i, target in enumerate(records):
        others = [*records[:i], *records[i + 1 :]]
        kept = [*secrets[:i], *secrets[i + 1 :]]
        without = mondrian(others, kept, attributes, k=k, l=l, variant=variant, properties=properties, tighten=tighten)
        present = believe(full, secrets, attributes, target, domain)
        beliefs.append((present, believe(without, kept, attributes, target, domain)))
    return beliefs


def emd(p: Sequence[float], q: Sequence[float]) -> float:
    """Return the sum of absolute differences, v2's distance between two deterministic beliefs."""
    return sum(abs(x - y) for x, y in zip(p, q, strict=True))
