"""Part files: the rows of a stretch of audited positions, as Parquet with a digest of its own content."""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dit_dask.engines import Influence
from dit_dask.engines.gain import GainTally
from dit_dask.storage.folder import Folder

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from dit_dask.values.arrays import Ints

COLUMNS = ("record", "row", "multiplicity", "distance", "predicted", "predicted_without")
POSITIONS = 3  # the first columns say which rows these are; in the others skipped records have null
DIGEST = b"dit_dask.digest"
GAINS = b"dit_dask.gains"
BLANK = b"0" * 64  # stands for the digest in the bytes that it is made of
ENCODING: Mapping[str, Any] = {
    "compression": dict.fromkeys(COLUMNS[:4], "none") | dict.fromkeys(COLUMNS[4:], "zstd"),  # a tenth less is not worth it
    "column_encoding": dict.fromkeys(COLUMNS[:POSITIONS], "DELTA_BINARY_PACKED"),  # they ascend or are small
    "use_dictionary": list(COLUMNS[4:]),  # few different ones; distances have too many for a dictionary to pay
}


@dataclass(frozen=True)
class PartFile:
    """A written part: where it is, how many rows it has, and the digest of its bytes."""

    name: str
    rows: int
    digest: str


class WrittenPart(NamedTuple):
    """A part file, and what it says where another run was first and wrote something else."""

    file: PartFile
    other: Influence | None = None


@dataclass(frozen=True, eq=False)
class Part:
    """The rows of a part, and for each adversary the tally of the records that appear first in this part.

    `record` has their positions among the used rows, `row` those in the source before any row was dropped.
    A record counts there with all its audited rows, in whichever part they are.
    """

    name: str
    record: Ints
    row: Ints
    multiplicity: Ints
    influence: Influence
    gains: Mapping[str, GainTally]


def distance_column(adversary: str) -> str:
    """The column of one adversary's distances, which a test of several has."""
    return f"distance.{adversary}"


def part_name(test: str, part: int) -> str:
    """The place of a part inside the run folder."""
    return f"records/{test}/part-{part:05d}.parquet"


def write_part(folder: Folder, part: Part) -> WrittenPart:
    """Write one part, with a digest of its own bytes in its metadata, so that a resume can trust it.

    A retried task or another run may have been here before: a part that is valid for this plan stays as it is, unless it
    lacks a record that was skipped then and is tested now.
    """
    content, digest = _encode(part)
    own = PartFile(part.name, len(part.record), digest)
    if not folder.create(part.name, content):
        found = read_part(folder, part.name, part.record, tuple(part.influence.estimates))
        if found is not None and not (np.isnan(found[1].distance) & ~np.isnan(part.influence.distance)).any():
            return WrittenPart(found[0], None if found[0] == own else found[1])
        folder.write(part.name, content)
    return WrittenPart(own)


def _encode(part: Part) -> tuple[bytes, str]:
    """The bytes of a part file, and the digest of all of them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    influence = part.influence
    own = (part.record, part.row, part.multiplicity, influence.distance, influence.predicted, influence.predicted_without)
    arrays: tuple[NDArray[np.generic], ...] = (*own, *influence.estimates.values())
    skipped = np.isnan(influence.distance)  # written as null
    nulls = skipped if skipped.any() else None
    columns = [pa.array(array, mask=None if place < POSITIONS else nulls) for place, array in enumerate(arrays)]
    gains = json.dumps({name: tally.document() for name, tally in part.gains.items()}).encode()
    table = pa.table(dict(zip((*COLUMNS, *influence.estimates), columns, strict=True)))
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, store_schema=False, **ENCODING) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({GAINS: gains, DIGEST: BLANK})
    content: bytes = sink.getvalue().to_pybytes()
    place = content.rindex(BLANK)  # the last one: names of columns and adversaries come before it
    before, after = memoryview(content)[:place], content[place + len(BLANK) :]
    whole = hashlib.sha256(before)  # the same for both digests, and nearly all of the file
    own_digest = _digest_of_rest(whole, BLANK, after).encode()
    return b"".join((before, own_digest, after)), _digest_of_rest(whole, own_digest, after)


def _digest_of_rest(begun: hashlib._Hash, *rest: bytes) -> str:
    """Return the digest of what was begun with and of what follows it."""
    whole = begun.copy()
    for content in rest:
        whole.update(content)
    return whole.hexdigest()


def _has_own_digest(content: bytes, digest: bytes) -> bool:
    """Tell whether a digest is that of all other bytes of a file."""
    place = content.rfind(digest) if len(digest) == len(BLANK) else -1
    if place < 0:
        return False
    begun = hashlib.sha256(memoryview(content)[:place])
    return _digest_of_rest(begun, BLANK, content[place + len(BLANK) :]).encode() == digest


def read_tallies(folder: Folder, file: PartFile) -> dict[str, GainTally] | None:
    """Return the tallies that a written part holds; None if the folder does not have the same bytes."""
    import pyarrow.parquet as pq

    content = folder.read(file.name)
    if content is None or hashlib.sha256(content).hexdigest() != file.digest:
        return None
    gains = pq.read_metadata(io.BytesIO(content)).metadata[GAINS]
    return {adversary: GainTally.read(tally) for adversary, tally in json.loads(gains).items()}


def read_part(folder: Folder, name: str, record: Ints, added: Sequence[str]) -> tuple[PartFile, Influence] | None:
    """Return what a part says, if it is whole and has exactly these records and these further columns; else None."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = folder.read(name)
    if content is None:
        return None
    try:
        file = pq.ParquetFile(io.BytesIO(content))
        if not _has_own_digest(content, (file.metadata.metadata or {})[DIGEST]):
            return None
        table = file.read()
    except (pa.ArrowException, KeyError, OSError, UnicodeError):
        return None
    if table.column_names != [*COLUMNS, *added]:
        return None
    columns = {column: _filled(table.column(column)) for column in table.column_names}
    if not np.array_equal(columns["record"], record):
        return None
    estimates = {column: columns[column] for column in added}
    influence = Influence(columns["distance"], columns["predicted"], columns["predicted_without"], estimates=estimates)
    return PartFile(name, len(record), hashlib.sha256(content).hexdigest()), influence


def read_distances(folder: Folder, test: str) -> pd.DataFrame:
    """Read the rows of all parts of a test, in order; none where the folder has no parts."""
    import pandas as pd
    import pyarrow.parquet as pq

    below = f"records/{test}"
    contents = [folder.read(f"{below}/{name}") for name in sorted(folder.names(below))]
    frames = [pq.read_table(io.BytesIO(content)).to_pandas() for content in contents if content is not None]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=list(COLUMNS))


def _filled(column: Any) -> NDArray[Any]:
    """What a column held before the values of skipped records became null."""
    import pyarrow as pa

    absent = math.nan if pa.types.is_floating(column.type) else -1
    values: NDArray[Any] = column.fill_null(absent).to_numpy()
    return values
