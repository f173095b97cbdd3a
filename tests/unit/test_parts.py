"""Part files: what is written is read back to the bit, and what was damaged or belongs elsewhere is not read."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dit_dask.audit.parts import COLUMNS, DIGEST, GAINS, Part, part_name, read_part, write_part
from dit_dask.engines import Influence
from dit_dask.engines.gain import GainTally, Shift
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location

NAME = part_name("mondrian-k5", 3)
RECORD = np.array([4, 5, 9, 11])
MULTIPLICITY = np.array([1, 2, 2, 1])
ESTIMATES = {"stderr": np.array([0.1, 0.2, 0.3, 0.4]), "noise": np.array([1.0, 2.0, 3.0, 4.0])}
INFLUENCE = Influence(
    np.array([0.25, 0.1 + 0.2, math.inf, 0.0]),
    np.array([0, 1, 2, 3], np.int32),
    np.array([3, 2, 1, 0], np.int32),
    estimates=ESTIMATES,
)
TALLY = GainTally.of(Shift(np.array([0.25, 0.1]), np.array([0.2, -0.1]), np.array([3, 65], np.uint8)), np.array([1, 4]))
PART = Part(NAME, RECORD, RECORD + 2, MULTIPLICITY, INFLUENCE, {"bernoulli-nb": TALLY})


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(Location(str(tmp_path), {}))


def same(found: Influence, wanted: Influence) -> bool:
    pairs = [(found.distance, wanted.distance), (found.predicted, wanted.predicted)]
    pairs += [(found.predicted_without, wanted.predicted_without)]
    pairs += [(found.estimates[name], wanted.estimates[name]) for name in wanted.estimates]
    return list(found.estimates) == list(wanted.estimates) and all(
        one.dtype == other.dtype and one.tobytes() == other.tobytes() for one, other in pairs
    )


def test_a_part_is_read_back_to_the_bit(folder: Folder) -> None:
    written = write_part(folder, PART)
    content = folder.read(NAME)
    assert content is not None
    assert (written.name, written.rows, written.digest) == (NAME, 4, hashlib.sha256(content).hexdigest())
    found = read_part(folder, NAME, RECORD)
    assert found is not None
    assert found[0] == written
    assert same(found[1].influence, INFLUENCE)
    assert found[1].gains == PART.gains
    table = pq.read_table(io.BytesIO(content))
    assert table.column_names == [*COLUMNS, *ESTIMATES]
    assert table.column("record").to_pylist() == RECORD.tolist()
    assert table.column("row").to_pylist() == (RECORD + 2).tolist()
    assert table.column("multiplicity").to_pylist() == MULTIPLICITY.tolist()


def test_skipped_records_are_null_in_the_file_and_skipped_when_it_is_read(folder: Folder) -> None:
    distance, predicted = INFLUENCE.distance.copy(), INFLUENCE.predicted.copy()
    distance[1], predicted[1] = math.nan, -1
    estimates = {name: np.where(np.isnan(distance), math.nan, value) for name, value in ESTIMATES.items()}
    skipped = Influence(distance, predicted, predicted, estimates=estimates)
    write_part(folder, dataclasses.replace(PART, influence=skipped))
    found = read_part(folder, NAME, RECORD)
    assert found is not None
    assert same(found[1].influence, skipped)
    table = pq.read_table(io.BytesIO(folder.read(NAME) or b""))
    for column in table.column_names:
        nulls = table.column(column).null_count
        assert nulls == (0 if column in ("record", "row", "multiplicity") else 1), column


def test_other_records_or_none_are_not_this_part(folder: Folder) -> None:
    assert read_part(folder, NAME, RECORD) is None
    write_part(folder, PART)
    assert read_part(folder, NAME, RECORD, tuple(ESTIMATES)) is not None
    assert read_part(folder, NAME, RECORD, ("stderr",)) is None
    for others in (RECORD + 1, RECORD[:-1], np.append(RECORD, 12), RECORD[::-1]):
        assert read_part(folder, NAME, others) is None


def test_a_damaged_byte_is_noticed_or_changes_nothing() -> None:
    folder = Folder(Location("memory://damaged-part", {}))
    write_part(folder, PART)
    content = folder.read(NAME)
    assert content is not None
    noticed = 0
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 0x41
        folder.write(NAME, bytes(damaged))
        found = read_part(folder, NAME, RECORD, tuple(ESTIMATES))
        assert found is None or same(found[1].influence, INFLUENCE), place
        noticed += found is None
    assert noticed > len(content) / 4


@pytest.mark.parametrize("keep", [0, 1, 100, -1])
def test_a_truncated_part_is_none(folder: Folder, keep: int) -> None:
    write_part(folder, PART)
    folder.write(NAME, (folder.read(NAME) or b"")[:keep])
    assert read_part(folder, NAME, RECORD) is None


@pytest.mark.parametrize("column", [*COLUMNS[1:], *ESTIMATES])
def test_the_digest_covers_every_column(folder: Folder, column: str) -> None:
    """A valid Parquet file with one altered value and the digest of the original is refused."""
    write_part(folder, PART)
    table = pq.read_table(io.BytesIO(folder.read(NAME) or b""))
    altered = table.column(column).to_pylist()
    altered[-1] += 1
    place = table.column_names.index(column)
    buffer = io.BytesIO()
    pq.write_table(table.set_column(place, column, pa.array(altered, table.schema.field(column).type)), buffer)
    assert DIGEST in pq.read_table(io.BytesIO(buffer.getvalue())).schema.metadata
    folder.write(NAME, buffer.getvalue())
    assert read_part(folder, NAME, RECORD) is None


def test_the_digest_covers_the_tallies_of_gains(folder: Folder) -> None:
    write_part(folder, PART)
    table = pq.read_table(io.BytesIO(folder.read(NAME) or b""))
    altered = dict(table.schema.metadata) | {GAINS: table.schema.metadata[GAINS].replace(b'"3": 1', b'"3": 2')}
    assert altered != table.schema.metadata
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(altered), buffer)
    folder.write(NAME, buffer.getvalue())
    assert read_part(folder, NAME, RECORD) is None


def test_a_part_without_a_digest_or_a_column_is_none(folder: Folder) -> None:
    write_part(folder, PART)
    table = pq.read_table(io.BytesIO(folder.read(NAME) or b""))
    for other in (table.replace_schema_metadata({}), table.drop_columns(["predicted"])):
        buffer = io.BytesIO()
        pq.write_table(other, buffer)
        folder.write(NAME, buffer.getvalue())
        assert read_part(folder, NAME, RECORD) is None


def test_a_valid_part_stays_and_a_damaged_one_is_replaced(folder: Folder) -> None:
    first = write_part(folder, PART)
    other = dataclasses.replace(INFLUENCE, distance=INFLUENCE.distance + 1)
    later = dataclasses.replace(PART, influence=other)
    assert write_part(folder, later) == first  # somebody was first, and valid
    folder.write(NAME, (folder.read(NAME) or b"")[:-20])
    second = write_part(folder, later)
    assert second.digest != first.digest
    found = read_part(folder, NAME, RECORD)
    assert found is not None
    assert same(found[1].influence, other)
