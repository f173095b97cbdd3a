"""The test as published: remove a record, sanitise again, learn again, compare. Works for every combination."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.engines.influence import Influence, compare, place_tested, tested_records
from dit_dask.engines.release_procedure import ReleaseProcedure
from dit_dask.errors import ExternalSanitizerError, RunError
from dit_dask.sanitizers import LeavesOneOut
from dit_dask.values.release import Release
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Beliefs of one adversary before and after removals: [m, repeats, n] each."""

    full: Floats
    without: Floats


def influence(table: Table, records: Ints, procedure: ReleaseProcedure) -> Influence:
    """Test the given records, one removal after the other."""
    return together(table, records, [procedure])[0]


def together(table: Table, records: Ints, procedures: Sequence[ReleaseProcedure]) -> list[Influence]:
    """Test the given records against several adversaries that see the same releases."""
    found, failures, notes = compute_beliefs(table, records, procedures)
    tested = tested_records(records, failures)
    results = []
    for procedure, beliefs in zip(procedures, found, strict=True):
        compared = compare(beliefs.full[tested, 0], beliefs.without[tested, 0], procedure.distance, notes)
        results.append(place_tested(compared, tested, failures))
    return results


def compute_beliefs(
    table: Table, records: Ints, procedures: Sequence[ReleaseProcedure]
) -> tuple[list[Beliefs], dict[int, str], tuple[str, ...]]:
    """Let every adversary learn from every release; also return the records whose release failed, and warnings raised."""
    shape = (len(records), procedures[0].repeats, len(table.schema.sensitive.levels))
    found = [Beliefs(np.empty(shape), np.empty(shape)) for _ in procedures]
    failures: dict[int, str] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        full = beliefs_on_full(table, records, procedures, "full")
        for beliefs, known in zip(found, full, strict=True):
            beliefs.full[:] = known
        for repeat in range(procedures[0].repeats):
            for place, release in enumerate(_releases(table, records, procedures[0], repeat)):
                if not isinstance(release, Release):
                    failures[int(records[place])] = release
                    continue
                target = table.codes[records[place]]
                for procedure, beliefs in zip(procedures, found, strict=True):
                    beliefs.without[place, repeat] = procedure.adversary.beliefs(release, procedure.encoder, target)
    return found, failures, tuple(sorted({warning.category.__name__ for warning in caught}))


def beliefs_on_full(table: Table, records: Ints, procedures: Sequence[ReleaseProcedure], purpose: str) -> list[Floats]:
    """Return [m, repeats, n] beliefs of each adversary on releases of the whole table, worked out once for each q."""
    first = procedures[0]
    targets, inverse = np.unique(table.codes[records], axis=0, return_inverse=True)
    secrets = len(table.schema.sensitive.levels)
    known = [np.empty((len(targets), first.repeats, secrets)) for _ in procedures]
    for repeat in range(first.repeats):
        try:
            release = first.sanitizer.release(table, first.rng(purpose, *_numbered(repeat)))
        except ExternalSanitizerError as error:
            raise RunError(f"{error}, on the whole table", hidden=error.hidden) from error
        for procedure, beliefs in zip(procedures, known, strict=True):
            for place, target in enumerate(targets):
                beliefs[place, repeat] = procedure.adversary.beliefs(release, procedure.encoder, target)
    return [beliefs[inverse.ravel()] for beliefs in known]


def applies(procedure: object) -> str | None:
    """Every sanitizer, encoder and adversary."""
    if not isinstance(procedure, ReleaseProcedure):
        return "brute force sanitises and trains"
    return "repeats make it an estimate" if procedure.repeats > 1 else None


def _releases(table: Table, records: Ints, procedure: ReleaseProcedure, repeat: int) -> Iterator[Release | str]:
    """Sanitise the table without each record, all at once where the sanitizer can; a failure is a text."""
    sanitizer = procedure.sanitizer
    if isinstance(sanitizer, LeavesOneOut):
        yield from sanitizer.leave_one_out(table, records)
        return
    for record in records:
        try:
            yield sanitizer.release(table.without(int(record)), procedure.rng(int(record), *_numbered(repeat)))
        except ExternalSanitizerError as error:
            if not error.skip:
                raise RunError(f"{error}, without record {record}", hidden=error.hidden) from error
            yield str(error)


def _numbered(repeat: int) -> tuple[int, ...]:
    return (repeat,) if repeat else ()
