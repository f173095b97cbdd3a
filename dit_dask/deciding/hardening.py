"""Leaving persons out: rounds that remove the worst from the table, sanitise and test the rest, until the gates pass."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask import run
from dit_dask.audit import manifest
from dit_dask.audit.gates import OPERATORS, Gate
from dit_dask.audit.grammar import own_gates
from dit_dask.audit.parts import read_distances
from dit_dask.audit.statistics import Figure, by_name, plain
from dit_dask.audit.test import Test
from dit_dask.audit.verdict import RunVerdict
from dit_dask.config.document import Config, RecordSample
from dit_dask.deciding.explanation import worst_positions
from dit_dask.deciding.figures import figures_of, require_gates, write_beside
from dit_dask.deciding.reopening import REMOVED
from dit_dask.errors import InputError, quote, unknown
from dit_dask.execution.progress import Progress
from dit_dask.execution.workers import Workers
from dit_dask.storage.documents import write_json
from dit_dask.storage.folder import Folder
from dit_dask.values.table import Rows, collapse

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Ints

NAME = "harden.json"
STEPS = 50  # a round removes at most such a part of the budget: with fewer rounds more persons must go (decision 030)
WARNINGS = (
    "leaving persons out can itself tell about them: who knows the rule and a person's values may learn that they are missing",
    "the persons who are left have new classes, so their distances change: delta can rise from one round to the next",
)


@dataclass(frozen=True)
class Round:
    """One audit of the persons who are left: how many were removed so far, the figures, and what the gates say."""

    removed: int
    persons: int
    figures: Mapping[str, Figure]
    status: str
    run: str

    def document(self) -> dict[str, Any]:
        """As JSON."""
        figures = {name: plain(value) for name, value in self.figures.items()}
        return {"removed": self.removed, "persons": self.persons, **figures, "status": self.status, "run": self.run}


@dataclass(frozen=True, eq=False)
class Hardening:
    """All rounds, why they ended, and the last audit; removed[n] marks the used rows that were left out."""

    test: str
    budget: int
    persons: int
    rounds: Sequence[Round]
    reason: str
    removed: Bools
    prepared: run.PreparedRun
    result: run.RunResult

    @property
    def verdict(self) -> RunVerdict:
        """That of the last round."""
        return self.result.verdict

    @property
    def passed(self) -> bool:
        """Whether every gate passed in the last audit; what cannot be judged is not passed."""
        return self.verdict.status == "passed"

    def document(self) -> dict[str, Any]:
        """As harden.json has it: no positions."""
        return {
            "test": self.test,
            "status": self.verdict.status,
            "persons": self.persons,
            "max_removed": self.budget,
            "removed": self.rounds[-1].removed,
            "reason": self.reason,
            "rounds": [one.document() for one in self.rounds],
            "warnings": [*WARNINGS, *self.rises()],
        }

    def rises(self) -> list[str]:
        """The rounds after which delta was larger than before."""
        deltas = [one.figures["delta"] or 0.0 for one in self.rounds]
        pairs = enumerate(pairwise(deltas), 1)
        return [f"delta rose in round {place}: {old:.4g} to {new:.4g}" for place, (old, new) in pairs if new > old]


def read_budget(text: str, persons: int) -> int:
    """Read how many persons may be left out: a number, or a percentage of all."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", text)
    if match is None:
        raise InputError(f"--max-removed must be a number of persons or a percentage such as 1%; got {quote(text)}")
    amount = float(match[1]) * (persons / 100 if match[2] else 1)
    if not match[2] and amount != int(amount):
        raise InputError(f"--max-removed must be a whole number of persons or a percentage such as 1%; got {quote(text)}")
    if amount < 1:
        raise InputError(f"--max-removed must allow at least 1 of the {persons:,} persons; got {quote(text)}")
    if amount > persons - 2:
        raise InputError(f"--max-removed must leave at least 2 of the {persons:,} persons; got {quote(text)}")
    return math.floor(amount + 1e-9)


def choose_point(tests: Sequence[Test], test: str | None) -> Test:
    """The test of an id, or the only sanitised one."""
    by_id = {one.id: one for one in tests if one.procedure.publishes_release or one.config.sanitizer.name != "raw"}
    if test is not None:
        if test not in by_id:
            raise unknown("--test", test, by_id)
        return by_id[test]
    if len(by_id) != 1:
        raise InputError(f"--test is missing: the config has {len(by_id)} sanitised tests ({', '.join(by_id) or 'none'})")
    return next(iter(by_id.values()))


def _require_all_records(test: Test) -> None:
    """Refuse to test some persons only: positions and draws would mean other persons once somebody has left."""
    if test.config.records != "all":
        got = "a sample" if isinstance(test.config.records, RecordSample) else "a list of positions"
        raise InputError(
            f"{test.id}: dit harden needs records: all; got {got}, which means other persons after the first have left"
        )


