"""What if one attribute were coarser, in bands or not published: the same test on a table for each alternative, ranked."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dit_dask import run
from dit_dask.audit.grammar import read_gates
from dit_dask.audit.identity import short_hash
from dit_dask.audit.statistics import Figure, plain
from dit_dask.audit.test import Test
from dit_dask.audit.verdict import RunVerdict, Status
from dit_dask.config.document import Config
from dit_dask.deciding.changed_tests import Skipped, change_test
from dit_dask.deciding.figures import figures_of, refuse_impossible, write_beside
from dit_dask.deciding.hardening import choose_point
from dit_dask.deciding.reopening import CHANGE
from dit_dask.errors import InputError
from dit_dask.execution.progress import Progress
from dit_dask.execution.workers import Workers
from dit_dask.inputs.source import read_text
from dit_dask.values.coarsening import Alternative, alternatives

if TYPE_CHECKING:
    import pandas as pd

NAME = "what-if.json"
LOSS = "certainty_penalty"
RULE = "those that pass every gate first, the smallest loss of utility first; then the others, the smallest delta first"
RULE_WITHOUT_LOSS = "those that pass every gate first, then the others, the smallest delta first; no loss of utility is known"
OF_MEASURES = ("figure", "passed")  # kinds of gates
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
    skipped: Sequence[Skipped] = ()

    @property
    def status(self) -> Status:
        """Passed if anything passes every gate; none if no gate is set."""
        found = [one.status for one in self.outcomes]
        if "passed" in found or found[0] == "none":
            return "passed" if "passed" in found else "none"
        return "failed" if "failed" in found else "inconclusive"

    @property
    def rule(self) -> str:
        """How the alternatives are ranked."""
        is_known = any(one.figures[LOSS] is not None for one in self.outcomes[1:])
        return RULE if is_known else RULE_WITHOUT_LOSS

    @property
    def recommended(self) -> Outcome | None:
        """The first alternative that passes every gate."""
        return next((one for one in self.outcomes if one.status == "passed"), None)

    def document(self) -> dict[str, Any]:
        """As what-if.json has it."""
        return {
            "status": self.status,
            "rule": self.rule,
            "reason": self.reason,
            "alternatives": [one.document() for one in self.outcomes],
            "skipped": [one.document() for one in self.skipped],
        }


def what_if(
    config: Config,
    workers: Workers,
    progress: Progress,
    *,
    test: str | None = None,
    frame: pd.DataFrame | None = None,
    fresh: bool = False,
) -> WhatIf:
    """Test the table as it is and with each single attribute changed, as one run."""
    refuse_impossible(config)
    chosen = choose_point(run.prepare(replace(config, measures=(), gates=()), frame).tests, test)
    if chosen.external is not None:
        raise InputError(f"{chosen.id}: an external sanitizer reads the table itself; change its columns there")
    prepared = _prepare(config, chosen, frame)
    base, changes = prepared.tests[0], alternatives(prepared.tests[0].rows.table)
    if not changes:
        raise InputError("schema: no attribute can be coarser, in bands or dropped")
    made = {
        change: change_test(prepared.config, base, change, lambda path, where: read_text(path, config, where))
        for change in changes
    }
    built = {change: _name(one, base, change) for change, one in made.items() if isinstance(one, Test)}
    skipped = [one for one in made.values() if isinstance(one, Skipped)]
    if not built:
        raise InputError(f"schema: no attribute can be changed: {skipped[0].alternative.label}: {skipped[0].reason}")
    result = run.run(replace(prepared, tests=[base, *built.values()]), workers, progress, fresh=fresh)
    others = [_outcome(result, one, change) for change, one in built.items()]
    ranked = [_outcome(result, base, None), *sorted(others, key=_rank)]
    unjudged = [gate.text for gate in prepared.gates if gate.kind in OF_MEASURES]
    reason = f"nothing passes, because gates on measures are not judged here: {', '.join(unjudged)}" if unjudged else ""
    found = WhatIf(ranked, reason or _reason(ranked), result, skipped)
    write_beside(prepared.folder, NAME, found.document(), result.summaries)
    return found


def _prepare(config: Config, chosen: Test, frame: pd.DataFrame | None) -> run.PreparedRun:
    """Prepare a run of one test without measures; gates on these stay, so that what is not judged does not pass.

    A gate for this test alone judges the alternatives to it, too.
    """
    gates = read_gates(config)
    of_measures = {gate.text for gate in gates if gate.kind in OF_MEASURES}
    single = replace(config, name=f"{config.name}-attributes", tests=(chosen.config,), measures=(), controls=False)
    kept = [text for text in config.gates if " ".join(text.split()) not in of_measures]
    gates = [replace(gate, scope="*") if gate.kind not in OF_MEASURES and gate.judges(chosen.id) else gate for gate in gates]
    return replace(run.prepare(replace(single, gates=kept, stop_on_breach=False), frame), gates=gates)


def _name(test: Test, base: Test, change: Alternative) -> Test:
    """Give a changed test an id of its own: one with a hash, where the words alone could be those of another attribute."""
    more = {CHANGE: change.document()}
    slug = re.sub(r"[^a-z0-9_-]+", "-", change.label.lower()).strip("-")
    identity = f"{base.id[:LONGEST]}.{slug[:LONGEST]}"
    if len(identity) > LONGEST or not re.fullmatch(r"[a-z0-9_][a-z0-9_-]*", change.attribute):
        identity = f"{identity[:LONGEST]}-{short_hash([base.parameters, more])}"
    return replace(
        test, id=identity, parameters={**base.parameters, **more}, shown_parameters={**base.shown_parameters, **more}
    )


def _outcome(result: run.RunResult, test: Test, change: Alternative | None) -> Outcome:
    figures = figures_of([one for one in result.summaries if one.test == test.id])
    verdicts = [one for one in result.verdict.verdicts if one.test in ("", test.id)]
    problems = [f"{one.gate}: {one.reason}" for one in verdicts if not one.passed]
    return Outcome(change, test.id, figures, RunVerdict(verdicts).status, next(iter(problems), None))


def _rank(one: Outcome) -> tuple[bool, float, float]:
    loss, delta = (math.inf if figure is None else figure for figure in (one.figures[LOSS], one.figures["delta"]))
    return (False, loss, delta) if one.status == "passed" else (True, delta, loss)


def _reason(ranked: Sequence[Outcome]) -> str:
    base, *others = ranked
    first = others[0]
    delta, before = first.figures["delta"], base.figures["delta"]
    shown = f"delta {before:.4g} to {delta:.4g}" if delta is not None and before is not None else "delta is not known"
    if base.status == "passed":
        return "the table as it is passes every gate"
    if first.status == "passed" and first.figures[LOSS] is None:
        return f"{first.label} passes every gate; what it loses of utility is not known ({shown})"
    if first.status == "passed":
        return f"{first.label} passes every gate with the smallest loss of utility among the alternatives that do ({shown})"
    if base.status == "none":
        return f"no gate is set; {first.label} lowers delta most ({shown})"
    return f"no single change passes every gate; {first.label} has the smallest delta ({shown}; {first.problem})"
