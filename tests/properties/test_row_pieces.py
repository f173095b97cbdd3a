"""Rows in pieces that are kept elsewhere: whatever the cut, they are read, chosen, numbered and digested as one array is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dit_dask.inputs.collapsed import collapse_blocks, merge
from dit_dask.inputs.local_pieces import LocalPieces, keep_rows
from dit_dask.storage import scratch
from dit_dask.values import arrays, pieces
from dit_dask.values.arrays import RowNumbers, join_numbers, stretch_of
from dit_dask.values.pieces import (
    NUMBER,
    ROW,
    PieceColumn,
    RowPiece,
    choose_pieces,
    count_numbers,
    cut_piece,
    figures_of,
    join_pieces,
)
from tests.audits import checked
from tests.properties.test_collapsed_rows import coded

LABELS = {"quasi_identifiers": {"x": {"kind": "categorical"}}, "sensitive": "s"}
BLOCKS = st.sampled_from([1, 2, 5, 1000])


@dataclass(frozen=True, eq=False)
class DistantPieces:
    """Pieces of this process that nothing takes for local ones."""

    kept: LocalPieces

    @property
    def sizes(self) -> Sequence[int]:
        return self.kept.sizes

    @property
    def handles(self) -> Sequence[RowPiece]:
        return self.kept.handles

    def convert(self, function: Callable[..., RowPiece], arguments: Sequence[tuple[Any, ...]]) -> DistantPieces:
        return DistantPieces(self.kept.convert(function, arguments))

    def collect(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...] | None]) -> list[Any]:
        return self.kept.collect(function, arguments)

    def join(self, others: Sequence[DistantPieces]) -> DistantPieces:
        return DistantPieces(self.kept.join([other.kept for other in others]))


@st.composite
def cuts(draw: st.DrawFn, size: int) -> list[slice]:
    """Consecutive stretches of so many rows, some of them empty."""
    edges = sorted(draw(st.lists(st.integers(0, size), max_size=6)))
    return [slice(*pair) for pair in zip([0, *edges], [*edges, size], strict=True)]


@st.composite
def columns(draw: st.DrawFn) -> tuple[PieceColumn, np.ndarray, np.ndarray]:
    """Pieces, and the numbers and positions that they have together."""
    numbers = np.array(draw(st.lists(st.integers(0, 6), min_size=1, max_size=30)), np.int32)
    row = (
        np.arange(len(numbers))
        if draw(st.booleans())
        else np.cumsum(draw(st.lists(st.integers(1, 3), min_size=len(numbers), max_size=len(numbers))))
    )
    positions: Any = RowNumbers(len(numbers)) if (row == np.arange(len(numbers))).all() else row
    made = [RowPiece(numbers[cut], stretch_of(positions, cut)) for cut in draw(cuts(len(numbers)))]
    return PieceColumn(DistantPieces(LocalPieces(tuple(made))), NUMBER, 7), numbers, row


@given(st.data())
def test_a_column_of_pieces_reads_as_an_array_of_it(data: st.DataObject) -> None:
    index, numbers, row = data.draw(columns())
    size, codes = len(numbers), np.array(data.draw(st.permutations(range(7))))
    ends = st.none() | st.integers(-35, 35)
    mask = st.lists(st.booleans(), min_size=size, max_size=size)
    found = [(index, numbers), (replace(index, column=ROW), row), (index.recode(codes, 7), codes[numbers])]
    found.append((index.recode(codes, 7).recode(codes, 7), codes[codes[numbers]]))
    for chosen in (
        slice(data.draw(ends), data.draw(ends), data.draw(st.sampled_from([None, 1, 2, -1, -3]))),
        np.array(data.draw(st.lists(st.integers(0, size - 1), max_size=8)), np.int64),
        np.array(data.draw(mask), bool),
        data.draw(st.integers(0, size - 1)),
    ):
        for column, expected in found:
            np.testing.assert_array_equal(column[chosen], expected[chosen])
    assert len(index) == size
    for column, expected in found:
        np.testing.assert_array_equal(np.asarray(column), expected)
    for outside in (size, -1):
        with pytest.raises(IndexError, match="below"):
            index[outside]


@given(st.data())
def test_what_a_task_gets_of_some_rows_are_these_rows(data: st.DataObject) -> None:
    index, numbers, row = data.draw(columns())
    start = data.draw(st.integers(0, len(numbers) - 1))
    rows = slice(start, data.draw(st.integers(start + 1, len(numbers))))
    for where, positions in ((index, replace(index, column=ROW)), (numbers, row)):
        handles, spans = choose_pieces(where, positions, rows)
        found = join_pieces([cut_piece(handle, span) for handle, span in zip(handles, spans, strict=True)])
        np.testing.assert_array_equal(found.number, numbers[rows])
        np.testing.assert_array_equal(np.asarray(found.row), row[rows])
    assert all(span.start < span.stop for span in index.spans(0, len(numbers)) for span in span[1:])


@given(st.data())
def test_first_rows_and_digest_do_not_depend_on_the_cut(data: st.DataObject) -> None:
    index, numbers, _ = data.draw(columns())
    codes = np.array(data.draw(st.lists(st.integers(0, 3), min_size=7, max_size=7)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "HASHED_ROWS", data.draw(st.sampled_from([1, 3, 8, 100])))
        patch.setattr(arrays, "BLOCK_ROWS", data.draw(BLOCKS))
        width = pieces.HASHED_ROWS
        found, whole = index.figures, figures_of(numbers, 7)
        content = hashlib.sha256()
        for block in range(0, len(numbers) - len(numbers) % width, width):
            content.update(hashlib.sha256(numbers[block : block + width].tobytes()).digest())
        content.update(hashlib.sha256(numbers[len(numbers) - len(numbers) % width :].tobytes()).digest())
        recoded = figures_of(index.recode(codes, 4), 4)
    assert found.digest == whole.digest == content.digest()
    listed = numbers.tolist()
    expected = [listed.index(number) if number in listed else len(listed) for number in range(7)]
    assert found.first.tolist() == whole.first.tolist() == expected
    assert recoded.first.tolist() == figures_of(codes[numbers], 4).first.tolist()
    changed = numbers.copy()
    place = data.draw(st.integers(0, len(numbers) - 1))
    changed[place] += 1
    assert figures_of(changed, 8).digest != figures_of(numbers, 7).digest


@given(st.data())
def test_rows_that_are_kept_are_those_that_an_array_gives(data: st.DataObject) -> None:
    index, _, _ = data.draw(columns())
    (*_, piece) = index.pieces.handles
    own, rows = piece.number, np.asarray(piece.row)
    codes = np.array(data.draw(st.lists(st.integers(-1, 9), min_size=7, max_size=7)), np.int32)
    chosen = np.array(sorted(data.draw(st.sets(st.integers(0, max(0, len(piece) - 1)), max_size=len(piece)))), np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "BLOCK_ROWS", data.draw(BLOCKS))
        patch.setattr(scratch, "IN_MEMORY_BYTES", data.draw(st.sampled_from([1, 2**25])))
        kept, taken, same = keep_rows(piece, codes, 5), keep_rows(piece, None, 2, chosen), keep_rows(piece, abs(codes), 0)
        counted = count_numbers(piece)
    inside = codes[own] >= 0
    np.testing.assert_array_equal(kept.number, codes[own][inside])
    np.testing.assert_array_equal(np.asarray(kept.row), rows[inside] + 5)
    np.testing.assert_array_equal(taken.number, own[chosen])
    np.testing.assert_array_equal(np.asarray(taken.row), rows[chosen] + 2)
    np.testing.assert_array_equal(same.number, abs(codes)[own])
    np.testing.assert_array_equal(np.asarray(same.row), rows)
    np.testing.assert_array_equal(np.repeat(*counted), np.sort(own))


@settings(max_examples=60)
@given(st.data())
def test_rows_that_stay_elsewhere_are_coded_as_those_of_one_array(data: st.DataObject) -> None:
    size = data.draw(st.integers(4, 30))
    cells = ["a", "b", *data.draw(st.lists(st.sampled_from(["a", "b", "?", None]), min_size=size - 2, max_size=size - 2))]
    secret = ["u", "v", *data.draw(st.lists(st.sampled_from(["u", "v"]), min_size=size - 2, max_size=size - 2))]
    people = ["p", "q", *data.draw(st.lists(st.sampled_from("pqrst"), min_size=size - 2, max_size=size - 2))]
    table = pa.table({"x": pa.array(cells, pa.string()), "s": pa.array(secret), "id": pa.array(people)})
    options: dict[str, Any] = {"missing": ["?"], "missing_as": data.draw(st.sampled_from(["drop", "category"]))}
    usable = size if options["missing_as"] == "category" else sum(cell in ("a", "b") for cell in cells)
    options |= data.draw(st.sampled_from([{}, {"limit": 3}, {"sample": {"rows": min(3, usable), "seed": 3}}]))
    schema = LABELS | data.draw(st.sampled_from([{}, {"subject": "id"}]))
    names = ["x", "s", *([schema["subject"]] if "subject" in schema else [])]
    config = checked(schema, data={"source": "frame", **options})
    read = merge([collapse_blocks(table.slice(cut.start, cut.stop - cut.start), names) for cut in data.draw(cuts(size))], "t")
    here = coded(read, config)
    there = coded(replace(read, pieces=DistantPieces(read.pieces)), config)
    if isinstance(here, str) or isinstance(there, str):
        assert here == there
        return
    assert isinstance(there.index, PieceColumn)
    assert not isinstance(here.index, PieceColumn)
    np.testing.assert_array_equal(np.asarray(there.index), here.index)
    np.testing.assert_array_equal(np.asarray(there.source_row), np.asarray(here.source_row))
    assert (there.digest(), there.first_rows.tolist()) == (here.digest(), here.first_rows.tolist())
    assert (there.used, there.dropped, there.table.persons) == (here.used, here.dropped, here.table.persons)
    people_kept = np.array(people)[np.asarray(here.source_row)]
    assert there.table.persons == (len(set(people_kept)) if "subject" in schema else here.used)
    own = np.asarray(there.source_row)
    shown = np.array(there.table.schema.sensitive.levels)[there.table.secret[np.asarray(there.index)]]
    assert shown.tolist() == np.array(secret)[own].tolist()


def test_positions_that_do_not_follow_each_other_are_no_numbers() -> None:
    assert join_numbers([RowNumbers(3), RowNumbers(2, 3), RowNumbers(0, 5)]) == RowNumbers(5)
    assert join_numbers([RowNumbers(3), RowNumbers(2, 4)]) is None
    assert join_numbers([RowNumbers(3), np.arange(3, 5)]) is None
    assert join_numbers([]) == RowNumbers(0)
