"""What if one attribute were coarser, in bands or not published: the same test on a table for each alternative, ranked."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dit_dask import run
from dit_dask.audit.build import rebuild_test
from dit_dask.audit.identity import short_hash
from dit_dask.audit.statistics import Figure, by_name, plain
from dit_dask.audit.test import Test
from dit_dask.audit.verdict import RunVerdict, Status
from dit_dask.config.document import Config
from dit_dask.deciding.figures import LOSSES, figures_of, labels_of, refuse_impossible, write_beside
from dit_dask.deciding.hardening import choose_point
from dit_dask.errors import InputError
from dit_dask.execution.progress import Progress
from dit_dask.inputs.source import read_text
from dit_dask.measures.utility.figures import measure_utility
from dit_dask.values.coarsening import Alternative, alternatives, change_rows, widen

if TYPE_CHECKING:
    import pandas as pd

NAME = "what-if.json"
RULE = "those that pass every gate first, the smallest loss of utility first; then the others, the smallest delta first"
LONGEST = 60


@dataclass(frozen=True)
class Outcome:
    """One alternative, or the table as it is: its figures against the table as it is, and what the gates say."""

    alternative: Alternative | None
    test: str
    figures: Mapping[str, Figure]
    status: Status
    problem: str | None = None  # the first gate that is not passed, and why

    @property
    def label(self) -> str:
        """The change in words."""
        return "as it is" if self.alternative is None else self.alternative.label

    def document(self) -> dict[str, Any]:
        """As what-if.json has it."""
        change = {} if self.alternative is None else self.alternative.document()
        figures = {name: plain(value) for name, value in self.figures.items()}
        return {"what": self.label, **change, "test": self.test, **figures, "status": self.status, "problem": self.problem}


@dataclass(frozen=True, eq=False)
class WhatIf:
    """The table as it is, then all alternatives in order of their rank."""

    outcomes: Sequence[Outcome]
    reason: str
    result: run.RunResult

    @property
    def recommended(self) -> Outcome | None:
        """The first alternative that passes every gate."""
        return next((one for one in self.outcomes if one.status == "passed"), None)

    def document(self) -> dict[str, Any]:
        """As what-if.json has it."""
        return {"rule": RULE, "reason": self.reason, "alternatives": [one.document() for one in self.outcomes]}


def what_if(
    config: Config,
    workers: run.Workers,
    progress: Progress,
    *,
    test: str | None = None,
    frame: pd.DataFrame | None = None,
    fresh: bool = False,
) -> WhatIf:
    """Test the table as it is and with each single attribute changed, as one run."""
    refuse_impossible(config)
    chosen = choose_point(run.prepare(replace(config, measures=()), frame).tests, test)
    if chosen.external is not None:
        raise InputError(f"{chosen.id}: an external sanitizer reads the table itself; change its columns there")
    single = replace(config, name=f"{config.name}-what-if", tests=(chosen.config,), measures=(), gates=config.gates)
    prepared = run.prepare(replace(single, stop_on_breach=False, controls=False), frame)
    base, changes = prepared.tests[0], alternatives(prepared.tests[0].rows.table)
    if not changes:
        raise InputError("schema: no attribute can be coarser, in bands or dropped")
    built = [_build(prepared, base, change) for change in changes]
    result = run.run(replace(prepared, tests=[base, *built]), workers, progress, fresh=fresh)
    outcomes = [_outcome(result, base, base, None, config.seed)]
    outcomes += [_outcome(result, base, one, change, config.seed) for one, change in zip(built, changes, strict=True)]
    ranked = [outcomes[0], *sorted(outcomes[1:], key=_rank)]
    found = WhatIf(ranked, _reason(ranked), result)
    write_beside(prepared.folder, NAME, found.document(), result.summaries)
    return found


def _build(prepared: run.PreparedRun, base: Test, change: Alternative) -> Test:
    config = prepared.config
    rebuilt = rebuild_test(config, base, change_rows(base.rows, change), lambda path, where: read_text(path, config, where))
    more = {"what_if": change.document()}
    slug = re.sub(r"[^a-z0-9_-]+", "-", change.label.lower()).strip("-")
    identity = f"{base.id[:LONGEST]}.{slug[:LONGEST]}"
    if len(identity) > LONGEST or slug != change.label.replace(" ", "-"):
        identity = f"{identity[:LONGEST]}-{short_hash([base.parameters, more])}"
    return replace(
        rebuilt, id=identity, parameters={**base.parameters, **more}, shown_parameters={**base.shown_parameters, **more}
    )


def _outcome(result: run.RunResult, base: Test, test: Test, change: Alternative | None, seed: int) -> Outcome:
    figures = figures_of([one for one in result.summaries if one.test == test.id])
    if change is not None:
        figures |= _losses(base, test, change, seed)
    verdicts = [one for one in result.verdict.verdicts if one.test in ("", test.id)]
    problems = [f"{one.gate}: {one.reason}" for one in verdicts if not one.passed]
    return Outcome(change, test.id, figures, RunVerdict(verdicts).status, next(iter(problems), None))


def _losses(base: Test, test: Test, change: Alternative, seed: int) -> dict[str, Figure]:
    """What is lost against the table as it is: what the change alone takes away counts, too."""
    table, losses = base.rows.table, dict.fromkeys(labels_of(LOSSES))
    release = widen(test.procedure.publish(test.rows.table), table, change) if test.procedure.publishes_release else None
    if release is None:
        return {**losses}
    utility = measure_utility(table, release, seed=seed)
    return {by_name()[name].label(key): utility.figure(name, key) for name, key in LOSSES}


def _rank(one: Outcome) -> tuple[bool, float, float]:
    loss, delta = (
        math.inf if figure is None else figure for figure in (one.figures["certainty_penalty"], one.figures["delta"])
    )
    return (False, loss, delta) if one.status == "passed" else (True, delta, loss)


def _reason(ranked: Sequence[Outcome]) -> str:
    base, *others = ranked
    first = others[0]
    delta, before = first.figures["delta"], base.figures["delta"]
    shown = f"delta {before:.4g} to {delta:.4g}" if delta is not None and before is not None else "delta is not known"
    if base.status == "passed":
        return "the table as it is passes every gate"
    if first.status == "passed":
        return f"{first.label} passes every gate with the smallest loss of utility among the alternatives that do ({shown})"
    if base.status == "none":
        return f"no gate is set; {first.label} lowers delta most ({shown})"
    return f"no single change passes every gate; {first.label} has the smallest delta ({shown}; {first.problem})"
