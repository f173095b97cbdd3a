"""The baselines of a run on the cluster: for tests with the same adversaries, what could have been shown, and the controls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from dit_dask import seeds
from dit_dask.audit.controls import ControlSummary
from dit_dask.audit.persons import PersonDistances
from dit_dask.audit.statistics import Distribution, Statistics, describe, describe_adversaries
from dit_dask.audit.summary import worst_adversary
from dit_dask.audit.test import Test
from dit_dask.engines import ENGINES, Influence, choose
from dit_dask.engines.controls import RAW, attainable_by, control_procedures
from dit_dask.engines.gain import CHANGED, GainTally, tally_persons
from dit_dask.engines.influence import Procedure, join
from dit_dask.engines.mixed import exact_adversaries
from dit_dask.engines.power import Attainable
from dit_dask.engines.release_procedure import ReleaseProcedure
from dit_dask.errors import DitError, InputError, class_name
from dit_dask.execution.runner import TaskRunner
from dit_dask.execution.session import TaskSession
from dit_dask.values.arrays import Ints, count_values
from dit_dask.values.table import Rows, Table

CONTROL_RECORDS = 250_000  # of a control that one task tests
MOST_TRAINED = 50  # records of a control whose adversaries must be trained for each
SHARED_KEYS = ("encoder", "adversary", "prior", "distance", "records")
REFUSALS = (ArithmeticError, AttributeError, InputError, LookupError, RuntimeError, TypeError, ValueError)
"""What an adversary may raise on another release than that of the test; other errors are those of the machine."""


@dataclass(frozen=True, eq=False)
class BaselinePlan:
    """Tests that have one baseline: the same rows, adversaries and distance; the first stands for all.

    `rows[m]` counts the audited rows of each record, `sampled[m]` those of a sample of them if there are more.
    """

    tests: tuple[str, ...]
    procedure: Procedure
    table: Table
    rows: Ints
    sampled: Ints | None

    @classmethod
    def of(cls, test: Test, rows: Rows, seed: int) -> BaselinePlan:
        """Count the rows of a test."""
        audited, table, sampled = test.audited, rows.table, None
        if len(audited) > MOST_TRAINED:
            chosen = seeds.stream(seed, "control").choice(len(audited), MOST_TRAINED, replace=False)
            sampled = count_values(rows.record_of(audited)[np.sort(chosen)], table.distinct)
        return cls((test.id,), test.procedure, table, rows.count_records(audited), sampled)


@dataclass(frozen=True, eq=False)
class Baseline:
    """What the planted person reaches in some tests, or why nobody knows, and their controls."""

    tests: tuple[str, ...]
    attainable: Attainable | None
    controls: Sequence[ControlSummary]
    planting_error: str | None = None


def plan_baselines(tests: Sequence[Test], rows: Rows, seed: int) -> list[BaselinePlan]:
    """Group the tests by what their baselines depend on; an external sanitizer's rows are those of the whole table."""
    plans: dict[str, BaselinePlan] = {}
    for test in tests:
        own = test.rows if test.external is None else test.recoded or rows.about(test.config.sensitive)
        shared = {key: test.parameters.get(key) for key in SHARED_KEYS}
        key = json.dumps([shared, id(own), type(test.procedure).__name__], sort_keys=True, default=str)
        if key in plans:
            plans[key] = replace(plans[key], tests=(*plans[key].tests, test.id))
        else:
            plans[key] = BaselinePlan.of(test, own, seed)
    return list(plans.values())


