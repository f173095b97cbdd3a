"""Which attributes are the quasi-identifiers? The discrimination rate of every column and of the best combinations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.document import Config
from dit_dask.errors import InputError
from dit_dask.inputs.load import load_columns
from dit_dask.measures.base import BarChart
from dit_dask.measures.discrimination.contingency import (
    OPTION,
    combine_codes,
    compute_rate_from_codes,
    encode_columns,
    run_starts,
)
from dit_dask.measures.discrimination.histogram import CountHistogram, compute_rate
from dit_dask.reporting import charts
from dit_dask.reporting.text import align, number, share

if TYPE_CHECKING:
    import pandas as pd

MOST_TRIED = 2000  # combinations of one size; beyond it the best of the size below are extended instead
BEAM = 10
DETERMINES = 1 - 1e-12


@dataclass(frozen=True)
class Risk:
    """What some columns together give away: the rate, and the share of rows that nobody else's values equal."""

    keys: tuple[str, ...]
    rate: float
    values: int
    alone: float
    sensitive: float | None


@dataclass(frozen=True)
class Ranking:
    """The risk of every column and of combinations by size, worst first; `searched` says how each size was searched."""

    rows: int
    target: str | None
    single: tuple[Risk, ...]
    combined: Mapping[int, tuple[Risk, ...]]
    searched: Mapping[int, str]

    def document(self) -> dict[str, Any]:
        """The ranking as JSON."""
        return {
            "rows": self.rows,
            "target": self.target,
            "columns": [_object(risk) for risk in self.single],
            "combinations": [
                {"size": size, "searched": self.searched[size], "best": [_object(risk) for risk in found]}
                for size, found in self.combined.items()
            ],
        }

    def text(self) -> str:
        """The ranking for a terminal."""
        what = "people" if self.target is None else self.target
        rows = [["columns", f"rate over {what}", "values", "rows alone", "rate over the sensitive attribute"]]
        for risk in itertools.chain(self.single, *self.combined.values()):
            cells = [number(risk.rate), number(risk.values), share(risk.alone), number(risk.sensitive)]
            rows.append([", ".join(risk.keys), *cells])
        if all(row[-1] == "–" for row in rows[1:]):
            rows = [row[:-1] for row in rows]
        return align(rows)

    def drawing(self) -> str:
        """The rates as bars."""
        risks = list(itertools.chain(self.single, *self.combined.values()))
        return charts.draw(BarChart({", ".join(risk.keys): [risk.rate] for risk in risks}, ["rate"], "Discrimination rates"))


def _object(risk: Risk) -> dict[str, Any]:
    return {
        "keys": list(risk.keys),
        "rate": risk.rate,
        "values": risk.values,
        "rows_alone": risk.alone,
        "sensitive_rate": risk.sensitive,
    }


class Search:
    """Coded columns, and what combinations of them give away about a target and about the sensitive attribute."""

    def __init__(self, frame: pd.DataFrame, target: str | None, sensitive: str | None, missing: str | None) -> None:
        if len(frame) < 2:
            raise InputError(f"risk needs at least 2 rows; got {len(frame)}")
        found, kept = encode_columns({str(name): frame[name] for name in frame.columns}, missing, OPTION)
        self._columns = {str(name): column for name, column in zip(frame.columns, found, strict=True)}
        self._target = self._columns.get(target) if target is not None else None
        self._sensitive = self._columns.get(sensitive) if sensitive not in (None, target) else None
        self.target, self._sensitive_name = target, sensitive
        self.rows = int(kept.sum())

    @property
    def names(self) -> list[str]:
        """The columns that may be keys."""
        return [name for name in self._columns if name not in (self.target, self._sensitive_name)]

    def risk(self, keys: Sequence[str]) -> Risk:
        """Measure one combination."""
        codes = [self._columns[name].codes for name in keys]
        ordered = np.sort(combine_codes(codes))
        sizes = np.diff(run_starts(ordered), append=len(ordered))
        alone = float((sizes == 1).sum() / self.rows)
        over_sensitive = None if self._sensitive is None else compute_rate_from_codes(codes, self._sensitive.codes).value
        if self._target is not None:
            return Risk(
                tuple(keys), compute_rate_from_codes(codes, self._target.codes).value, len(sizes), alone, over_sensitive
            )
        people = CountHistogram(np.ones(1, np.int64), np.full(1, self.rows))  # every row is a value of its own
        return Risk(
            tuple(keys), compute_rate(people, CountHistogram.of(sizes), people).value, len(sizes), alone, over_sensitive
        )


def ranking(search: Search, size: int, top: int) -> Ranking:
    """Rank every column, then combinations of those that do not determine the target already, up to a size."""
    single = _worst_first(search.risk([name]) for name in search.names)
    partial = [risk.keys[0] for risk in single if risk.rate < DETERMINES]
    best: Sequence[Risk] = [risk for risk in single if risk.rate < DETERMINES]
    found, searched = {}, {}
    for count in range(2, min(size, len(partial)) + 1):
        exhaustive = math.comb(len(partial), count) <= MOST_TRIED
        candidates = itertools.combinations(partial, count) if exhaustive else _extended(best[:BEAM], partial)
        best = _worst_first(search.risk(keys) for keys in candidates)
        found[count], searched[count] = tuple(best[:top]), "exhaustive" if exhaustive else "greedy"
        if best[0].rate >= DETERMINES:
            break  # more columns cannot tell more
    return Ranking(search.rows, search.target, tuple(single), found, searched)


def _extended(best: Sequence[Risk], names: Sequence[str]) -> Iterable[tuple[str, ...]]:
    seen = set()
    for risk in best:
        for name in names:
            keys = frozenset((*risk.keys, name))
            if name not in risk.keys and keys not in seen:
                seen.add(keys)
                yield (*risk.keys, name)


def _worst_first(risks: Iterable[Risk]) -> list[Risk]:
    return sorted(risks, key=lambda risk: (-risk.rate, risk.values, risk.keys))


@dataclass(frozen=True)
class Scope:
    """What is ranked: columns but those left out, over a target or the person, in combinations up to a size."""

    target: str | None = None
    without: tuple[str, ...] = ()
    size: int = 3
    top: int = 10
    missing: str | None = None


def assess(config: Config, scope: Scope) -> Ranking:
    """Rank the columns of a config's source; its schema, if there is one, only names the sensitive attribute."""
    sensitive = config.schema.sensitive.name if config.schema else None
    frame = load_columns(config, [name for name in (scope.target, sensitive, *scope.without) if name is not None])
    search = Search(frame.drop(columns=list(scope.without)), scope.target, sensitive, scope.missing)
    return ranking(search, scope.size, scope.top)