def harden(
    config: Config,
    workers: Workers,
    progress: Progress,
    *,
    max_removed: str,
    test: str | None = None,
    report: Callable[[Round], None] = lambda _round: None,
) -> Hardening:
    """Remove the worst persons round by round; every round is a run of its own, so that what was done is not done again."""
    require_gates(config, "harden")
    whole = run.prepare(config)
    chosen = choose_point(whole.tests, test)
    _require_all_records(chosen)
    rows = chosen.rows
    budget = read_budget(max_removed, rows.table.persons)
    single = replace(config, name=f"{config.name}-harden", tests=(chosen.config,), stop_on_breach=False)
    removed = np.zeros(rows.used, bool)
    rounds: list[Round] = []
    while True:
        prepared = run.prepare(single, left_out=removed if removed.any() else None)
        result = run.run(prepared, workers, progress)
        _write_removed(prepared.folder, removed, np.asarray(rows.source_row))
        gone = rows.count_persons(np.flatnonzero(removed)) if removed.any() else 0
        figures = figures_of(result.summaries)
        rounds.append(Round(gone, rows.table.persons - gone, figures, result.verdict.status, result.folder.url))
        report(rounds[-1])
        reason = _reason_to_end(rounds, budget, rows.table.persons, result.verdict)
        if reason is not None:
            break
        left = np.flatnonzero(~removed)
        step = min(budget - gone, max(1, budget // STEPS))
        worst = _persons_to_remove(prepared, result, step)
        removed |= rows.rows_of_persons(left[worst])
    found = Hardening(prepared.tests[0].id, budget, rows.table.persons, rounds, reason, removed, prepared, result)
    write_beside(prepared.folder, NAME, found.document(), result.summaries)
    return found


def _reason_to_end(rounds: Sequence[Round], budget: int, persons: int, verdict: RunVerdict) -> str | None:
    """Say why there is no further round; None if there is one."""
    last = rounds[-1]
    share = f"{last.removed:,} of {persons:,} persons ({100 * last.removed / persons:.2g}%)"
    if verdict.status == "passed":
        return f"every gate passes after leaving out {share}" if last.removed else "every gate passes with all persons"
    if verdict.status == "inconclusive":
        reasons = [one.reason for one in verdict.verdicts if one.status == "inconclusive"]
        return f"leaving persons out cannot decide what cannot be judged: {reasons[0]}"
    failed = [one for one in verdict.verdicts if one.status == "failed"]
    if all(one.adversary is None for one in failed):
        return f"leaving persons out does not mend {failed[0].gate}: {failed[0].reason}"
    if last.removed >= budget:
        best = min(rounds, key=lambda one: math.inf if one.figures["delta"] is None else one.figures["delta"])
        return (
            f"the budget is spent: {share} are left out and {failed[0].gate} fails ({failed[0].reason}); "
            f"the smallest delta was {best.figures['delta']:.4g}, with {best.removed:,} persons left out"
        )
    return None


def _persons_to_remove(prepared: run.PreparedRun, result: run.RunResult, most: int) -> Ints:
    """Return positions of the worst persons: those over the limit of a failed gate, where it has one, and at most so many."""
    test = prepared.tests[0]
    distances = read_distances(result.folder, test.id)
    person = prepared.rows.about(test.config.sensitive).person
    worst = worst_positions(distances, person, most, rank_persons(prepared.rows))
    failed = {one.gate for one in result.verdict.verdicts if one.status == "failed"}
    gates = [gate for gate in (*prepared.gates, *own_gates(test.config)) if gate.text in failed]
    limits = [limit for gate in gates if (limit := _distance_limit(gate)) is not None]
    if len(limits) < len(gates) or not limits:
        return worst
    by_position = distances.set_index("record")["distance"]
    over = int((by_position.loc[worst.tolist()].to_numpy() > min(limits)).sum())
    return worst[: max(1, over)]


def rank_persons(rows: Rows) -> Ints:
    """Return (n,): for each used row the rank of its person by values alone, so that the order of rows decides no tie.

    Persons with the same rank have the same rows, so it does not matter for any figure which of them leaves.
    """
    table = rows.table
    _, rank = collapse(table.schema, table.codes[rows.index], table.secret[rows.index])
    for other in rows.further:
        values = other.table.secret[other.index].astype(np.int64)
        rank = np.unique(rank * (int(values.max()) + 1) + values, return_inverse=True)[1]
    if rows.person is None:
        return rank
    along = np.lexsort((rank, rows.person))
    starts = np.flatnonzero(np.diff(rows.person[along], prepend=-1))
    own = [tuple(part.tolist()) for part in np.split(rank[along], starts[1:])]
    place = {values: number for number, values in enumerate(sorted(set(own)))}
    by_person = np.array([place[values] for values in own])
    _, person = np.unique(rows.person, return_inverse=True)
    ranked: Ints = by_person[person]
    return ranked


def _distance_limit(gate: Gate) -> float | None:
    """The distance that persons must not exceed for a gate to hold, where it says one."""
    if gate.kind != "statistic" or not OPERATORS[gate.symbol].is_upper_limit:
        return None
    power = by_name()[gate.name].power
    if gate.name == "delta":
        return gate.limit
    return float(gate.key) if power == "key" and gate.key is not None else None


def _write_removed(folder: Folder, removed: Bools, source_row: Ints) -> None:
    """Write to the private tier of a round who was left out: also what `dit explain` needs to find its rows again."""
    positions = np.flatnonzero(removed)
    write_json(folder, REMOVED, {"record": positions.tolist(), "row": source_row[positions].tolist()})
    stored = manifest.read(folder)
    if folder.private is None and stored is not None and REMOVED not in stored.personal_data:
        manifest.write(folder, replace(stored, personal_data=[*stored.personal_data, REMOVED]))
