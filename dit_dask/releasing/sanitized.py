"""A sanitised table: which rows of the source it holds, and what it publishes in each column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask import seeds
from dit_dask.audit.test import Test
from dit_dask.engines import NoisyCounts
from dit_dask.engines.controls import RAW
from dit_dask.errors import InputError
from dit_dask.measures.discrimination.published import descend_all, find_members
from dit_dask.releasing.labels import LabelledColumn, label_bins, label_values
from dit_dask.values.arrays import RowNumbers
from dit_dask.values.hierarchy import ROOT
from dit_dask.values.release import Release
from dit_dask.values.table import Rows, Table

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.arrays import Bools, Codes, Ints, Positions

COUNT = "count"
BLOCK_ROWS = 65_536


@dataclass(frozen=True, eq=False)
class SanitizedTable:
    """Columns of texts in the order of the source.

    record[n] is the position of each row among the used rows, which are those of the columns; None where rows of the release
    are not known to be rows of the source. `numbers` has columns of numbers. `suppressed` counts used rows that are * in every
    quasi-identifier or not in it.
    """

    columns: Mapping[str, LabelledColumn]
    record: Positions | None
    rows: int
    suppressed: int = 0
    numbers: Mapping[str, Any] = field(default_factory=dict)
    release: Release | None = None

    def frame(self, index: Any = None) -> pd.DataFrame:
        """All rows; `index` has the label of every used row."""
        import pandas as pd

        place = np.arange(self.rows) if self.record is None else np.asarray(self.record)
        cells = {name: np.array(one.labels, object)[one.codes(place)] for name, one in self.columns.items()}
        frame = pd.DataFrame({**cells, **self.numbers})
        return frame if index is None or self.record is None else frame.set_axis(index[place])

    def order(self, seed: int, test: str) -> Codes:
        """A random order of the rows."""
        return seeds.shuffled(seeds.stream(seed, "sanitize", "order", test), self.rows)

    def blocks(self, order: Codes | None, kept: pd.DataFrame | None = None) -> Iterator[Any]:
        """Yield Arrow tables of some rows each; `kept` has further columns of every used row."""
        import pyarrow as pa

        texts = {name: pa.array(one.labels, pa.string()) for name, one in self.columns.items()}
        for start in range(0, self.rows, BLOCK_ROWS):
            place = np.arange(start, min(start + BLOCK_ROWS, self.rows))
            chosen = place if order is None else order[place]
            used = chosen if self.record is None else self.record[chosen]
            columns: dict[str, Any] = {name: texts[name].take(pa.array(one.codes(used))) for name, one in self.columns.items()}
            columns |= {name: pa.array(values[chosen]) for name, values in self.numbers.items()}
            if kept is not None and self.record is not None:
                further = kept.iloc[used]
                columns |= {name: _further(further[name]) for name in kept.columns}
            yield pa.table(columns)


def _further(cells: pd.Series[Any]) -> Any:
    import pandas as pd
    import pyarrow as pa

    is_text = isinstance(cells.dtype, pd.CategoricalDtype) or cells.dtype == object
    values = cells.astype(object) if is_text else cells
    return pa.array(values, pa.string(), from_pandas=True) if is_text else pa.array(values, from_pandas=True)


def sanitize_test(test: Test, rows: Rows) -> SanitizedTable:
    """What a test publishes of the whole table; `rows` are those of the run, with all sensitive attributes."""
    if isinstance(test.procedure, NoisyCounts):
        return _count_table(test, rows.about(test.config.sensitive).table, rows)
    if test.parameters["sanitizer"]["name"] == RAW:
        raise InputError(f"{test.id} publishes the table as it is: there is nothing to sanitise")
    if not test.procedure.publishes_release:
        raise InputError(f"{test.id} publishes no rows, so there is no table of rows to write")
    release = test.procedure.publish(test.rows.table)
    return tabulate(release, test.rows, rows if test.recoded is None else None)


def tabulate(release: Release, own: Rows, every: Rows | None) -> SanitizedTable:
    """Give every row the values of its class; where classes of rows are not known, list the classes by their counts.

    `own` are the rows that were sanitised, `every` has the same rows with all sensitive attributes.
    """
    labels = {
        one.name: _star(label_values(release, place), release.suppressed)
        for place, one in enumerate(release.schema.quasi_identifiers)
    }
    holder = _find_classes(release, own.table)
    if holder is None:
        return _by_counts(release, labels, own.used)
    index: Codes = np.asarray(own.index)
    record: Positions = RowNumbers(own.used)
    if (holder < 0).any():
        record = np.flatnonzero((holder >= 0)[index])
    columns = {name: LabelledColumn(one.code[holder], one.labels, index) for name, one in labels.items()}
    for rows in own.by_secret.values() if every is None else every.by_secret.values():
        place: Codes = np.asarray(rows.index)
        for secret, codes in rows.table.schema.sensitive.codes_of(rows.table.secret):
            columns[secret.name] = LabelledColumn(codes.astype(np.int64), secret.levels, place)
    starred = int(release.counts[release.suppressed].sum())
    return SanitizedTable(columns, record, len(record), own.used - len(record) + starred, release=release)


def _star(column: LabelledColumn, suppressed: Bools) -> LabelledColumn:
    """The mark of suppression in every cell of suppressed classes."""
    if not suppressed.any():
        return column
    return LabelledColumn(np.where(suppressed, len(column.labels), column.code), [*column.labels, ROOT])


def _find_classes(release: Release, table: Table) -> Ints | None:
    """Return (records,): the class of each record, -1 where it is suppressed; None where the release does not tell."""
    if release.tree is not None:
        return descend_all(release.tree, table.codes)
    if table.ids is not None:  # an external sanitizer: rows that look alike may be in different classes
        return None
    members = find_members(release, table)
    if not members.exact or len(np.unique(members.record)) < len(members.record):
        return None
    holder = np.full(table.distinct, -1, np.int64)
    holder[members.record] = members.holder
    inside = holder >= 0
    counts = np.zeros_like(release.counts)
    np.add.at(counts, (holder[inside], table.secret[inside]), table.weights[inside])
    return holder if np.array_equal(counts, release.counts) else None


def _by_counts(release: Release, labels: Mapping[str, LabelledColumn], used: int) -> SanitizedTable:
    holder, secret = np.nonzero(release.counts)
    times = release.counts[holder, secret]
    holder, secret = np.repeat(holder, times), np.repeat(secret, times)
    columns = {name: LabelledColumn(one.code[holder], one.labels) for name, one in labels.items()}
    for one, codes in release.schema.sensitive.codes_of(secret.astype(np.int32)):
        columns[one.name] = LabelledColumn(codes.astype(np.int64), one.levels)
    starred = int(release.counts[release.suppressed].sum())
    return SanitizedTable(columns, None, len(holder), max(0, used - len(holder)) + starred, release=release)


def _count_table(test: Test, original: Table, rows: Rows) -> SanitizedTable:
    """Noisy counts: one row for each tuple of the table in its bins and each value of the sensitive attribute."""
    if not isinstance(test.procedure, NoisyCounts):
        raise TypeError("only noisy counts have a table of counts")
    release = test.procedure.publish_counts(test.rows.table)
    groups, secrets = release.counts.shape
    first = rows.about(test.config.sensitive).first_rows
    after = test.rows.table.codes[np.asarray(test.rows.index)[first]]  # of each original record
    low = release.published.ends
    columns: dict[str, LabelledColumn] = {}
    pairs = zip(release.schema.quasi_identifiers, original.schema.quasi_identifiers, strict=True)
    for place, (binned, attribute) in enumerate(pairs):
        bin_of = np.full(len(attribute.levels), -1, np.int64)
        bin_of[original.codes[:, place]] = after[:, place]
        columns[binned.name] = LabelledColumn(
            np.repeat(low(place)[0].astype(np.int64), secrets), label_bins(binned, attribute, bin_of)
        )
    for one, codes in release.schema.sensitive.codes_of(np.tile(np.arange(secrets, dtype=np.int32), groups)):
        columns[one.name] = LabelledColumn(codes.astype(np.int64), one.levels)
    if COUNT in columns:
        raise InputError(f"a column is called {COUNT!r}, as that of the noisy counts: rename it")
    return SanitizedTable(columns, None, groups * secrets, numbers={COUNT: release.counts.ravel()})
