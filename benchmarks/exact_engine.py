"""How fast the exact engine is, how it grows, and what it needs: prints Markdown tables.

python benchmarks/exact_engine.py [--data FOLDER] [--parts speed growth large adversaries] [--sizes ...] [--largest N]
Every large measurement runs in a process of its own, so that its peak memory is its own. Seconds are processor seconds
of one thread, so that other work on the machine distorts them less.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import resource
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from dit_dask.adversaries import Adversary  # noqa: E402
from dit_dask.adversaries.bernoulli_nb import BernoulliNB  # noqa: E402
from dit_dask.adversaries.classifier import Classifier  # noqa: E402
from dit_dask.adversaries.conditional_frequency import ConditionalFrequency  # noqa: E402
from dit_dask.distances import SIMPLE  # noqa: E402
from dit_dask.encoders.tf import TF  # noqa: E402
from dit_dask.engines import (  # noqa: E402
    ReleaseProcedure,
    brute_force,
    exact,
)
from dit_dask.engines.influence import compare  # noqa: E402
from dit_dask.sanitizers import mondrian_tree  # noqa: E402
from dit_dask.sanitizers.mondrian import Mondrian  # noqa: E402
from dit_dask.sanitizers.predicates import Predicates  # noqa: E402
from dit_dask.sanitizers.raw import Raw  # noqa: E402
from dit_dask.values.hierarchy import parse  # noqa: E402
from dit_dask.values.schema import Attribute, Schema, Secret  # noqa: E402
from dit_dask.values.table import Table, collapse  # noqa: E402
from tests.oracles import reference  # noqa: E402

QI = ("age", "education", "marital-status", "hours-per-week", "native-country")
SECRET, NUMERIC = "occupation", ("age", "hours-per-week")
RULES = {
    "k=5": Mondrian(Predicates(k=5)),
    "l=3": Mondrian(Predicates(l=3)),
    "raw": Raw(),
}
ADVERSARIES = {
    "bernoulli-nb": (BernoulliNB(),),
    "conditional-frequency": (ConditionalFrequency(),),
    "both": (BernoulliNB(), ConditionalFrequency()),
}
PUBLISHED = {"bernoulli-nb": reference.naive_bayes, "conditional-frequency": reference.conditional_frequency}


def procedure_of(rule: str, adversary: Adversary | None = None, *, again: bool = False) -> ReleaseProcedure:
    """An adversary, the published one if none is given, against one of the RULES; perhaps without any shortcut."""
    sanitizer = SimpleNamespace(release=RULES[rule].release) if again else RULES[rule]
    return ReleaseProcedure(sanitizer, TF(), {"only": adversary or BernoulliNB()}, SIMPLE["emd"], 0, "benchmark")


def run_exact(table: Table, records: np.ndarray, rule: str, adversaries: str) -> None:
    """Compute all distances of some ADVERSARIES in one pass, with the base tree."""
    mondrian_tree.grow.cache_clear()
    for block, found in exact.blocks(table, records, RULES[rule], ADVERSARIES[adversaries]):
        compare(dict(enumerate(found)), table.secret[records[block]], SIMPLE["emd"])


def adult_rows(data: Path, rows: int) -> list[dict[str, str]]:
    """Draw complete rows at random, the same ones every time."""
    with (data / "adult.csv").open(encoding="utf-8") as file:
        complete = [row for row in csv.DictReader(file) if "?" not in {row[column] for column in (*QI, SECRET)}]
    drawn = np.random.default_rng(0).choice(len(complete), rows, replace=False)
    return [complete[place] for place in drawn]


def adult_table(data: Path, rows: list[dict[str, str]]) -> Table:
    """Code the rows as the loader would."""
    attributes, codes = [], []
    for column in QI:
        if column in NUMERIC:
            values, inverse = np.unique([float(row[column]) for row in rows], return_inverse=True)
            attributes.append(Attribute(column, "numeric", tuple(values.tolist()), values))
            codes.append(inverse)
        else:
            tree = parse((data / "hierarchies" / f"kassem_adult_{column}.csv").read_text(encoding="utf-8"), column)
            attributes.append(Attribute(column, "categorical", tree.leaves, None, tree))
            codes.append([tree.leaves.index(row[column]) for row in rows])
    levels, secret = np.unique([row[SECRET] for row in rows], return_inverse=True)
    schema = Schema(tuple(attributes), Secret(SECRET, tuple(levels.tolist())))
    return collapse(schema, np.array(codes, np.int32).T, secret.astype(np.int32))[0]


def jittered(data: Path, rows: int) -> Table:
    """Resample Adult and add noise of two units, in hundredths, to its numeric columns."""
    adult, rng = adult_table(data, adult_rows(data, 10_000)), np.random.default_rng(1)
    drawn = rng.choice(np.repeat(np.arange(adult.distinct), adult.weights), rows)
    codes, attributes = adult.codes[drawn].copy(), []
    for place, attribute in enumerate(adult.schema.quasi_identifiers):
        if attribute.values is None:
            attributes.append(attribute)
        else:
            noisy = np.round(attribute.values[codes[:, place]] + rng.normal(0, 2, rows), 2)
            values, codes[:, place] = np.unique(noisy, return_inverse=True)
            attributes.append(Attribute(attribute.name, "numeric", tuple(values), values))
    return collapse(Schema(tuple(attributes), adult.schema.sensitive), codes, adult.secret[drawn])[0]


def continuous(_data: Path, rows: int) -> Table:
    """Draw four columns in which nearly every value is unique, and ten secrets."""
    rng = np.random.default_rng(2)
    codes, attributes = np.empty((rows, 4), np.int32), []
    for place in range(4):
        drawn = rng.normal(size=rows) if place % 2 else rng.exponential(size=rows)
        values, codes[:, place] = np.unique(drawn, return_inverse=True)
        attributes.append(Attribute(f"x{place}", "numeric", tuple(values), values))
    schema = Schema(tuple(attributes), Secret("s", tuple(map(str, range(10)))))
    return collapse(schema, codes, rng.integers(0, 10, rows).astype(np.int32))[0]


TABLES = {"jittered": jittered, "continuous": continuous}
PUBLISHED_CASES = [(kind, rule, "bernoulli-nb") for kind in TABLES for rule in ("k=5", "l=3")]


def seconds(action, repeat: int = 1) -> float:
    """Return the least processor time of some runs; all that is timed here runs on one thread."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def published_seconds(data: Path, rows: list[dict[str, str]], rule: str, adversary: str, records: int) -> float:
    """Return the seconds a record of plain-Python Mondrian and a fit of scikit-learn's BernoulliNB, or counts of a class."""
    attributes = []
    for column in QI:
        if column in NUMERIC:
            attributes.append(reference.Numeric(tuple(float(row[column]) for row in rows)))
        else:
            lines = (data / "hierarchies" / f"kassem_adult_{column}.csv").read_text(encoding="utf-8").splitlines()
            attributes.append(reference.Tree(tuple(tuple(line.split(";")) for line in lines if line)))
    values = [tuple(float(row[column]) if column in NUMERIC else row[column] for column in QI) for row in rows]
    secrets = [row[SECRET] for row in rows]
    domain, parameters = sorted(set(secrets)), {rule[0]: int(rule[2:])}

    def remove(place: int) -> None:
        others, kept = values[:place] + values[place + 1 :], secrets[:place] + secrets[place + 1 :]
        root = reference.mondrian(others, kept, attributes, **parameters)
        PUBLISHED[adversary](root, kept, attributes, values[place], domain)

    return seconds(lambda: [remove(place) for place in range(records)]) / records


