"""The test as published: remove a record, sanitise again, learn again, compare. Works for every combination."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask import seeds
from dit_dask.adversaries import Adversary
from dit_dask.distances import Distance
from dit_dask.encoders import Encoder
from dit_dask.errors import ExternalSanitizerError, InputError, RunError
from dit_dask.sanitizers import LeavesOneOut, Sanitizer
from dit_dask.values.release import Release
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dit_dask.values.arrays import Bools, Codes, Floats, Ints


@dataclass(frozen=True, eq=False)
class Procedure:
    """The four parts of a differential inference test, the stream of its randomness, and how often it is repeated.

    The stream is named after the sanitizer, so that several adversaries see the same releases.
    """

    sanitizer: Sanitizer
    encoder: Encoder
    adversary: Adversary
    distance: Distance
    seed: int
    stream: str
    repeats: int = 1

    def rng(self, *purpose: object) -> np.random.Generator:
        """The randomness of one release."""
        return seeds.stream(self.seed, self.stream, *purpose)

    def full(self, table: Table) -> Release:
        """Sanitise the whole table."""
        return self.sanitizer.release(table, self.rng("full"))


@dataclass(frozen=True, eq=False)
class Influence:
    """What the removal of records changes: one entry per record, and what the adversary complained of.

    A record that could not be tested has no number for a distance, no predictions (-1), and a place among the failures.
    """

    distance: Floats
    predicted: Codes
    predicted_without: Codes
    notes: tuple[str, ...] = ()
    estimates: Mapping[str, Floats] = field(default_factory=dict)
    failures: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Believed:
    """Beliefs of one adversary before and after removals: [m, repeats, n] each."""

    full: Floats
    without: Floats


def influence(table: Table, records: Ints, procedure: Procedure) -> Influence:
    """Test the given records, one removal after the other."""
    return together(table, records, [procedure])[0]


def together(table: Table, records: Ints, procedures: Sequence[Procedure]) -> list[Influence]:
    """Test the given records against several adversaries that see the same releases."""
    found, failures, notes = believed(table, records, procedures)
    tested = np.array([int(record) not in failures for record in records], bool)
    results = []
    for procedure, beliefs in zip(procedures, found, strict=True):
        compared = compare(beliefs.full[tested, 0], beliefs.without[tested, 0], procedure.distance, notes)
        results.append(spread(compared, tested, failures))
    return results


def believed(
    table: Table, records: Ints, procedures: Sequence[Procedure]
) -> tuple[list[Believed], dict[int, str], tuple[str, ...]]:
    """Let every adversary learn from every release; also return the records whose release failed, and warnings raised."""
    shape = (len(records), procedures[0].repeats, len(table.schema.sensitive.levels))
    found = [Believed(np.empty(shape), np.empty(shape)) for _ in procedures]
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


def beliefs_on_full(table: Table, records: Ints, procedures: Sequence[Procedure], purpose: str) -> list[Floats]:
    """Return [m, repeats, n] beliefs of each adversary on releases of the whole table, worked out once for each q."""
    first = procedures[0]
    targets, inverse = np.unique(table.codes[records], axis=0, return_inverse=True)
    secrets = len(table.schema.sensitive.levels)
    known = [np.empty((len(targets), first.repeats, secrets)) for _ in procedures]
    for repeat in range(first.repeats):
        try:
            release = first.sanitizer.release(table, first.rng(purpose, *_numbered(repeat)))
        except ExternalSanitizerError as error:
            raise RunError(f"{error}, on the whole table") from error
        for procedure, beliefs in zip(procedures, known, strict=True):
            for place, target in enumerate(targets):
                beliefs[place, repeat] = procedure.adversary.beliefs(release, procedure.encoder, target)
    return [beliefs[inverse.ravel()] for beliefs in known]


def applies(procedure: object) -> str | None:
    """Every sanitizer, encoder and adversary."""
    if not isinstance(procedure, Procedure):
        return "brute force sanitises and trains"
    return "repeats make it an estimate" if procedure.repeats > 1 else None


def compare(with_record: Floats, without: Floats, distance: Distance, notes: tuple[str, ...] = ()) -> Influence:
    """Reduce two (m, n) belief matrices to distances and predictions; ties predict the first value."""
    if not (np.isfinite(with_record).all() and np.isfinite(without).all()):
        raise InputError("the adversary returned beliefs that are not numbers")
    predicted = with_record.argmax(axis=1).astype(np.int32)
    return Influence(distance(with_record, without), predicted, without.argmax(axis=1).astype(np.int32), notes)


def spread(influence: Influence, tested: Bools, failures: Mapping[int, str]) -> Influence:
    """Put the values of the tested records into their places among all."""
    if tested.all():
        return influence

    def placed(values: NDArray[Any], absent: float) -> NDArray[Any]:
        everyone = np.full(len(tested), absent, values.dtype)
        everyone[tested] = values
        return everyone

    return Influence(
        placed(influence.distance, np.nan),
        placed(influence.predicted, -1),
        placed(influence.predicted_without, -1),
        influence.notes,
        {name: placed(values, np.nan) for name, values in influence.estimates.items()},
        failures,
    )


def _releases(table: Table, records: Ints, procedure: Procedure, repeat: int) -> Iterator[Release | str]:
    """Sanitise the table without each record, all at once where the sanitizer can; a failure is told in words."""
    sanitizer = procedure.sanitizer
    if isinstance(sanitizer, LeavesOneOut):
        yield from sanitizer.leave_one_out(table, records)
        return
    for record in records:
        try:
            yield sanitizer.release(table.without(int(record)), procedure.rng(int(record), *_numbered(repeat)))
        except ExternalSanitizerError as error:
            if not error.skip:
                raise RunError(f"{error}, without record {record}") from error
            yield str(error)


def _numbered(repeat: int) -> tuple[int, ...]:
    return (repeat,) if repeat else ()
