"""Tables and lines for a terminal or a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dit_dask.audit.controls import ControlSummary
from dit_dask.audit.statistics import Figure, Output, Statistic, by_name
from dit_dask.audit.summary import TestSummary, worst_adversary
from dit_dask.audit.verdict import Verdict
from dit_dask.errors import escape_text
from dit_dask.measures import MEASURES, kind_of
from dit_dask.measures.base import Entries, MeasureEntry, Section, present_values

NOTHING = "–"
WORDS = {"passed": "PASS", "failed": "FAIL", "inconclusive": "INCONCLUSIVE", "none": "NO GATE"}


def number(value: Any) -> str:
    """Show a number with four significant digits; what does not apply is a dash."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return value if isinstance(value, str) else f"{value:.4g}"


def share(value: float | None) -> str:
    """Show a share as a percentage."""
    return NOTHING if value is None else f"{100 * value:.3g}%"


FORMATS: dict[str, Callable[[Figure], str]] = {"number": number, "share": share}


@dataclass(frozen=True)
class Column:
    """A column of a table of tests, made from one row of the statistics table."""

    statistic: Statistic
    key: str | None

    @property
    def title(self) -> str:
        """What stands above it."""
        return self.statistic.title.format(key=self.key)

    @property
    def label(self) -> str:
        """The statistic as gates and the index write it."""
        return self.statistic.label(self.key)

    def show(self, figure: Figure) -> str:
        """Write a figure in the format of the statistic."""
        return FORMATS[self.statistic.format](figure)

    def cell(self, summary: TestSummary) -> str:
        """The figure of one test."""
        return self.show(summary.figure(self.statistic.name, self.key))


def columns_in(output: Output) -> list[Column]:
    """The columns of an output, in the order of the statistics table."""
    return [Column(one, key) for one in by_name().values() for key in one.shown.get(output, ())]


def claim(summary: TestSummary) -> str:
    """Say whether the claim holds, and for how many classes and records it does not."""
    simulation = summary.simulation
    if simulation is not None and simulation.effective_epsilon is not None:  # samples can refute a claim, never prove it
        loss = f"no: loses epsilon >= {number(simulation.effective_epsilon.at_least)}"
        return "not refuted" if summary.claim_holds else loss
    if summary.claim_holds is False:
        return f"no: {summary.claim_broken.classes:,} classes, {summary.claim_broken.records:,} records"
    return number(summary.claim_holds)


def text_table(summaries: Sequence[TestSummary], controls: Sequence[ControlSummary] = ()) -> str:
    """Lay the summaries out, and below them the controls."""
    shown = columns_in("terminal")
    found, cost = ([column for column in shown if (column.label == "seconds") is last] for last in (False, True))
    header = ["test", *(column.title for column in found), "delta found by", "claim holds", *(column.title for column in cost)]
    rows = [
        [one.test, *(column.cell(one) for column in found), one.worst_adversary or NOTHING, claim(one)]
        + [column.cell(one) for column in cost]
        for one in summaries
    ]
    names = control_names(controls)
    for name, control in zip(names, controls, strict=True):
        figures = [column.show(control.statistics.figure(column.statistic.name, column.key)) for column in found]
        rows.append([name, *figures, worst_adversary(control.adversaries) or NOTHING, NOTHING, *(NOTHING for _ in cost)])
    return align([header, *rows])


CURVE_SHOWN = (0.01, 0.1, 0.5, 1.0)  # epsilons in the terminal; the report has all


def repeat_lines(summaries: Sequence[TestSummary]) -> Iterator[str]:
    """One line for each test that draws at random: what of its delta and its mean is above the noise."""
    for summary in summaries:
        repeats = summary.repeats
        if repeats is None:
            continue
        parts = [
            f"{name} {number(summary.figure(name))} (noise {number(noise)}), above the noise {number(low)} to {number(high)}"
            for name, noise in (("delta", repeats.noise), ("mean", repeats.expected_noise))
            for low, high in [repeats.excess[name].interval]
        ]
        significant = f"{number(repeats.significant)} of {number(summary.figure('records'))} rows differ significantly"
        parts.append(f"{significant}, smallest p {number(repeats.p_value)}")
        yield escape_text(f"{summary.test}: {repeats.count:,} repeats; {'; '.join(parts)}")
        shown = [point for point in repeats.curve if point.epsilon in CURVE_SHOWN]
        if shown:
            shares = ", ".join(f"{point.epsilon:g}: {number(point.worst)} (at most {number(point.at_most)})" for point in shown)
            bias = f"d is too large by about {number(repeats.bias['delta'])} where it is largest"
            yield escape_text(f"{summary.test}: largest Pr[d >= epsilon] of any person: {shares}; {bias}")


def control_names(controls: Sequence[ControlSummary]) -> list[str]:
    """Name each control; where there are several of a kind, by the first test that it belongs to."""
    kinds = [control.control for control in controls]
    return [
        f"control: {one.control}"
        + ("" if one.error is None else ", missing")
        + (f" (of {one.tests[0]}{', …' if len(one.tests) > 1 else ''})" if kinds.count(one.control) > 1 else "")
        for one in controls
    ]


def verdict_lines(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """One line for each verdict: the condition that was demanded, and what was found."""
    for verdict in verdicts:
        test = f"  {verdict.test}" if verdict.test else ""
        yield escape_text(f"{WORDS[verdict.status]}  {verdict.gate}{test}: {verdict.reason}")


def measures_text(measures: Entries) -> str:
    """Lay the measures out."""
    blocks = [[section.header, *section.rows] for section in measure_sections(measures) if not section.detail]
    return "\n\n".join(align([[number(cell) for cell in row] for row in block]) for block in blocks)


def measure_sections(measures: Entries) -> list[Section]:
    """Let every measure present what it found; of one whose package is gone, or that is withheld, only the values are shown."""
    by_measure: dict[tuple[str, bool], list[MeasureEntry]] = {}
    for entry in measures:
        is_withheld = entry.value is None and entry.more.get("withheld", False)
        by_measure.setdefault((entry.measure, not is_withheld and entry.measure in MEASURES), []).append(entry)
    presented = (kind_of(name).present if is_known else present_values for name, is_known in by_measure)
    return [section for present, entries in zip(presented, by_measure.values(), strict=True) for section in present(entries)]


def align(rows: Sequence[Sequence[str]]) -> str:
    """Align rows of cells: the first column to the left, the rest to the right; a cell is always one line."""
    rows = [[escape_text(cell) for cell in row] for row in rows]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = []
    for first, *rest in rows:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
