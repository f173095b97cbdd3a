"""The three criteria of WP29's opinion 05/2014 (singling out, linkability, inference), answered with figures of an audit.

A criterion is no figure of its own: it is a row of this table for each figure that tells something about it. It counts as
passed only where a gate limits one of its figures, and that gate passed; a gate that could not have failed never does.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dit_dask.audit.gates import Gate, parse
from dit_dask.audit.summary import TestSummary
from dit_dask.audit.verdict import RunVerdict, Status
from dit_dask.engines.controls import RAW
from dit_dask.errors import InputError
from dit_dask.measures.base import Entries, MeasureEntry

TEST = ""
"""In place of a measure: the figure is a statistic of the tests."""
LIMITS = {"largest": ("<=", "<", "=="), "smallest": (">=", ">", "==")}
ORDER: tuple[Status, ...] = ("failed", "inconclusive", "passed")
SINGLING_OUT, LINKABILITY, INFERENCE = "singling out", "linkability", "inference"


@dataclass(frozen=True)
class CriterionFigure:
    """A figure that tells something about a criterion; `worst` says which of several releases is shown.

    `most` is the worst value, largest or smallest, that the figure can have, None where verdicts take care of it.
    """

    criterion: str
    measure: str
    figure: str
    words: str
    worst: Literal["largest", "smallest"] = "largest"
    most: float | None = None

    @property
    def label(self) -> str:
        """The figure as a gate names it."""
        return self.figure if self.measure == TEST else f"{self.measure}.{self.figure}"

    def judge(self, gate: Gate, status: Status) -> Status:
        """Return what the verdict of a gate says about the figure: none where the gate does not limit it on its unsafe side.

        A gate that holds even for the worst possible value could not have failed.
        """
        if gate.kind == "passed" and gate.name == self.measure:
            return status
        named = (TEST, gate.name) if gate.kind == "statistic" else (gate.name, gate.figure)
        is_named = named in ((self.measure, self.figure), (self.measure, "value")) and gate.kind in ("statistic", "figure")
        if not is_named or gate.symbol not in LIMITS[self.worst]:
            return "none"
        return "inconclusive" if status == "passed" and self.most is not None and gate.holds(self.most) else status


FIGURES: tuple[CriterionFigure, ...] = (
    CriterionFigure(SINGLING_OUT, TEST, "smallest_class", "published records that look the same, at least", "smallest"),
    CriterionFigure(SINGLING_OUT, "reidentification", "prosecutor", "largest probability to pick a person's record", most=1.0),
    CriterionFigure(
        SINGLING_OUT, "reidentification", "sample_uniques", "persons whose published record is unique", most=math.inf
    ),
    CriterionFigure(
        SINGLING_OUT,
        "composition",
        "smallest_intersection",
        "persons that look the same in two releases, at least",
        "smallest",
        1.0,
    ),
    CriterionFigure(SINGLING_OUT, "singling-out", "risk", "predicates that single out a person, more than among new people"),
    CriterionFigure(LINKABILITY, "linkability", "risk", "persons whose two sides are linked, more than among new people"),
    CriterionFigure(LINKABILITY, "closeness", "identical", "published records that equal an original one", most=1.0),
    CriterionFigure(INFERENCE, TEST, "delta", "how far one person's record changes a belief about that person, at most"),
    CriterionFigure(INFERENCE, TEST, "largest_gain", "how much more probable the true value becomes for a person, at most"),
    CriterionFigure(INFERENCE, "composition", "delta", "the same when a person is left out of two releases, at most"),
    CriterionFigure(INFERENCE, "attribute-inference", "risk", "secrets guessed from the release, more than for new people"),
)
QUESTIONS = {
    SINGLING_OUT: "Can a record, or a few, be isolated that belong to one person?",
    LINKABILITY: "Can two records that concern the same person be linked?",
    INFERENCE: "Can a value of a person be deduced with significant probability?",
}
ADVICE = {
    SINGLING_OUT: "measures: [{name: reidentification}], or {name: singling-out, synthetic: FILE, holdout: FILE} for records",
    LINKABILITY: "measures: [{name: linkability, synthetic: FILE, holdout: FILE, sides: [[COLUMN], [COLUMN]]}]",
    INFERENCE: "tests: [{sanitizer: {name: NAME}}], or measures: [{name: attribute-inference, synthetic: FILE, holdout: FILE}]",
}


@dataclass(frozen=True)
class FigureFound:
    """The worst value of a figure among the releases, whose it is, and what gates on it say."""

    label: str
    words: str
    value: float
    source: str
    status: Status


@dataclass(frozen=True)
class Criterion:
    """One criterion with all figures that a run has for it."""

    name: str
    figures: tuple[FigureFound, ...]

    @property
    def question(self) -> str:
        """What the criterion asks."""
        return QUESTIONS[self.name]

    @property
    def advice(self) -> str:
        """What to write into the config to get a figure."""
        return ADVICE[self.name]

    @property
    def status(self) -> Status:
        """What the gates on its figures say together; none where no gate limits any."""
        found = {one.status for one in self.figures}
        return worst_status(found)

    @property
    def conclusion(self) -> str:
        """The status in words."""
        if not self.figures:
            return f"not measured; to measure it: {self.advice}"
        return {
            "failed": "a limit on one of its figures is exceeded",
            "inconclusive": "measured, but a limit on one of its figures cannot be judged",
            "passed": "every limit set on its figures holds, and could have been exceeded",
            "none": "measured, but no gate limits any of its figures, so it is not judged",
        }[self.status]

    def document(self) -> dict[str, Any]:
        """As in the document of --json."""
        figures = [{"figure": one.label, "value": one.value, "of": one.source, "status": one.status} for one in self.figures]
        return {"criterion": self.name, "status": self.status, "conclusion": self.conclusion, "figures": figures}


def describe_criteria(summaries: Sequence[TestSummary], measures: Entries, verdict: RunVerdict) -> list[Criterion]:
    """Answer all three criteria with the figures of a run."""
    names = sorted({row.measure for row in FIGURES if row.measure != TEST} | {entry.measure for entry in measures})
    judged = [(gate, one.status) for one in verdict.verdicts if (gate := _read_gate(one.gate, names)) is not None]
    by_criterion: dict[str, list[FigureFound]] = {name: [] for name in QUESTIONS}
    for row in FIGURES:
        values = _values(row, summaries, measures)
        if not values:
            continue
        pick = max if row.worst == "largest" else min
        value, source = pick(values, key=lambda pair: pair[0])
        status = worst_status({row.judge(gate, status) for gate, status in judged})
        by_criterion[row.criterion].append(FigureFound(row.label, row.words, value, source, status))
    return [Criterion(name, tuple(found)) for name, found in by_criterion.items()]


def worst_status(found: Collection[Status]) -> Status:
    """Return what several verdicts mean together."""
    return next((status for status in ORDER if status in found), "none")


def _read_gate(text: str, measures: Sequence[str]) -> Gate | None:
    try:
        return parse(text, "gate", measures)
    except InputError:  # a gate of a package that is gone
        return None


def _values(row: CriterionFigure, summaries: Sequence[TestSummary], measures: Entries) -> list[tuple[float, str]]:
    if row.measure == TEST:
        figures: list[tuple[Any, str]] = [(one.figure(row.figure), one.test) for one in summaries if one.is_sanitised]
    else:
        figures = [(entry.more.get(row.figure), entry.id) for entry in _released(measures) if _tells(entry, row)]
    return [(float(value), source) for value, source in figures if _is_number(value)]


def _tells(entry: MeasureEntry, row: CriterionFigure) -> bool:
    """Whether a result has a figure that is about persons."""
    return entry.measure == row.measure and "note" not in entry.more


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _released(measures: Entries) -> list[MeasureEntry]:
    """The results that are about what is published, not about the original beside it."""
    released = [entry for entry in measures if entry.sanitizer is not None and entry.sanitizer["name"] != RAW]
    compared = [(entry.measure, entry.parameters) for entry in released]
    return [entry for entry in measures if entry in released or (entry.measure, entry.parameters) not in compared]
