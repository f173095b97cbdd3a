"""The test on a sanitizer that draws at random: the laws of the beliefs are compared, not single draws."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.adversaries.classifier import training_threads
from dit_dask.distances import EPSILONS, Distance
from dit_dask.engines.brute_force import beliefs_on_full, compute_beliefs
from dit_dask.engines.gain import Shift, shift
from dit_dask.engines.influence import Influence, place_tested, tested_records, worst_of
from dit_dask.engines.noisy_counts import SCALES
from dit_dask.engines.permutation import divisions, expected_noise, p_value
from dit_dask.engines.release_procedure import ReleaseProcedure
from dit_dask.engines.witness import excess
from dit_dask.errors import InputError
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats, Ints

ESTIMATES = (
    *("stderr", "bias", "noise", "expected_noise", "excess", "excess_stderr", "p_value"),
    *(f"{kind}_{name}" for kind in ("over", "noise_over") for name in EPSILONS),
)


ROUNDING = 1e-12  # distances are at most 2, and means of a hundred thousand


def influence(table: Table, records: Ints, procedure: ReleaseProcedure) -> Influence:
    """Test the given records, each removal `repeats` times."""
    return together([table], records, [procedure])[0]


def together(tables: Sequence[Table], records: Ints, procedures: Sequence[ReleaseProcedure]) -> list[Influence]:
    """Test the given records against several adversaries that see the same releases."""
    learned, failures, notes = compute_beliefs(tables, records, procedures)
    adversaries = [adversary for procedure in procedures for adversary in procedure.adversaries.values()]
    with warnings.catch_warnings(), training_threads(adversaries):
        warnings.simplefilter("ignore")  # the same were noted when the same releases were learned before
        again = beliefs_on_full(tables, records, procedures, "again")
    tested = tested_records(records, failures)
    results = []
    for table, procedure, by_name, other in zip(tables, procedures, learned, again, strict=True):
        codes = table.codes[records[tested]]
        laws = {
            name: Laws(*(procedure.weigh(side[tested], codes) for side in (beliefs.full, beliefs.without, other[name])))
            for name, beliefs in by_name.items()
        }
        person = None if table.subject is None else table.subject[records[tested]]
        influence = compare_laws(laws, table.secret[records[tested]], procedure, notes, person)
        results.append(place_tested(influence, tested, failures))
    return results


@dataclass(frozen=True, eq=False)
class Laws:
    """Samples [m, repeats, n] of an adversary's beliefs: with the record, without it, and with it once more."""

    full: Floats
    without: Floats
    again: Floats


def compare_laws(
    laws: Mapping[str, Laws],
    secrets: Codes,
    procedure: ReleaseProcedure,
    notes: tuple[str, ...] = (),
    person: Ints | None = None,
) -> Influence:
    """Compare the laws of every adversary; what is estimated for a record is of the adversary with the largest distance.

    In a single draw the largest distance counts: over adversaries, and over the rows of a person.
    """
    distance = procedure.distance
    if not all(np.isfinite(side).all() for law in laws.values() for side in (law.full, law.without, law.again)):
        raise InputError("the adversary returned beliefs that are not numbers")
    scale = float(distance(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))[0]) / 2
    means = {name: (law.full.mean(axis=1), law.without.mean(axis=1)) for name, law in laws.items()}
    shifts = {
        name: replace(shift(*means[name], secrets, distance), distance=scale * law_distance(law.full, law.without))
        for name, law in laws.items()
    }
    predicted = np.array([[side.argmax(axis=1) for side in sides] for sides in means.values()], np.int32)
    influence = worst_of(shifts, predicted, notes)
    estimates = {
        # of adversaries that are less certain a larger distance may be true
        "stderr": np.stack([scale * jackknife(law.full, law.without) for law in laws.values()]).max(axis=0),
        "bias": _of_worst(shifts, {name: scale * bias(law.full, law.without) for name, law in laws.items()}),
        "noise": np.stack([scale * law_distance(law.full, law.again) for law in laws.values()]).max(axis=0),
        **above_noise(list(laws.values()), scale, influence.distance, procedure.seed),
    }
    for kind, other in (("over", "without"), ("noise_over", "again")):
        single = np.stack([_single(law.full, getattr(law, other), distance) for law in laws.values()]).max(axis=0)
        single = single if person is None else _largest_of_person(single, person)
        estimates |= {f"{kind}_{name}": (single >= limit).mean(axis=1) for name, limit in EPSILONS.items()}
    spreads = {name: _without_rounding(estimates[name]) for name in ("stderr", "bias", "excess_stderr")}
    return replace(influence, estimates=estimates | spreads)


