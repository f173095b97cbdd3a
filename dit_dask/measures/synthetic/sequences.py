"""Sequential data in a run: event tables become one row for each subject, and whole sequences are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.constraints import Field, Record, Text
from dit_dask.errors import InputError
from dit_dask.measures.synthetic.accuracy import Score, accuracy, mean
from dit_dask.measures.synthetic.buckets import put_in_buckets
from dit_dask.measures.synthetic.columns import align, format_label, parse_text
from dit_dask.measures.synthetic.events import flatten_events
from dit_dask.values.schema import MIN_DISCLOSED_COUNT

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.arrays import Codes, Ints


@dataclass(frozen=True)
class Events:
    """The columns that make rows a sequence: whose event a row is, and what sorts the events of a subject."""

    subject: str
    order: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that have to be read."""
        return (self.subject,) if self.order is None else (self.subject, self.order)


EVENTS = Field(
    Record(
        {
            "subject": Field(Text(), description="the column that says whose event a row is"),
            "order": Field(Text(), None, description="the column to sort a subject's events by; as they come by default"),
        }
    ),
    None,
    description="rows are events: two subsequent ones of each subject are compared, and lengths of sequences",
    only_if_set=True,
)


def parse_events(parameters: Mapping[str, Any], where: str) -> Events | None:
    """Read the columns of sequences from a measure's parameters."""
    if parameters["events"] is None:
        return None
    events = Events(**parameters["events"])
    if parameters["synthetic"] is None:
        raise InputError(f"{where}.events needs {where}.synthetic: releases of the run do not say whose event a row is")
    if events.subject == events.order:
        raise InputError(f"{where}.events.order must be another column than events.subject; got {events.order!r}")
    if events.subject in (parameters["columns"] or ()):
        raise InputError(f"{where}.columns names {events.subject!r}, which is events.subject: an id is not compared")
    return events


@dataclass(frozen=True, eq=False)
class Sequences:
    """One table: the flat row of each subject, and how many events each has, both in the order of the identifiers."""

    flat: pd.DataFrame
    lengths: Ints
    columns: tuple[str, ...]
    """The events' columns; those of `flat` are NAME.1 and NAME.2."""

    @property
    def pairs(self) -> pd.DataFrame:
        """The rows of subjects that have two events."""
        return self.flat[self.lengths > 1].reset_index(drop=True)


def read_sequences(frame: pd.DataFrame, columns: pd.DataFrame, events: Events, seed: int, where: str) -> Sequences:
    """Flatten events; `columns` has the typed cells to compare, `frame` the identifiers and the order of the same rows."""
    import pandas as pd

    for column in events.columns:
        missing = int(frame[column].isna().sum())
        if missing:
            raise InputError(f"{where}: column {column!r} must be known in every event; it is missing in {missing}")
    subject = frame[events.subject].map(format_label).reset_index(drop=True)
    keys: dict[str, pd.Series[Any]] = {_SUBJECT: subject}
    if events.order is not None:
        keys[_ORDER] = pd.Series(_rank(frame[events.order].reset_index(drop=True), events.order, where))
    table = pd.concat([columns.reset_index(drop=True), pd.DataFrame(keys)], axis=1)
    order = _ORDER if events.order is not None else None
    flat = flatten_events(table, subject=_SUBJECT, order=order, seed=seed)
    compared = [f"{name}.{step}" for step in (1, 2) for name in columns.columns]
    lengths = np.unique(subject.to_numpy(object), return_counts=True)[1].astype(np.int64)
    return Sequences(flat[compared], lengths, tuple(columns.columns))


_SUBJECT, _ORDER = "\0subject", "\0order"  # no column of a table has these names


def _rank(cells: pd.Series[Any], name: str, where: str) -> Ints:
    """Return (n,) ranks of numbers or dates, equal ones equal; text is read as numbers or ISO dates."""
    if cells.map(lambda cell: isinstance(cell, str)).any():
        cells = parse_text(cells.astype(object), f"{where}: column {name!r}")
    (column,) = align({where: cells.to_frame(name)}, kinds={name: "numeric"})
    return np.unique(column.cells[0], return_inverse=True)[1].ravel()


@dataclass(frozen=True)
class Coherence:
    """How far pairs (first, second) of subsequent events are apart in one column.

    `tvd` is the distance between the original's and the synthetic pairs; `expected` is that of a table drawn anew from the
    same population; `unrelated` is that between the original's pairs and pairs with the same first events and the same second
    events, but independent of each other.
    """

    tvd: float
    expected: float
    unrelated: float


@dataclass(frozen=True, eq=False)
class SequenceScores:
    """Lengths of sequences, and the coherence of each column; none where fewer than ten subjects have two events."""

    length: Score
    expected_length: Score
    mean_lengths: tuple[float, float]
    coherence: Mapping[str, Coherence]

    def document(self) -> dict[str, Any]:
        """What joins the object in measures.json."""
        names = ("tvd", "expected", "unrelated")
        scores = [[getattr(score, name) for name in names] for score in self.coherence.values()]
        averages = np.mean(scores, axis=0).tolist() if scores else [None] * len(names)
        return {
            "length_tvd": self.length.tvd,
            "length_expected": self.expected_length.tvd,
            "length_mean": list(self.mean_lengths),
            **{f"coherence_{name}": average for name, average in zip(names, averages, strict=True)},
            "coherence_by_column": {name: asdict(score) for name, score in self.coherence.items()},
        }


def compare_sequences(original: Sequences, synthetic: Sequences, kinds: Mapping[str, str], bins: int) -> SequenceScores:
    """Compare lengths and pairs of subsequent events; `kinds` are those of the flat columns."""
    import pandas as pd

    before, after = (pd.DataFrame({"events": side.lengths}) for side in (original, synthetic))
    length = accuracy(before, after, bins, 1, splits=1)
    first, second = original.pairs, synthetic.pairs
    enough = min(len(first), len(second)) >= MIN_DISCLOSED_COUNT
    return SequenceScores(
        length=mean(length.scores),
        expected_length=length.expected,
        mean_lengths=(float(original.lengths.mean()), float(synthetic.lengths.mean())),
        coherence={name: _compare_pairs(first, second, name, kinds[f"{name}.1"], bins) for name in original.columns if enough},
    )


def _compare_pairs(first: pd.DataFrame, second: pd.DataFrame, name: str, kind: str, bins: int) -> Coherence:
    columns = [f"{name}.1", f"{name}.2"]
    kinds = dict.fromkeys(columns, kind)
    score = accuracy(first, second, bins, 2, columns=columns, kinds=kinds, splits=1)
    codes = [put_in_buckets(column, bins).codes[0] for column in align({"original": first}, columns, kinds)]
    return Coherence(score.tvd, score.expected.tvd, distance_to_unrelated(codes[0], codes[1]))


def distance_to_unrelated(first: Codes, second: Codes) -> float:
    """Return the TVD between the shares of pairs of codes (n,), (n,) and the products of their own shares."""
    counts = np.zeros((int(first.max()) + 1, int(second.max()) + 1), np.int64)
    np.add.at(counts, (first, second), 1)
    gaps = np.abs(len(first) * counts - np.outer(counts.sum(axis=1), counts.sum(axis=0)))
    return float(gaps.sum() / (2 * len(first) ** 2))
