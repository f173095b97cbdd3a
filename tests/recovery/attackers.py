"""What attackers do with a run folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


def join_measure(folder: Path, entry: Mapping[str, Any], tolerance: float = 1e-9) -> dict[int, list[str]]:
    """Join a measure's figures of each record with the figures of named values; return the names by record."""
    path = folder / "measures" / f"{entry['id']}.parquet"
    lines = [line for line in entry["by_value"] if line["value"] is not None]
    if not path.exists() or not lines:
        return {}
    figures = np.array([[line["rate"], line["refinement"]] for line in lines])
    names = [line["value"] if isinstance(line["value"], list) else [line["value"]] for line in lines]
    found = {}
    for record, rate, refinement in pd.read_parquet(path)[["record", "rate", "refinement"]].to_numpy():
        matches = np.flatnonzero((np.abs(figures - [rate, refinement]) <= tolerance).all(axis=1))
        if len(matches) == 1:
            found[int(record)] = names[matches[0]]
    return found


def recover_cells(folder: Path, table: pd.DataFrame, tolerance: float = 1e-9) -> int:
    """Count the cells of the table that the joins of all its measures give back."""
    entries = json.loads((folder / "measures.json").read_text())
    recovered = set()
    for entry in entries:
        keys = entry["parameters"].get("keys")
        for record, names in join_measure(folder, entry, tolerance).items() if keys else ():
            recovered |= {
                (record, key) for key, name in zip(keys, names, strict=True) if str(table[key].iloc[record]) == str(name)
            }
    return len(recovered)
