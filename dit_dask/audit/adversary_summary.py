"""What one adversary of a test found: its own statistics, and how often its predictions are right with and without a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dit_dask.audit.statistics import Statistics
from dit_dask.engines.gain import CONFIDENCE_LEVELS, CONFIDENT, CONFIDENT_WITHOUT, RIGHT, RIGHT_WITHOUT, GainTally
from dit_dask.values.intervals import lower_limit, upper_limit
from dit_dask.values.schema import MIN_DISCLOSED_COUNT

CONFIDENCE = 0.95


@dataclass(frozen=True)
class ConfidentPredictions:
    """Predictions with a belief of some level or more: their share of all rows, and the share of them that is right.

    A share of fewer than MIN_DISCLOSED_COUNT rows is not shown.
    """

    coverage: float
    accuracy: float | None
    coverage_without: float
    accuracy_without: float | None


@dataclass(frozen=True)
class Accuracy:
    """The share of right predictions with and without the record, and their difference with an exact paired interval.

    The interval is the exact one of McNemar's test: given the rows whose prediction is right on one side only, the share of
    those that are right with the record is binomial (Clopper and Pearson).
    """

    with_record: float
    without_record: float
    difference: float
    interval: tuple[float, float]
    confidence: float
    confident: Mapping[str, ConfidentPredictions] | None

    def document(self) -> dict[str, Any]:
        """As in summary.json."""
        return asdict(self) | {"interval": list(self.interval)}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Accuracy:
        """The inverse of `document`."""
        low, high = document["interval"]
        by_level = document["confident"]
        confident = None if by_level is None else {level: ConfidentPredictions(**one) for level, one in by_level.items()}
        return cls(**dict(document) | {"interval": (low, high), "confident": confident})


@dataclass(frozen=True)
class AdversarySummary:
    """One entry of `adversaries` in summary.json."""

    engine: str
    statistics: Statistics
    accuracy: Accuracy | None

    def document(self) -> dict[str, Any]:
        """As in summary.json."""
        accuracy = None if self.accuracy is None else self.accuracy.document()
        return {"engine": self.engine, **self.statistics.document(), "accuracy": accuracy}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> AdversarySummary:
        """The inverse of `document`."""
        accuracy = document["accuracy"]
        return cls(document["engine"], Statistics.read(document), None if accuracy is None else Accuracy.read(accuracy))


def accuracy_of(tally: GainTally) -> Accuracy | None:
    """Compute accuracies from counts of rows; None without rows."""
    rows = tally.count
    if not rows:
        return None
    right, right_without = tally.marked(RIGHT), tally.marked(RIGHT_WITHOUT)
    return Accuracy(
        right / rows,
        right_without / rows,
        (right - right_without) / rows,
        paired_interval(tally.marked(RIGHT, RIGHT_WITHOUT), tally.marked(RIGHT_WITHOUT, RIGHT), rows),
        CONFIDENCE,
        _confident(tally, rows) if tally.knows_confidence else None,
    )


def paired_interval(gained: int, lost: int, rows: int) -> tuple[float, float]:
    """The interval of a difference of paired shares, from the rows that are right on one side only."""
    unequal = gained + lost
    if not unequal:
        return 0.0, 0.0
    tail = (1 - CONFIDENCE) / 2
    low, high = (limit(gained, unequal, tail) for limit in (lower_limit, upper_limit))
    return (2 * low - 1) * unequal / rows, (2 * high - 1) * unequal / rows


def _confident(tally: GainTally, rows: int) -> dict[str, ConfidentPredictions]:
    found = {}
    for level, bit, bit_without in zip(CONFIDENCE_LEVELS, CONFIDENT, CONFIDENT_WITHOUT, strict=True):
        sure, sure_without = tally.marked(bit), tally.marked(bit_without)
        right, right_without = tally.marked(bit | RIGHT), tally.marked(bit_without | RIGHT_WITHOUT)
        found[level] = ConfidentPredictions(
            sure / rows,
            right / sure if sure >= MIN_DISCLOSED_COUNT else None,
            sure_without / rows,
            right_without / sure_without if sure_without >= MIN_DISCLOSED_COUNT else None,
        )
    return found
