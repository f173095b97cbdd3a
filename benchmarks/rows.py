"""`dit run` on tables of up to 100,000,000 rows: time, processor seconds, memory of every process, and how they grow.

python benchmarks/rows.py [--tables NAME ...] [--code FOLDER ...] [--compared NAME ...] [--workers N ...]
The first FOLDER of --code audits every table; all of them audit the compared ones, and pandas groups the same columns there.
Tables are resampled from Adult by chunks of 1,000,000 rows, each with a seed of its own: the "jittered" ones have noise in
whole units (about 640,000 distinct records in 20,000,000 rows), in the "continuous" ones nearly every row is distinct. One
table is there at a time, below TMPDIR. A first audit of a small table compiles, and is not counted.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from million import GROUP, NUMERIC, ROOT, are_same, audit, config, measure, print_table, read_adult

CHUNK_ROWS = 1_000_000
JITTER, SPREAD = 1.3, 2.0  # standard deviations of the noise: in whole units, and in thousandths
Took = dict[str, float]


@dataclass(frozen=True)
class Table:
    """A table to be generated."""

    rows: int
    is_jittered: bool = True
    ending: str = "parquet"


TABLES = {
    "jittered-20": Table(20_000_000),
    "jittered-20-csv": Table(20_000_000, ending="csv"),
    "jittered-100": Table(100_000_000),
    "continuous-1": Table(1_000_000, is_jittered=False),
    "continuous-10": Table(10_000_000, is_jittered=False),
}
GROWTH = (("jittered-20", "jittered-100"), ("continuous-1", "continuous-10"))


def chunks(data: Path, table: Table) -> Iterator[pa.Table]:
    """Yield the rows of a table; a longer one begins with those of a shorter one."""
    adult = pa.Table.from_pandas(read_adult(data), preserve_index=False)
    for number, start in enumerate(range(0, table.rows, CHUNK_ROWS)):
        rng = np.random.default_rng((1, number))
        rows = min(CHUNK_ROWS, table.rows - start)
        chunk = adult.take(pa.array(rng.integers(0, len(adult), rows)))
        for name in NUMERIC:
            values = chunk[name].to_numpy()
            if table.is_jittered:
                cells = values + np.rint(rng.normal(0, JITTER, rows)).astype(np.int64)
            else:
                cells = (values + rng.normal(0, SPREAD, rows)).round(3)
            chunk = chunk.set_column(chunk.column_names.index(name), name, pa.array(cells))
        yield chunk


def write_table(data: Path, table: Table, path: Path) -> None:
    """Write a table by chunks; each is a row group of a Parquet file."""
    writers = {"parquet": pyarrow.parquet.ParquetWriter, "csv": pyarrow.csv.CSVWriter}
    content = chunks(data, table)
    first = next(content)
    with writers[table.ending](path, first.schema) as writer:
        writer.write_table(first)
        for chunk in content:
            writer.write_table(chunk)


def program(tree: Path, workers: int | None) -> str:
    """How a row of a table is called."""
    return str(tree) if workers is None else f"{tree}, {workers} workers"


def run_all(options: argparse.Namespace, folder: Path) -> dict[str, dict[str, Took]]:
    """Measure every table; by the names of tables and programs."""
    data, trees = options.data.absolute(), [code.absolute() for code in options.code]
    results: dict[str, dict[str, Took]] = {}
    differing = []
    for name in ("warm-up", *options.tables):
        table = TABLES.get(name, Table(100_000))
        path = folder / f"table.{table.ending}"
        write_table(data, table, path)
        (folder / "million.json").write_text(json.dumps(config(data, path.name)))
        took: dict[str, Took] = {}
        if name in options.compared and table.ending == "parquet":
            took["pandas groupby"] = measure([sys.executable, "-c", GROUP.replace("million", "table")], folder)
        digests: list[dict[str, str]] = []
        for tree in trees if name in ("warm-up", *options.compared) else trees[:1]:
            for workers in options.workers:
                chosen = () if workers is None else ("--workers", str(workers))
                took[program(tree, workers)], digest = audit(folder, tree, 0, *chosen)
                digests.append(digest)
                shutil.rmtree(folder / "runs-0")
        path.unlink()
        if name in TABLES:
            results[name] = took
            print(f"\n## {name}")
            print_table(table.rows, {row: [one] for row, one in took.items()})
        if not are_same(digests):
            differing.append(name)
    if differing:
        sys.exit(f"the trees wrote different records of {', '.join(differing)}")
    return results


def print_ratios(results: dict[str, dict[str, Took]], first: str) -> None:
    """Print what the first program's times are compared with others', and how they grow with the rows."""
    print("\n| compared | wall | processor |\n|---|---|---|")

    def ratios(above: Took, below: Took) -> list[float]:
        return [above[kind] / below[kind] for kind in ("wall", "processor")]

    def show(what: str, figures: list[float]) -> None:
        print(f"| {what} | {' | '.join(f'{figure:.2f}' for figure in figures)} |")

    for name, took in results.items():
        for row, other in took.items():
            if row != first:
                show(f"{name}: {row} / {first}", ratios(other, took[first]))
    if {"jittered-20", "jittered-20-csv"} <= results.keys():
        show("CSV / Parquet", ratios(results["jittered-20-csv"][first], results["jittered-20"][first]))
    for small, large in GROWTH:
        if {small, large} <= results.keys():
            grown = math.log(TABLES[large].rows / TABLES[small].rows)
            times = ratios(results[large][first], results[small][first])
            show(f"exponent from {small} to {large}", [math.log(time) / grown for time in times])


def main() -> None:
    """Print a table for each of the generated ones, then the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = Path(os.environ.get("DIT_DATA") or ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=data, help="the folder with adult.csv and hierarchies/ (DIT_DATA)")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--code", type=Path, nargs="+", default=[ROOT])
    parser.add_argument("--compared", nargs="*", choices=TABLES, default=["jittered-20"])
    parser.add_argument("--workers", type=int, nargs="+", default=[None], help="have so many started, each in a run of its own")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # tables and runs are removed
    with tempfile.TemporaryDirectory() as name:
        results = run_all(options, Path(name))
    print_ratios(results, program(options.code[0].absolute(), options.workers[0]))


if __name__ == "__main__":
    main()
