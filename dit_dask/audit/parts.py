"""Part files: the rows of a stretch of audited positions, as Parquet with a digest of its own content."""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.engines import Influence
from dit_dask.storage.folder import Folder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dit_dask.values.arrays import Ints

COLUMNS = ("record", "multiplicity", "distance", "predicted", "predicted_without")
DIGEST = b"dit_dask.digest"


@dataclass(frozen=True)
class PartFile:
    """A written part: where it is, how many rows it has, and the digest of its bytes."""

    name: str
    rows: int
    digest: str


def part_name(test: str, part: int) -> str:
    """The place of a part inside the run folder."""
    return f"records/{test}/part-{part:05d}.parquet"


def write_part(folder: Folder, name: str, record: Ints, multiplicity: Ints, influence: Influence) -> PartFile:
    """Write one part; the content digest goes into the file's own metadata, so that a resume can trust it.

    A retried task or another run may have been here before: a part that is valid for this plan stays as it is.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    own = (record, multiplicity, influence.distance, influence.predicted, influence.predicted_without)
    arrays: tuple[NDArray[np.generic], ...] = (*own, *influence.estimates.values())
    skipped = np.isnan(influence.distance)  # written as null
    columns = [pa.array(array, mask=None if array is record or array is multiplicity else skipped) for array in arrays]
    table = pa.table(dict(zip((*COLUMNS, *influence.estimates), columns, strict=True)))
    table = table.replace_schema_metadata({DIGEST: _content_digest(arrays).encode()})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    content = buffer.getvalue()
    if not folder.create(name, content):
        found = read_part(folder, name, record, tuple(influence.estimates))
        if found is not None:
            return found[0]
        folder.write(name, content)
    return PartFile(name, len(record), hashlib.sha256(content).hexdigest())


def read_part(
    folder: Folder, name: str, record: Ints, estimates: Sequence[str] | None = None
) -> tuple[PartFile, Influence] | None:
    """Return a part that is whole and holds exactly these records, and these estimates if they are named; else None."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = folder.read(name)
    if content is None:
        return None
    try:
        table = pq.read_table(io.BytesIO(content))
        names = (*COLUMNS, *(name for name in table.column_names if name not in COLUMNS))
        arrays = tuple(_filled(table.column(column)) for column in names)
    except (pa.ArrowException, KeyError, OSError, UnicodeError):
        return None
    written = (table.schema.metadata or {}).get(DIGEST)
    if written != _content_digest(arrays).encode() or not np.array_equal(arrays[0], record):
        return None
    added = dict(zip(names[len(COLUMNS) :], arrays[len(COLUMNS) :], strict=True))
    if estimates is not None and list(added) != list(estimates):  # the digest does not cover the names of columns
        return None
    part = PartFile(name, len(record), hashlib.sha256(content).hexdigest())
    return part, Influence(arrays[2], arrays[3], arrays[4], estimates=added)


def _filled(column: Any) -> NDArray[Any]:
    """What a column held before the values of skipped records became null."""
    import pyarrow as pa

    absent = math.nan if pa.types.is_floating(column.type) else -1
    values: NDArray[Any] = column.fill_null(absent).to_numpy()
    return values


def _content_digest(arrays: tuple[NDArray[np.generic], ...]) -> str:
    content = hashlib.sha256()
    for array in arrays:
        content.update(np.ascontiguousarray(array).tobytes())
    return content.hexdigest()
