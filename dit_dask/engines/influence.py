"""The values that engines share: what a test runs, and what the removal of records changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dit_dask.engines.gain import Shift, join_shifts, shift
from dit_dask.errors import InputError

if TYPE_CHECKING:
    from dit_dask.distances import Distance
    from dit_dask.engines.noisy_counts.effective_epsilon import PrivacyLoss
    from dit_dask.measures.utility.figures import Utility
    from dit_dask.sanitizers.claims import Recheck
    from dit_dask.sanitizers.external import ExternalSanitizer
    from dit_dask.values.arrays import Bools, Codes, Floats, Ints
    from dit_dask.values.release import Release
    from dit_dask.values.table import Table


class Procedure(Protocol):
    """Everything that a test runs but the table: what is published, and how beliefs about it are formed and compared."""

    @property
    def external(self) -> ExternalSanitizer | None:
        """The external sanitizer that it calls, if any."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its adversaries."""
        ...

    @property
    def publishes_release(self) -> bool:
        """Whether it publishes a table that differs from the original."""
        ...

    def publish(self, table: Table) -> Release:
        """The release of the whole table."""
        ...

    def recheck(self, table: Table) -> tuple[Recheck, PrivacyLoss | None, Utility]:
        """Compare what is published, or the noise, with what it claims, and with the table."""
        ...

    def with_external(self, sanitizer: ExternalSanitizer) -> Procedure:
        """The same procedure with another state of its external sanitizer."""
        ...

    def summarise_estimates(self, table: Table, estimates: Estimates, loss: PrivacyLoss | None) -> EstimateSummary:
        """What estimates add to the summary of a test."""
        ...


@dataclass(frozen=True, eq=False)
class Estimates:
    """The estimates of a test, by name: of each distinct record under audit, and of each audited row, with its distance.

    `person` has the person of each row, where some have several.
    """

    records: Ints
    by_record: Mapping[str, Floats]
    by_row: Mapping[str, Floats]
    distance: Floats
    person: Ints | None = None


@dataclass(frozen=True)
class EffectiveEpsilon:
    """The privacy loss that samples of the noise show, at least, with some confidence."""

    at_least: float | None
    confidence: float


@dataclass(frozen=True)
class Simulation:
    """What a simulation adds to its statistics."""

    largest_unbiased: float | None
    delta_interval: tuple[float, float]
    effective_epsilon: EffectiveEpsilon | None


@dataclass(frozen=True)
class ExceedanceShares:
    """Pr[d >= limit] over single draws: on average over rows, for the worst row, and a bound on the latter.

    `noise_mean` and `noise_worst` are the same with nothing removed.
    """

    mean: float
    worst: float
    worst_at_most: float
    noise_mean: float
    noise_worst: float


@dataclass(frozen=True)
class CurvePoint:
    """Pr[d >= epsilon] over single draws: on average over persons, and the largest of any person, with its bounds.

    `at_least` and `at_most` hold with 95% confidence each, for all persons and all epsilons at once. Between two epsilons the
    bound of the smaller one holds. `noise_worst` is the largest where nothing is removed.
    """

    epsilon: float
    mean: float
    worst: float
    at_least: float
    at_most: float
    noise_worst: float


@dataclass(frozen=True)
class Excess:
    """What a statistic shows above the noise: an estimate, and the ends of an interval, each with 95% confidence."""

    estimate: float
    interval: tuple[float, float]


@dataclass(frozen=True, eq=False)
class RowBounds:
    """What is above the noise for each row, with ends that hold for all rows at once, and for the mean over rows alone."""

    estimate: Floats
    low: Floats
    high: Floats
    mean: Excess


@dataclass(frozen=True)
class Exceedance:
    """What repeats show: how many there were, the largest d where nothing was removed, and the shares for each limit.

    `expected_noise` is the mean over rows of the d that noise alone gives. `p_value` is the smallest of all rows, and
    `significant` counts the rows whose p-value is below 0.05 after Holm's correction. `excess` has what is above the noise,
    by the statistic as gates write it. `bias` estimates how much too large d is: of the row with the largest d, and on average.
    `curve` has the (epsilon, delta) of v1's definition 1.
    """

    count: int
    noise: float
    over: Mapping[str, ExceedanceShares]
    expected_noise: float
    p_value: float
    significant: int
    excess: Mapping[str, Excess] = field(default_factory=dict)
    bias: Mapping[str, float] = field(default_factory=dict)
    curve: Sequence[CurvePoint] = ()


