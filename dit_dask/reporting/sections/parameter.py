"""Delta and the average over the swept parameter, with what is lost of utility where that is known."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dit_dask.audit.summary import TestSummary
from dit_dask.reporting import charts
from dit_dask.reporting.blocks import Block, Drawing, ReportedRun, ReportSection, Span, Table, code, paragraph
from dit_dask.reporting.sections.scale import gates_of
from dit_dask.reporting.text import number

Family = Mapping[float, TestSummary]
WHY_IT_RISES = (
    "Delta need not fall when the release protects more. It is the worst case over all persons: a larger k moves the borders "
    "of the classes, and a person whose class kept its borders before may now change them for others by leaving. The average "
    "falls more steadily. So choose by the figures, not by the parameter alone."
)
LARGER_IS_STRONGER = {"k": True, "l": True, "entropy_l": True, "t": False}  # parameters of classes
LOG_RATIO = 20  # a parameter that spans more than this is drawn on a logarithmic scale


def parameter(run: ReportedRun) -> ReportSection | None:
    """One chart for each sanitizer parameter that takes several values while all else is equal."""
    families = list(find_families(run.summaries))
    if not families:
        return None
    drawings = [_drawing(run, name, family) for name, family in families]
    blocks: list[Block] = [*drawings]
    if any(_rises(name, family) for name, family in families):
        blocks.append(paragraph(WHY_IT_RISES))
    return ReportSection("parameter", "Which parameter to choose", blocks)


def find_families(summaries: Sequence[TestSummary]) -> Iterator[tuple[str, Family]]:
    """Yield the parameters of sanitizers that vary while everything else is equal, with the tests by their values."""
    groups: dict[tuple[str, str], dict[float, TestSummary]] = {}
    for one in summaries:
        sanitizer = one.parameters["sanitizer"]
        for key, value in sanitizer.items():
            if not _is_number(value) or one.delta is None:
                continue
            rest = {name: item for name, item in sanitizer.items() if name != key}
            others = {name: item for name, item in one.parameters.items() if name not in ("sanitizer", "label")}
            groups.setdefault((key, json.dumps([rest, others], sort_keys=True, default=str)), {})[float(value)] = one
    for (key, _), family in groups.items():
        if len(family) > 1:
            yield key, dict(sorted(family.items()))


def _is_number(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float) and math.isfinite(value)


def _rises(name: str, family: Family) -> bool:
    """Whether delta rises where classes get stronger; that it falls with more noise needs no explanation."""
    if name not in LARGER_IS_STRONGER:
        return False
    values = sorted(family, reverse=not LARGER_IS_STRONGER[name])
    return any((family[after].delta or 0.0) > (family[before].delta or 0.0) for before, after in itertools.pairwise(values))


def _drawing(run: ReportedRun, name: str, family: Family) -> Drawing:
    risk = {
        words: [(value, figure) for value, one in family.items() if (figure := one.figure(statistic)) is not None]
        for words, statistic in (("worst case (delta)", "delta"), ("average", "mean"))
    }
    limits = [
        charts.ScaleLimit(gate.limit, gate.text) for gate in gates_of(run) if gate.name == "delta" and gate.limit is not None
    ]
    panels = [charts.Panel("distance d", {words: points for words, points in risk.items() if points}, limits)]
    panels += _utility(family)
    values = list(family)
    is_log = values[0] > 0 and values[-1] / values[0] > LOG_RATIO
    words = f"{name} of {family[values[0]].parameters['sanitizer']['name']}"
    tuned = run.documents.get("tune.json", {})
    recommended = tuned.get("recommended") if tuned.get("parameter") == name else None
    marked = recommended if recommended in family else None
    wide, narrow = (
        charts.over_parameter(words, panels, is_log=is_log, marked=marked, width=width).svg
        for width in (charts.WIDTH, charts.NARROW)
    )
    caption = f"Figures over {words}; dashed lines are limits of gates."
    if marked is not None:
        caption += f" The thick grey line is the value that dit tune recommends, {marked:g}."
    return Drawing(caption, wide, narrow, _numbers(name, family, panels))


def _utility(family: Family) -> list[charts.Panel]:
    """What the release loses, from the statistics that are about utility."""
    found = {
        words: [(value, figure) for value, one in family.items() if (figure := one.figure(*statistic)) is not None]
        for statistic, words in UTILITY.items()
    }
    kept = {words: points for words, points in found.items() if points}
    return [charts.Panel("loss of utility", kept)] if kept else []


# what is lost of utility, between 0 (nothing) and 1 (all), and how it is named
UTILITY = {("certainty_penalty", None): "certainty penalty", ("tvd", "2"): "2-way TVD"}


def _numbers(name: str, family: Family, panels: Sequence[charts.Panel]) -> Table:
    series = {words: dict(points) for panel in panels for words, points in panel.series.items()}
    rows: list[list[Span]] = [
        [f"{value:g}", code(one.test), *(number(points.get(value)) for points in series.values())]
        for value, one in family.items()
    ]
    return Table(f"Figures over {name}", [name, "test", *series], rows)
