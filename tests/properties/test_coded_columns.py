"""Texts that become categories while they are read are the same texts, whatever the blocks."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dit_dask import risk
from dit_dask.config.document import Config, check_document
from dit_dask.errors import InputError
from dit_dask.inputs import partitions, read
from dit_dask.inputs.counted import CountedRows
from dit_dask.inputs.load import blank_missing, load_columns

CELLS = st.one_of(
    st.none(), st.sampled_from(["a", "b", "?", ""]), st.text(st.characters(codec="utf-8", exclude_categories=["C"]))
)
ROWS = st.lists(st.tuples(CELLS, CELLS, st.integers(0, 3), st.none() | st.integers(0, 2**60)), min_size=2, max_size=60)
NAMES = ["name", "town", "age", "pay"]


def config_of(folder: str, source: str) -> Config:
    return check_document({"version": 1, "data": {"source": source, "missing": ["?"]}}, folder, needs_schema=False)


@pytest.fixture(params=[7, 65_536], autouse=True)
def block_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Small blocks, so that small tables have several; a block of a text file must hold the longest row."""
    monkeypatch.setattr(partitions, "BLOCK_ROWS", request.param)
    monkeypatch.setattr(read, "BLOCK_BYTES", 4096)
    return int(request.param)


def as_written(frame: pd.DataFrame) -> list[list[Any]]:
    return [[None if pd.isna(cell) else cell for cell in row] for row in frame.astype(object).to_numpy().tolist()]


@settings(max_examples=12)
@given(ROWS, ROWS, st.sampled_from(["parquet", "csv"]))
def test_coded_columns_hold_what_plain_ones_hold(
    first: list[tuple[Any, ...]], second: list[tuple[Any, ...]], kind: str
) -> None:
    with TemporaryDirectory() as folder:
        for number, rows in enumerate((first, second)):
            frame = pd.DataFrame(rows, columns=NAMES).astype({"name": "str", "town": "str", "pay": "Int64"})
            path = Path(folder) / f"{number}.{kind}"
            if kind == "parquet":
                frame.to_parquet(path)
            else:
                frame.to_csv(path, index=False, quoting=1)
        config = config_of(folder, f"*.{kind}")
        plain = blank_missing(read.read_frame(config, None)[0], config.data.missing)
        coded = load_columns(config, [])
        assert as_written(coded) == as_written(plain)
        found, expected = (
            risk.ranking(risk.Search([CountedRows.of(one)], None, ["town"], "category"), 2, 5).document()
            for one in (coded, plain)
        )
        assert found == expected


@pytest.mark.parametrize(
    "content",
    [
        b"name,town\na,b\nc\n",
        "name,town\n\u00e4,b\n".encode() + b"a,b\n" * 300_000 + b"c,\xff\n",
        b'name,town\na,"b\nc,d\ne,f\n',
        b"name,town\n" + b"a,b\n" * 3000 + b"c\n",
    ],
    ids=["too few cells", "not UTF-8 far behind", "an open quote", "too few cells in a later block"],
)
def test_a_bad_file_is_the_same_line_as_without_codes(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "people.csv").write_bytes(content)
    config = config_of(str(tmp_path), "people.csv")
    with pytest.raises(InputError) as plain:
        read.read_frame(config, None)
    with pytest.raises(InputError) as coded:
        load_columns(config, [])
    assert str(coded.value) == str(plain.value)
