"""All leave-one-outs at once, for Mondrian, TF and Bernoulli naive Bayes: equal to brute force, near-linear (docs/exact-engine.md)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.adversaries.bernoulli_nb import BernoulliNB
from dit_dask.encoders.tf import TF
from dit_dask.engines.brute_force import Influence, Procedure, compare
from dit_dask.kernels import mondrian as kernel
from dit_dask.kernels.exact_coverage import cover, posterior
from dit_dask.kernels.exact_engine import evaluate
from dit_dask.sanitizers.mondrian import Domain, Mondrian, flat_domain, flat_rows
from dit_dask.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

COVERAGE_BYTES = 64 * 2**20


@dataclass(frozen=True, eq=False)
class Base:
    """The tree of the whole table: rows[m, d + 2] in its order, its nodes, and the place of each distinct record in that order."""

    rows: "NDArray[np.int32]"
    nodes: "NDArray[np.int32]"
    place: "NDArray[np.int32]"
    totals: "NDArray[np.int64]"
    domain: Domain
    rule: kernel.Rule


def applies(procedure: Procedure) -> str | None:
    """Return why this engine cannot run the procedure, or None if it can."""
    wanted = ((procedure.sanitizer, Mondrian), (procedure.encoder, TF), (procedure.adversary, BernoulliNB))
    for part, kind in wanted:
        if type(part) is not kind:
            return f"the exact engine needs {kind.__name__}; got {type(part).__name__}"
    return None


def prepare(table: Table, procedure: Procedure) -> Base:
    """Build the tree of the whole table, which all calls on one table and sanitizer can share."""
    sanitizer = procedure.sanitizer
    if not isinstance(sanitizer, Mondrian):
        raise TypeError(applies(procedure))
    rows, domain, secrets = flat_rows(table), flat_domain(table.schema), len(table.schema.sensitive.levels)
    order, nodes = kernel.partition(rows, sanitizer.rule, *domain, secrets)
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    totals = np.zeros(secrets, np.int64)
    np.add.at(totals, table.secret, table.weights)
    # records in the order of the tree: a node is then a range of memory too
    return Base(rows[order], nodes, place, totals, domain, sanitizer.rule)


def influence(
    table: Table, records: "NDArray[np.int64]", procedure: Procedure, base: Base | None = None
) -> Influence:
    """Test the given distinct records; the same meaning as brute force, and no bit depends on which records come together."""
    return compare(*beliefs(table, records, procedure, base), procedure.distance)


def beliefs(
    table: Table, records: "NDArray[np.int64]", procedure: Procedure, base: Base | None = None
) -> tuple["NDArray[np.float64]", "NDArray[np.float64]"]:
    """Return (m, n) beliefs about the given records with and without them."""
    base = prepare(table, procedure) if base is None else base
    with_record, without = np.empty((len(records), len(base.totals))), np.empty((len(records), len(base.totals)))
    along = np.argsort(base.place[records], kind="stable")
    size = max(1, COVERAGE_BYTES // (4 * len(base.domain.spans) * len(base.totals)))
    for first in range(0, len(records), size):
        block = along[first : first + size]
        with_record[block], without[block] = _evaluate(base, base.place[records[block]])
    return with_record, without


def _evaluate(base: Base, targets: "NDArray[np.int32]") -> tuple["NDArray[np.float64]", "NDArray[np.float64]"]:
    """Return the beliefs about targets at these places of the base."""
    secrets = len(base.totals)
    distinct, repeat = np.unique(targets, return_inverse=True)
    slots = np.zeros(len(base.rows), np.int32)
    slots[distinct] = np.arange(len(distinct), dtype=np.int32)
    coverage = np.zeros((len(distinct), len(base.domain.spans), secrets), np.int32)
    steps = np.empty((len(distinct) + 1, secrets), np.int32)
    rows, order = base.rows.copy(), np.arange(len(base.rows), dtype=np.int32)
    scratch = kernel.scratch(rows, base.domain.attributes, base.domain.tree, secrets)
    cover(rows, order, base.nodes, -1, 0, distinct, slots, coverage, scratch[1], steps)
    nobody = np.full(len(distinct), -1, np.int32)
    with_record = posterior(coverage, base.totals, nobody)
    evaluate(
        rows, base.rule, *base.domain, order, base.nodes.copy(), *scratch, distinct.copy(), slots, coverage, steps
    )
    without = posterior(coverage, base.totals, rows[distinct, -2].copy())
    return with_record[repeat], without[repeat]


def chunks(table: Table, records: "NDArray[np.int64]", procedure: Procedure, count: int) -> list["NDArray[np.int64]"]:
    """Cut the records into at most `count` lists of about equal length, each from neighbouring branches of the base tree."""
    place = prepare(table, procedure).place
    along = records[np.argsort(place[records], kind="stable")]
    return [part for part in np.array_split(along, count) if len(part)]
