"""Part files: what is written is read back to the bit, and what was damaged or belongs elsewhere is not read."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dit_dask.audit.parts import (
    BLANK,
    COLUMNS,
    DIGEST,
    GAINS,
    Part,
    part_name,
    read_distances,
    read_part,
    read_tallies,
    write_part,
)
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


ADDED = tuple(ESTIMATES)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(Location(str(tmp_path), {}))


def write_and_read(folder: Folder, part: Part) -> bytes:
    """Write a part; return its bytes."""
    write_part(folder, part)
    content = folder.read(part.name)
    assert content is not None
    return content


def rewrite(content: bytes, table: pa.Table, changes: Mapping[bytes, bytes | None] | None = None) -> bytes:
    """Return a file of this table with the metadata of another, but for some changes; None: without that key."""
    kept = {key: value for key, value in pq.read_metadata(io.BytesIO(content)).metadata.items() if key in (DIGEST, GAINS)}
    kept = {key: value for key, value in (kept | dict(changes or {})).items() if value is not None}
    buffer = io.BytesIO()
    with pq.ParquetWriter(buffer, table.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(kept)
    return buffer.getvalue()


def with_own_digest(content: bytes) -> bytes:
    """Return a file with the digest of its own bytes, as whoever writes parts with another program would."""
    digest = pq.read_metadata(io.BytesIO(content)).metadata[DIGEST]
    before, _, after = content.rpartition(digest)
    blank = before + b"0" * 64 + after
    return before + hashlib.sha256(blank).hexdigest().encode() + after


def same(found: Influence, wanted: Influence) -> bool:
    pairs = [(found.distance, wanted.distance), (found.predicted, wanted.predicted)]
    pairs += [(found.predicted_without, wanted.predicted_without)]
    pairs += [(found.estimates[name], wanted.estimates[name]) for name in wanted.estimates]
    return list(found.estimates) == list(wanted.estimates) and all(
        one.dtype == other.dtype and one.tobytes() == other.tobytes() for one, other in pairs
    )


def test_a_part_is_read_back_to_the_bit(folder: Folder) -> None:
    written, other = write_part(folder, PART)
    assert other is None
    content = folder.read(NAME)
    assert content is not None
    assert (written.name, written.rows, written.digest) == (NAME, 4, hashlib.sha256(content).hexdigest())
    found = read_part(folder, NAME, RECORD, ADDED)
    assert found is not None
    assert found[0] == written
    assert same(found[1], INFLUENCE)
    assert read_tallies(folder, written) == PART.gains
    table = pq.read_table(io.BytesIO(content))
    assert table.column_names == [*COLUMNS, *ESTIMATES]
    assert table.column("record").to_pylist() == RECORD.tolist()
    assert table.column("row").to_pylist() == (RECORD + 2).tolist()
    assert table.column("multiplicity").to_pylist() == MULTIPLICITY.tolist()


def test_equal_parts_are_equal_bytes_and_hold_the_digest_of_all_others(folder: Folder) -> None:
    first = write_and_read(folder, PART)
    folder.remove(NAME)
    assert write_and_read(folder, PART) == first
    digest = pq.read_metadata(io.BytesIO(first)).metadata[DIGEST]
    assert first.count(digest) == 1
    assert hashlib.sha256(first.replace(digest, b"0" * 64)).hexdigest().encode() == digest


def test_names_that_look_like_the_place_of_the_digest_do_no_harm(folder: Folder) -> None:
    name = BLANK.decode()
    odd = dataclasses.replace(INFLUENCE, estimates={name: ESTIMATES["noise"]})
    written, _ = write_part(folder, dataclasses.replace(PART, influence=odd, gains={name: TALLY}))
    found = read_part(folder, NAME, RECORD, (name,))
    assert found is not None
    assert same(found[1], odd)
    assert read_tallies(folder, written) == {name: TALLY}


def test_skipped_records_are_null_in_the_file_and_skipped_when_it_is_read(folder: Folder) -> None:
    distance, predicted = INFLUENCE.distance.copy(), INFLUENCE.predicted.copy()
    distance[1], predicted[1] = math.nan, -1
    estimates = {name: np.where(np.isnan(distance), math.nan, value) for name, value in ESTIMATES.items()}
    skipped = Influence(distance, predicted, predicted, estimates=estimates)
    write_part(folder, dataclasses.replace(PART, influence=skipped))
    found = read_part(folder, NAME, RECORD, ADDED)
    assert found is not None
    assert same(found[1], skipped)
    table = pq.read_table(io.BytesIO(folder.read(NAME) or b""))
    for column in table.column_names:
        nulls = table.column(column).null_count
        assert nulls == (0 if column in ("record", "row", "multiplicity") else 1), column


def test_the_rows_of_all_parts_are_read_as_one_table(folder: Folder) -> None:
    later = dataclasses.replace(PART, name=part_name("mondrian-k5", 4), record=RECORD + 20, row=RECORD + 30)
    for part in (later, PART):
        write_part(folder, part)
    found = read_distances(folder, "mondrian-k5")
    assert found.columns.tolist() == [*COLUMNS, *ESTIMATES]
    assert found["record"].tolist() == [*RECORD, *(RECORD + 20)]
    assert found["distance"].tolist() == INFLUENCE.distance.tolist() * 2
    assert found["predicted"].tolist() == INFLUENCE.predicted.tolist() * 2


def test_other_records_or_none_are_not_this_part(folder: Folder) -> None:
    assert read_part(folder, NAME, RECORD, ADDED) is None
    write_part(folder, PART)
    assert read_part(folder, NAME, RECORD, ADDED) is not None
    for added in ((), ("stderr",), ADDED[::-1], (*ADDED, "distance.bernoulli-nb")):
        assert read_part(folder, NAME, RECORD, added) is None
    for others in (RECORD + 1, RECORD[:-1], np.append(RECORD, 12), RECORD[::-1]):
        assert read_part(folder, NAME, others, ADDED) is None


def test_every_damaged_byte_is_noticed() -> None:
    folder = Folder(Location("memory://damaged-part", {}))
    file, _ = write_part(folder, PART)
    content = folder.read(NAME)
    assert content is not None
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 0x41
        folder.write(NAME, bytes(damaged))
        assert read_part(folder, NAME, RECORD, ADDED) is None, place
        assert read_tallies(folder, file) is None, place


@given(st.data())
def test_no_change_of_bytes_is_taken_for_the_part(data: st.DataObject) -> None:
    """Bytes that are replaced, left out or added anywhere, also where the file says how long things are."""
    folder = Folder(Location("memory://changed-part", {}))
    content = write_and_read(folder, PART)
    start = data.draw(st.integers(0, len(content) - 1), label="start")
    stop = data.draw(st.integers(start, min(len(content), start + 80)), label="stop")
    changed = content[:start] + data.draw(st.binary(max_size=80), label="instead") + content[stop:]
    folder.write(NAME, changed)
    assert (read_part(folder, NAME, RECORD, ADDED) is None) == (changed != content)
    folder.remove(NAME)


@pytest.mark.parametrize("keep", [0, 1, 100, -1])
def test_a_truncated_part_is_none(folder: Folder, keep: int) -> None:
    file, _ = write_part(folder, PART)
    folder.write(NAME, (folder.read(NAME) or b"")[:keep])
    assert read_part(folder, NAME, RECORD, ADDED) is None
    assert read_tallies(folder, file) is None


@pytest.mark.parametrize("column", [*COLUMNS[1:], *ESTIMATES])
def test_the_digest_covers_every_column(folder: Folder, column: str) -> None:
    """A valid Parquet file with one altered value and the digest of the original is refused."""
    content = write_and_read(folder, PART)
    table = pq.read_table(io.BytesIO(content))
    altered = table.column(column).to_pylist()
    altered[1] += 1
    place = table.column_names.index(column)
    other = rewrite(content, table.set_column(place, column, pa.array(altered, table.schema.field(column).type)))
    assert pq.read_metadata(io.BytesIO(other)).metadata[DIGEST] == pq.read_metadata(io.BytesIO(content)).metadata[DIGEST]
    folder.write(NAME, other)
    assert read_part(folder, NAME, RECORD, ADDED) is None
    folder.write(NAME, with_own_digest(other))
    found = read_part(folder, NAME, RECORD, ADDED)  # it was refused for its digest, and for nothing else
    assert found is not None
    assert same(found[1], INFLUENCE) == (column in ("row", "multiplicity"))


def test_the_digest_covers_the_tallies_of_gains(folder: Folder) -> None:
    content = write_and_read(folder, PART)
    gains = pq.read_metadata(io.BytesIO(content)).metadata[GAINS]
    altered = gains.replace(b'"3": 1', b'"3": 2')
    assert altered != gains
    other = rewrite(content, pq.read_table(io.BytesIO(content)), {GAINS: altered})
    folder.write(NAME, other)
    assert read_part(folder, NAME, RECORD, ADDED) is None
    folder.write(NAME, with_own_digest(other))
    assert read_part(folder, NAME, RECORD, ADDED) is not None


@pytest.mark.parametrize("digest", [None, b"", b"0", BLANK, BLANK[1:], b"f" * 64])
def test_a_part_without_its_digest_is_none(folder: Folder, digest: bytes | None) -> None:
    content = write_and_read(folder, PART)
    folder.write(NAME, rewrite(content, pq.read_table(io.BytesIO(content)), {DIGEST: digest}))
    assert read_part(folder, NAME, RECORD, ADDED) is None


@pytest.mark.parametrize("column", [*COLUMNS, *ESTIMATES])
def test_a_part_without_a_column_is_none_also_with_a_digest_of_its_own(folder: Folder, column: str) -> None:
    content = write_and_read(folder, PART)
    folder.write(NAME, with_own_digest(rewrite(content, pq.read_table(io.BytesIO(content)).drop_columns([column]))))
    assert read_part(folder, NAME, RECORD, ADDED) is None


def test_a_valid_part_stays_and_what_it_says_is_handed_back(folder: Folder) -> None:
    first, _ = write_part(folder, PART)
    other = dataclasses.replace(INFLUENCE, distance=INFLUENCE.distance + 1)
    later = dataclasses.replace(PART, influence=other)
    stayed = write_part(folder, later)
    assert stayed.file == first  # somebody was first, and valid
    assert stayed.other is not None
    assert same(stayed.other, INFLUENCE)
    again = write_part(folder, PART)
    assert (again.file, again.other) == (first, None)  # the same bytes: nothing to learn


def test_a_part_with_other_tallies_alone_is_another_one(folder: Folder) -> None:
    first, _ = write_part(folder, PART)
    stayed = write_part(folder, dataclasses.replace(PART, gains={}))
    assert stayed.file == first
    assert stayed.other is not None
    assert read_tallies(folder, stayed.file) == PART.gains


def test_a_damaged_part_is_replaced(folder: Folder) -> None:
    first, _ = write_part(folder, PART)
    other = dataclasses.replace(INFLUENCE, distance=INFLUENCE.distance + 1)
    folder.write(NAME, (folder.read(NAME) or b"")[:-20])
    second = write_part(folder, dataclasses.replace(PART, influence=other))
    assert second.file.digest != first.digest
    assert second.other is None
    found = read_part(folder, NAME, RECORD, ADDED)
    assert found is not None
    assert same(found[1], other)


def skip(*records: int) -> Part:
    """The part, with some records that could not be tested."""
    distance, predicted = INFLUENCE.distance.copy(), INFLUENCE.predicted.copy()
    distance[list(records)], predicted[list(records)] = math.nan, -1
    return dataclasses.replace(PART, influence=dataclasses.replace(INFLUENCE, distance=distance, predicted=predicted))


@pytest.mark.parametrize(
    ("stored", "later", "is_replaced"),
    [((1,), (), True), ((1, 2), (2,), True), ((1,), (1,), False), ((), (1,), False), ((1,), (1, 2), False)],
)
def test_a_part_that_skips_a_record_is_replaced_by_one_that_does_not(
    folder: Folder, stored: tuple[int, ...], later: tuple[int, ...], is_replaced: bool
) -> None:
    first, _ = write_part(folder, skip(*stored))
    second = write_part(folder, skip(*later))
    assert (second.file != first) == is_replaced
    found = read_part(folder, NAME, RECORD, ADDED)
    assert found is not None
    assert found[0] == second.file
    assert np.flatnonzero(np.isnan(found[1].distance)).tolist() == list(later if is_replaced else stored)


def test_tallies_are_those_of_the_written_bytes_and_of_no_other(folder: Folder) -> None:
    file, _ = write_part(folder, PART)
    folder.remove(NAME)
    assert read_tallies(folder, file) is None
    other, _ = write_part(folder, dataclasses.replace(PART, multiplicity=MULTIPLICITY + 1))
    assert read_tallies(folder, other) == PART.gains
    assert read_tallies(folder, file) is None  # a valid part, and not the one that was written
