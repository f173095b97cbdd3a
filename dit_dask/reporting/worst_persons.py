"""The persons at most risk of each test, from the records of a run, which are personal data."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from dit_dask.audit.summary import TestSummary
from dit_dask.errors import InputError
from dit_dask.storage.folder import Folder

MOST_PERSONS = 10
COLUMNS = ["record", "row", "multiplicity", "distance", "predicted", "predicted_without"]


def read_worst(folder: Folder, summaries: Sequence[TestSummary]) -> dict[str, list[dict[str, Any]]]:
    """Read the rows with the largest distances of each test; equal ones in file order."""
    return {one.test: _worst_of(folder, one.test) for one in summaries if one.is_sanitised or len(summaries) == 1}


def _worst_of(folder: Folder, test: str) -> list[dict[str, Any]]:
    import pandas as pd
    import pyarrow.parquet as pq

    below = f"records/{test}"
    parts = [folder.read(f"{below}/{name}") for name in sorted(folder.names(below))]
    if not parts:
        raise InputError(f"{folder.url} has no records of {test}: name the run folder in output.private")
    frames = [pq.read_table(io.BytesIO(part)).to_pandas() for part in parts if part is not None]
    worst = pd.concat(frames, ignore_index=True).nlargest(MOST_PERSONS, "distance", keep="first")
    adversaries = [name for name in worst if str(name).startswith("distance.")]
    found: list[dict[str, Any]] = []
    for _, row in worst.iterrows():
        by_adversary = {str(name).removeprefix("distance."): float(row[name]) for name in adversaries}
        cells: dict[str, Any] = {name: row[name].item() if hasattr(row[name], "item") else row[name] for name in COLUMNS}
        cells |= {name: int(cells[name]) for name in ("record", "row", "multiplicity")}
        found.append(cells | {"adversary": max(by_adversary, key=by_adversary.__getitem__, default=None)})
    return found
