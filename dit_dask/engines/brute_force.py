"""The test as published: remove a record, sanitise again, learn again, compare. Works for every combination."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dit_dask import seeds
from dit_dask.adversaries import Adversary
from dit_dask.distances import Distance
from dit_dask.encoders import Encoder
from dit_dask.errors import InputError
from dit_dask.release import Release
from dit_dask.sanitizers import LeavesOneOut, Sanitizer
from dit_dask.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Procedure:
    """The four parts of a differential inference test, and the stream that its randomness comes from."""

    sanitizer: Sanitizer
    encoder: Encoder
    adversary: Adversary
    distance: Distance
    seed: int
    name: str


@dataclass(frozen=True, eq=False)
class Influence:
    """What the removal of records changes: one entry per record, and what the adversary complained of."""

    distance: "NDArray[np.float64]"
    predicted: "NDArray[np.int32]"
    predicted_without: "NDArray[np.int32]"
    notes: tuple[str, ...] = ()
    estimates: Mapping[str, "NDArray[np.float64]"] = field(default_factory=dict)


def influence(table: Table, records: "NDArray[np.int64]", procedure: Procedure) -> Influence:
    """Test the given distinct records, one removal after the other."""
    secrets = len(table.schema.sensitive.levels)
    with_record, without = np.empty((len(records), secrets)), np.empty((len(records), secrets))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        full = procedure.sanitizer.release(table, _stream(procedure, "full"))
        known: dict[bytes, NDArray[np.float64]] = {}  # the full release is the same for everyone with the same q
        releases = _releases(table, records, procedure)
        for place, (record, release) in enumerate(zip(records, releases, strict=True)):
            target = table.codes[record]
            key = target.tobytes()
            if key not in known:
                known[key] = procedure.adversary.beliefs(full, procedure.encoder, target)
            with_record[place] = known[key]
            without[place] = procedure.adversary.beliefs(release, procedure.encoder, target)
    notes = sorted({warning.category.__name__ for warning in caught})
    return compare(with_record, without, procedure.distance, tuple(notes))


def applies(procedure: object) -> str | None:
    """Every sanitizer, encoder and adversary."""
    return None if isinstance(procedure, Procedure) else "brute force sanitises and trains"


def compare(
    with_record: "NDArray[np.float64]", without: "NDArray[np.float64]", distance: Distance, notes: tuple[str, ...] = ()
) -> Influence:
    """Reduce two (m, n) belief matrices to distances and predictions; ties predict the first value."""
    if not (np.isfinite(with_record).all() and np.isfinite(without).all()):
        raise InputError("the adversary returned beliefs that are not numbers")
    predicted = with_record.argmax(axis=1).astype(np.int32)
    return Influence(distance(with_record, without), predicted, without.argmax(axis=1).astype(np.int32), notes)


def _releases(table: Table, records: "NDArray[np.int64]", procedure: Procedure) -> Iterator[Release]:
    """Sanitise the table without each record, all at once where the sanitizer can."""
    if isinstance(procedure.sanitizer, LeavesOneOut):
        yield from procedure.sanitizer.leave_one_out(table, records)
        return
    for record in records:
        yield procedure.sanitizer.release(table.without(int(record)), _stream(procedure, int(record)))


def _stream(procedure: Procedure, purpose: object) -> np.random.Generator:
    return seeds.stream(procedure.seed, procedure.name, purpose)
