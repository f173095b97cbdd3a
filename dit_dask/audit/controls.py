"""What a control gives: the figures of the raw or the suppressed table beside the tests that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dit_dask.audit.statistics import Statistics


@dataclass(frozen=True)
class ControlSummary:
    """One control: its name, the tests it is a control of, its statistics, and those of each adversary.

    `sampled` says how many records were tested where all would take too long; `left_out` names adversaries that were not asked
    for that reason. A control that could not be tested has an `error`, and no figures.
    """

    control: str
    tests: Sequence[str]
    statistics: Statistics
    adversaries: Mapping[str, Statistics]
    sampled: int | None = None
    left_out: Sequence[str] = ()
    error: str | None = None

    def document(self) -> dict[str, Any]:
        """As in verdict.json."""
        return {
            "control": self.control,
            "tests": list(self.tests),
            **self.statistics.document(),
            "adversaries": {name: one.document() for name, one in self.adversaries.items()},
            "sampled": self.sampled,
            "left_out": list(self.left_out),
            **({} if self.error is None else {"error": self.error}),
        }

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> ControlSummary:
        """The inverse of `document`."""
        adversaries = {name: Statistics.read(one) for name, one in document["adversaries"].items()}
        more = document["sampled"], tuple(document["left_out"]), document.get("error")
        return cls(document["control"], tuple(document["tests"]), Statistics.read(document), adversaries, *more)
