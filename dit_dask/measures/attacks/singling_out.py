"""Singling out: does a predicate that exactly one published record meets also single out one person?

Predicates are anonymeter's: rare values and extremes of single columns, and conjunctions of several columns of one published
record, in which a number is at least or at most the published one, whichever is rarer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dit_dask import seeds
from dit_dask.errors import InputError
from dit_dask.kernels.predicate_counts import ABOVE, AT_LEAST, AT_MOST, BELOW, EQUAL, UNEQUAL, count_matches
from dit_dask.measures.attacks.risk import AttackRisk, check_confidence, naive_doubts
from dit_dask.measures.attacks.success import CONFIDENCE, AttackResult
from dit_dask.measures.attacks.tables import CONTROL, RELEASE, TRAINING, AttackTables
from dit_dask.measures.synthetic.columns import Column
from dit_dask.measures.synthetic.space import unique_rows

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Floats, Ints

NAME = "singling-out"
UNIVARIATE, MULTIVARIATE = "univariate", "multivariate"
COLUMNS_OF_PREDICATE = 3
SETS = 10
OPERATORS = {"categorical": (EQUAL, UNEQUAL), "numeric": (EQUAL, UNEQUAL, ABOVE, BELOW, AT_LEAST, AT_MOST)}
NO_PREDICATES = "no predicate singles out a published record, so nothing was tried"


Learn: TypeAlias = "Callable[[Sequence[Column], Floats, tuple[int, int], int], Predicates]"


@dataclass(frozen=True, eq=False)
class Predicates:
    """Conjunctions as arrays (predicates, conditions): positions of columns, operators and values; operator -1 is none."""

    columns: Ints
    operators: Ints
    values: Floats

    def __len__(self) -> int:
        return len(self.columns)

    def choose(self, chosen: Bools) -> Predicates:
        """Return some of them."""
        return Predicates(self.columns[chosen], self.operators[chosen], self.values[chosen])

    def sample(self, size: int | None, seed: int) -> Predicates:
        """Return so many of them, drawn at random; all without a size."""
        if size is None or size >= len(self):
            return self
        chosen = np.zeros(len(self), bool)
        chosen[seeds.stream(seed, "attacks", "sample").choice(len(self), size, replace=False)] = True
        return self.choose(chosen)

    def distinct(self) -> Predicates:
        """Return each once, in the order of their cells."""
        cells = np.column_stack([self.columns, self.operators, self.values])
        width = self.columns.shape[1]
        rows = unique_rows(cells.astype(np.float64))[0]
        whole = rows[:, : 2 * width].astype(np.int64)
        return Predicates(
            np.ascontiguousarray(whole[:, :width]),
            np.ascontiguousarray(whole[:, width:]),
            np.ascontiguousarray(rows[:, 2 * width :]),
        )

    def count(self, rows: Floats) -> tuple[Ints, Ints]:
        """Return how many of (n, columns) rows meet each predicate, and one of these."""
        counts, match = np.zeros(len(self), np.int64), np.full(len(self), -1)
        count_matches(np.ascontiguousarray(rows.T), self.columns, self.operators, self.values, counts, match)
        return counts, match


def attack_singling_out(
    tables: AttackTables,
    columns_of_predicate: int | None = None,
    sets: int = SETS,
    sample: int | None = None,
    confidence: float = CONFIDENCE,
) -> AttackRisk:
    """Learn predicates from every published record, and try them on the training records and on the control."""
    check_confidence(confidence)
    columns = list(tables.columns.values())
    if columns_of_predicate is None:
        columns_of_predicate = min(COLUMNS_OF_PREDICATE, len(columns))
    if not 1 <= columns_of_predicate <= len(columns):
        raise InputError(
            f"columns_of_predicate must be an integer from 1 to the {len(columns)} columns; got {columns_of_predicate}"
        )
    rows = [read_cells(columns, table) for table in (TRAINING, RELEASE, CONTROL)]
    learned: dict[str, tuple[Learn, int]] = {UNIVARIATE: (learn_univariate, 1)}
    if columns_of_predicate > 1:
        learned[MULTIVARIATE] = (learn_multivariate, columns_of_predicate)
    shape = (columns_of_predicate, sets)
    results: list[AttackResult] = []
    successes: dict[str, Floats] = {}
    attainable = 0.0
    for what, (learn, width) in learned.items():
        published = unique_rows(rows[RELEASE])[0]
        predicates = learn(columns, published, shape, tables.seed).sample(sample, tables.seed)
        if not len(predicates):
            continue
        guesses = draw_predicates(columns, published, (len(predicates), width), tables.seed)
        result, found = _try(what, predicates, guesses, (rows[TRAINING], rows[CONTROL]), confidence)
        results.append(result)
        successes[what] = found
        copied = learn(columns, unique_rows(rows[TRAINING])[0], shape, tables.seed)
        if len(copied):
            attainable = max(attainable, _try(what, copied, copied, (rows[TRAINING], rows[CONTROL]), confidence)[0].risk)
    doubts = [*tables.doubts, *(naive_doubts(results) if results else [NO_PREDICATES])]
    return AttackRisk(NAME, tuple(results), attainable, tuple(doubts), successes)


def _try(
    what: str, predicates: Predicates, guesses: Predicates, tables: tuple[Floats, Floats], confidence: float
) -> tuple[AttackResult, Floats]:
    training, control = tables
    counts, match = predicates.count(training)
    size = min(len(training), len(control))
    successes = singled_out(counts, len(training), size)
    control_successes = singled_out(predicates.count(control)[0], len(control), size)
    naive = float(singled_out(guesses.count(training)[0], len(training), size).mean())
    result = AttackResult(
        what,
        len(predicates),
        float(successes.sum()),
        len(predicates),
        float(control_successes.sum()),
        naive,
        confidence,
        len(training) / size,
    )
    return result, np.bincount(match[counts == 1], minlength=len(training)).astype(np.float64)


def singled_out(counts: Ints, total: int, size: int) -> Floats:
    """Return how likely each predicate matches exactly one of a random part of so many records, given its matches in all."""
    from scipy.special import gammaln

    if size == total:
        return np.where(counts == 1, 1.0, 0.0)
    others = total - counts
    possible = (counts >= 1) & (others >= size - 1)
    c, rest = counts[possible], others[possible]
    log = gammaln(rest + 1) - gammaln(size) - gammaln(rest - size + 2)
    log -= gammaln(total + 1) - gammaln(size + 1) - gammaln(total - size + 1)
    probability = np.zeros(len(counts))
    probability[possible] = c * np.exp(log)
    return probability


def read_cells(columns: Sequence[Column], table: int) -> Floats:
    """Return (n, columns) cells: numbers and codes; NaN is missing."""
    cells = [column.cells[table].astype(np.float64) for column in columns]
    missing = [
        values < 0 if column.kind == "categorical" else np.isnan(values) for column, values in zip(columns, cells, strict=True)
    ]
    return np.column_stack([np.where(absent, np.nan, values) for values, absent in zip(cells, missing, strict=True)])


def learn_univariate(columns: Sequence[Column], published: Floats, _shape: tuple[int, int], _seed: int) -> Predicates:
    """Return the predicates of single columns that exactly one published record meets: rare values and extremes."""
    found: list[tuple[int, int, float]] = []
    for place, column in enumerate(columns):
        cells = published[:, place]
        if np.isnan(cells).sum() == 1:
            found.append((place, EQUAL, np.nan))
        values, counts = np.unique(cells[~np.isnan(cells)], return_counts=True)
        if column.kind == "numeric" and len(values):
            ends = ((AT_MOST, 0), (AT_LEAST, -1))
            found += [(place, operator, values[end]) for operator, end in ends if counts[end] == 1]
        found += [(place, EQUAL, value) for value in values[counts == 1]]
    table = np.array(found, np.float64).reshape(-1, 3)
    return Predicates(table[:, :1].astype(np.int64), table[:, 1:2].astype(np.int64), np.ascontiguousarray(table[:, 2:]))


def learn_multivariate(columns: Sequence[Column], published: Floats, shape: tuple[int, int], seed: int) -> Predicates:
    """Draw column sets for every published record; return the predicates that only this record meets, each once."""
    width, sets = shape
    rng = seeds.stream(seed, "attacks", "predicates")
    records = np.repeat(published, sets, axis=0)
    chosen = np.sort(rng.random((len(records), len(columns))).argsort(axis=1)[:, :width], axis=1)
    predicates = describe_records(columns, published, records, chosen).distinct()
    return predicates.choose(predicates.count(published)[0] == 1)


def describe_records(columns: Sequence[Column], published: Floats, records: Floats, chosen: Ints) -> Predicates:
    """Describe each of some records by its chosen columns; a number above the median is a lower limit, else an upper one."""
    is_number = np.array([column.kind == "numeric" for column in columns])
    median = np.array([np.median(cells[~np.isnan(cells)]) if not np.isnan(cells).all() else 0.0 for cells in published.T])
    values = np.take_along_axis(records, chosen, axis=1)
    compared = np.where(values > median[chosen], AT_LEAST, AT_MOST)
    operators = np.where(is_number[chosen] & ~np.isnan(values), compared, EQUAL)
    return Predicates(np.ascontiguousarray(chosen), operators.astype(np.int64), np.ascontiguousarray(values))


def draw_predicates(columns: Sequence[Column], published: Floats, shape: tuple[int, int], seed: int) -> Predicates:
    """Draw (predicates, conditions) at random: columns, published values and operators that fit."""
    count, width = shape
    rng = seeds.stream(seed, "attacks", "guesses", width)
    chosen = rng.random((count, len(columns))).argsort(axis=1)[:, :width]
    operators, values = np.empty((count, width), np.int64), np.empty((count, width))
    for place, column in enumerate(columns):
        cells = np.unique(published[:, place])
        here = chosen == place
        values[here] = cells[rng.integers(len(cells), size=int(here.sum()))]
        operators[here] = rng.choice(np.array(OPERATORS[column.kind]), size=int(here.sum()))
    absent = np.isnan(values)
    operators[absent] = np.where(operators[absent] == EQUAL, EQUAL, UNEQUAL)
    return Predicates(np.ascontiguousarray(chosen), operators, values)
