"""Verdicts: every gate on every test, and what they mean together. A gate that could not have failed is not passed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from dit_dask.audit.controls import ControlSummary
from dit_dask.audit.excess import interval_of, more_repeats
from dit_dask.audit.gates import OPERATORS, Gate
from dit_dask.audit.release_only import NOT_KNOWN
from dit_dask.audit.statistics import Distribution, Figure, Power, Statistics, by_name, number_of, plain
from dit_dask.engines.controls import RAW
from dit_dask.errors import InputError
from dit_dask.measures.base import MeasureEntry
from dit_dask.storage.documents import parse_mapping, write_json
from dit_dask.storage.folder import Folder

if TYPE_CHECKING:
    from dit_dask.audit.summary import TestSummary

NAME = "verdict.json"
Status = Literal["passed", "failed", "inconclusive", "none"]
ADVICE = "ask another adversary (adversary: panel), give the sensitive attribute fewer values, or set a smaller limit"

INTERVALS = "delta, mean, quantiles and share_over"
PERSONS_UNKNOWN = "persons have several rows, and the release does not tell in which classes theirs are"


@dataclass(frozen=True)
class Verdict:
    """Whether one test or measure passed one gate, and why; `adversary` is the one that found the value."""

    status: Status
    gate: str
    test: str
    value: float | None
    limit: float | None
    reason: str
    adversary: str | None = None

    @property
    def passed(self) -> bool:
        """Whether the gate's condition holds, and could have failed."""
        return self.status == "passed"

    def document(self) -> dict[str, Any]:
        """As in verdict.json."""
        return asdict(self) | {"value": plain(self.value), "limit": plain(self.limit)}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Verdict:
        """The inverse of `document`."""
        return cls(**dict(document) | {"value": number_of(document["value"]), "limit": number_of(document["limit"])})


@dataclass(frozen=True, eq=False)
class RunVerdict:
    """What a run says: the verdicts, the controls beside its tests, and warnings."""

    verdicts: Sequence[Verdict] = ()
    controls: Sequence[ControlSummary] = ()
    has_controls: bool = True
    warnings: Sequence[str] = ()

    @property
    def status(self) -> Status:
        """One failed verdict fails the run, one that cannot be judged makes it inconclusive; none means that no gate is set."""
        found = {verdict.status for verdict in self.verdicts}
        order: tuple[Status, ...] = ("failed", "inconclusive", "passed")
        return next((status for status in order if status in found), "none")

    def about(self, test: str) -> RunVerdict:
        """What the gates say of one test."""
        return replace(self, verdicts=[one for one in self.verdicts if one.test == test])

    @property
    def is_allowed(self) -> bool:
        """Whether nothing speaks against the release."""
        return self.status in ("passed", "none")

    def document(self) -> dict[str, Any]:
        """As in verdict.json."""
        return {
            "status": self.status,
            "verdicts": [verdict.document() for verdict in self.verdicts],
            "controls": [control.document() for control in self.controls] if self.has_controls else None,
            "warnings": list(self.warnings),
        }


def write_verdict(folder: Folder, verdict: RunVerdict) -> None:
    """Write verdict.json."""
    write_json(folder, NAME, verdict.document())


