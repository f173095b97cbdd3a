"""All leave-one-outs at once for Mondrian, TF and Bernoulli naive Bayes: as brute force, near-linear (docs/exact-engine.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numba import typeof

from dit_dask.adversaries import Adversary
from dit_dask.adversaries.bernoulli_nb import BernoulliNB
from dit_dask.encoders.tf import TF
from dit_dask.engines.influence import Influence, compare, join
from dit_dask.engines.release_procedure import ReleaseProcedure
from dit_dask.kernels import mondrian as kernel
from dit_dask.kernels.exact_coverage import cover, posterior
from dit_dask.kernels.exact_engine import evaluate, follow
from dit_dask.kernels.exact_outcomes import decide
from dit_dask.sanitizers import Sanitizer
from dit_dask.sanitizers.mondrian import Mondrian
from dit_dask.sanitizers.mondrian_tree import Grown, grow
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats, Ints

COVERAGE_BYTES = 64 * 2**20


ADVERSARIES = (BernoulliNB,)
ExactAdversary: TypeAlias = BernoulliNB


def applies(procedure: object) -> str | None:
    """Return why this engine cannot run the procedure, or None if it can."""
    if not isinstance(procedure, ReleaseProcedure):
        return "the exact engine needs Mondrian"
    wanted = [(procedure.sanitizer, (Mondrian,)), (procedure.encoder, (TF,))]
    wanted += [(adversary, ADVERSARIES) for adversary in procedure.adversaries.values()]
    for part, kinds in wanted:
        if type(part) not in kinds:
            return f"the exact engine needs {' or '.join(kind.__name__ for kind in kinds)}; got {type(part).__name__}"
    return "repeats make it an estimate" if procedure.repeats > 1 else None


def prepare(table: Table, procedure: ReleaseProcedure) -> Grown:
    """Grow the tree of the whole table; the last one is kept, for tasks on one worker share it."""
    if not isinstance(procedure.sanitizer, Mondrian):
        raise TypeError(applies(procedure))
    return _grown(table, procedure.sanitizer.rule)


_grown = lru_cache(maxsize=1)(grow)


def influence(table: Table, records: Ints, procedure: ReleaseProcedure) -> Influence:
    """Test the given distinct records; the same meaning as brute force, and no bit depends on which records come together."""
    places, parts = [], []
    for block, sides in _named_blocks(table, records, procedure):
        places.append(block)
        parts.append(compare(sides, table.secret[records[block]], procedure.distance))
    return join(places, parts) if parts else compare(beliefs(table, records, procedure), table.secret[:0], procedure.distance)


def beliefs(table: Table, records: Ints, procedure: ReleaseProcedure) -> dict[str, tuple[Floats, Floats]]:
    """Return (m, n) beliefs of each adversary about the given records with and without them."""
    shape = len(records), len(table.schema.sensitive.levels)
    found = {name: (np.empty(shape), np.empty(shape)) for name in procedure.adversaries}
    for block, sides in _named_blocks(table, records, procedure):
        for name, (with_record, without) in sides.items():
            found[name][0][block], found[name][1][block] = with_record, without
    return found


def _named_blocks(
    table: Table, records: Ints, procedure: ReleaseProcedure
) -> Iterator[tuple[Ints, dict[str, tuple[Floats, Floats]]]]:
    adversaries = procedure.adversaries
    for block, sides in blocks(table, records, procedure.sanitizer, list(adversaries.values())):
        yield block, dict(zip(adversaries, sides, strict=True))


def blocks(
    table: Table, records: Ints, sanitizer: Sanitizer, adversaries: Sequence[Adversary]
) -> Iterator[tuple[Ints, list[tuple[Floats, Floats]]]]:
    """Yield positions in `records` and each adversary's beliefs, as many as COVERAGE_BYTES allow."""
    if not isinstance(sanitizer, Mondrian):
        raise TypeError("the exact engine needs Mondrian")
    base = _grown(table, sanitizer.rule)
    along = np.argsort(base.place[records], kind="stable")
    size = max(1, COVERAGE_BYTES // (4 * len(base.domain.spans) * base.secrets))
    for first in range(0, len(records), size):
        block = along[first : first + size]
        yield block, [_evaluate(base, base.place[records[block]]) for _ in adversaries]


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


def chunks(table: Table, records: Ints, procedure: ReleaseProcedure, count: int) -> list[Ints]:
    """Cut the records into at most `count` lists of about equal length, each from neighbouring branches of the base tree."""
    base = prepare(table, procedure)
    along = records[np.argsort(base.place[records], kind="stable")]
    return [part for part in np.array_split(along, count) if len(part)]
