"""The verdict in words: what was decided and why, which adversary, what to do next."""

from __future__ import annotations

from collections.abc import Sequence

from dit_dask.audit.gates import CLAIMS
from dit_dask.audit.summary import TestSummary
from dit_dask.audit.verdict import Verdict
from dit_dask.reporting.blocks import (
    Block,
    Listing,
    Marked,
    Notice,
    ReportedRun,
    ReportSection,
    Span,
    Spans,
    Strong,
    Table,
    code,
    paragraph,
)
from dit_dask.reporting.scope import describe_checks, describe_reservations, limits_influence
from dit_dask.reporting.text import WORDS, number

MOST_REASONS = 8


def verdict(run: ReportedRun) -> ReportSection:
    """The first section: status, reasons, next steps, then every check."""
    chosen = [one for one in run.verdict.verdicts if one.status == run.verdict.status and not one.passed]
    blocks: list[Block] = [Notice(run.verdict.status, [_headline(run), *_worst_case(run), *_reservations(run)])]
    if chosen:
        reasons = [_reason(one) for one in chosen[:MOST_REASONS]]
        more = len(chosen) - MOST_REASONS
        blocks.append(Listing([*reasons, *([[f"{more:,} more, in the table below"]] if more > 0 else [])]))
    blocks.append(paragraph(Strong("Next: "), *next_steps(run)))
    if run.verdict.verdicts:
        blocks.append(_checks(run.verdict.verdicts))
    return ReportSection("verdict", "Verdict", blocks)


def _headline(run: ReportedRun) -> Spans:
    status = run.verdict.status
    words: list[Span] = [Strong(f"{WORDS[status]}."), " "] if status != "none" else []
    words.append(describe_checks(run.verdict))
    if status == "none" and not run.summaries:
        words.append(" No inference test was run.")
    return [*words, " What the measures below say is not judged either."] if status == "none" and run.measures else words


def worst_test(summaries: Sequence[TestSummary]) -> TestSummary | None:
    """The sanitised test with the largest delta, or any test if none is sanitised."""
    known = [one for one in summaries if one.delta is not None]
    judged = [one for one in known if one.is_sanitised] or known
    return max(judged, key=lambda one: one.delta or 0.0, default=None)


def _worst_case(run: ReportedRun) -> list[Spans]:
    worst = worst_test(run.summaries)
    if worst is None:
        return []
    found: list[Span] = ["The largest influence of one person is ", Strong(f"delta = {number(worst.delta)}")]
    found += [" in ", code(worst.test)]
    if worst.worst_adversary:
        found += [", found by the adversary ", code(worst.worst_adversary)]
    if worst.repeats is not None:
        found += [f"; noise alone, with nobody removed, gives {number(worst.repeats.noise)}"]
    return [[*found, "."]]


def _reservations(run: ReportedRun) -> list[Spans]:
    found = " ".join(describe_reservations(run.summaries, run.verdict))
    return [[found]] if found else []


def _reason(one: Verdict) -> Spans:
    where: list[Span] = [code(one.test), ": "] if one.test else []
    return [*where, code(one.gate), " – ", one.reason]


def next_steps(run: ReportedRun) -> Spans:
    """What to do, by the status."""
    evidence = code(f"dit report {run.name} --pack evidence.zip")
    if run.verdict.status == "passed" and not limits_influence(run.verdict):
        return [
            "the gates hold, but none of them limits what a person's own record reveals. Before you publish, set one on a test "
            "of the sanitizer, such as ",
            code("mean_gain <= 0.05"),
            ". The evidence so far: ",
            evidence,
            ".",
        ]
    if run.verdict.status == "passed":
        return [
            "publish exactly the release that was audited, and keep the evidence: ",
            evidence,
            ". A pass holds for this table, this sanitizer and these adversaries; it is evidence, not a proof.",
        ]
    if run.verdict.status == "failed":
        broken = any(one.gate == CLAIMS and one.status == "failed" for one in run.verdict.verdicts)
        first = "do not publish. A broken claim is a fault of the sanitizer: mend it first. " if broken else "do not publish. "
        passing = passing_tests(run)
        if passing:
            first = "do not publish a release that failed. "
        if all(one.delta is None for one in run.summaries):  # nobody to explain, and nothing to tune
            return [first, *_name_passing(passing), "change what failed, and audit the new release."]
        return [
            first,
            *_name_passing(passing),
            code(f"dit explain {run.name}"),
            " says who is at most risk and why; ",
            code("dit tune CONFIG"),
            " finds the weakest parameter that meets the gates.",
        ]
    if run.verdict.status == "inconclusive":
        return [
            "do not publish on this ground. The reasons say what would decide it, most often more adversaries (",
            code("adversary: panel"),
            "), fewer values of the sensitive attribute, more rows or repeats, or a limit that this data could break.",
        ]
    return [
        "decide what is acceptable and set it as a gate, such as ",
        code("gates: [delta <= 0.1, claims hold]"),
        ", or judge this run: ",
        code(f"dit gate {run.name} --fail-on 'delta > 0.1'"),
        ".",
    ]


def passing_tests(run: ReportedRun) -> list[str]:
    """The sanitised tests that passed every check, where nothing fails that is about the run or a measure."""
    names = [one.test for one in run.summaries if one.is_sanitised]
    if not all(one.passed for one in run.verdict.verdicts if one.test not in names):
        return []
    judged = {one.test for one in run.verdict.verdicts}
    refused = {one.test for one in run.verdict.verdicts if not one.passed}
    return [name for name in names if name in judged - refused]


def _name_passing(passing: Sequence[str]) -> Spans:
    if not passing:
        return []
    names: list[Span] = (
        [code(passing[0])] if len(passing) == 1 else [f"{len(passing):,} releases, such as ", code(passing[0]), ","]
    )
    return [*names, " passed every check: audit the one that you want to publish alone. For the others, "]


def _checks(verdicts: Sequence[Verdict]) -> Table:
    rows: list[list[Span]] = [
        [Marked(WORDS[one.status], one.status), code(one.test) if one.test else "–", code(one.gate), one.reason]
        for one in verdicts
    ]
    return Table("Every check of every test", ["result", "test", "gate", "found"], rows)