def read_verdict(folder: Folder) -> RunVerdict:
    """Read verdict.json of a finished run."""
    document = parse_mapping(folder.read(NAME))
    try:
        controls = document["controls"]
        return RunVerdict(
            [Verdict.read(one) for one in document["verdicts"]],
            [ControlSummary.read(one) for one in controls or ()],
            controls is not None,
            tuple(str(text) for text in document["warnings"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{folder.url}: verdict.json cannot be read; run it again to mend it") from error


@dataclass(frozen=True, eq=False)
class Evidence:
    """What gates are judged on; `distributions` has the stored distances of each test, for statistics of any key."""

    summaries: Sequence[TestSummary]
    measures: Sequence[MeasureEntry] = ()
    distributions: Mapping[str, Distribution] = field(default_factory=dict)


def judge(gates: Sequence[Gate], evidence: Evidence, own: Mapping[str, Sequence[Gate]] | None = None) -> list[Verdict]:
    """Judge every sanitised test by every gate, and by its own ones; measures by those that name them."""
    judged = [(gate, verdict) for gate in gates for verdict in JUDGES[gate.kind](gate, evidence)]
    for test, only in (own or {}).items():
        chosen = Evidence([one for one in evidence.summaries if one.test == test], (), evidence.distributions)
        judged += [(gate, verdict) for gate in only for verdict in JUDGES[gate.kind](gate, chosen)]
    limited = {verdict.test for gate, verdict in judged if gate.kind == "claims" or _direction(gate) == "limit"}
    alone = [_direction(gate) == "demand" and verdict.passed and verdict.test not in limited for gate, verdict in judged]
    return [_without_limit(*pair) if unlimited else pair[1] for pair, unlimited in zip(judged, alone, strict=True)]


def _direction(gate: Gate) -> Literal["limit", "demand", "other"]:
    """Whether a gate limits how much persons influence beliefs, demands it (a check, no limit), or is about other things."""
    if gate.kind != "statistic" or by_name()[gate.name].power is None:
        return "other"
    return "limit" if OPERATORS[gate.symbol].is_upper_limit or gate.symbol == "==" else "demand"


def _without_limit(gate: Gate, verdict: Verdict) -> Verdict:
    """A gate such as delta > 0.4, copied from --fail-on, would let exactly the unsafe releases pass."""
    reason = (
        f"{verdict.reason}, but this gate demands that persons have influence, and no other gate limits it: "
        f"write {gate.label} <= {gate.limit:g} if that is meant"
    )
    return replace(verdict, status="inconclusive", reason=reason)


def _judged(gate: Gate, summaries: Sequence[TestSummary]) -> list[TestSummary]:
    return [one for one in summaries if one.is_sanitised and gate.judges(one.test)]


def _judge_statistic(gate: Gate, evidence: Evidence) -> list[Verdict]:
    chosen = _judged(gate, evidence.summaries)
    if not chosen:
        reason = "no sanitised test is there to be judged" + ("" if gate.scope == "*" else f" with an id like {gate.scope}")
        return [Verdict("inconclusive", gate.text, "", None, gate.limit, reason)]
    return [_verdict(gate, one, _figure(gate, one, evidence)) for one in chosen]


def _figure(gate: Gate, summary: TestSummary, evidence: Evidence) -> Figure:
    """The figure of the summary, or one of another key from the stored distribution."""
    statistic = by_name()[gate.name]
    if gate.key is None or gate.key in statistic.keys or statistic.compute is None:
        return summary.figure(gate.name, gate.key)
    if summary.release_only is not None:
        return None
    stored = evidence.distributions.get(summary.test)
    return None if stored is None else float(statistic.compute(stored, float(gate.key)))


def _verdict(gate: Gate, summary: TestSummary, value: Figure) -> Verdict:
    if value is None and summary.withheld:
        reason = f"{gate.label} is withheld here: it is of fewer than 10 rows; the run folder in output.private has it"
        return Verdict("inconclusive", gate.text, summary.test, None, gate.limit, reason)
    if value is None and summary.release_only is not None and by_name()[gate.name].compute is not None:
        return Verdict("inconclusive", gate.text, summary.test, None, gate.limit, NOT_KNOWN)
    if value is None and summary.persons_unknown and by_name()[gate.name].compute is None:
        return Verdict("inconclusive", gate.text, summary.test, None, gate.limit, PERSONS_UNKNOWN)
    if value is None:  # what cannot be computed must not pass
        return Verdict("failed", gate.text, summary.test, None, gate.limit, f"{gate.label} does not apply here")
    adversary = None if by_name()[gate.name].power is None else summary.worst_adversary
    found = f"{gate.label} is {value:.6g}" + (f" ({adversary})" if adversary and len(summary.adversaries) > 1 else "")
    is_random = summary.repeats is not None and by_name()[gate.name].power is not None
    status, more = _above_noise(gate, summary) if is_random else ("passed" if gate.holds(value) else "failed", "")
    doubt = _doubt(gate, summary) if status == "passed" else None
    if doubt is not None:
        status, more = "inconclusive", f"{more}, but {doubt}"
    return Verdict(status, gate.text, summary.test, float(value), gate.limit, found + more, adversary)


def _above_noise(gate: Gate, summary: TestSummary) -> tuple[Status, str]:
    """Judge what is above the noise of a sanitizer that draws at random: both ends of its interval must agree."""
    repeats = summary.repeats
    interval = None if repeats is None else interval_of(gate, repeats.excess)
    if repeats is None or interval is None:
        return (
            "inconclusive",
            f", but its noise is not known: gates on {INTERVALS} can be judged where releases are drawn at random",
        )
    low, high = interval
    more = f"; above the noise of {repeats.count:,} repeats it is {low:.4g} to {high:.4g} with 95% confidence"
    is_inside = gate.limit is not None and low <= gate.limit <= high
    ends = {gate.holds(low), gate.holds(high)}
    if len(ends) == 1 and not (gate.symbol in ("==", "!=") and is_inside and low < high):
        return ("passed" if ends.pop() else "failed"), more
    needed = more_repeats(gate, repeats)
    advice = "no number of repeats is likely to decide" if needed is None else f"about {needed:,} repeats might decide"
    return "inconclusive", f"{more}, on both sides of the limit: {advice}"


def _doubt(gate: Gate, summary: TestSummary) -> str | None:
    """Return why a gate that holds could not have failed, or None if it could."""
    statistic = by_name()[gate.name]
    if summary.identical.repeated > 1:
        return _repeated_rows(summary)
    if summary.further_columns:
        return f"{further_columns(summary)}: let the sanitizer return the columns of the schema only"
    if _holds_always(gate):
        least, most = statistic.values
        return f"{gate.label} always lies between {least:g} and {most:g}, so this gate could not have failed: set another limit"
    if statistic.power is None or _direction(gate) == "demand":
        return None
    if summary.delta == 0:
        return (
            "no removal changed anything: the sanitizer does not depend on its input, or returns a stored result; a release "
            "that no person influences cannot be told from one that was not made from this table"
        )
    return _lack_of_power(gate, statistic.power, summary)


def _lack_of_power(gate: Gate, power: Power, summary: TestSummary) -> str | None:
    """Return why the planted person could not have broken a gate, or None if that person could."""
    reached = summary.attainable
    if reached is None:
        return _unplanted(summary)
    number = float(gate.key) if power == "key" and gate.key is not None else float(gate.limit or 0.0)
    if power == "prediction":
        could_fail, shown = reached.changes_prediction, f"changes no prediction ({reached.adversary})"
    elif power == "gain":
        could_fail, shown = number < reached.gain, f"brings a gain of only {reached.gain:.4g}"
    else:
        could_fail, shown = number < reached.distance, f"reaches only {reached.distance:.4g} ({reached.adversary})"
    if could_fail:
        return None
    if power not in ("prediction", "gain") and (summary.delta or 0.0) > reached.distance:
        return (
            f"the most influential person that could be in this table, published raw, reaches {reached.distance:.4g} "
            f"({reached.adversary}); a sanitised release can exceed that, and this one does, but nothing shows that it could "
            f"have exceeded {number:g}: {ADVICE}"
        )
    return (
        f"even the most influential person that could be in this table, published raw, {shown}, "
        f"so this gate could not have failed: {ADVICE}"
    )


def _unplanted(summary: TestSummary) -> str:
    """Say that the planted person is not there to be compared with, and why."""
    unknown = "nobody knows what this test could have shown at most"
    if summary.planting_error is None:
        return unknown
    return (
        f"no person could be planted, because an adversary failed on the raw table ({summary.planting_error}), so {unknown}: "
        "use an adversary that can learn from the raw table, too"
    )


def further_columns(summary: TestSummary) -> str:
    """Say that a release publishes more than what is tested."""
    noun = "column" if summary.further_columns == 1 else "columns"
    return f"the release has {summary.further_columns} further {noun}, and no test looks at what stands there"


def _repeated_rows(summary: TestSummary) -> str:
    return (
        f"every record occurs in a multiple of {summary.identical.repeated} rows, so rows are repeated and not persons: "
        "audit a table with one row for each person"
    )


def _holds_always(gate: Gate) -> bool:
    """Whether every value that the statistic can take meets the gate."""
    least, most = by_name()[gate.name].values
    if gate.symbol == "!=":
        return gate.limit is not None and not least <= gate.limit <= most
    return gate.holds(least) and gate.holds(most)  # one-sided conditions that hold at both ends hold between them


def never_holds(gate: Gate) -> str | None:
    """Return why no release can meet a gate, or None if one could."""
    if gate.kind != "statistic" or gate.limit is None:
        return None
    least, most = by_name()[gate.name].values
    if gate.holds(least) or gate.holds(most) or (least <= gate.limit <= most and gate.symbol in ("==", "!=")):
        return None
    return f"{gate.text} can never hold: {gate.label} lies between {least:g} and {most:g}"


def _judge_claims(gate: Gate, evidence: Evidence) -> list[Verdict]:
    chosen = [one for one in _judged(gate, evidence.summaries) if one.claim_holds is not None or one.claim_unknown]
    if not chosen:
        return [Verdict("inconclusive", gate.text, "", None, None, "no test makes a claim that can be checked")]
    return [claim_verdict(one) for one in chosen]


def claim_verdict(summary: TestSummary) -> Verdict:
    """Whether the release has the property that its sanitizer claims."""
    if summary.claim_holds and summary.identical.repeated > 1:
        reason = f"the claim holds for rows, but {_repeated_rows(summary)}"
        return Verdict("inconclusive", "claims hold", summary.test, None, None, reason)
    if summary.claim_unknown:
        return Verdict("inconclusive", "claims hold", summary.test, None, None, PERSONS_UNKNOWN)
    if summary.claim_holds:
        return Verdict("passed", "claims hold", summary.test, None, None, "the claim holds")
    broken, simulation = summary.claim_broken, summary.simulation
    reason = f"{summary.claimed or 'the claim'} is broken in {broken.classes:,} classes with {broken.records:,} records"
    if simulation is not None and simulation.effective_epsilon is not None:
        lost = simulation.effective_epsilon.at_least
        reason = "the noise is refuted" if lost is None else f"the noise loses epsilon >= {lost:.4g}, more than it claims"
    return Verdict("failed", "claims hold", summary.test, None, None, reason)


def _judge_figure(gate: Gate, evidence: Evidence) -> list[Verdict]:
    verdicts = []
    for entry in _entries(gate, evidence):
        value = entry.value if gate.figure == "value" else entry.more.get(gate.figure)
        value = number_of(value) if isinstance(value, str) and value in ("inf", "-inf") else value
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            why = entry.more.get("reason")
            reason = f"{gate.label} is no number here{f': {why}' if why else ''}"
            verdicts.append(Verdict("inconclusive", gate.text, entry.id, None, gate.limit, reason))
            continue
        status, more = _judge_estimate(gate, entry, value)
        verdicts.append(Verdict(status, gate.text, entry.id, float(value), gate.limit, f"{gate.label} is {value:.6g}{more}"))
    return verdicts or [_nothing_measured(gate)]


def _judge_estimate(gate: Gate, entry: MeasureEntry, value: float) -> tuple[Status, str]:
    """Judge a figure of a measure; both ends of its interval must agree, and what could not have failed does not pass.

    A measure may say of its figures: `intervals` and `attainable`, what a leak of everything would give, each by the name of
    the figure; `doubts`, reasons why none of them can pass; and `note`, why they say nothing about persons, good or bad.
    """
    holds, more = gate.holds(value), ""
    if "note" in entry.more:
        return "inconclusive", f", but {entry.more['note']}"
    interval = entry.more.get("intervals", {}).get(gate.figure)
    if interval is not None:
        low, high = interval
        more = f" ({low:.4g} to {high:.4g} with 95% confidence)"
        if {gate.holds(low), gate.holds(high)} != {holds}:
            return "inconclusive", f"{more}, on both sides of the limit: more records or releases might decide"
    if not holds:
        return "failed", more
    reasons = list(entry.more.get("doubts", ()))
    attainable = entry.more.get("attainable", {}).get(gate.figure)
    if attainable is not None and gate.holds(attainable):
        reasons.insert(0, f"a leak of everything would show only {attainable:.4g}, so this gate could not have failed")
    return ("inconclusive", f"{more}, but {'; '.join(reasons)}") if reasons else ("passed", more)


def _judge_passed(gate: Gate, evidence: Evidence) -> list[Verdict]:
    verdicts = []
    for entry in _entries(gate, evidence):
        passed, reason = entry.more.get("passed"), str(entry.more.get("reason", ""))
        status: Status = "inconclusive" if not isinstance(passed, bool) else "passed" if passed else "failed"
        verdicts.append(Verdict(status, gate.text, entry.id, None, None, reason or "the measure decides nothing"))
    return verdicts or [_nothing_measured(gate)]


def _entries(gate: Gate, evidence: Evidence) -> list[MeasureEntry]:
    """The results that a gate judges: those of releases, where the original is there for comparison."""
    named = [entry for entry in evidence.measures if entry.measure == gate.name and gate.judges(entry.id)]
    named = [entry for entry in named if gate.key is None or gate.key in _names(entry)]
    released = [entry for entry in named if entry.sanitizer is not None and entry.sanitizer["name"] != RAW]
    compared = [entry.parameters for entry in released]
    return [entry for entry in named if entry in released or entry.parameters not in compared]


def _names(entry: MeasureEntry) -> set[str]:
    """What may stand in brackets behind a measure: its id, or a text among its parameters such as an attack."""
    return {entry.id, *(value for value in entry.parameters.values() if isinstance(value, str))}


def _nothing_measured(gate: Gate) -> Verdict:
    return Verdict("inconclusive", gate.text, "", None, gate.limit, f"no result of {gate.name} is there to be judged")


JUDGES = {"statistic": _judge_statistic, "claims": _judge_claims, "figure": _judge_figure, "passed": _judge_passed}


def already_failed(gates: Sequence[Gate], lower_bounds: Mapping[str, Statistics]) -> list[Verdict]:
    """The gates that fail whatever the other records give, from what the statistics of each test cannot fall below."""
    verdicts = []
    for gate in gates:
        if gate.kind != "statistic" or not OPERATORS[gate.symbol].is_upper_limit or not by_name()[gate.name].grows:
            continue
        for test, bounds in lower_bounds.items():
            value = bounds.figure(gate.name, gate.key) if gate.judges(test) else None
            if value is not None and not gate.holds(value):
                reason = f"{gate.label} is {value:.6g}"
                verdicts.append(Verdict("failed", gate.text, test, float(value), gate.limit, reason))
    return verdicts
