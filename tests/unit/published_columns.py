"""Columns whose published values are read, and what a reading says in the terms of their own values."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dit_dask.sanitizers.external.published_values import Reader
from dit_dask.values.hierarchy import flat, parse
from dit_dask.values.schema import Attribute
from tests.audits import loaded


def numeric(*values: Any) -> Attribute:
    """The attribute that a column of these values becomes."""
    frame = pd.DataFrame({"x": list(values), "s": ["a", "b"] * (len(values) // 2) + ["a"] * (len(values) % 2)})
    schema = {"quasi_identifiers": {"x": {"kind": "numeric"}}, "sensitive": "s"}
    return loaded(frame, schema).table.schema.quasi_identifiers[0]


def categorical(*labels: str) -> Attribute:
    tree = flat(labels)
    return Attribute("x", "categorical", tree.leaves, None, tree)


def under(text: str) -> Attribute:
    tree = parse(text, "tree.csv")
    return Attribute("x", "categorical", tree.leaves, None, tree)


AGES = numeric(-10, -5, 0, 5, 19, 20, 21, 25, 29, 30, 45, 60, 1000)
DATES = ["2000-12-31", "2001-01-01", "2001-05-03", "2001-05-31", "2001-12-31", "2002-01-01", "2003-07-07"]
DAYS = numeric(*DATES)
TOWNS = under("Lyon;France;Europe;*\nNice;France;Europe;*\nBonn;Germany;Europe;*\nLima;Peru, Andes;*\nCuzco;Peru, Andes;*\n")
ZIPS = categorical("35510", "35520", "35600", "12", "2", "21", "x5")


def covered(attribute: Attribute, value: Any, mapping: dict[str, list[str]] | None = None) -> list[Any]:
    reading = Reader(attribute, mapping)(value)
    assert reading.covers.shape == (len(attribute.levels),)
    assert reading.covers.dtype == bool
    return [level for level, covers in zip(attribute.levels, reading.covers, strict=True) if covers]


def days(value: Any) -> list[str]:
    spelled = dict(zip(DAYS.levels, DATES, strict=True))
    return [spelled[level] for level in covered(DAYS, value)]
