"""What can be said of a release alone: properties of its classes, and distances that are not delta."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dit_dask.audit.statistics import Statistics
from dit_dask.audit.test import Test
from dit_dask.sanitizers.properties import find_properties, group_counts

if TYPE_CHECKING:
    from dit_dask.values.arrays import Ints

RISKS = ("0.05", "0.09", "0.2", "0.33")
KEPT = ("records", "distinct", "subjects", "skipped")
OWN_ROW = ("mean", "quantiles", "share_over", "argmax_changed", "mean_gain", "largest_gain")
NOT_KNOWN = (
    "only the release is there, not what would have been published without each person, so delta is not known: run dit "
    "leave-out and sanitise those tables, too, or describe the rule as a python sanitizer"
)


@dataclass(frozen=True)
class ReleaseOnly:
    """The object `release_only` of a summary; all counted in rows."""

    figures: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        """As in summary.json."""
        return dict(self.figures)

    @property
    def largest(self) -> Any:
        """The largest own-row distance."""
        return self.figures["own_row"]["largest"]


def describe_release(test: Test, found: Statistics, adversaries: Mapping[str, Statistics]) -> ReleaseOnly | None:
    """Describe the only release of a test; None where the test has releases without each record."""
    if test.external is None or test.external.match is None:
        return None
    counts = group_counts(test.procedure.publish(test.rows.table))
    by_name = {name: _own_row(each) for name, each in adversaries.items()}
    figures = {
        "own_row": _own_row(found) | {"adversaries": by_name},
        **find_properties(counts).document(),
        "reidentification": reidentification(counts.sum(axis=1)),
        "not_known": NOT_KNOWN,
    }
    return ReleaseOnly(figures)


def without_inference(found: Statistics) -> Statistics:
    """The same statistics, null but for those that count rows: what was computed is not what they are called."""
    return Statistics(
        {
            name: value if name in KEPT else dict.fromkeys(value) if isinstance(value, Mapping) else None
            for name, value in found.values.items()
        }
    )


def _own_row(found: Statistics) -> dict[str, Any]:
    shown = found.document()
    return {"largest": shown["delta"]} | {name: shown[name] for name in OWN_ROW if name in shown}


def reidentification(size: Ints) -> dict[str, Any]:
    """The chance 1 / class size to find a row's person: of the worst row, the mean, and shares of rows above limits."""
    rows = int(size.sum())
    over = {limit: int(size[1 / size > float(limit)].sum()) / rows for limit in RISKS}
    return {"largest": 1 / int(size.min()), "mean": len(size) / rows, "share_over": over}