def _without_rounding(spread: Floats) -> Floats:
    """Make zero what is only the rounding of means: a test in which nothing draws at random has no spread."""
    return np.where(spread < ROUNDING, 0.0, spread)


def _of_worst(shifts: Mapping[str, Shift], values: Mapping[str, Floats]) -> Floats:
    """Return (m,): the value of the adversary that has each record's largest distance."""
    worst = np.stack([shifted.distance for shifted in shifts.values()]).argmax(axis=0)
    chosen: Floats = np.stack(list(values.values()))[worst, np.arange(len(worst))]
    return chosen


def _largest_of_person(single: Floats, person: Ints) -> Floats:
    """Return (m, repeats): in every draw, the largest distance of any row of the person; all their rows are tested together."""
    _, place = np.unique(person, return_inverse=True)
    largest = np.zeros((int(place.max(initial=-1)) + 1, single.shape[1]))
    np.maximum.at(largest, place, single)
    return largest[place]


def above_noise(laws: Sequence[Laws], scale: float, distances: Floats, seed: int) -> dict[str, Floats]:
    """Compare each record's distance with draws where nothing is removed; its excess is never more than the distance."""
    sides = divisions(laws[0].full.shape[1], seed)
    found = np.empty((len(distances), 4))
    for record in range(len(distances)):
        full, without, again = ([getattr(law, side)[record] for law in laws] for side in ("full", "without", "again"))
        noise, (above, error) = expected_noise(full, again, sides), excess(full, without, again)
        found[record] = scale * noise, scale * above, scale * error, p_value(full, without, sides)
    found[:, 1] = np.minimum(found[:, 1], distances)
    return dict(zip(("expected_noise", "excess", "excess_stderr", "p_value"), found.T, strict=True))


def _single(x: Floats, y: Floats, distance: Distance) -> Floats:
    """Return (m, repeats): the distances of single draws."""
    count, repeats, secrets = x.shape
    return distance(x.reshape(-1, secrets), y.reshape(-1, secrets)).reshape(count, repeats)


def law_distance(x: Floats, y: Floats) -> Floats:
    """Return (m,): the earth mover's distances between the samples x[m, repeats, n] and y of each coordinate, summed."""
    gaps: Floats = np.abs(np.sort(x, axis=1) - np.sort(y, axis=1)).mean(axis=1).sum(axis=1)
    return gaps


def bias(x: Floats, y: Floats) -> Floats:
    """Return (m,): by how much law_distance is too large, from the distances of halves of the draws (decision 024).

    Where noise decides, distances fall with the root of the number of draws, so halves are larger by the factor of the root
    of 2. Where the laws are apart halves have the same distance, and there is no bias.
    """
    half = x.shape[1] // 2
    sides = [[side[:, :half], side[:, half : 2 * half]] for side in (x, y)]
    halves = np.stack([law_distance(first, second) for first in sides[0] for second in sides[1]], axis=1)
    whole = law_distance(x[:, : 2 * half], y[:, : 2 * half])
    found: Floats = np.maximum((halves.mean(axis=1) - whole) / (np.sqrt(2) - 1), 0.0)
    return found


def jackknife(x: Floats, y: Floats) -> Floats:
    """Return (m,): the standard error of law_distance, from leaving out one pair of repeats after the other."""
    repeats = x.shape[1]
    left_out = [law_distance(np.delete(x, one, axis=1), np.delete(y, one, axis=1)) for one in range(repeats)]
    values = np.stack(left_out, axis=1)  # sums over the last axis do not depend on the number of records
    deviations = values - values.mean(axis=1, keepdims=True)
    error: Floats = np.sqrt((repeats - 1) / repeats * (deviations**2).sum(axis=1))
    return error


def applies(procedure: object) -> str | None:
    """Only procedures that ask for repeats."""
    return None if isinstance(procedure, ReleaseProcedure) and procedure.repeats > 1 else "nothing is repeated"


def check_distance(name: str, where: str) -> None:
    """Laws are compared coordinate by coordinate, which only these distances can."""
    if name not in SCALES:
        raise InputError(f"{where}.distance must be {', '.join(SCALES)} with repeats; got {name!r}")
