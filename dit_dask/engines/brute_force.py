"""The test as published: remove a record, sanitise again, learn again, compare. Works for every combination."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.adversaries import beliefs_about
from dit_dask.adversaries.classifier import training_threads
from dit_dask.encoders import is_relative
from dit_dask.engines.influence import Influence, compare, place_tested, tested_records
from dit_dask.engines.release_procedure import ReleaseProcedure
from dit_dask.errors import ExternalSanitizerError, RunError
from dit_dask.sanitizers import LeavesOneOut
from dit_dask.values.release import Release
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats, Ints


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Beliefs of one adversary before and after removals: [m, repeats, n] each."""

    full: Floats
    without: Floats


Learned = list[dict[str, Beliefs]]  # for each procedure, by the names of its adversaries


def influence(table: Table, records: Ints, procedure: ReleaseProcedure) -> Influence:
    """Test the given records, one removal after the other."""
    return together([table], records, [procedure])[0]


def together(tables: Sequence[Table], records: Ints, procedures: Sequence[ReleaseProcedure]) -> list[Influence]:
    """Test the given records for several procedures that see the same releases; tables have the sensitive attribute of each."""
    learned, failures, notes = compute_beliefs(tables, records, procedures)
    tested = tested_records(records, failures)
    results = []
    for table, procedure, by_name in zip(tables, procedures, learned, strict=True):
        codes = table.codes[records[tested]]
        sides = {
            name: (procedure.weigh(beliefs.full[tested, 0], codes), procedure.weigh(beliefs.without[tested, 0], codes))
            for name, beliefs in by_name.items()
        }
        compared = compare(sides, table.secret[records[tested]], procedure.distance, notes)
        results.append(place_tested(compared, tested, failures))
    return results


def compute_beliefs(
    tables: Sequence[Table], records: Ints, procedures: Sequence[ReleaseProcedure]
) -> tuple[Learned, dict[int, str], tuple[str, ...]]:
    """Let every adversary learn from every release; also return the records whose release failed, and warnings raised."""
    failures: dict[int, str] = {}
    removals = tables[0].removals(records)
    adversaries = [adversary for procedure in procedures for adversary in procedure.adversaries.values()]
    with warnings.catch_warnings(record=True) as caught, training_threads(adversaries):
        warnings.simplefilter("always")
        full = beliefs_on_full(tables, records, procedures, "full")
        learned = [{name: Beliefs(known, np.empty_like(known)) for name, known in by_name.items()} for by_name in full]
        for repeat in range(procedures[0].repeats):
            each = _all_releases(tables, [record for record, _ in removals], procedures, repeat)
            for (record, places), releases in zip(removals, each, strict=True):
                failed = next((release for release in releases if not isinstance(release, Release)), None)
                if failed is not None:
                    failures |= dict.fromkeys(records[places].tolist(), failed)
                    continue
                learners = [procedure.redraw(record, repeat) for procedure in procedures]
                about = learn(releases, learners, tables[0].codes[records[places]])
                for by_name, found in zip(learned, about, strict=True):
                    for name, beliefs in by_name.items():
                        beliefs.without[places, repeat] = found[name]
    return learned, failures, tuple(sorted({warning.category.__name__ for warning in caught}))


def learn(releases: Sequence[Any], procedures: Sequence[ReleaseProcedure], targets: Codes) -> list[dict[str, Floats]]:
    """Let every adversary of every procedure learn from its release; return its beliefs[m, n] about targets[m, d]."""
    found: list[dict[str, Floats]] = []
    for release, procedure in zip(releases, procedures, strict=True):
        shape = len(targets), release.counts.shape[1]
        found.append({name: np.empty(shape) for name in procedure.adversaries})
    everyone = list(zip(releases, procedures, found, strict=True))
    for place, target in enumerate(targets):  # all adversaries share what is relative to a target
        for release, procedure, by_name in everyone:
            for name, adversary in procedure.adversaries.items() if is_relative(procedure.encoder) else ():
                by_name[name][place] = adversary.beliefs(release, procedure.encoder, target)
    for release, procedure, by_name in everyone:
        for name, adversary in procedure.adversaries.items() if not is_relative(procedure.encoder) else ():
            by_name[name][:] = beliefs_about(adversary, release, procedure.encoder, targets)
    return found


def beliefs_on_full(
    tables: Sequence[Table], records: Ints, procedures: Sequence[ReleaseProcedure], purpose: str
) -> list[dict[str, Floats]]:
    """Return [m, repeats, n] beliefs of each adversary on releases of the whole table, worked out once for each q."""
    repeats = procedures[0].repeats
    targets, inverse = np.unique(tables[0].codes[records], axis=0, return_inverse=True)
    shapes = [(len(targets), repeats, len(table.schema.sensitive.levels)) for table in tables]
    known = [
        {name: np.empty(shape) for name in procedure.adversaries} for shape, procedure in zip(shapes, procedures, strict=True)
    ]
    for repeat in range(repeats):
        published: dict[int, Release] = {}
        for table, procedure in zip(tables, procedures, strict=True):
            try:
                if id(table) not in published:
                    published[id(table)] = procedure.sanitizer.release(table, procedure.rng(purpose, *_numbered(repeat)))
            except ExternalSanitizerError as error:
                raise RunError(f"{error}, on the whole table", hidden=error.hidden) from error
        releases = [published[id(table)] for table in tables]
        learners = [procedure.redraw(purpose, repeat) for procedure in procedures]
        for by_name, found in zip(known, learn(releases, learners, targets), strict=True):
            for name, beliefs in by_name.items():
                beliefs[:, repeat] = found[name]
    return [{name: beliefs[inverse.ravel()] for name, beliefs in by_name.items()} for by_name in known]


def applies(procedure: object) -> str | None:
    """Every sanitizer, encoder and adversary."""
    if not isinstance(procedure, ReleaseProcedure):
        return "brute force sanitises and trains"
    return "repeats make it an estimate" if procedure.repeats > 1 else None


def _all_releases(
    tables: Sequence[Table], records: Sequence[int], procedures: Sequence[ReleaseProcedure], repeat: int
) -> Iterator[list[Release | str]]:
    """Yield for each record the release that each procedure learns from: one for each table, made at the same time."""
    first = {id(table): (table, procedure) for table, procedure in zip(tables, procedures, strict=True)}
    places = [list(first).index(id(table)) for table in tables]
    for releases in zip(*(releases_without(table, records, one, repeat) for table, one in first.values()), strict=True):
        yield [releases[place] for place in places]


def releases_without(
    table: Table, records: Sequence[int], procedure: ReleaseProcedure, repeat: int = 0
) -> Iterator[Release | str]:
    """Sanitise the table without each record, or its person, all at once where the sanitizer can; a failure is a text."""
    sanitizer = procedure.sanitizer
    if isinstance(sanitizer, LeavesOneOut):
        yield from sanitizer.leave_one_out(table, np.array(records, np.int64))
        return
    for record in records:
        try:
            yield sanitizer.release(table.without(record), procedure.rng(record, *_numbered(repeat)))
        except ExternalSanitizerError as error:
            if not error.skip:
                raise RunError(f"{error}, without record {record}", hidden=error.hidden) from error
            yield str(error)


def _numbered(repeat: int) -> tuple[int, ...]:
    return (repeat,) if repeat else ()
