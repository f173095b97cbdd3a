"""Starting `dit` as users do, and reading what it left."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd

DIT = [sys.executable, "-m", "dit_dask"]


def dit(*arguments: object, timeout: float = 240, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [*DIT, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, env=os.environ | environment, check=False
    )


def rows(folder: Path, test: str) -> pd.DataFrame:
    """All rows of a test, in the order of its parts."""
    parts = sorted((folder / "records" / test).glob("part-*.parquet"))
    return pd.concat([pd.read_parquet(io.BytesIO(part.read_bytes())) for part in parts], ignore_index=True)


def summary(folder: Path) -> list[dict[str, Any]]:
    """summary.json without the seconds, which may differ."""
    entries = json.loads((folder / "summary.json").read_text())
    return [{key: value for key, value in entry.items() if key != "seconds"} for entry in entries]


def assert_same(one: Path, other: Path) -> None:
    """Two runs of one audit agree in every row and every figure."""
    assert summary(one) == summary(other)
    for entry in summary(one):
        pd.testing.assert_frame_equal(rows(one, entry["test"]), rows(other, entry["test"]), check_exact=True)
    left, right = (pd.read_parquet(folder / "distributions.parquet") for folder in (one, other))
    pd.testing.assert_frame_equal(left, right, check_exact=True)