@dataclass(frozen=True)
class EstimateSummary:
    """What estimates add to a summary: of a simulation, or of repeated releases, with bounds of each row."""

    simulation: Simulation | None = None
    repeats: Exceedance | None = None
    bounds: RowBounds | None = None


@dataclass(frozen=True, eq=False)
class Influence:
    """What the removal of records changes: one entry per record, and the warnings that adversaries raised.

    The distance is the largest over the adversaries, the predictions are those of the first adversary that has it, and
    `shifts` has what each adversary gives. A record that could not be tested has no number for a distance, no predictions
    (-1), and an entry among the failures.
    """

    distance: Floats
    predicted: Codes
    predicted_without: Codes
    notes: tuple[str, ...] = ()
    estimates: Mapping[str, Floats] = field(default_factory=dict)
    failures: Mapping[int, str] = field(default_factory=dict)
    shifts: Mapping[str, Shift] = field(default_factory=dict)

    def take(self, chosen: Any) -> Influence:
        """The entries of some records, in the given order."""
        return Influence(
            self.distance[chosen],
            self.predicted[chosen],
            self.predicted_without[chosen],
            self.notes,
            {name: values[chosen] for name, values in self.estimates.items()},
            self.failures,
            {name: shifted.take(chosen) for name, shifted in self.shifts.items()},
        )


def compare(
    beliefs: Mapping[str, tuple[Floats, Floats]], secrets: Codes, distance: Distance, notes: tuple[str, ...] = ()
) -> Influence:
    """Reduce each adversary's two (m, n) belief matrices to distances and predictions; ties predict the first value."""
    if not all(np.isfinite(side).all() for sides in beliefs.values() for side in sides):
        raise InputError("the adversary returned beliefs that are not numbers")
    shifts = {name: shift(*sides, secrets, distance) for name, sides in beliefs.items()}
    predicted = np.array([[side.argmax(axis=1) for side in sides] for sides in beliefs.values()], np.int32)
    return worst_of(shifts, predicted, notes)


def worst_of(shifts: Mapping[str, Shift], predicted: Codes, notes: tuple[str, ...] = ()) -> Influence:
    """Keep, for each record, the adversary with the largest distance, the first of equals; predicted[adversaries, 2, m]."""
    distances = np.stack([shifted.distance for shifted in shifts.values()])
    worst, everyone = distances.argmax(axis=0), np.arange(distances.shape[1])
    sides = predicted[worst, 0, everyone], predicted[worst, 1, everyone]
    return Influence(distances[worst, everyone], *sides, notes, shifts=shifts)


def join(blocks: Sequence[Ints], parts: Sequence[Influence]) -> Influence:
    """Put the values of blocks of positions together, in the order of positions."""
    shifts = {name: join_shifts([part.shifts[name] for part in parts]) for name in parts[0].shifts}
    joined = Influence(
        np.concatenate([part.distance for part in parts]),
        np.concatenate([part.predicted for part in parts]),
        np.concatenate([part.predicted_without for part in parts]),
        tuple(sorted(set().union(*(part.notes for part in parts)))),
        shifts=shifts,
    )
    return joined.take(np.argsort(np.concatenate(blocks), kind="stable"))


def tested_records(records: Ints, failures: Mapping[int, str]) -> Bools:
    """Return (m,): whether each record could be tested."""
    return np.array([int(record) not in failures for record in records], bool)


def place_tested(influence: Influence, tested: Bools, failures: Mapping[int, str]) -> Influence:
    """Put the values of the tested records into their places among all."""
    if tested.all():
        return influence

    def place(values: Any, absent: float) -> Any:
        everyone = np.full(len(tested), absent, values.dtype)
        everyone[tested] = values
        return everyone

    shifts = {
        name: Shift(place(one.distance, np.nan), place(one.gain, np.nan), place(one.marks, 0), one.knows_confidence)
        for name, one in influence.shifts.items()
    }
    return Influence(
        place(influence.distance, np.nan),
        place(influence.predicted, -1),
        place(influence.predicted_without, -1),
        influence.notes,
        {name: place(values, np.nan) for name, values in influence.estimates.items()},
        failures,
        shifts,
    )
