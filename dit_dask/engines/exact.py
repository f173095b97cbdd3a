"""All leave-one-outs at once, as brute force, for adversaries whose beliefs follow from counts (docs/exact-engine.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numba import typeof

from dit_dask.adversaries import Adversary, is_counted
from dit_dask.adversaries.bernoulli_nb import BernoulliNB
from dit_dask.adversaries.conditional_frequency import ConditionalFrequency
from dit_dask.adversaries.narrowest_class import NarrowestClass
from dit_dask.engines import exact_persons
from dit_dask.engines.exact_counts import (
    Counts,
    CountSource,
    MondrianCounts,
    Needs,
    RawCounts,
    ReferenceCounts,
    SuppressedCounts,
)
from dit_dask.engines.influence import Influence, compare, join
from dit_dask.engines.release_procedure import ReleaseProcedure
from dit_dask.kernels import mondrian as kernel
from dit_dask.kernels.exact_coverage import cover, posterior
from dit_dask.kernels.exact_engine import follow, plant, settle_class
from dit_dask.kernels.exact_outcomes import decide
from dit_dask.kernels.exact_tasks import push_compared, push_own
from dit_dask.sanitizers import Sanitizer
from dit_dask.sanitizers.mondrian import Mondrian
from dit_dask.sanitizers.mondrian_tree import grow
from dit_dask.sanitizers.predicates import Predicates
from dit_dask.sanitizers.raw import Raw
from dit_dask.sanitizers.suppressed import Suppressed
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints

Beliefs: TypeAlias = "tuple[Floats, Floats]"

COVERAGE_BYTES = 64 * 2**20


def _naive_bayes(counts: Counts) -> Floats:
    if counts.totals.ndim > 1:
        return exact_persons.naive_bayes(counts.coverage, counts.totals)
    beliefs: Floats = posterior(counts.coverage, counts.totals, counts.removed)
    return beliefs


def _frequencies(counts: Counts) -> Floats:
    with np.errstate(invalid="ignore"):  # nothing is left of a table of one record
        shares: Floats = counts.fallen / counts.fallen.sum(axis=1, keepdims=True)
    return shares


def _count_mondrian(table: Table, sanitizer: Mondrian) -> CountSource:
    if sanitizer.predicates.t is not None:
        return ReferenceCounts(table, sanitizer.predicates)
    return MondrianCounts(grow(table, sanitizer.predicates))


SOURCES: Mapping[type, Callable[[Table, Any], CountSource]] = {
    Mondrian: _count_mondrian,
    Raw: lambda table, _sanitizer: RawCounts(table),
    Suppressed: lambda table, _sanitizer: SuppressedCounts(table),
}
BELIEFS: Mapping[type, Callable[[Counts], Floats]] = {
    BernoulliNB: _naive_bayes,
    ConditionalFrequency: _frequencies,
    NarrowestClass: _frequencies,  # the same, for these sanitizers have a split tree or disjoint classes
}


def applies(procedure: object) -> str | None:
    """Return why this engine cannot run the procedure, or None if it can."""
    if not isinstance(procedure, ReleaseProcedure):
        return f"the exact engine needs {_list_names(SOURCES)}"
    adversaries = list(procedure.adversaries.values())
    wanted: list[tuple[object, Mapping[type, object]]] = [(procedure.sanitizer, SOURCES)]
    wanted += [(adversary, BELIEFS) for adversary in adversaries]
    for part, kinds in wanted:
        if type(part) not in kinds:
            return f"the exact engine needs {_list_names(kinds)}; got {type(part).__name__}"
    if not all(is_counted(adversary, procedure.encoder) for adversary in adversaries):
        name = getattr(procedure.encoder, "name", type(procedure.encoder).__name__)
        return f"the exact engine needs TF; got {name}"
    if procedure.by_person and isinstance(procedure.sanitizer, Mondrian):
        return "the exact engine removes one row from the tree; some persons have several"
    return "repeats make it an estimate" if procedure.repeats > 1 else None


def influence(table: Table, records: Ints, procedure: ReleaseProcedure) -> Influence:
    """Test the given distinct records; the same meaning as brute force, and no bit depends on which records come together."""
    names, adversaries = list(procedure.adversaries), list(procedure.adversaries.values())
    places, parts = [], []
    for block, sides in blocks(table, records, procedure.sanitizer, adversaries):
        places.append(block)
        codes = table.codes[records[block]]
        weighed = [(procedure.weigh(full, codes), procedure.weigh(without, codes)) for full, without in sides]
        parts.append(compare(dict(zip(names, weighed, strict=True)), table.secret[records[block]], procedure.distance))
    if parts:
        return join(places, parts)
    nobody = np.empty((0, len(table.schema.sensitive.levels)))
    return compare(dict.fromkeys(names, (nobody, nobody)), table.secret[:0], procedure.distance)


def chunks(table: Table, records: Ints, procedure: ReleaseProcedure, count: int) -> list[Ints]:
    """Cut the records into at most `count` lists of about equal length, each of records that share work."""
    along = records[np.argsort(count_source(table, procedure.sanitizer).places[records], kind="stable")]
    return [part for part in np.array_split(along, count) if len(part)]


def count_source(table: Table, sanitizer: Sanitizer) -> CountSource:
    """Return the counts of a table for one of the SOURCES."""
    if table.subject is not None:
        return exact_persons.PersonCounts(table, table.subject, suppressed=isinstance(sanitizer, Suppressed))
    return SOURCES[type(sanitizer)](table, sanitizer)


def beliefs(table: Table, records: Ints, sanitizer: Sanitizer, adversaries: Sequence[Adversary]) -> list[Beliefs]:
    """Return, for each adversary, (m, n) beliefs about the given records with and without them."""
    shape = len(records), len(table.schema.sensitive.levels)
    found = [(np.empty(shape), np.empty(shape)) for _ in adversaries]
    for block, parts in blocks(table, records, sanitizer, adversaries):
        for (with_record, without), (some, some_without) in zip(found, parts, strict=True):
            with_record[block], without[block] = some, some_without
    return found


def blocks(
    table: Table, records: Ints, sanitizer: Sanitizer, adversaries: Sequence[Adversary]
) -> Iterator[tuple[Ints, list[Beliefs]]]:
    """Yield positions in `records` and the beliefs of each adversary about them, with and without each record.

    All adversaries share one pass. A block has as many records as COVERAGE_BYTES allow.
    """
    source = count_source(table, sanitizer)
    kinds = [type(adversary) for adversary in adversaries]
    needs = Needs(BernoulliNB in kinds, any(BELIEFS[kind] is _frequencies for kind in kinds))
    places = source.places[records].astype(np.int64)
    along = np.argsort(places, kind="stable")
    columns = table.codes.shape[1] if needs.coverage else 4  # the beliefs of a target take as much as four columns
    size = max(1, COVERAGE_BYTES // (4 * columns * len(table.schema.sensitive.levels)))
    for first in range(0, len(records), size):
        block = along[first : first + size]
        targets, repeat = np.unique(places[block], return_inverse=True)
        sides = [[BELIEFS[kind](counts)[repeat] for kind in kinds] for counts in source.count(targets, needs)]
        yield block, list(zip(*sides, strict=True))


def _list_names(kinds: Mapping[type, object]) -> str:
    return " or ".join(kind.__name__ for kind in kinds)


def compile_ahead() -> None:
    """Compile what does not need a tree, on a table of one record; meanwhile another process may compile what grows one."""
    rows, order, slots = np.array([[0, 0, 1]], np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32)
    nodes = np.zeros((1, kernel.STATE + 4), np.int32)
    nodes[0, [kernel.ATTRIBUTE, kernel.STOP, kernel.PAST]] = -1, 1, 1
    coverage, steps = np.zeros((1, 1, 2), np.int32), np.empty((2, 2), np.int32)
    long, longs, numbers = np.zeros(1, np.int64), np.zeros((2, 1), np.int64), np.zeros(1)
    rule = Predicates(k=2).rule(long)
    cover(rows, order, nodes, -1, 0, order, slots, coverage, longs, steps)
    posterior(coverage, np.array([1, 0]), np.full(1, -1, np.int32))
    # functions without an entry from Python are compiled for arguments of these types instead of being called: first those
    # that `evaluate` calls last, so that a process that compiles it finds them, and does not do the same at the same time
    flat = (numbers, rows, numbers, rows, order, numbers)
    parts = {
        plant: (rows, rows, rows, order, order, rows, order, long, long, order),
        settle_class: (rows, rule, order, order, True, order, order, rows, longs, coverage, steps, long),
        follow: (rows, rule, rows, rows, order, rows, 0, order, 0, order, 0, 0, 0, rows, long, longs, long, long, order),
        push_compared: (rule, numbers, rows, numbers, numbers, rows, order, rows, long),
        push_own: (rows, rows, rows, rows, 0, 0, 0, order, order, 0, rows, long),
        decide: (rows, rule, *flat, order, order, order, long, longs, longs, order, order, longs, long),
    }
    for function, arguments in parts.items():
        function.compile(tuple(map(typeof, arguments)))
