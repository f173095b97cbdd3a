"""Accuracy in a run: a synthetic table, or every release that consists of records, against the table under audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from dit_dask.config.constraints import Field, Flag, Integer, ListOf, OneOf, Record
from dit_dask.config.registry import Context
from dit_dask.errors import InputError
from dit_dask.measures.base import Entries, MeasureInput, MeasureKind, MeasureResult, Section
from dit_dask.measures.synthetic.accuracy import LIMIT, MOST_WAYS, Draws, compare_columns
from dit_dask.measures.synthetic.buckets import MOST_BINS
from dit_dask.measures.synthetic.sequences import EVENTS, compare_sequences, parse_events
from dit_dask.measures.synthetic.tables import (
    COLUMNS,
    SYNTHETIC,
    InputKey,
    Roles,
    list_columns,
    list_identifiers,
    list_tables,
    parse_roles,
    prepare_tables,
)

NO_RECORDS = "the release publishes sets of values, not records"
ABOUT = (
    "How far the relative frequencies of the synthetic table are from those of the original, averaged over combinations of "
    "columns in buckets: 0 is perfect. A table drawn anew from the same population would score between the expected level and "
    "the level between two halves of the original; a better score comes from staying closer to these very records."
)
ABOUT_SEQUENCES = (
    "How far the numbers of events of a subject are from those of the original, and, in each column, the pairs of two "
    "subsequent events of a subject. A table drawn anew from the same population would score the expected level; a table whose "
    "events have the right values but nothing to do with the event before would score about the level of unrelated ones."
)


@dataclass(frozen=True)
class AccuracyMeasure:
    """The distance of cross-tabulations, over combinations of so many columns."""

    roles: Roles
    bins: int
    ways: tuple[int, ...]
    limit: int
    discriminator: bool

    def find(self, inputs: MeasureInput) -> MeasureResult:
        """Compare all combinations."""
        compared = prepare_tables(InputKey(inputs), self.roles)
        if compared is None:
            return MeasureResult(None, [], 0, {"reason": NO_RECORDS})
        draws = Draws(self.limit, seed=inputs.seed)
        result = compare_columns(compared.align(), self.bins, self.ways, draws, discriminator=self.discriminator)
        by_value = [{"columns": list(columns), **asdict(score)} for columns, score in result.by_combination.items()]
        more = {
            "reason": None,
            "l1d": result.l1d,
            "tvd": result.tvd,
            "hellinger": result.hellinger,
            "expected": asdict(result.expected),
            "noise": asdict(result.noise),
            "by_column": {column: asdict(score) for column, score in result.by_column.items()},
            "by_ways": {str(ways): asdict(score) for ways, score in result.by_ways.items()},
            "unseen": dict(result.unseen),
            "doubts": list(result.doubts),
            "discriminator_auc": None if result.discriminator is None else result.discriminator.auc,
            "discriminator_interval": None if result.discriminator is None else list(result.discriminator.interval),
            "combinations": result.possible,
            "rows": list(result.rows),
            "dropped": compared.dropped,
        }
        if compared.events:
            sides = (compared.events["original"], compared.events["synthetic"])
            found = compare_sequences(*sides, compared.kinds, self.bins)
            more |= {**found.document(), "persons": len(compared.rows)}
        return MeasureResult(result.tvd, by_value, len(compared.synthetic), more)


def _build(parameters: Mapping[str, Any], context: Context) -> AccuracyMeasure:
    where = context.where
    if not 2 <= parameters["bins"] <= MOST_BINS:
        raise InputError(f"{where}.bins must be an integer from 2 to {MOST_BINS}; got {parameters['bins']}")
    sizes = [parameters["ways"]] if isinstance(parameters["ways"], int) else parameters["ways"]
    for ways in sizes:
        if ways > MOST_WAYS:
            raise InputError(f"{where}.ways must be integers from 1 to {MOST_WAYS}; got {ways}")
    sizes_and_limit = (parameters["bins"], tuple(sizes), parameters["limit"])
    roles = replace(parse_roles(parameters, where), events=parse_events(parameters, where))
    return AccuracyMeasure(roles, *sizes_and_limit, parameters["discriminator"])


def _present(entries: Entries) -> list[Section]:
    header = (
        "accuracy",
        "TVD",
        "expected",
        "between halves",
        "by ways",
        "Hellinger",
        "worst column",
        "its TVD",
        "most unseen",
        "discriminator AUC",
        "records",
    )
    rows = []
    for entry in entries:
        if entry.value is None:
            rows.append([entry.id, *[None] * 5, entry.more["reason"], *[None] * 4])
            continue
        more = entry.more
        by_column = {column: float(score["tvd"]) for column, score in more["by_column"].items()}
        worst = max(by_column, key=by_column.__getitem__)
        by_ways = ", ".join(f"{ways}: {score['tvd']:.4f}" for ways, score in more["by_ways"].items())
        levels = (more["tvd"], more["expected"]["tvd"], more["noise"]["tvd"], by_ways, more["hellinger"])
        rows.append([entry.id, *levels, worst, by_column[worst], _describe_unseen(more), _describe_auc(more), entry.records])
    return [Section("Accuracy", ABOUT, header, rows), *_present_sequences(entries)]


def _describe_unseen(more: Mapping[str, Any]) -> str | None:
    """The largest share of labels that the original does not have, and its column."""
    shares = more.get("unseen", {})
    if not shares:
        return None
    column = max(shares, key=shares.__getitem__)
    return f"{column}: {shares[column]:.2%}" if shares[column] else "none"


def _present_sequences(entries: Entries) -> list[Section]:
    rows: list[list[Any]] = []
    for entry in entries:
        if entry.value is None or "length_tvd" not in entry.more:
            continue
        rows.append([entry.id, "number of events", entry.more["length_tvd"], entry.more["length_expected"], None])
        for column, score in entry.more["coherence_by_column"].items():
            rows.append([entry.id, column, *(score[name] for name in ("tvd", "expected", "unrelated"))])
    header = ("accuracy", "of", "TVD", "expected", "if unrelated")
    return [Section("Sequences", ABOUT_SEQUENCES, header, rows)] if rows else []


def _describe_auc(more: Mapping[str, Any]) -> str | None:
    if more.get("discriminator_auc") is None:
        return None
    low, high = more["discriminator_interval"]
    return f"{more['discriminator_auc']:.3f} ({low:.3f} to {high:.3f})"


KIND = MeasureKind(
    Record(
        {
            "synthetic": SYNTHETIC,
            "columns": COLUMNS,
            "events": EVENTS,
            "bins": Field(Integer(2), 10, description="buckets of every column, learned from the original"),
            "ways": Field(
                OneOf([(int, Integer(1)), (list, ListOf(Integer(1), 1))], "an integer, or a list of integers"),
                [1, 2, 3],
                description="how many columns are combined, up to 4; one size or several",
            ),
            "limit": Field(Integer(1), LIMIT, description="combinations of one size; of more a seeded subset is taken"),
            "discriminator": Field(
                Flag(), False, description="also train a classifier to tell the tables apart, and give its AUC"
            ),
        }
    ),
    _build,
    columns=list_columns,
    identifiers=list_identifiers,
    tables=list_tables,
    of_releases=lambda parameters: parameters["synthetic"] is None,
    present=_present,
)
