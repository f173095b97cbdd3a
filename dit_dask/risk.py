"""Which attributes are the quasi-identifiers? The discrimination rate of every column and of the best combinations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.document import Config
from dit_dask.errors import InputError, escape_text
from dit_dask.inputs.counted import CountedRows, load_all_counted
from dit_dask.measures.base import BarChart
from dit_dask.measures.discrimination.chance import compute_chance_rate
from dit_dask.measures.discrimination.contingency import (
    OPTION,
    combine_codes,
    compute_rate_from_codes,
    count_equal,
    factorize,
    missing_values_error,
    rate_of_records,
)
from dit_dask.reporting import charts
from dit_dask.reporting.text import align, number, share
from dit_dask.values.arrays import count_values

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Ints

EXHAUSTIVE, GREEDY = "exhaustive", "greedy"
MOST_SHOWN = 10  # smallest combinations on a terminal
MOST_TRIED = 10_000  # combinations of three or more; beyond it the best of the size below are extended instead
BEAM = 10
DETERMINES = 1 - 1e-12
NEAR_UNIQUE = 0.9  # a column in which so many rows are alone is an identifier


@dataclass(frozen=True)
class Risk:
    """What some columns together give away: the rate, and the share of rows that nobody else's values equal.

    The rates over a target and over sensitive columns have their chance levels beside them: the mean over all shuffles.
    """

    keys: tuple[str, ...]
    rate: float
    values: int
    alone: float
    chance: float | None = None
    sensitive: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # by column: the rate, and that by chance


@dataclass(frozen=True)
class Ranking:
    """The risk of every column and of combinations by size, worst first; `searched` says how each size was searched.

    `identifiers` are in no combination; `minimal` are the combinations that determine the target and have no column too many.
    """

    rows: int
    target: str | None
    single: tuple[Risk, ...]
    combined: Mapping[int, tuple[Risk, ...]]
    searched: Mapping[int, str]
    identifiers: tuple[str, ...] = ()
    minimal: tuple[tuple[str, ...], ...] = ()

    def document(self) -> dict[str, Any]:
        """The ranking as JSON."""
        return {
            "rows": self.rows,
            "target": self.target,
            "columns": [_object(risk) for risk in self.single],
            "identifiers": list(self.identifiers),
            "combinations": [
                {"size": size, "searched": self.searched[size], "best": [_object(risk) for risk in found]}
                for size, found in self.combined.items()
            ],
            "minimal": [list(keys) for keys in self.minimal],
        }

    def text(self) -> str:
        """The ranking for a terminal."""
        what = "people" if self.target is None else self.target
        risks = list(itertools.chain(self.single, *self.combined.values()))
        names = list(risks[0].sensitive) if risks else []
        titles = names if len(names) > 1 else ["the sensitive attribute" for _ in names]
        head = ["columns", f"rate over {what}", "by chance", "values", "rows alone"]
        head += [title for name in titles for title in (f"rate over {name}", "by chance")]
        rows = []
        for risk in risks:
            cells = [number(risk.chance), number(risk.values), share(risk.alone)]
            cells += [number(figure) for pair in risk.sensitive.values() for figure in pair]
            rows.append([", ".join(risk.keys), number(risk.rate), *cells])
        kept = [place for place in range(len(head)) if any(row[place] != "–" for row in rows)]
        table = align([[row[place] for place in kept] for row in (head, *rows)])
        return "\n".join([table, *self._notes()])

    def _notes(self) -> Iterator[str]:
        what = "people" if self.target is None else self.target
        if self.identifiers:
            yield f"identifiers, in no combination: {escape_text(', '.join(self.identifiers))}"
        if self.minimal:
            shown = "; ".join(", ".join(keys) for keys in self.minimal[:MOST_SHOWN])
            more = f" and {len(self.minimal) - MOST_SHOWN:,} more" if len(self.minimal) > MOST_SHOWN else ""
            yield f"smallest combinations that determine {escape_text(f'{what}: {shown}{more}')}"
        for size, how in self.searched.items():
            if how == GREEDY:
                yield f"combinations of {size}: a greedy search, there may be worse ones"

    def drawing(self) -> str:
        """The rates as bars."""
        risks = list(itertools.chain(self.single, *self.combined.values()))
        return charts.draw(BarChart({", ".join(risk.keys): [risk.rate] for risk in risks}, ["rate"], "Discrimination rates"))


def _object(risk: Risk) -> dict[str, Any]:
    pairs = list(risk.sensitive.values())
    rate, chance = pairs[0] if len(pairs) == 1 else (None, None)
    several = {name: {"rate": pair[0], "chance": pair[1]} for name, pair in risk.sensitive.items()}
    return {
        "keys": list(risk.keys),
        "rate": risk.rate,
        "chance": risk.chance,
        "values": risk.values,
        "rows_alone": risk.alone,
        "sensitive_rate": rate,
        "sensitive_chance": chance,
    } | ({"sensitive": several} if len(several) > 1 else {})


class Search:
    """Coded columns, and what combinations of them give away about a target and about sensitive columns."""

    def __init__(
        self,
        parts: Sequence[CountedRows],
        target: str | None,
        sensitive: Sequence[str],
        missing: str | None,
        names: Sequence[str] | None = None,
    ) -> None:
        self._columns = CodedRows.of(parts, missing, names)
        known = self._columns.codes
        self.target = target
        self._target = target if target in known else None
        self._sensitive = [name for name in sensitive if name != target and name in known]
        self.rows = self._columns.rows

    @property
    def names(self) -> list[str]:
        """The columns that may be keys."""
        return [name for name in self._columns.codes if name != self.target and name not in self._sensitive]

    def score(self, keys: Sequence[str]) -> tuple[float, int]:
        """Return the rate of a combination and how many values it has; the rest of its risk takes longer."""
        sizes = self._sizes(keys)
        rate = rate_of_records(sizes).value if self._target is None else self._rate(keys, self._target)
        return rate, len(sizes)

    def risk(self, keys: Sequence[str]) -> Risk:
        """Measure one combination."""
        rate, values = self.score(keys)
        sizes = self._sizes(keys)
        chance = None if self._target is None else self._chance(sizes, self._target)
        alone = float((sizes == 1).sum() / self.rows)
        sensitive = {name: (self._rate(keys, name), self._chance(sizes, name)) for name in self._sensitive}
        return Risk(tuple(keys), rate, values, alone, chance, sensitive)

    def _rate(self, keys: Sequence[str], target: str) -> float:
        (own, *codes), counts = self._columns.seen_in([target, *keys])
        return compute_rate_from_codes(codes, own, weights=counts).value

    def _chance(self, sizes: Ints, target: str) -> float:
        return compute_chance_rate(sizes, self._sizes([target]))

    def _sizes(self, keys: Sequence[str]) -> Ints:
        """Return how many rows have each value of a combination."""
        codes, counts = self._columns.seen_in(keys)
        combined = combine_codes(codes)
        if combined.max() >= 4 * len(combined):
            return count_equal(combined, counts)[1]
        sizes = np.bincount(combined, counts).astype(np.int64)
        return sizes[sizes > 0]


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Columns of counted rows as codes; place[name] is the one of `index` that tells which code of the column a row has.

    Columns that share it are looked at together without going through all rows.
    """

    codes: Mapping[str, Ints]
    place: Mapping[str, int]
    index: Sequence[Codes]

    @classmethod
    def of(cls, parts: Sequence[CountedRows], missing: str | None, names: Sequence[str] | None) -> CodedRows:
        """Encode the columns in the order of their names; `missing` says what to do with missing cells, if there are any."""
        rows = len(parts[0])
        if rows < 2:
            raise InputError(f"risk needs at least 2 rows; got {rows}")
        place = {str(name): number for number, part in enumerate(parts) for name in part.frame.columns}
        pairs = {name: factorize(name, parts[place[name]].frame[name]) for name in names or place}
        index = [part.index for part in parts]
        incomplete = [name for name, (codes, _) in pairs.items() if (codes < 0).any()]
        is_missing = np.zeros(rows if incomplete else 0, bool)
        for name in incomplete:
            is_missing |= (pairs[name][0] < 0)[index[place[name]]]
        if incomplete and missing is None:
            raise missing_values_error(int(is_missing.sum()), ", ".join(map(repr, incomplete)), OPTION)
        if incomplete and missing == "drop":
            if is_missing.all():
                raise InputError("a discrimination rate needs at least one row; every row misses a value")
            index = [one[~is_missing] for one in index]
        coded = {name: np.where(codes < 0, len(labels), codes) for name, (codes, labels) in pairs.items()}
        return cls(coded, place, index)

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.index[0])

    @cached_property
    def counts(self) -> Mapping[int, Ints]:
        """How many rows have each row of the codes, by the place of their index."""
        sizes = {self.place[name]: len(codes) for name, codes in self.codes.items()}
        return {place: count_values(self.index[place], size) for place, size in sizes.items()}

    def seen_in(self, names: Sequence[str]) -> tuple[list[Ints], Ints | None]:
        """Return the codes of some columns, and how many rows have each row of them; None if each is one row."""
        places = {self.place[name] for name in names}
        if len(places) > 1:
            return [self.codes[name][self.index[self.place[name]]] for name in names], None
        counts = self.counts[places.pop()]
        used = counts > 0  # not if its rows were dropped
        codes = [self.codes[name] if used.all() else self.codes[name][used] for name in names]
        return codes, None if len(codes[0]) == self.rows else counts[used]


