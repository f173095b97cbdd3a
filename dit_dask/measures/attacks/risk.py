"""The same attack on training records and on the control, and what can be said of the difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dit_dask.errors import InputError
from dit_dask.measures.attacks.success import AttackResult, worst_interval
from dit_dask.measures.attacks.tables import CONTROL, RELEASE, TRAINING, AttackTables

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats


@dataclass(frozen=True, eq=False)
class Attempt:
    """One attack that uses one table as the release: the success on each record of a table, and the rate of guesses."""

    attack: Callable[[int], Floats]
    naive_rate: float


@dataclass(frozen=True, eq=False)
class AttackRisk:
    """What an attack found.

    `results` has one result for each secret or kind of predicate. `attainable` is the risk if the training records were
    published as they are: a limit above it could never be exceeded. `doubts` are reasons why no figure can pass. `successes`
    has one figure for each training record and result, NaN for records that were not attacked.
    """

    name: str
    results: tuple[AttackResult, ...]
    attainable: float
    doubts: tuple[str, ...]
    successes: Mapping[str, Floats]

    @property
    def worst(self) -> AttackResult:
        """The result with the largest risk; of equal ones the first."""
        return max(self.results, key=lambda result: result.risk)

    @property
    def risk(self) -> float | None:
        """The largest risk; None if nothing was tried."""
        return self.worst.risk if self.results else None

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the largest risk."""
        return worst_interval(self.results) if self.results else (0.0, 1.0)

    def with_doubt(self, doubt: str) -> AttackRisk:
        """Return the same with one more reason why no figure can pass."""
        return replace(self, doubts=(*self.doubts, doubt)) if doubt else self


def conclude(
    name: str, tables: AttackTables, attempts: Mapping[str, Callable[[int], Attempt]], sample: int | None, confidence: float
) -> AttackRisk:
    """Attack chosen records of both tables through the release, and through the training records themselves."""
    import numpy as np

    check_confidence(confidence)
    attacked = {table: tables.sample(table, sample) for table in (TRAINING, CONTROL)}
    results: list[AttackResult] = []
    published: list[AttackResult] = []
    successes: dict[str, Floats] = {}
    for what, attempt in attempts.items():
        for release, found in ((RELEASE, results), (TRAINING, published)):
            tried = attempt(release)
            counts = {table: tried.attack(table) for table in (TRAINING, CONTROL)}
            chosen = [counts[table][rows] for table, rows in attacked.items()]
            sizes = [(len(part), float(part.sum())) for part in chosen]
            found.append(AttackResult(what, *sizes[0], *sizes[1], tried.naive_rate, confidence))
            if release == RELEASE:
                successes[what] = np.full(tables.size(TRAINING), np.nan)
                successes[what][attacked[TRAINING]] = chosen[0]
    attainable = max(result.risk for result in published)
    return AttackRisk(name, tuple(results), attainable, (*tables.doubts, *naive_doubts(results)), successes)


def naive_doubts(results: list[AttackResult]) -> list[str]:
    """Say which attacks are no better than guessing."""
    return [
        f"the attack ({result.name}) succeeds in {result.rate:.1%} of the attacks, no more often than guesses "
        f"({result.baseline_rate:.1%})"
        for result in results
        if not result.is_better_than_guessing
    ]


def check_confidence(confidence: float) -> None:
    """Refuse what is no confidence."""
    if isinstance(confidence, bool) or not 0 < confidence < 1:
        raise InputError(f"confidence must be a number between 0 and 1; got {confidence!r}")
