"""The parts of a source: how files are cut, that no cut changes a row, and files that change or cannot be read."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dit_dask.errors import InputError
from dit_dask.inputs import partitions
from dit_dask.inputs.collapsed import CollapsedRows
from dit_dask.inputs.load import load
from dit_dask.inputs.partitions import Partition, PartitionReader, gather_here
from dit_dask.inputs.read import TextRules
from dit_dask.storage.location import Location
from dit_dask.values.table import Rows
from tests.audits import checked

SCHEMA = {"quasi_identifiers": {"x": {"kind": "numeric"}}, "sensitive": "s"}
LABELS = {"quasi_identifiers": {"x": {"kind": "categorical"}}, "sensitive": "s"}


def read(source: Path, schema: dict[str, Any] = SCHEMA, gather: Any = gather_here, **data: Any) -> Rows:
    return load(checked(schema, data={"source": str(source), **data}), gather=gather)


def write_groups(path: Path, groups: Sequence[Sequence[Any]], kind: Any = None) -> Path:
    """Write each list of cells as a row group, with a sensitive column beside it."""
    kind = kind or pa.int64()
    with pq.ParquetWriter(path, pa.schema([("x", kind), ("s", pa.string())])) as writer:
        for cells in groups:
            secret = pa.array([str(number % 2) for number in range(len(cells))], pa.string())
            writer.write_table(pa.table({"x": pa.array(cells, kind), "s": secret}))
    return path


@pytest.mark.parametrize("rows", [1, 3, 100])
@pytest.mark.parametrize("groups", [[[], [1, 2, 3], [], [4, 5]], [[1, 2], [], []], [[], []], []])
def test_empty_row_groups_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: list[list[int]], rows: int) -> None:
    monkeypatch.setattr(partitions, "PARTITION_ROWS", rows)
    path = write_groups(tmp_path / "table.parquet", groups)
    values = [value for group in groups for value in group]
    if not values:
        with pytest.raises(InputError, match="has no rows"):
            read(path)
        return
    found = read(path)
    assert found.table.codes[found.index, 0].tolist() == [value - 1 for value in values]


def test_row_groups_are_put_together_up_to_a_number_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "PARTITION_ROWS", 4)
    path = str(write_groups(tmp_path / "table.parquet", [[1, 2], [3, 4], [5], [6] * 9, [7]]))
    cut: list[Sequence[Partition]] = []

    def gather(reader: PartitionReader, parts: Sequence[Partition]) -> CollapsedRows:
        cut.append(parts)
        return gather_here(reader, parts)

    read(Path(path), gather=gather)
    expected = [((0, 1), 4), ((2,), 1), ((3,), 9), ((4,), 1)]
    assert cut == [[Partition(path, groups, rows) for groups, rows in expected]]


def test_integers_may_have_many_widths_in_more_files_than_are_merged_at_once(tmp_path: Path) -> None:
    kinds = [pa.int32(), *[pa.int64()] * 9, pa.uint64()]
    for number, kind in enumerate(kinds):
        write_groups(tmp_path / f"{number:02}.parquet", [[number, 50]], kind)
    found = read(tmp_path / "*.parquet")
    assert np.array(found.table.schema.quasi_identifiers[0].levels)[found.table.codes[found.index, 0]].tolist() == [
        value for number in range(len(kinds)) for value in (number, 50)
    ]


def test_files_of_other_types_are_refused_and_those_without_a_value_have_no_type(tmp_path: Path) -> None:
    write_groups(tmp_path / "0.parquet", [[1, 2, 3]])
    write_groups(tmp_path / "1.parquet", [[None, None]], pa.string())
    assert (read(tmp_path / "*.parquet").used, read(tmp_path / "*.parquet").dropped) == (3, 2)
    write_groups(tmp_path / "2.parquet", [[decimal.Decimal("1.5")]], pa.decimal128(5, 1))
    with pytest.raises(InputError, match=r"the column 'x' is int64 and object in different files"):
        read(tmp_path / "*.parquet")


def test_zero_is_one_label_whatever_its_sign_and_whichever_row_comes_first(tmp_path: Path) -> None:
    for name, cells in (("a", [0.0, -0.0, 1.5]), ("b", [-0.0, 0.0, 1.5])):
        found = read(write_groups(tmp_path / f"{name}.parquet", [cells], pa.float64()), LABELS)
        assert found.table.schema.quasi_identifiers[0].levels == ("0.0", "1.5")
        assert found.table.codes[found.index, 0].tolist() == [0, 0, 1]


def test_a_sample_of_one_row_is_refused(tmp_path: Path) -> None:
    path = write_groups(tmp_path / "table.parquet", [[1, 2, 3]])
    with pytest.raises(InputError, match="at least 2 complete rows are needed to remove one; got 1"):
        read(path, sample={"rows": 1, "seed": 0})


@pytest.mark.parametrize("change", ["longer", "shorter", "not there", "not Parquet"])
def test_a_file_that_changes_while_it_is_read_is_named_in_one_line(tmp_path: Path, change: str) -> None:
    path = write_groups(tmp_path / "table.parquet", [[1, 2, 3]])
    other = write_groups(tmp_path / "other.parquet", [list(range(5000))]).read_bytes()

    def gather(reader: PartitionReader, parts: Sequence[Partition]) -> CollapsedRows:
        if change == "not there":
            path.unlink()
        else:
            path.write_bytes({"longer": other, "shorter": path.read_bytes()[:-9], "not Parquet": b"PAR1"}[change])
        return gather_here(reader, parts)

    with pytest.raises(InputError) as caught:
        read(path, gather=gather)
    assert str(caught.value) == "data.source: table.parquet changed while it was read; run the audit again"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    write_groups(tmp_path / "0.parquet", [[1, 2]])
    (tmp_path / "1.parquet").write_bytes(b"PAR1 this is no table PAR1")
    with pytest.raises(InputError, match=r"data.source: cannot read 1.parquet: ") as caught:
        read(tmp_path / "*.parquet")
    assert "\n" not in str(caught.value)


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves a folder, whatever stands behind the question mark."""

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_web_address_with_a_query_is_read_by_the_name_of_its_file(tmp_path: Path, ending: str) -> None:
    path = write_groups(tmp_path / "table.parquet", [[1, 2], [3, 4]])
    pq.read_table(path).to_pandas().to_csv(tmp_path / "table.csv", index=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(tmp_path)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/table.{ending}?token=0123"
        found = load(checked(SCHEMA, data={"source": url}))
    finally:
        server.shutdown()
        server.server_close()
    assert found.table.codes[found.index, 0].tolist() == [0, 1, 2, 3]


def test_what_a_log_shows_of_a_part_has_no_token_and_no_credentials() -> None:
    location = Location("https://host/table.parquet?token=canary", {"key": "canary"})
    reader = PartitionReader(location, ("x",), TextRules())
    assert "canary" not in repr((Partition("host/table.parquet?token=canary", (0,), 3), reader, reader.read))
