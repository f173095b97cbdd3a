"""What an attacker sees of releases with and without a person: statistics of each, or whether two releases differ."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask import seeds
from dit_dask.adversaries.classifier import training_threads
from dit_dask.engines.brute_force import learn
from dit_dask.engines.noisy_counts.procedure import ADVERSARY, NoisyCounts, counted
from dit_dask.engines.release_procedure import ReleaseProcedure
from dit_dask.errors import ExternalSanitizerError, InputError, RunError
from dit_dask.kernels import sampled_beliefs
from dit_dask.measures.membership.attack import WITH, WITHOUT
from dit_dask.sanitizers import LeavesOneOut, is_randomised
from dit_dask.values.published_tables import TableRelease
from dit_dask.values.release import Sets

if TYPE_CHECKING:
    from dit_dask.measures.membership.persons import AttackedPersons
    from dit_dask.values.arrays import Codes, Floats, Ints
    from dit_dask.values.release import Release
    from dit_dask.values.table import Table

NEAREST, NOISY_COUNT = "nearest-record", "noisy-count"
SIDES = {WITH: "with", WITHOUT: "without"}
CERTAIN = 1e-9  # beliefs this near to 0 and 1 have the same logit


@dataclass(frozen=True)
class Block:
    """Some persons, by their places, and some of their releases, by their numbers."""

    persons: range
    releases: range


def draws_at_random(procedure: ReleaseProcedure | NoisyCounts) -> bool:
    """Whether releases of one table differ; a test that does not say so has been probed."""
    return isinstance(procedure, NoisyCounts) or procedure.repeats > 1 or is_randomised(procedure.sanitizer)


def list_statistics(procedure: ReleaseProcedure | NoisyCounts, kind: str) -> list[str]:
    """The names of the statistics of a kind, or of all; none where the sanitizer has no such statistic."""
    if isinstance(procedure, NoisyCounts):
        known = {"belief": [ADVERSARY], "count": [NOISY_COUNT]}
    else:
        known = {"belief": list(procedure.names), "distance": [NEAREST] if procedure.publishes_release else []}
    return [name for one in known if kind in ("all", one) for name in known[one]]


def sample_statistics(
    table: Table, procedure: ReleaseProcedure | NoisyCounts, persons: AttackedPersons, block: Block, kind: str
) -> Floats:
    """Return (persons, statistics, 2, releases) for a block; a person without whom the sanitizer failed has no numbers."""
    if isinstance(procedure, NoisyCounts):
        return np.stack([_noisy_counts(table, procedure, persons, place, block.releases, kind) for place in block.persons])
    with warnings.catch_warnings(), training_threads(list(procedure.adversaries.values())):
        warnings.simplefilter("ignore")  # of classifiers: the tests of the run note them
        return np.stack([_of_releases(table, procedure, persons, place, block.releases, kind) for place in block.persons])


def _noisy_counts(
    table: Table, procedure: NoisyCounts, persons: AttackedPersons, place: int, releases: range, kind: str
) -> Floats:
    """Return (statistics, 2, releases): the noisy count of the person's cell, and the belief that follows from all counts."""
    found = counted(table)
    pattern = found.patterns.take(found.of[persons.record[place : place + 1]])
    own, cells, mechanism = int(pattern.own[0]), pattern.cells, procedure.sampling.mechanism
    names = list_statistics(procedure, kind)
    values = np.empty((len(names), 2, len(releases)))
    for side, counts in ((WITH, pattern.counts[0]), (WITHOUT, pattern.without()[0])):
        purpose = (mechanism.key, SIDES[side], persons.record[place], persons.copy[place])
        rng = seeds.stream(procedure.sampling.seed, "membership", *purpose)
        noise = mechanism.noise(rng, cells * releases.stop).reshape(releases.stop, cells).T.copy()
        shown = {NOISY_COUNT: counts[own] + noise[own]}
        sampled_beliefs.normalise(noise, counts)
        shown[ADVERSARY] = logit(noise[own])
        values[:, side] = [shown[name][releases.start :] for name in names]
    return values


def _of_releases(
    table: Table, procedure: ReleaseProcedure, persons: AttackedPersons, place: int, releases: range, kind: str
) -> Floats:
    """Return (statistics, 2, releases) of one person; of several rows the mean counts."""
    record, copy = int(persons.record[place]), int(persons.copy[place])
    rows = np.array([record]) if table.subject is None else np.flatnonzero(table.subject == table.subject[record])
    names = list_statistics(procedure, kind)
    values = np.empty((len(names), 2, len(releases)))
    for side, audited in ((WITH, table), (WITHOUT, table.without(record))):
        for number, repeat in enumerate(releases):
            purpose = ("membership", SIDES[side], record, copy, repeat)
            try:
                release = _publish(procedure, audited, purpose)
            except ExternalSanitizerError as error:
                if not error.skip or side == WITH:
                    raise RunError(f"{error}, {SIDES[side]} record {record}", hidden=error.hidden) from error
                return np.full_like(values, np.nan)
            shown = _beliefs(release, procedure.redraw(*purpose), table, rows) if set(names) != {NEAREST} else {}
            if NEAREST in names:
                shown[NEAREST] = np.array(
                    [-nearest_distance(release, table.codes[row], int(table.secret[row])) for row in rows]
                )
            values[:, side, number] = [shown[name].mean() for name in names]
    return values


