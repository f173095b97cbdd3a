"""How long a short run takes, as a multiple of importing its largest packages: both in one loop, so that other work is in both.

Python's bytecode is cached, as it is for an installed package. On a busy machine look at the ratio of processor seconds.

python benchmarks/startup.py                    kernels are compiled before the loop
python benchmarks/startup.py --first-run        the very first run: an empty cache of compiled kernels every time
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

IMPORTS = [sys.executable, "-c", "import numpy, pandas, pyarrow, numba"]
DIT = [sys.executable, "-m", "dit_dask"]
CONFIG = """\
version: 1
name: ten-thousand
data: {source: people.csv}
schema:
  quasi_identifiers:
    age: {kind: numeric}
    education: {kind: categorical, hierarchy: "dit://hierarchies/adult-education.csv"}
    marital-status: {kind: categorical, hierarchy: "dit://hierarchies/adult-marital-status.csv"}
    hours-per-week: {kind: numeric}
    native-country: {kind: categorical, hierarchy: "dit://hierarchies/adult-native-country.csv"}
  sensitive: occupation
tests:
  - sanitizer: {name: mondrian, k: 5}
"""
ROWS = 10_000


def measure(command: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """Run a command and return its seconds on the clock and of the processor."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(folder: Path, *, with_workers: bool) -> dict[str, list[str]]:
    """What is measured; every run is a new one."""
    from dit_dask.inputs.datasets import census

    census(ROWS).to_csv(folder / "people.csv", index=False)
    (folder / "audit.yaml").write_text(CONFIG, "utf-8")
    out = ["--out", str(folder / "runs"), "--quiet"]
    run = [*DIT, "run", str(folder / "audit.yaml"), "--fresh", *out]
    measured = {
        "import numpy, pandas, pyarrow, numba": IMPORTS,
        f"dit run, {ROWS:,} rows": run,
        "dit demo": [*DIT, "demo", *out],
    }
    return measured | ({"dit run with --workers 2": [*run, "--workers", "2"]} if with_workers else {})


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--first-run", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measured = commands(folder, with_workers=not options.first_run)
        bytecode = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        taken: dict[str, list[tuple[float, float]]] = {label: [] for label in measured}
        for turn in range(options.times + 1):  # the first is not counted
            for label, command in measured.items():
                cache = {"NUMBA_CACHE_DIR": str(folder / f"kernels-{turn}-{len(label)}")} if options.first_run else {}
                subprocess.run(["rm", "-rf", str(folder / "runs")], check=True)
                taken[label].append(measure(command, os.environ | bytecode | cache))
    medians = {label: [statistics.median(each) for each in zip(*pairs[1:], strict=True)] for label, pairs in taken.items()}
    base, base_busy = next(iter(medians.values()))
    print(f"{'median of ' + str(options.times):40} {'s':>7} {'ratio':>7} {'CPU s':>7} {'ratio':>7}")
    for label, (seconds, busy) in medians.items():
        print(f"{label:40} {seconds:7.2f} {seconds / base:7.2f} {busy:7.2f} {busy / base_busy:7.2f}")


if __name__ == "__main__":
    main()
