"""Rows that are read in blocks and merged in any grouping are the rows of the whole table, read at once."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dit_dask.config.document import Config
from dit_dask.errors import InputError
from dit_dask.inputs import collapsed
from dit_dask.inputs.arrow import to_frame
from dit_dask.inputs.code import code_rows
from dit_dask.inputs.collapsed import CollapsedRows, Merger, collapse_blocks, collapse_frame, merge, number_rows
from dit_dask.storage import scratch
from dit_dask.values import arrays
from dit_dask.values.table import Rows
from tests.audits import checked

DAY = datetime.datetime(2020, 1, 2)
COLUMNS = {
    pa.string(): ["a", "b", "?", ""],
    pa.large_string(): ["1", "2", "03"],
    pa.int8(): [0, 1, 9],
    pa.uint64(): [0, 2**63, 2**64 - 1],
    pa.float64(): [0.0, -0.0, 1.5, float("nan")],
    pa.float32(): [0.1, 2.0],
    pa.bool_(): [True, False],
    pa.date32(): [datetime.date(1999, 12, 31), datetime.date(9999, 12, 31)],
    pa.timestamp("us", "Europe/Paris"): [DAY, DAY.replace(hour=7)],
    pa.timestamp("s"): [DAY, DAY.replace(year=9000)],
    pa.time64("us"): [datetime.time(1, 2), datetime.time(3)],
    pa.decimal128(9, 2): [decimal.Decimal("1.00"), decimal.Decimal("-2.50")],
    pa.binary(): [b"a", b"b"],
    pa.dictionary(pa.int8(), pa.string()): ["x", "y"],
    pa.null(): [None],
}
LABELS = {"quasi_identifiers": {"x": {"kind": "categorical"}}, "sensitive": "s"}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """One to three columns of any type, with empty cells."""
    size = draw(st.integers(0, 25))
    columns = []
    for kind in draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=3)):
        cells = draw(st.lists(st.sampled_from([*COLUMNS[kind], None]), min_size=size, max_size=size))
        columns.append(pa.array(cells, kind))
    return pa.table({f"c{place}": column for place, column in enumerate(columns)})


def cut(draw: st.DrawFn, table: pa.Table) -> list[pa.Table]:
    edges = sorted(draw(st.lists(st.integers(0, len(table)), max_size=6)))
    return [table.slice(start, stop - start) for start, stop in zip([0, *edges], [*edges, len(table)], strict=True)]


def index_of(rows: CollapsedRows) -> Any:
    """The combination of each row."""
    pairs = zip(rows.pieces.handles, rows.maps, strict=True)
    return np.concatenate([piece.number if own is None else own[piece.number] for piece, own in pairs])


def shown(rows: CollapsedRows) -> list[tuple[str, ...]]:
    """The cells of each row, with their types; how many rows each combination has, and its first one, are right."""
    index = index_of(rows)
    assert rows.counts.tolist() == np.bincount(index, minlength=rows.combinations).tolist()
    assert rows.first.tolist() == np.unique(index, return_index=True)[1].tolist()
    columns = []
    for cells, codes in zip(rows.cells, rows.codes, strict=True):
        texts = [*(f"{type(cell).__name__} {cell}" for cell in cells), "nothing"]
        columns.append([texts[code] for code in codes[index]])
    return list(zip(*columns, strict=True))


def merged_in_groups(draw: st.DrawFn, parts: list[CollapsedRows]) -> CollapsedRows:
    while len(parts) > 1:
        start = draw(st.integers(0, len(parts) - 2))
        stop = draw(st.integers(start + 2, len(parts)))
        parts[start:stop] = [merge(parts[start:stop], "test")]
    return parts[0]


@settings(max_examples=60)
@given(st.data())
def test_blocks_merged_in_any_grouping_are_the_rows_of_one_frame(data: st.DataObject) -> None:
    table = data.draw(tables())
    names = table.schema.names
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "BLOCK_ROWS", data.draw(st.sampled_from([1, 4, 1000])))
        patch.setattr(scratch, "IN_MEMORY_BYTES", data.draw(st.sampled_from([1, 2**25])))
        patch.setattr(collapsed, "FAN_IN", data.draw(st.integers(2, 4)))
        patch.setattr(collapsed, "FEWEST_HASHED", data.draw(st.sampled_from([0, 100_000])))
        parts = [collapse_blocks(part, names) for part in cut(data.draw, table)]
        merger = Merger("test", into_one=data.draw(st.booleans()))
        for part in parts:
            merger.add(part)
        expected = shown(collapse_frame(to_frame(_plain(table)), names))
        assert shown(merger.merged()) == shown(merged_in_groups(data.draw, parts)) == expected


def _plain(table: pa.Table) -> pa.Table:
    """The table without dictionaries, as a frame has it."""
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(field.type.value_type))
    return table


def coded(rows: CollapsedRows, config: Config) -> Rows | str:
    """The coded rows, or why they are refused."""
    try:
        return code_rows(rows, config, ())
    except InputError as error:
        return str(error)


@settings(max_examples=40)
@given(st.data())
def test_rows_coded_from_blocks_have_the_digest_of_those_of_a_frame(data: st.DataObject) -> None:
    texts = st.sampled_from(["a", "b", "?", "", None])
    size = data.draw(st.integers(4, 30))
    secret = ["u", "v", *data.draw(st.lists(st.sampled_from(["u", "v"]), min_size=size - 2, max_size=size - 2))]
    cells = ["a", "b", *data.draw(st.lists(texts, min_size=size - 2, max_size=size - 2))]
    table = pa.table({"x": pa.array(cells, pa.string()), "s": pa.array(secret)})
    options: dict[str, Any] = {"missing": ["?"], "missing_as": data.draw(st.sampled_from(["drop", "category"]))}
    options |= data.draw(st.sampled_from([{}, {"limit": 3}, {"sample": {"rows": 2, "seed": 3}}]))
    config = checked(LABELS, data={"source": "frame", **options})
    parts = [collapse_blocks(part, ["x", "s"]) for part in cut(data.draw, table)]
    whole, grouped = collapse_frame(to_frame(table), ["x", "s"]), merged_in_groups(data.draw, parts)
    expected, found = (coded(rows, config) for rows in (whole, grouped))
    if isinstance(expected, str) or isinstance(found, str):
        assert found == expected
        return
    assert found.digest() == expected.digest()
    assert np.asarray(found.source_row).tolist() == np.asarray(expected.source_row).tolist()
    assert found.multiplicity.tolist() == expected.multiplicity.tolist()


def test_integers_of_many_widths_are_merged_in_any_grouping() -> None:
    widths = [pa.int8(), pa.int64(), pa.int64(), pa.uint64(), pa.int32()]
    parts = [collapse_blocks(pa.table({"x": pa.array([number, 7], kind)}), ["x"]) for number, kind in enumerate(widths)]
    early, late = merge([merge(parts[:2], "test"), *parts[2:]], "test"), merge(parts, "test")
    for merged in (early, late):
        assert [int(merged.cells[0][code]) for code in merged.codes[0][index_of(merged)]] == [0, 7, 1, 7, 2, 7, 3, 7, 4, 7]


@given(st.data())
def test_rows_are_numbered_in_the_order_in_which_they_first_appear(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 30))
    largest = st.sampled_from([0, 2, 2**31 - 3])  # three columns of the last are more than a key can hold
    columns = [
        np.array(data.draw(st.lists(st.integers(-1, data.draw(largest)), min_size=size, max_size=size)), np.int32)
        for _ in range(data.draw(st.integers(1, 5)))
    ]
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    distinct = list(dict.fromkeys(rows))
    for fewest in (0, 100_000):
        number = np.empty(size, np.int32)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(collapsed, "FEWEST_HASHED", fewest)
            first = number_rows(columns, number)
        assert number.tolist() == [distinct.index(row) for row in rows]
        assert first.tolist() == [rows.index(row) for row in distinct]


def test_a_table_of_slots_that_grows_numbers_as_sorting_does() -> None:
    rng = np.random.default_rng(5)
    columns = [rng.integers(-1, 10**6, 300_000, dtype=np.int32), rng.integers(-1, 3, 300_000, dtype=np.int32)]
    number = np.empty(300_000, np.int32)
    first = number_rows(columns, number)
    _, expected_first, expected = np.unique(np.column_stack(columns), axis=0, return_index=True, return_inverse=True)
    assert (first == np.sort(expected_first)).all()
    assert (first[number] == expected_first[expected.ravel()]).all()
