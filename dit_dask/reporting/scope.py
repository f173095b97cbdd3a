"""What a verdict covers: how many checks were decided, whom the tests left out, and what a pass does not say."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from dit_dask.audit.gates import Gate, parse
from dit_dask.audit.manifest import InputFingerprint
from dit_dask.audit.statistics import by_name
from dit_dask.audit.summary import TestSummary
from dit_dask.audit.verdict import RunVerdict
from dit_dask.errors import InputError
from dit_dask.reporting.text import number

UNKNOWN = "only a release is there, so nobody could be left out and delta is not known"
INFERENCE_MEASURES = ("composition", "attribute-inference")


def describe_checks(verdict: RunVerdict) -> str:
    """Say how many of the checks passed, failed or could not be decided."""
    every = len(verdict.verdicts)
    failed, undecided = (sum(one.status == status for one in verdict.verdicts) for status in ("failed", "inconclusive"))
    checks = "1 check" if every == 1 else f"{every:,} checks"
    if verdict.status == "passed":
        return "The only check passed." if every == 1 else f"All {checks} passed."
    if verdict.status == "failed":
        return f"{failed:,} of {checks} failed{f', {undecided:,} could not be decided' if undecided else ''}."
    if verdict.status == "inconclusive":
        return f"{undecided:,} of {checks} could not be decided. That is not a pass."
    return "No gate was set, so this audit permits and forbids nothing."


def describe_rows(found: InputFingerprint) -> str:
    """Say how many rows were used, and why the others were not."""
    outside = found.read - found.dropped - (found.left_out or 0) - found.used
    parts = [f"{number(found.dropped)} dropped as incomplete"]
    parts += [f"{number(found.left_out)} left out by dit harden"] if found.left_out else []
    parts += [f"{number(outside)} outside data.limit or data.sample"] if outside > 0 else []
    persons = f" of {number(found.persons)} persons" if found.persons else ""
    return f"{number(found.used)} rows{persons} used of {number(found.read)} read ({', '.join(parts)})"


def describe_untested(summary: TestSummary) -> str | None:
    """Say how many persons, or rows, a test was about; None where it was about all."""
    rows, persons, skipped = (int(summary.figure(name) or 0) for name in ("records", "subjects", "skipped"))
    if summary.release_only is not None:
        return UNKNOWN
    if summary.sampling is not None:
        counted = "rows" if persons == rows else "persons"
        return f"only a sample of {number(persons)} of {number(summary.sampling.rows)} {counted} was tested"
    if summary.parameters.get("records", "all") != "all":
        return f"only the {number(rows)} rows that the config lists were tested"
    return f"{number(skipped)} rows could not be tested" if skipped else None


def describe_limits(summaries: Sequence[TestSummary]) -> Iterator[str]:
    """Say of each sanitised test that is not about everybody what it is about; equal words once."""
    tests: dict[str, list[str]] = {}
    for one in summaries:
        words = describe_untested(one) if one.is_sanitised else None
        if words:
            tests.setdefault(words, []).append(one.test)
    for words, names in tests.items():
        more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
        yield f"{names[0]}{more}: {words}"


def describe_reservations(summaries: Sequence[TestSummary], verdict: RunVerdict) -> Iterator[str]:
    """Say what a reader must know beside a pass."""
    for words in describe_limits(summaries):
        yield f"{words}."
    if verdict.status != "passed":
        return
    if not limits_influence(verdict):
        yield "No gate limits what a person's own record reveals."
    if verdict.warnings:
        count = len(verdict.warnings)
        yield f"Read the {'warning' if count == 1 else f'{count:,} warnings'} below before you rely on it."


def limits_influence(verdict: RunVerdict) -> bool:
    """Whether some gate is about what a person's own record reveals about that person."""
    return any(_is_on_influence(gate) for gate in _comparisons(verdict, INFERENCE_MEASURES))


def limits_figures(verdict: RunVerdict, measures: Collection[str]) -> bool:
    """Whether some gate compares a figure, of a test or of one of the measures, with a number."""
    return bool(_comparisons(verdict, measures))


def _comparisons(verdict: RunVerdict, measures: Collection[str]) -> list[Gate]:
    gates = []
    for text in dict.fromkeys(one.gate for one in verdict.verdicts):
        try:
            gates.append(parse(text, "gate", measures))
        except InputError:  # a gate on another measure
            continue
    return [gate for gate in gates if gate.limit is not None]


def _is_on_influence(gate: Gate) -> bool:
    if gate.kind == "figure":
        return gate.figure in ("delta", "risk", "value")
    return by_name()[gate.name].power is not None