def speed(data: Path) -> None:
    """One sample of 10,000 Adult rows: three ways to the same distances."""
    rows = adult_rows(data, 10_000)
    table = adult_table(data, rows)
    everyone, some = np.arange(table.distinct), np.random.default_rng(3).choice(table.distinct, 100, replace=False)
    print(f"\n10,000 Adult rows, {table.distinct} distinct records; brute force from 100, the published procedure from 3\n")
    print("| release | adversary | exact, all records | brute force, a record | its ratio | published, a record | its ratio |")
    print("|---|---|---|---|---|---|---|")
    for rule, name in product(RULES, ADVERSARIES):
        procedures = [procedure_of(rule, adversary, again=True) for adversary in ADVERSARIES[name]]
        run_exact(table, everyone, rule, name)  # compiles
        brute_force.together(table, some[:2], procedures)
        fast = seconds(lambda rule=rule, name=name: run_exact(table, everyone, rule, name), 5)
        brute = seconds(lambda procedures=procedures: brute_force.together(table, some, procedures)) / len(some)
        cells = [f"{brute * 1e3:.2f} ms", f"{brute * table.distinct / fast:,.0f}"]
        if rule != "raw" and name in PUBLISHED:
            published = published_seconds(data, rows, rule, name, 3)
            cells += [f"{published * 1e3:,.0f} ms", f"{published * table.distinct / fast:,.0f}"]
        print(f"| {rule} | {name} | {fast:.3f} s | {' | '.join([*cells, '–', '–'][:4])} |", flush=True)


