"""Persons with several rows: a whole run, and what one removal costs by differences and by sanitising again.

python benchmarks/persons.py [rows] [persons]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from dit_dask.audit.grammar import check_config
from dit_dask.inputs.datasets import census
from dit_dask.inputs.load import load
from dit_dask.sanitizers.mondrian import Mondrian
from dit_dask.sanitizers.predicates import Predicates


def make(rows: int, persons: int) -> pd.DataFrame:
    """Census-like rows dealt out to persons at random."""
    rng = np.random.default_rng(0)
    frame = census()
    frame = frame.iloc[rng.integers(0, len(frame), rows)].reset_index(drop=True)
    return frame.assign(person=np.concatenate([np.arange(persons), rng.integers(0, persons, rows - persons)]))


def config_of(frame: pd.DataFrame, folder: Path) -> dict[str, object]:
    """A run at k = 5 with the default panel."""
    frame.to_csv(folder / "people.csv", index=False)
    names = [name for name in frame.columns if name not in ("person", "occupation")]
    kinds = {name: {"kind": "numeric" if frame[name].dtype.kind in "if" else "categorical"} for name in names}
    return {
        "version": 1,
        "data": {"source": str(folder / "people.csv")},
        "schema": {"subject": "person", "quasi_identifiers": kinds, "sensitive": "occupation"},
        "tests": [{"sanitizer": {"name": "mondrian", "k": 5}}],
        "output": str(folder / "runs"),
    }


def main(rows: int, persons: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        document = config_of(make(rows, persons), folder)
        (folder / "audit.yaml").write_text(yaml.safe_dump(document))
        table = load(check_config(document, str(folder))).table
        sanitizer, rng = Mondrian(Predicates(k=5)), np.random.default_rng(0)
        some = np.arange(0, table.distinct, max(1, table.distinct // 50))
        list(sanitizer.leave_one_out(table, some[:2]))
        start = time.perf_counter()
        list(sanitizer.leave_one_out(table, some))
        differences = (time.perf_counter() - start) / len(some)
        start = time.perf_counter()
        for record in some:
            sanitizer.release(table.without(int(record)), rng)
        again = (time.perf_counter() - start) / len(some)
        print(f"a release without a person: {1e3 * differences:.2f} ms by differences, {1e3 * again:.2f} ms again, ", end="")
        print(f"ratio {again / differences:.1f}")
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "dit_dask", "run", str(folder / "audit.yaml")], check=True)
        print(f"dit run, {rows:,} rows of {persons:,} persons: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main(*(int(text) for text in (sys.argv[1:] or ("10000", "3000"))))
