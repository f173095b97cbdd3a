"""All leave-one-outs at once for Mondrian, TF and Bernoulli naive Bayes: as brute force, near-linear (docs/exact-engine.md)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numba import typeof

from dit_dask.adversaries.bernoulli_nb import BernoulliNB
from dit_dask.encoders.tf import TF
from dit_dask.engines.influence import Influence, compare
from dit_dask.engines.release_procedure import ReleaseProcedure
from dit_dask.kernels import mondrian as kernel
from dit_dask.kernels.exact_coverage import cover, posterior
from dit_dask.kernels.exact_engine import evaluate, follow
from dit_dask.kernels.exact_outcomes import decide
from dit_dask.sanitizers.mondrian import Mondrian
from dit_dask.sanitizers.mondrian_tree import Grown, grow
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats, Ints

Block: TypeAlias = "tuple[Ints, Floats, Floats]"

COVERAGE_BYTES = 64 * 2**20


def applies(procedure: object) -> str | None:
    """Return why this engine cannot run the procedure, or None if it can."""
    if not isinstance(procedure, ReleaseProcedure):
        return "the exact engine needs Mondrian"
    wanted = ((procedure.sanitizer, Mondrian), (procedure.encoder, TF), (procedure.adversary, BernoulliNB))
    for part, kind in wanted:
        if type(part) is not kind:
            return f"the exact engine needs {kind.__name__}; got {type(part).__name__}"
    return None


def prepare(table: Table, procedure: ReleaseProcedure) -> Grown:
    """Grow the tree of the whole table; the last one is kept, for tasks on one worker share it."""
    if not isinstance(procedure.sanitizer, Mondrian):
        raise TypeError(applies(procedure))
    return _grown(table, procedure.sanitizer.rule)


_grown = lru_cache(maxsize=1)(grow)


def influence(table: Table, records: Ints, procedure: ReleaseProcedure, base: Grown | None = None) -> Influence:
    """Test the given distinct records; the same meaning as brute force, and no bit depends on which records come together."""
    distance, predicted = np.empty(len(records)), np.empty((2, len(records)), np.int32)
    for block, with_record, without in _blocks(table, records, procedure, base):
        part = compare(with_record, without, procedure.distance)
        distance[block], predicted[0, block], predicted[1, block] = part.distance, part.predicted, part.predicted_without
    return Influence(distance, predicted[0], predicted[1])


def beliefs(table: Table, records: Ints, procedure: ReleaseProcedure, base: Grown | None = None) -> tuple[Floats, Floats]:
    """Return (m, n) beliefs about the given records with and without them."""
    with_record, without = np.empty((2, len(records), len(table.schema.sensitive.levels)))
    for block, some, some_without in _blocks(table, records, procedure, base):
        with_record[block], without[block] = some, some_without
    return with_record, without


def _blocks(table: Table, records: Ints, procedure: ReleaseProcedure, base: Grown | None) -> Iterator[Block]:
    """Yield positions in `records` and their beliefs, in the order of the tree and as many as COVERAGE_BYTES allow."""
    base = prepare(table, procedure) if base is None else base
    along = np.argsort(base.place[records], kind="stable")
    size = max(1, COVERAGE_BYTES // (4 * len(base.domain.spans) * base.secrets))
    for first in range(0, len(records), size):
        block = along[first : first + size]
        yield block, *_evaluate(base, base.place[records[block]])


def _evaluate(base: Grown, targets: Codes) -> tuple[Floats, Floats]:
    """Return the beliefs about targets at these places of the base."""
    secrets, domain = base.secrets, base.domain
    totals = np.zeros(secrets, np.int64)
    np.add.at(totals, base.rows[:, -2], base.rows[:, -1])
    distinct, repeat = np.unique(targets, return_inverse=True)
    slots = np.zeros(len(base.rows), np.int32)
    slots[distinct] = np.arange(len(distinct), dtype=np.int32)
    coverage = np.zeros((len(distinct), len(domain.spans), secrets), np.int32)
    steps = np.empty((len(distinct) + 1, secrets), np.int32)
    rows, order = base.rows.copy(), np.arange(len(base.rows), dtype=np.int32)
    scratch = kernel.scratch(rows, domain.attributes, domain.tree, secrets)
    cover(rows, order, base.nodes, -1, 0, distinct, slots, coverage, scratch[1], steps)
    nobody = np.full(len(distinct), -1, np.int32)
    with_record = posterior(coverage, totals, nobody)
    tops, log = np.array([len(order), len(base.nodes), 0]), np.empty((0, 2), np.int32)
    evaluate(rows, base.rule, *domain, order, base.nodes.copy(), *scratch, distinct.copy(), slots, coverage, steps, tops, log)
    without = posterior(coverage, totals, rows[distinct, -2].copy())
    return with_record[repeat], without[repeat]


def compile_ahead() -> None:
    """Compile what does not need a tree, on a table of one record; meanwhile another process may compile what grows one."""
    rows, order, slots = np.array([[0, 0, 1]], np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32)
    nodes = np.zeros((1, kernel.STATE + 4), np.int32)
    nodes[0, [kernel.ATTRIBUTE, kernel.STOP, kernel.PAST]] = -1, 1, 1
    coverage, steps = np.zeros((1, 1, 2), np.int32), np.empty((2, 2), np.int32)
    long, longs, numbers, rule = np.zeros(1, np.int64), np.zeros((2, 1), np.int64), np.zeros(1), (2, False, True)
    cover(rows, order, nodes, -1, 0, order, slots, coverage, longs, steps)
    posterior(coverage, np.array([1, 0]), np.full(1, -1, np.int32))
    # functions without an entry from Python are compiled for arguments of these types instead of being called
    flat = (numbers, rows, numbers, rows, order, numbers)
    deciding = (rows, rule, *flat, order, order, order, long, longs, longs, order, order, longs, long)
    decide.compile(tuple(map(typeof, deciding)))
    following = (rows, rows, rows, order, rows, 0, order, 0, order, 0, 0, 0, rows, long, longs, long, long, order)
    follow.compile(tuple(map(typeof, following)))


def chunks(table: Table, records: Ints, procedure: ReleaseProcedure, count: int, base: Grown | None = None) -> list[Ints]:
    """Cut the records into at most `count` lists of about equal length, each from neighbouring branches of the base tree."""
    base = prepare(table, procedure) if base is None else base
    along = records[np.argsort(base.place[records], kind="stable")]
    return [part for part in np.array_split(along, count) if len(part)]