def _publish(procedure: ReleaseProcedure, table: Table, purpose: tuple[object, ...]) -> Release:
    """Sanitise once; releases of an external sanitizer are not kept, for no other task needs the same."""
    rng, external = procedure.rng(*purpose), procedure.external
    return procedure.sanitizer.release(table, rng) if external is None else external.call(table, rng, use_cache=False).release


def _beliefs(release: Release, procedure: ReleaseProcedure, table: Table, rows: Ints) -> dict[str, Floats]:
    """Return by adversary the logits of the beliefs in the true sensitive values of some records."""
    codes, secrets = table.codes[rows], table.secret[rows]
    (found,) = learn([release], [procedure], codes)
    beliefs = {name: procedure.weigh(each, codes)[np.arange(len(rows)), secrets] for name, each in found.items()}
    if not all(np.isfinite(each).all() for each in beliefs.values()):
        raise InputError("the adversary returned beliefs that are not numbers")
    return {name: logit(each) for name, each in beliefs.items()}


def logit(beliefs: Floats) -> Floats:
    """Return ln(p / (1 − p)), finite also where a belief is certain."""
    inside = np.clip(beliefs, CERTAIN, 1 - CERTAIN)
    found: Floats = np.log(inside / (1 - inside))
    return found


def nearest_distance(release: Release, target: Codes, secret: int) -> float:
    """The distance of a record to the nearest published one: the mean over its attributes and the sensitive value.

    A published value that covers the record's is at distance 0. Else that is 1, or for numbers, dates and ordered labels the
    gap in ranks as a share of the domain. A release without records is at distance 1.
    """
    classes = np.flatnonzero(release.counts.any(axis=1))
    if not len(classes):
        return 1.0
    total: Floats = np.where(release.counts[classes, secret] > 0, 0.0, 1.0)
    covered = release.covers(target)[classes]
    for place, attribute in enumerate(release.schema.quasi_identifiers):
        away = np.ones(len(classes))
        if attribute.kind != "categorical" and len(attribute.levels) > 1:
            low, high, _ = (each[classes] for each in release.published.ends(place))
            gap = np.maximum(np.maximum(low - target[place], target[place] - high), 1)  # at least 1: it is not covered
            away = gap / (len(attribute.levels) - 1)
        total += np.where(covered[:, place], 0.0, away)
    return float(total.min()) / (1 + len(release.schema.quasi_identifiers))


def find_changed(table: Table, procedure: ReleaseProcedure, persons: AttackedPersons, places: range) -> Floats:
    """Return (persons,): 1 where the release without a person is another one, no number where the sanitizer failed."""
    whole = fingerprint(procedure.publish(table))
    records = persons.record[places.start : places.stop]
    releases = _without_each(table, procedure, records)
    return np.array([np.nan if one is None else float(fingerprint(one) != whole) for one in releases])


def _without_each(table: Table, procedure: ReleaseProcedure, records: Ints) -> Iterator[Release | None]:
    if isinstance(procedure.sanitizer, LeavesOneOut):
        yield from procedure.sanitizer.leave_one_out(table, records)
        return
    for record in records.tolist():
        try:
            yield procedure.sanitizer.release(table.without(record), procedure.rng(record))
        except ExternalSanitizerError as error:
            if not error.skip:
                raise RunError(f"{error}, without record {record}", hidden=error.hidden) from error
            yield None


def fingerprint(release: Release) -> bytes:
    """Digest what is published: equal for equal rows in any order, however they are divided into classes."""
    if isinstance(release, TableRelease):
        return _fingerprint_of_tables(release)
    keys, group = np.unique(_value_names(release), axis=0, return_inverse=True)
    counts = np.zeros((len(keys), release.counts.shape[1]), np.int64)
    np.add.at(counts, group.ravel(), release.counts)
    kept = counts.any(axis=1)
    return hashlib.sha256(keys[kept].tobytes() + b"|" + counts[kept].tobytes()).digest()


def _value_names(release: Release) -> Ints:
    """Return (classes, …): equal rows publish the same values, also in two releases; the numbers of sets are of one alone."""
    if not isinstance(release.published, Sets):
        return release.published.keys().astype(np.int64)
    columns = []
    for value, sets in zip(release.published.value.T, release.published.sets, strict=True):
        names = b"".join(hashlib.sha256(np.packbits(one).tobytes()).digest()[:8] for one in sets)
        columns.append(np.frombuffer(names, np.int64)[value])
    return np.column_stack(columns)


def _fingerprint_of_tables(release: TableRelease) -> bytes:
    """Digest what a reader knows of every cell; what is suppressed is not known."""
    known = [array for one in release.known for array in (one.low, one.high, one.guess)]
    sums = [np.where(one.is_shown, array, -1) for one in release.sums for array in (one.persons, one.low, one.high)]
    return hashlib.sha256(b"|".join(np.ascontiguousarray(array).tobytes() for array in (*known, *sums))).digest()
