"""`dit risk`, `dit run` with each measure and `dit sanitize` on one large table: time, and the memory of every process.

python benchmarks/everything.py [--rows N] [--commands NAME ...] [--code FOLDER ...]
The table is the jittered one of rows.py. Each FOLDER of --code is a tree of this project; they take turns, and must print and
write the same. "audit" is `dit run` without a measure, which the other runs contain. Synthetic records and the holdout are
drawn like the table. A first round on 20,000 rows compiles, and is not counted.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from million import QI, ROOT, SECRET, config, measure, read_adult
from rows import Table, write_table

COLUMNS = {name: "numeric" if name in ("age", "hours-per-week") else "categorical" for name in QI}
KEYS = ["age", "education", "native-country"]
MEASURES: dict[str, dict[str, Any]] = {
    "rate": {"name": "discrimination", "target": SECRET, "keys": KEYS},
    "semantic rate": {
        "name": "discrimination",
        "target": "education",
        "keys": ["age", "marital-status"],
        "semantic": {"hierarchy": "kassem_adult_education.csv", "level": 1},
    },
    "rate of persons": {"name": "discrimination", "keys": KEYS},
    "identity": {"name": "discrimination", "attack": "identity"},
    "homogeneity": {"name": "discrimination", "attack": "homogeneity"},
    "skewness": {"name": "discrimination", "attack": "skewness"},
    "accuracy": {"name": "accuracy", "synthetic": "synthetic.parquet", "columns": COLUMNS},
    "closeness": {
        "name": "closeness",
        "synthetic": "synthetic.parquet",
        "holdout": "holdout.parquet",
        "columns": COLUMNS,
    },
    "utility": {"name": "utility"},
    "reidentification": {"name": "reidentification"},
}
SANITIZE = {"sanitize CSV": "release.csv", "sanitize Parquet": "release.parquet"}
COMMANDS = ("audit", "risk", *MEASURES, *SANITIZE)
CONFIG = "everything.json"


def write_others(data: Path, folder: Path, rows: int) -> None:
    """Write synthetic records and a holdout: further draws from what the table is drawn from."""
    adult = read_adult(data)
    for number, name in enumerate(("synthetic", "holdout")):
        rng = np.random.default_rng((2, number))
        frame = adult.iloc[rng.integers(0, len(adult), rows)].reset_index(drop=True)
        for column, kind in COLUMNS.items():
            if kind == "numeric":
                frame[column] = frame[column] + np.rint(rng.normal(0, 1.3, rows)).astype(np.int64)
        frame.to_parquet(folder / f"{name}.parquet", index=False)


def arguments(name: str) -> list[str]:
    """What follows `dit` on the command line."""
    if name == "risk":
        return ["risk", CONFIG, "--json"]
    if name in SANITIZE:
        return ["sanitize", CONFIG, "--test", "mondrian-k5", "--to", f"out/{SANITIZE[name]}", "--columns", "drop"]
    return ["run", CONFIG, "--out", "out"]


def digest(name: str, folder: Path) -> str:
    """Fingerprint what a command printed or wrote, where that does not depend on the tree."""
    if name == "risk":
        content = (folder / "output.txt").read_bytes()
    elif name in SANITIZE:
        content = (folder / "out" / SANITIZE[name]).read_bytes()
    else:
        content = b"".join(path.read_bytes() for path in sorted(folder.glob("out/*/measures.json")))
    return hashlib.sha256(content).hexdigest()


def run_one(name: str, folder: Path, code: Path, document: Mapping[str, Any]) -> tuple[dict[str, float], str]:
    """Run a command in a tree; return what it took, and a digest of its result."""
    measures = [MEASURES[name]] if name in MEASURES else []
    (folder / CONFIG).write_text(json.dumps({**document, "measures": measures}))
    try:
        took = measure([sys.executable, "-m", "dit_dask", *arguments(name)], folder, code)
        return took, digest(name, folder)
    finally:
        shutil.rmtree(folder / "out", ignore_errors=True)


def main() -> None:
    """Print a line for each command and tree, as soon as it is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = Path(os.environ.get("DIT_DATA") or ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=data, help="the folder with adult.csv and hierarchies/ (DIT_DATA)")
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--others", type=int, default=200_000, help="synthetic records, and as many of the holdout")
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("--code", type=Path, nargs="+", default=[ROOT])
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # tables and runs are removed
    data, trees = options.data.absolute(), [code.absolute() for code in options.code]
    differing = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(data / "hierarchies" / "kassem_adult_education.csv", folder)
        for rows, others in ((20_000, 20_000), (options.rows, options.others)):
            write_table(data, Table(rows), folder / "million.parquet")
            write_others(data, folder, others)
            for command in options.commands:
                results = {tree: run_one(command, folder, tree, config(data)) for tree in trees}
                if len({found for _, found in results.values()}) > 1:
                    differing.append(f"{command} of {rows:,} rows")
                for tree, (took, _) in results.items() if rows == options.rows else ():
                    figures = " | ".join(f"{figure:,.1f}" for figure in took.values())
                    load = os.getloadavg()[0]
                    if (command, tree) == (options.commands[0], trees[0]):
                        print(f"| {rows:,} rows | tree | {' | '.join(took)} | load |\n|---|{'---|' * (len(took) + 2)}")
                    print(f"| {command} | {tree} | {figures} | {load:.1f} |", flush=True)
    if differing:
        sys.exit(f"the trees have different results: {', '.join(differing)}")


if __name__ == "__main__":
    main()
