"""A reading of published tables that shares no code with the package: what a value covers, and how anonymous a table is."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

INTERVAL = re.compile(r"\[(-?[\d.e+-]+), (-?[\d.e+-]+)([)\]])")


def covers(published: object, value: object, below: Mapping[str, set[str]] | None = None) -> bool:
    """Tell whether a published value may stand for an original one; `below` has the leaves of hierarchy nodes."""
    text = str(published)
    if text == "*" or text == str(value):
        return True
    if interval := INTERVAL.fullmatch(text):
        low, high, closing = float(interval[1]), float(interval[2]), interval[3]
        return low <= float(value) < high or (closing == "]" and float(value) == high)
    if text.startswith("{"):
        return str(value) in text[1:-1].split(", ")
    return str(value) in (below or {}).get(text, set())


def leaves(path: Path) -> dict[str, set[str]]:
    """The leaves below every inner node of a hierarchy file."""
    below: dict[str, set[str]] = defaultdict(set)
    for line in path.read_text("utf-8").splitlines():
        leaf, *above = line.split(";")
        for node in above:
            below[node].add(leaf)
    return below


def anonymity(table: pd.DataFrame, keys: Sequence[str], secret: str) -> dict[str, float]:
    """The smallest class, the fewest distinct secrets in a class, the largest total variation from the whole."""
    whole = Counter(table[secret])
    classes: dict[tuple[object, ...], Counter[object]] = defaultdict(Counter)
    for *key, value in table[[*keys, secret]].itertuples(index=False):
        classes[tuple(key)][value] += 1
    return {
        "k": min(group.total() for group in classes.values()),
        "l": min(map(len, classes.values())),
        "t": max(
            sum(abs(group[value] / group.total() - whole[value] / whole.total()) for value in whole) / 2
            for group in classes.values()
        ),
    }
