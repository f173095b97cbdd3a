"""The measure `membership`: how well releases tell whether a person was in the table, for every sanitizer of the tests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.constraints import Choice, Field, Integer, Number, OneOf, Record
from dit_dask.config.registry import Context
from dit_dask.engines.noisy_counts.procedure import NoisyCounts
from dit_dask.engines.release_procedure import ReleaseProcedure
from dit_dask.errors import InputError, RunError
from dit_dask.measures.base import MeasureInput, MeasureKind, MeasureResult
from dit_dask.measures.membership.attack import LEVEL, AttackRates, AttackResult, attack
from dit_dask.measures.membership.claim import Claim, Conclusion, claimed_by, conclude, conclude_deterministic
from dit_dask.measures.membership.epsilon import Sides
from dit_dask.measures.membership.persons import AttackedPersons, choose_persons
from dit_dask.measures.membership.presentation import present
from dit_dask.measures.membership.releases import (
    Block,
    draws_at_random,
    find_changed,
    list_statistics,
    sample_statistics,
)
from dit_dask.values.intervals import lower_limit, upper_limit
from dit_dask.values.schema import MIN_DISCLOSED_COUNT

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats

DEFAULT_SAMPLE, DEFAULT_RELEASES, FEWEST_RELEASES = 100, 100, 8
MOST_VALUES = 5_000_000  # persons times releases: their values are joined in the memory of one worker
MOST_TASKS, RELEASES_OF_TASK = 256, 10  # a task of an external sanitizer makes so many calls a side
ONLY_RELEASE = "only the release of the whole table is known, so nobody can be taken out of it"
NO_STATISTIC = "this sanitizer publishes nothing that has this statistic"


@dataclass(frozen=True)
class MembershipMeasure:
    """Which persons are attacked, with how many releases a side, by which statistics, and what is claimed."""

    releases: int
    persons: int
    sample: int | None
    seed: int
    statistic: str
    claim: Claim
    confidence: float

    @property
    def passes(self) -> int:
        """How often the table is sanitised."""
        return 2 * self.releases * self.persons

    def pieces(self, inputs: MeasureInput) -> Sequence[Block]:
        """Cut persons, and calls of an external sanitizer, into blocks."""
        procedure, persons = _procedure(inputs), len(self._persons(inputs))
        if self._missing(procedure) is not None:
            return []
        releases = self.releases if draws_at_random(procedure) else 1
        if persons * releases > MOST_VALUES:
            raise InputError(
                f"{inputs.measure}: persons times releases must be at most {MOST_VALUES:,}; got {persons:,} times {releases:,}"
            )
        calls = RELEASES_OF_TASK if procedure.external is not None else releases
        size = math.ceil(persons / MOST_TASKS)
        return [
            Block(range(first, min(first + size, persons)), range(start, min(start + calls, releases)))
            for first in range(0, persons, size)
            for start in range(0, releases, calls)
        ]

    def find_piece(self, inputs: MeasureInput, piece: Block) -> Floats:
        """Return (persons, statistics, 2, releases) of a block, or (persons,) whether a removal changes the release."""
        procedure, persons, table = _procedure(inputs), self._persons(inputs), inputs.rows.table
        if isinstance(procedure, NoisyCounts) or draws_at_random(procedure):
            return sample_statistics(table, procedure, persons, piece, self.statistic)
        return find_changed(table, procedure, persons, piece.persons)

    def join(self, inputs: MeasureInput, results: Sequence[Floats]) -> MeasureResult:
        """Put the blocks together and attack."""
        procedure, persons = _procedure(inputs), self._persons(inputs)
        missing = self._missing(procedure)
        if missing is not None:
            return MeasureResult(None, [], len(persons), {"passed": None, "reason": missing})
        claim = claimed_by(procedure, self.claim)
        if not draws_at_random(procedure):
            return self._join_changed(inputs, persons, np.concatenate(results), claim)
        blocks = self.pieces(inputs)
        values = np.empty((len(persons), results[0].shape[1], 2, self.releases))
        for block, found in zip(blocks, results, strict=True):
            values[block.persons.start : block.persons.stop, :, :, block.releases.start : block.releases.stop] = found
        tested = ~np.isnan(values).any(axis=(1, 2, 3))
        if not tested.any():
            raise RunError(f"{inputs.measure}: the sanitizer failed without any of the {len(persons)} persons")
        result = attack(values[tested], claim.delta_dp, self.confidence, lambda part: _stream(inputs, persons, tested, part))
        skipped = int((~tested).sum())
        conclusion = conclude(result.epsilon, claim, self.releases, int(tested.sum()), skipped)
        names = list_statistics(procedure, self.statistic)
        more = self._figures(inputs, tested, conclusion, result.pooled) | {
            "releases": self.releases,
            "epsilon_shown_by": result.epsilon.shown_by,
            "statistics": [{"statistic": name, "auc": mean} for name, mean in zip(names, result.statistics, strict=True)],
        }
        return MeasureResult(result.pooled.auc.value, [], int(tested.sum()), more, _columns(persons, tested, result))

    def find(self, inputs: MeasureInput) -> MeasureResult:
        """Compute all pieces in this process."""
        return self.join(inputs, [self.find_piece(inputs, piece) for piece in self.pieces(inputs)])

    def _join_changed(self, inputs: MeasureInput, persons: AttackedPersons, changed: Floats, claim: Claim) -> MeasureResult:
        """A fully informed adversary decides presence at once where the release changes, and never where it does not."""
        tested = ~np.isnan(changed)
        if not tested.any():
            raise RunError(f"{inputs.measure}: the sanitizer failed without any of the {len(persons)} persons")
        count, size = int(changed[tested].sum()), int(tested.sum())
        scores = Sides(changed[tested], -changed[tested])
        conclusion = conclude_deterministic(count, claim, int((~tested).sum()))
        tail = (1 - LEVEL) / 2
        is_sample = size < inputs.rows.table.persons
        limits = [lower_limit(count, size, tail), upper_limit(count, size, tail)] if is_sample else [count / size] * 2
        rates = AttackRates.of(scores, _stream(inputs, persons, tested, "pooled"))
        more = self._figures(inputs, tested, conclusion, rates) | {"changed": count / size, "releases": None}
        more["intervals"] = {"changed": limits}  # the rates of all these persons are exact
        column = np.full(inputs.rows.used, np.nan)
        attacked = persons.person_of >= 0
        column[attacked] = changed[persons.person_of[attacked]]
        return MeasureResult(rates.auc.value, [], size, more, {"changed": column})

    def _figures(self, inputs: MeasureInput, tested: Any, conclusion: Conclusion, rates: AttackRates) -> dict[str, Any]:
        by_name = rates.by_name()
        claim = conclusion.claim
        return {
            "passed": conclusion.passed,
            "reason": conclusion.reason,
            "doubts": [] if conclusion.doubt is None else [conclusion.doubt],
            "attacked": int(tested.sum()),
            "skipped": int((~tested).sum()),
            "persons": inputs.rows.table.persons,
            **{name: rate.value for name, rate in by_name.items()},
            "epsilon_lower": "inf" if math.isinf(conclusion.epsilon_lower) else conclusion.epsilon_lower,
            "epsilon_claimed": None if claim.epsilon is None else "inf" if math.isinf(claim.epsilon) else claim.epsilon,
            "smallest_leak": conclusion.smallest_leak,
            "delta_dp": claim.delta_dp,
            "confidence": self.confidence,
            "intervals": {name: rate.interval for name, rate in {"value": rates.auc, **by_name}.items()},
            "attainable": {} if conclusion.attainable is None else {"epsilon_lower": conclusion.attainable},
        }

    def _persons(self, inputs: MeasureInput) -> AttackedPersons:
        return choose_persons(inputs.rows, self.sample, self.seed)

    def _missing(self, procedure: ReleaseProcedure | NoisyCounts) -> str | None:
        """Why this sanitizer cannot be attacked, or None."""
        if procedure.external is not None and procedure.external.match is not None:
            return ONLY_RELEASE
        return NO_STATISTIC if draws_at_random(procedure) and not list_statistics(procedure, self.statistic) else None


def _procedure(inputs: MeasureInput) -> ReleaseProcedure | NoisyCounts:
    if not isinstance(inputs.procedure, ReleaseProcedure | NoisyCounts):
        raise TypeError("the measure is taken of sanitizers")
    return inputs.procedure


def _stream(inputs: MeasureInput, persons: AttackedPersons, tested: Any, part: object) -> np.random.Generator:
    """The stream that decides ties: of a person by its record, not by its place."""
    if not isinstance(part, int):
        return inputs.stream("ties", part)
    place = np.flatnonzero(tested)[part]
    return inputs.stream("ties", persons.record[place], persons.copy[place])


def _columns(persons: AttackedPersons, tested: Any, result: AttackResult) -> dict[str, Any]:
    """Return (used rows,) figures of the person of each row; no number where the person was not attacked."""
    place = np.where(tested, np.cumsum(tested) - 1, -1)
    row = np.where(persons.person_of >= 0, place[persons.person_of], -1)
    columns: dict[str, Any] = {}
    for name in result.pooled.by_name():
        for end, attribute in (("", "value"), ("_low", "low"), ("_high", "high")):
            figures = np.array([*(getattr(one.by_name()[name], attribute) for one in result.persons), np.nan])
            columns[f"{name}{end}"] = figures[row]
    return columns


def _build(parameters: Mapping[str, Any], context: Context) -> MembershipMeasure:
    where, persons = context.where, parameters["persons"]
    if not 0.5 <= parameters["confidence"] < 1:
        raise InputError(f"{where}.confidence must be a number from 0.5 to below 1; got {parameters['confidence']:g}")
    if not 0 <= parameters["delta_dp"] < 1:
        raise InputError(f"{where}.delta_dp must be a number from 0 to below 1; got {parameters['delta_dp']:g}")
    if isinstance(persons, Mapping) and persons["sample"] > context.persons:
        raise InputError(
            f"{where}.persons.sample must be at most the {context.persons} persons of the table; got {persons['sample']}"
        )
    sample, seed = (persons["sample"], persons["seed"]) if isinstance(persons, Mapping) else (None, 0)
    sample = DEFAULT_SAMPLE if persons is None else sample
    return MembershipMeasure(
        parameters["releases"],
        context.persons if sample is None else min(sample, context.persons),
        sample,
        seed,
        parameters["statistic"],
        Claim(parameters["epsilon"], parameters["delta_dp"]),
        parameters["confidence"],
    )


PERSONS = OneOf(
    [
        (str, Choice(("all",))),
        (dict, Record({"sample": Field(Integer(MIN_DISCLOSED_COUNT)), "seed": Field(Integer(0), 0)})),
    ],
    "all, or a mapping of sample and seed",
)
KIND = MeasureKind(
    Record(
        {
            "releases": Field(
                Integer(FEWEST_RELEASES, 1_000_000),
                DEFAULT_RELEASES,
                sweep=True,
                description="with each person, and as many without; for sanitizers that draw at random",
            ),
            "persons": Field(PERSONS, None, description=f"who is attacked; a sample of {DEFAULT_SAMPLE} by default"),
            "statistic": Field(
                Choice(("all", "belief", "distance", "count")),
                "all",
                sweep=True,
                description="belief: of each adversary in the true value; distance: of the nearest published record; "
                "count: the noisy count of the person's cell",
            ),
            "epsilon": Field(Number(above=0), None, description="the claim of sanitizers that state none themselves"),
            "delta_dp": Field(Number(), 0.0, description="the delta of that claim"),
            "confidence": Field(Number(above=0), 0.95, description="of the lower bound on epsilon"),
        }
    ),
    _build,
    columns=lambda _parameters: (),
    present=present,
    of_sanitizers=True,
)