def ranking(search: Search, size: int, top: int) -> Ranking:
    """Rank every column, then combinations of those that are no identifiers, up to a size; all pairs are tried."""
    single = sorted((search.risk([name]) for name in search.names), key=lambda risk: (-risk.rate, risk.values, risk.keys))
    identifiers = tuple(risk.keys[0] for risk in single if risk.rate >= DETERMINES or risk.alone >= NEAR_UNIQUE)
    names = [risk.keys[0] for risk in single if risk.keys[0] not in identifiers]
    best: list[tuple[str, ...]] = [(name,) for name in names]
    found, searched = {}, {}
    minimal: list[tuple[str, ...]] = []
    for count in range(2, min(size, len(names)) + 1):
        exhaustive = count == 2 or math.comb(len(names), count) <= MOST_TRIED
        candidates = itertools.combinations(names, count) if exhaustive else _extended(best[:BEAM], names)
        open_ones = [keys for keys in candidates if not any(set(least) <= set(keys) for least in minimal)]
        if not open_ones:
            break  # more columns cannot tell more
        scores = {keys: search.score(keys) for keys in open_ones}
        ordered = sorted(scores, key=lambda keys: (-scores[keys][0], scores[keys][1], keys))
        found[count] = tuple(search.risk(keys) for keys in ordered[:top])
        searched[count] = EXHAUSTIVE if exhaustive else GREEDY
        minimal += [keys for keys in ordered if scores[keys][0] >= DETERMINES]
        best = [keys for keys in ordered if scores[keys][0] < DETERMINES]
    return Ranking(search.rows, search.target, tuple(single), found, searched, identifiers, tuple(minimal))


def _extended(best: Sequence[tuple[str, ...]], names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    seen = set()
    for known in best:
        for name in names:
            keys = frozenset((*known, name))
            if name not in known and keys not in seen:
                seen.add(keys)
                yield (*known, name)


@dataclass(frozen=True)
class Scope:
    """What is ranked: columns but those left out, over a target or the person, in combinations up to a size."""

    target: str | None = None
    without: tuple[str, ...] = ()
    size: int = 3
    top: int = 10
    missing: str | None = None


def assess(config: Config, scope: Scope) -> Ranking:
    """Rank the columns of a config's source; its schema, if there is one, only names the sensitive columns."""
    sensitive = [] if config.schema is None else list(dict.fromkeys(one.column for one in config.schema.members))
    subject = [] if config.schema is None else config.schema.subject_columns  # an id is never published
    named = [name for name in (scope.target, *sensitive, *scope.without) if name is not None]
    names, parts = load_all_counted(config, named, {*scope.without, *subject})
    search = Search(parts, scope.target, sensitive, scope.missing, names)
    return ranking(search, scope.size, scope.top)
