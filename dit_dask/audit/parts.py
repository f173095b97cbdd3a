"""Part files: the rows of a stretch of audited positions, as Parquet with a digest of its own content."""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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


@dataclass(frozen=True)
class PartFile:
    """A written part: where it is, how many rows it has, and the digest of its bytes."""

    name: str
    rows: int
    digest: str


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


def write_part(folder: Folder, part: Part) -> PartFile:
    """Write one part; the content digest goes into the file's own metadata, so that a resume can trust it.

    A retried task or another run may have been here before: a part that is valid for this plan stays as it is.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    record, influence = part.record, part.influence
    own = (record, part.row, part.multiplicity, influence.distance, influence.predicted, influence.predicted_without)
    arrays: tuple[NDArray[np.generic], ...] = (*own, *influence.estimates.values())
    skipped = np.isnan(influence.distance)  # written as null
    columns = [pa.array(array, mask=None if place < POSITIONS else skipped) for place, array in enumerate(arrays)]
    table = pa.table(dict(zip((*COLUMNS, *influence.estimates), columns, strict=True)))
    gains = json.dumps({name: tally.document() for name, tally in part.gains.items()}).encode()
    table = table.replace_schema_metadata({DIGEST: _content_digest(arrays, gains).encode(), GAINS: gains})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    content = buffer.getvalue()
    if not folder.create(part.name, content):
        found = read_part(folder, part.name, record, tuple(influence.estimates))
        if found is not None:
            return found[0]
        folder.write(part.name, content)
    return PartFile(part.name, len(record), hashlib.sha256(content).hexdigest())


def read_part(folder: Folder, name: str, record: Ints, added: Sequence[str] | None = None) -> tuple[PartFile, Part] | None:
    """Return a part that is whole and holds exactly these records, and these further columns if they are named; else None."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = folder.read(name)
    if content is None:
        return None
    try:
        table = pq.read_table(io.BytesIO(content))
        names = (*COLUMNS, *(name for name in table.column_names if name not in COLUMNS))
        arrays = tuple(_filled(table.column(column)) for column in names)
        metadata = table.schema.metadata or {}
        gains = metadata[GAINS]
    except (pa.ArrowException, KeyError, OSError, UnicodeError):
        return None
    if metadata.get(DIGEST) != _content_digest(arrays, gains).encode() or not np.array_equal(arrays[0], record):
        return None
    further = dict(zip(names[len(COLUMNS) :], arrays[len(COLUMNS) :], strict=True))
    if added is not None and list(further) != list(added):  # the digest does not cover the names of columns
        return None
    influence = Influence(arrays[3], arrays[4], arrays[5], estimates=further)
    tallies = {adversary: GainTally.read(tally) for adversary, tally in json.loads(gains).items()}
    file = PartFile(name, len(record), hashlib.sha256(content).hexdigest())
    return file, Part(name, record, arrays[1], arrays[2], influence, tallies)


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


def _content_digest(arrays: tuple[NDArray[np.generic], ...], gains: bytes) -> str:
    content = hashlib.sha256(gains)
    for array in arrays:
        content.update(np.ascontiguousarray(array).tobytes())
    return content.hexdigest()
