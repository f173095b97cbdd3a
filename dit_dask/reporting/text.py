"""Tables and lines for a terminal or a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dit_dask.audit.controls import ControlSummary
from dit_dask.audit.statistics import Figure, Output, Statistic, by_name
from dit_dask.audit.summary import TestSummary, worst_adversary
from dit_dask.audit.verdict import RunVerdict, Verdict
from dit_dask.errors import escape_text
from dit_dask.measures import MEASURES, kind_of
from dit_dask.measures.base import Entries, MeasureEntry, Section, present_values
from dit_dask.reporting.criteria import describe_criteria

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


# columns of a terminal that is too narrow for all, the most important first; others follow in their own order
PRIORITY = ("delta", "mean", "claim", "found by", "quantiles[0.99]", "share_over[0.1]", "smallest_class", "share_over[0.01]")
FEWEST_LETTERS = 16  # of an id that is cut


def text_table(summaries: Sequence[TestSummary], controls: Sequence[ControlSummary] = (), width: int | None = None) -> str:
    """Lay the summaries out, and below them the controls; in so many letters, or as wide as it is without a width."""
    names = [*(one.test for one in summaries), *control_names(controls)]
    figures = _columns(summaries, controls)
    kept = list(figures) if width is None else _fitting(figures, names, width)
    left = ["test", *names]
    if width is not None:
        most = max(FEWEST_LETTERS, width - _width(figures, kept))
        left = [_cut(name, most) for name in left]
    return align(list(zip(left, *(figures[label] for label in kept), strict=True)))


def _columns(summaries: Sequence[TestSummary], controls: Sequence[ControlSummary]) -> dict[str, list[str]]:
    """All columns beside the ids, by their labels: title, cells of tests, cells of controls; what it took comes last."""
    shown = {column.label: _column(column, summaries, controls) for column in columns_in("terminal")}
    cost = {label: shown.pop(label) for label in ("seconds",) if label in shown}
    worst = [one.worst_adversary for one in summaries] + [worst_adversary(one.adversaries) for one in controls]
    shown["found by"] = ["delta found by", *(name or NOTHING for name in worst)]
    shown["claim"] = ["claim holds", *map(claim, summaries), *(NOTHING for _ in controls)]
    return shown | cost


def _column(column: Column, summaries: Sequence[TestSummary], controls: Sequence[ControlSummary]) -> list[str]:
    cells = [column.cell(one) for one in summaries]
    figures = [one.statistics.figure(column.statistic.name, column.key) for one in controls]
    return [column.title, *cells, *(column.show(figure) for figure in figures)]


def _width(figures: Mapping[str, Sequence[str]], labels: Sequence[str]) -> int:
    return sum(2 + max(map(len, figures[label])) for label in labels)


def _fitting(figures: Mapping[str, Sequence[str]], names: Sequence[str], width: int) -> list[str]:
    """The most important columns that fit beside the ids, in their own order; delta always."""
    left = min(max(map(len, ["test", *names])), max(FEWEST_LETTERS, width // 3))
    chosen: list[str] = []
    for label in sorted(figures, key=lambda label: PRIORITY.index(label) if label in PRIORITY else len(PRIORITY)):
        if not chosen or left + _width(figures, [*chosen, label]) <= width:
            chosen.append(label)
    return [label for label in figures if label in chosen]


def hides_columns(summaries: Sequence[TestSummary], controls: Sequence[ControlSummary], width: int) -> bool:
    """Whether a table of this width leaves columns out."""
    figures = _columns(summaries, controls)
    return len(_fitting(figures, [*(one.test for one in summaries), *control_names(controls)], width)) < len(figures)


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


COLOURS = {"passed": "32", "failed": "31", "inconclusive": "33", "none": "0"}  # of ANSI terminals


def verdict_lines(verdicts: Sequence[Verdict], *, coloured: bool = False) -> Iterator[str]:
    """One line for each verdict: the condition that was demanded, and what was found."""
    for verdict in verdicts:
        test = f"  {verdict.test}" if verdict.test else ""
        word = WORDS[verdict.status]
        shown = f"\x1b[1;{COLOURS[verdict.status]}m{word}\x1b[0m" if coloured else word
        yield shown + escape_text(f"  {verdict.gate}{test}: {verdict.reason}")


def criteria_lines(summaries: Sequence[TestSummary], measures: Entries, verdict: RunVerdict) -> Iterator[str]:
    """One line for each criterion of WP29."""
    for one in describe_criteria(summaries, measures, verdict):
        figures = ", ".join(f"{figure.label} {number(figure.value)}" for figure in one.figures)
        yield escape_text(f"WP29 {one.name}: {one.conclusion}" + (f" ({figures})" if figures else ""))


def next_command(status: str, url: str, summaries: Sequence[TestSummary]) -> str:
    """What is worth typing now; of releases alone nobody can be explained."""
    judged = [one for one in summaries if one.is_sanitised]
    if status != "passed" and judged and all(one.release_only is not None for one in judged):
        return "dit leave-out CONFIG --to FOLDER  (writes the tables without each person: sanitise them, and delta is known)"
    if status == "failed" and not judged:
        return f"dit report {url}  (writes report.html, with what each measure found)"
    return {
        "passed": f"dit report {url} --pack evidence.zip  (keeps the evidence)",
        "failed": f"dit explain {url}  (says who is at most risk, and why)",
        "inconclusive": f"dit show {url} --wide  (shows what each test could have found at most)",
        "none": f"dit gate {url} --fail-on 'delta > 0.1'  (judges this run)",
    }[status]


def measures_text(measures: Entries, width: int | None = None) -> str:
    """Lay the measures out, in so many letters if a width is given."""
    blocks = [
        [list(section.header), *([number(cell) for cell in row] for row in section.rows)]
        for section in measure_sections(measures)
        if not section.detail
    ]
    return "\n\n".join(align(block if width is None else _fit(block, width)) for block in blocks)


def _fit(rows: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """The first columns that fit beside the ids, at least one; ids are cut as those of tests are, and so are long words."""
    rows = [[escape_text(cell) for cell in row] for row in rows]
    room = width - min(max(len(row[0]) for row in rows), max(FEWEST_LETTERS, width // 3))
    rows = [[row[0], *(_cut(cell, room - 2) for cell in row[1:])] for row in rows]
    wide = [2 + max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    kept = max(count for count in range(1, len(wide) + 1) if sum(wide[1:count]) <= room)
    return [[_cut_middle(row[0], width - sum(wide[1:kept])), *row[1:kept]] for row in rows]


def _cut(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _cut_middle(name: str, most: int) -> str:
    """Cut an id of a measure: its end says of which release it is."""
    start = most // 3
    return name if len(name) <= most else f"{name[:start]}…{name[start + 1 - most :]}"


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