def execute_baselines(runner: TaskRunner, plans: Sequence[BaselinePlan], *, controls: bool) -> list[Baseline]:
    """Compute every baseline: a task for what is attainable, and for each control some that one puts together."""

    def work(session: TaskSession) -> list[Baseline]:
        submitted = []
        for number, plan in enumerate(plans):
            shared, description = session.scatter(plan), f"{plan.tests[0]}: baseline"
            is_needed = controls or plan.table.subject is not None  # a real person of several rows may reach most
            futures = [session.submit(attainable_of, shared, key=f"attainable-{number}", description=description)]
            for name in control_procedures(plan.procedure) if is_needed else ():
                count = -(-int(np.count_nonzero(plan.rows)) // CONTROL_RECORDS)
                key = f"control-{number}-{name}"
                parts = [
                    session.submit(
                        control_part, shared, name, part, count, key=f"{key}-{part}", description=description, wanted=False
                    )
                    for part in range(count)
                ]
                futures.append(session.submit(control_of, shared, name, parts, key=key, description=description))
            submitted.append((plan, futures))
        results = {future: session.result(future) for future in session.completed()}
        return [_join(plan, *(results[future] for future in futures), shown=controls) for plan, futures in submitted]

    return runner.run(work) if plans else []


def control_part(plan: BaselinePlan, name: str, part: int, count: int) -> Influence | str | None:
    """On a worker: test some records of a control; the reason if an adversary refuses its release, which is not hidden.

    Only an engine that tests many at once has its records cut; others test all of them in the first part.
    """
    try:
        control = Control.of(plan, name)
        count = count if control.engine == "exact" else 1
        if part >= count:
            return None
        records = np.array_split(control.records, count)[part]
        return ENGINES[control.engine].influence(plan.table, records, control.procedure)
    except REFUSALS as error:
        return _reason(error)


def control_of(plan: BaselinePlan, name: str, parts: Sequence[Influence | str | None]) -> ControlSummary:
    """On a worker: describe a control whose records were tested."""
    refused = next((part for part in parts if isinstance(part, str)), None)
    if refused is not None:
        return ControlSummary(name, plan.tests, Statistics({}), {}, error=refused)
    tested = [part for part in parts if isinstance(part, Influence)]
    ends = np.cumsum([0, *(len(part.distance) for part in tested)])
    influence = tested[0] if len(tested) == 1 else join([np.arange(*span) for span in pairwise(ends)], tested)
    return Control.of(plan, name).describe(influence)


def attainable_of(plan: BaselinePlan) -> Attainable | str | None:
    """On a worker: plant persons; the reason if an adversary refuses the release with one."""
    try:
        return attainable_by(plan.procedure, plan.table)
    except REFUSALS as error:
        return _reason(error)


def _join(plan: BaselinePlan, reached: Attainable | str | None, *controls: ControlSummary, shown: bool) -> Baseline:
    listed = controls if shown else ()
    if isinstance(reached, str):
        return Baseline(plan.tests, None, listed, reached)
    return Baseline(plan.tests, reached if plan.table.subject is None else _at_least(reached, controls), listed)


def _at_least(reached: Attainable | None, controls: Sequence[ControlSummary]) -> Attainable | None:
    """What is attainable where persons have several rows: a real one, published raw, may reach more than a planted row."""
    for control in controls:
        figures = {name: control.statistics.figure(name) for name in ("delta", "largest_gain", "argmax_changed")}
        if reached is None or control.control != RAW or figures["delta"] is None:
            continue
        if figures["delta"] > reached.distance:
            reached = replace(reached, distance=figures["delta"], adversary=worst_adversary(control.adversaries) or "")
        gain, changes = max(reached.gain, figures["largest_gain"] or 0.0), bool(figures["argmax_changed"])
        reached = replace(reached, gain=gain, changes_prediction=reached.changes_prediction or changes)
    return reached


def _reason(error: Exception) -> str:
    """Name the type of an error: a message of another package may hold values of the data."""
    return str(error) if isinstance(error, DitError) else class_name(type(error))


@dataclass(frozen=True, eq=False)
class Control:
    """How a control is tested: on all audited rows, or on a sample of them if every adversary must be trained for each.

    rows[m] counts the rows of each of the records, in their order; `left_out`: adversaries that would take too long.
    """

    name: str
    plan: BaselinePlan
    procedure: Procedure
    engine: str
    records: Ints
    rows: Ints
    sampled: int | None = None
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, plan: BaselinePlan, name: str) -> Control:
        """Choose the engine and the records."""
        procedure = control_procedures(plan.procedure)[name]
        counts, sampled = plan.rows, None
        left_out: tuple[str, ...] = ()
        engine, _ = choose("auto", procedure, name)
        if engine == "mixed" and isinstance(procedure, ReleaseProcedure):
            fast = exact_adversaries(procedure)
            left_out = tuple(one for one in procedure.adversaries if one not in fast)
            procedure, engine = replace(procedure, adversaries=fast), "exact"
        elif engine == "brute-force" and plan.sampled is not None:
            counts, sampled = plan.sampled, MOST_TRAINED
        records = np.flatnonzero(counts)
        return cls(name, plan, procedure, engine, records, counts[records], sampled, left_out)

    def describe(self, influence: Influence) -> ControlSummary:
        """The figures of its records."""
        subject = self.plan.table.subject
        if subject is None:
            distribution = distribution_over_rows(influence, self.rows)
        else:
            distribution = distribution_over_persons(influence, subject[self.records], self.rows)
        figures = describe(distribution), describe_adversaries(distribution)
        return ControlSummary(self.name, self.plan.tests, *figures, self.sampled, self.left_out)


def distribution_over_rows(influence: Influence, rows: Any) -> Distribution:
    """The distribution of distinct records that stand for so many rows each."""
    gains = {name: GainTally.of(shifted, rows) for name, shifted in influence.shifts.items()}
    several = influence.shifts if len(influence.shifts) > 1 else {}
    members = {name: Distribution.of(shifted.distance, rows, gains[name].marked(CHANGED)) for name, shifted in several.items()}
    changed = int(rows[influence.predicted != influence.predicted_without].sum())
    return replace(Distribution.of(influence.distance, rows, changed), gains=gains, members=members)


def distribution_over_persons(influence: Influence, person: Any, rows: Ints) -> Distribution:
    """The distribution of persons, each with the largest distance of its records."""
    several = influence.shifts if len(influence.shifts) > 1 else {}
    changed = influence.predicted != influence.predicted_without
    distances = {name: shifted.distance for name, shifted in several.items()}
    found = PersonDistances.of(person, influence.distance, changed, rows, distances)
    ranks = np.arange(len(person))  # records are in lexicographic order
    gains = {name: tally_persons(shifted, person, ranks) for name, shifted in influence.shifts.items()}
    return replace(found, gains=gains).distribution()