def adversaries(data: Path) -> None:
    """Other adversaries on the same sample: a record with and without sanitising again."""
    table = adult_table(data, adult_rows(data, 10_000))
    models = {
        "DecisionTreeClassifier": Classifier(DecisionTreeClassifier(random_state=0), True),
        "LogisticRegression": Classifier(LogisticRegression(), True),
    }
    some = np.random.default_rng(4).choice(table.distinct, 60, replace=False)
    print("\n10,000 Adult rows, k=5: a record, from 60 records\n")
    print("| adversary | sanitised again | base release plus difference |\n|---|---|---|")
    for name, model in models.items():
        procedure, again = procedure_of("k=5", model), procedure_of("k=5", model, again=True)
        brute_force.influence(table, some[:2], procedure)
        before, after = (seconds(lambda p=p: brute_force.influence(table, some, p)) / len(some) for p in (again, procedure))
        print(f"| {name} | {before * 1e3:.2f} ms | {after * 1e3:.2f} ms |")


def part(data: Path, case: list[str], rows: int, share: tuple[int, int]) -> None:
    """Evaluate share[0] of share[1] equal parts of a table's records and print what it took, as JSON."""
    kind, rule, name = case
    warm, procedure = TABLES[kind](data, 1000), procedure_of(rule)
    run_exact(warm, np.arange(warm.distinct), rule, name)
    table = TABLES[kind](data, rows)
    start = time.process_time()
    targets = exact.chunks(table, np.arange(table.distinct), procedure, share[1])[share[0]]
    run_exact(table, targets, rule, name)
    took = time.process_time() - start
    print(json.dumps({"seconds": took, "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def measure(data: Path, case: tuple[str, str, str], rows: int, shares: int = 1) -> tuple[float, float]:
    """Return the seconds and megabytes of the slowest and largest of `shares` processes side by side."""
    command = [sys.executable, __file__, "--data", str(data), "--one", *case, str(rows)]
    running = [
        subprocess.Popen([*command, str(share), str(shares)], stdout=subprocess.PIPE, text=True) for share in range(shares)
    ]
    results = [json.loads(process.communicate()[0].splitlines()[-1]) for process in running]
    return max(result["seconds"] for result in results), max(result["mb"] for result in results)


def growth(data: Path, sizes: list[int]) -> None:
    """One process, all records of ever larger tables."""
    headings = " | ".join(f"{size:,} rows" for size in sizes)
    print(f"\n| table | release | adversary | {headings} | exponent |\n|---|---|---|{'---|' * (len(sizes) + 1)}")
    more = [("jittered", rule, name) for rule in ("k=5", "raw") for name in ("conditional-frequency", "both")]
    for case in [*PUBLISHED_CASES, *more]:
        took = [measure(data, case, size)[0] for size in sizes]
        exponent = math.log(took[-1] / took[0]) / math.log(sizes[-1] / sizes[0])
        print(f"| {' | '.join(case)} | {' | '.join(f'{each:.2f} s' for each in took)} | {exponent:.2f} |", flush=True)


def large(data: Path, rows: int, largest: int) -> None:
    """Two processes with half of the records each; then one with all of an even larger table."""
    print("\n| table | release | adversary | rows | processes | slowest | largest peak memory |\n|---|---|---|---|---|---|---|")
    cases = [(case, rows, 2) for case in PUBLISHED_CASES]
    for case, size, shares in [*cases, (PUBLISHED_CASES[0], largest, 1)]:
        took, megabytes = measure(data, case, size, shares)
        print(f"| {' | '.join(case)} | {size:,} | {shares} | {took:.1f} s | {megabytes:,.0f} MB |", flush=True)


def main() -> None:
    """Run the chosen parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    folder = os.environ.get("DIT_DATA") or ROOT.parent / "shared" / "data"
    parser.add_argument("--data", type=Path, default=folder, help="the folder with adult.csv and hierarchies/ (DIT_DATA)")
    parser.add_argument("--parts", nargs="+", default=["speed", "adversaries", "growth", "large"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the table for two processes")
    parser.add_argument("--largest", type=int, default=5_000_000)
    parser.add_argument("--one", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        *case, rows, share, shares = options.one
        part(options.data, case, int(rows), (int(share), int(shares)))
        return
    actions = {
        "speed": lambda: speed(options.data),
        "adversaries": threadpool_limits.wrap(limits=1)(lambda: adversaries(options.data)),
        "growth": lambda: growth(options.data, options.sizes),
        "large": lambda: large(options.data, options.rows, options.largest),
    }
    for name in options.parts:
        actions[name]()


if __name__ == "__main__":
    main()
