"""Six adversaries against every one of 10,000 Adult records at k = 5, as a user runs them; prints Markdown tables.

python benchmarks/panel.py [--data FOLDER] [--records 20] [--parts before after run power overlap statistics]
`before` trains on one weighted or repeated row a secret of each class, with the default number of threads; `after` is the
adversary as it is now, on the same records. Processor seconds are of all threads and processes: they are distorted less by
other work on the machine. `power` compares the adversaries of the default panel with a counted decision tree on three tables;
`overlap` compares those of releases without a split tree, where persons are published raw beside the bands of the others.
`statistics` compares training with statistics that follow a removal, for classifiers under encodings other than TF.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from sklearn.base import clone
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.exact_engine import NUMERIC, QI, RULES, SECRET, adult_rows, adult_table  # noqa: E402
from dit_dask.adversaries import OVERLAP_PANEL  # noqa: E402
from dit_dask.adversaries.classifier import Classifier  # noqa: E402
from dit_dask.audit.build import build_tests  # noqa: E402
from dit_dask.audit.grammar import check_config  # noqa: E402
from dit_dask.encoders.tf import TF  # noqa: E402
from dit_dask.engines import ENGINES  # noqa: E402
from dit_dask.inputs.load import load  # noqa: E402
from dit_dask.values.release import Ranges, Release  # noqa: E402
from dit_dask.values.table import Table  # noqa: E402

ROWS = 10_000
TREE = "sklearn.tree.DecisionTreeClassifier"
CLASSIFIERS = [
    TREE,
    "sklearn.linear_model.LogisticRegression",
    "sklearn.neighbors.KNeighborsClassifier",
    {"name": "sklearn.ensemble.RandomForestClassifier", "params": {"n_estimators": 20}},
]


def built_adversaries(config: dict[str, Any]) -> dict[str, Any]:
    """The adversaries of the one test of a config, as a run builds them."""
    checked = check_config(config, ".")
    return dict(
        build_tests(checked, load(checked), lambda path, _where: Path(path).read_text("utf-8"))[0].procedure.adversaries
    )


def train_on_rows(model: Any, weighted: bool, release: Any, target: Any) -> Any:
    """What every record cost before: one row a secret of each class."""
    where, secret = np.nonzero(release.counts)
    count, features = release.counts[where, secret], release.covers(target)[where].astype(float)
    if weighted:
        trained = clone(model).fit(features, secret, sample_weight=count.astype(float))
    else:
        trained = clone(model).fit(np.repeat(features, count, axis=0), np.repeat(secret, count))
    return trained.predict_proba(np.ones((1, len(target))))


def adult_config(data: Path, folder: Path) -> dict[str, Any]:
    """Write the rows, and describe six adversaries."""
    rows = adult_rows(data, ROWS)
    with (folder / "adult.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, (*QI, SECRET), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    hierarchy = {"kind": "categorical"}
    quasi = {
        name: {"kind": "numeric"}
        if name in NUMERIC
        else hierarchy | {"hierarchy": str((data / "hierarchies" / f"kassem_adult_{name}.csv").resolve())}
        for name in QI
    }
    return {
        "version": 1,
        "name": "panel",
        "data": {"source": str(folder / "adult.csv")},
        "schema": {"quasi_identifiers": quasi, "sensitive": SECRET},
        "tests": [
            {"sanitizer": {"name": "mondrian", "k": 5}, "adversary": ["bernoulli-nb", "conditional-frequency", *CLASSIFIERS]}
        ],
        "output": str(folder / "runs"),
        "cluster": {"kind": "local", "workers": 2},
    }


def milliseconds(work: Callable[[int], object], records: int) -> tuple[float, float]:
    """Return processor and wall milliseconds a record."""
    work(0)  # loads code
    wall, processor = time.perf_counter(), time.process_time()
    for record in range(records):
        work(record)
    return (time.process_time() - processor) * 1e3 / records, (time.perf_counter() - wall) * 1e3 / records


def speed(config: dict[str, Any], data: Path, records: int, parts: list[str]) -> None:
    """Print what one learned release costs, before and after."""
    table = adult_table(data, adult_rows(data, ROWS))
    chosen = np.sort(np.random.default_rng(1).choice(table.distinct, records, replace=False))
    releases, targets = list(RULES["k=5"].leave_one_out(table, chosen)), table.codes[chosen]
    print(f"\n{records} records; milliseconds of processor (wall) to learn one release\n")
    print("| adversary | before | after |\n|---|---|---|")
    for name, adversary in built_adversaries(config).items():
        before = after = "-"
        if "before" in parts and isinstance(adversary, Classifier):
            processor, wall = milliseconds(
                lambda at, its=adversary: train_on_rows(its.model, its.weighted, releases[at], targets[at]), records
            )
            before = f"{processor:.2f} ({wall:.2f})"
        if "after" in parts:
            with threadpool_limits(1):
                processor, wall = milliseconds(lambda at, its=adversary: its.beliefs(releases[at], TF(), targets[at]), records)
            after = f"{processor:.2f} ({wall:.2f})"
        print(f"| {name} | {before} | {after} |", flush=True)


def run(config: dict[str, Any], folder: Path) -> None:
    """Run the audit as a command, and print what it took."""
    path = folder / "panel.yaml"
    path.write_text(yaml.safe_dump(config), "utf-8")
    wall, processor = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "dit_dask", "run", str(path), "--fresh"], stdout=subprocess.DEVNULL, check=True)
    wall, used = time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = used.ru_utime + used.ru_stime - processor.ru_utime - processor.ru_stime
    (written,) = folder.glob("runs/*/summary.json")
    (summary,) = json.loads(written.read_text("utf-8"))
    print(f"\nall {summary['records']:,} records ({summary['distinct']:,} distinct), six adversaries, two workers, k = 5\n")
    print("| wall | processor | processor ms a distinct record | load at the end |\n|---|---|---|---|")
    load_average = os.getloadavg()[0]
    print(f"| {wall:.0f} s | {seconds:.0f} s | {seconds * 1e3 / summary['distinct']:.1f} | {load_average:.1f} |\n")
    print("| adversary | delta | mean |\n|---|---|---|")
    for name, figures in summary["adversaries"].items():
        print(f"| {name} | {figures['delta']:.4g} | {figures['mean']:.4g} |")
    print(f"| the largest | {summary['delta']:.4g} | {summary['mean']:.4g} |")


def payroll(rows: int = 1_500) -> pd.DataFrame:
    """A synthetic payroll: salaries follow age, years of service and grade, and nearly all of them differ."""
    rng = np.random.default_rng(3)
    age = rng.integers(20, 66, rows)
    service = np.minimum(age - 18, rng.geometric(0.12, rows))
    grade, unit = rng.choice([1, 2, 3, 4, 5], rows, p=[0.3, 0.3, 0.2, 0.15, 0.05]), rng.choice(list("abcdefgh"), rows)
    salary = 20_000 + 9_000 * grade + 350 * service + rng.normal(0, 12_000, rows).round()
    columns = {"age": age, "service": service, "grade": grade, "unit": unit, "salary": salary.astype(int).astype(str)}
    return pd.DataFrame(columns)


def power_tables(data: Path) -> dict[str, tuple[pd.DataFrame, list[str], list[str], str]]:
    """Three tables: the frame, its numeric and its categorical quasi-identifiers, its secret."""
    internet = pd.read_csv(data / "internet_usage.csv", dtype=str, keep_default_na=False)
    internet = internet[internet["age"] != "Not-Say"]
    categorical = ["education_attainment", "major_occupation", "marital_status", "race"]
    adult = pd.DataFrame(adult_rows(data, ROWS))[[*QI, SECRET]]
    return {
        "Adult": (adult, list(NUMERIC), [name for name in QI if name not in NUMERIC], SECRET),
        "payroll": (payroll(), ["age", "service", "grade"], ["unit"], "salary"),
        "Internet Usage": (internet[["age", *categorical, "household_income"]], ["age"], categorical, "household_income"),
    }


def power(data: Path, records: int) -> None:
    """Print what each cheap adversary finds, alone and beside the default panel."""
    print(f"\n{records} records of each table, drawn at random; hierarchies are flat\n")
    print("| table | sanitizer | adversary | delta | mean | mean gain | d beyond the panel | gain beyond the panel |")
    print("|---|---|---|---|---|---|---|---|")
    for title, (frame, numeric, categorical, secret) in power_tables(data).items():
        kinds = dict.fromkeys(numeric, "numeric") | dict.fromkeys(categorical, "categorical")
        schema = {"quasi_identifiers": {name: {"kind": kind} for name, kind in kinds.items()}, "sensitive": secret}
        for sanitizer in ("raw", {"name": "mondrian", "k": 5}):
            test = {"sanitizer": sanitizer, "adversary": ["bernoulli-nb", "conditional-frequency", TREE]}
            config = check_config({"version": 1, "data": {"source": "frame"}, "schema": schema, "tests": [test]}, ".")
            rows = load(config, frame)
            (built,) = build_tests(config, rows, lambda path, _where: path)
            drawn = np.sort(np.random.default_rng(1).choice(rows.used, records, replace=False))
            shifts = ENGINES[built.engine].influence(rows.table, rows.index[drawn], built.procedure).shifts
            panel = [shifts[name] for name in ("bernoulli-nb", "conditional-frequency")]
            most, most_gain = (np.max([getattr(one, field) for one in panel], axis=0) for field in ("distance", "gain"))
            for name, one in shifts.items():
                beyond = f"{(one.distance > most + 0.01).mean():.1%} | {(one.gain > most_gain + 0.01).mean():.1%}"
                figures = f"{one.distance.max():.3g} | {one.distance.mean():.3g} | {one.gain.mean():.3g}"
                print(f"| {title} | {built.id.split('.')[0]} | {name} | {figures} | {beyond} |", flush=True)


@dataclass(frozen=True)
class Bands:
    """Publishes four equal bands of the first attribute and nothing else, but the last `raw` distinct records as they are."""

    raw: int
    claim: None = None

    def release(self, table: Table, _rng: np.random.Generator) -> Release:
        """Bands are fixed by the domain; classes that publish the same are one."""
        low, high = table.codes.copy(), table.codes.copy()
        banded = slice(0, max(0, table.distinct - self.raw))
        for place, attribute in enumerate(table.schema.quasi_identifiers):
            levels = len(attribute.levels)
            width = -(-levels // 4) if place == 0 else levels
            low[banded, place] = table.codes[banded, place] // width * width
            high[banded, place] = np.minimum(low[banded, place] + width, levels) - 1
        published, own = np.unique(np.concatenate([low, high], axis=1), axis=0, return_inverse=True)
        counts = np.zeros((len(published), len(table.schema.sensitive.levels)), np.int64)
        np.add.at(counts, (own.ravel(), table.secret), table.weights)
        return Release(table.schema, Ranges(*np.split(published, 2, axis=1)), counts)


def overlap(data: Path, records: int) -> None:
    """Print what each adversary finds of persons who are published raw beside wide bands, and of the others."""
    print(
        f"\n{records} records of each table, drawn at random, and the last ten; milliseconds of processor to learn a release\n"
    )
    print("| table | published raw | adversary | delta | mean | d of the last record | ms |\n|---|---|---|---|---|---|---|")
    for title, (frame, numeric, categorical, secret) in power_tables(data).items():
        kinds = dict.fromkeys(numeric, "numeric") | dict.fromkeys(categorical, "categorical")
        schema = {"quasi_identifiers": {name: {"kind": kind} for name, kind in kinds.items()}, "sensitive": secret}
        test = {"sanitizer": "raw", "adversary": list(OVERLAP_PANEL)}
        config = check_config({"version": 1, "data": {"source": "frame"}, "schema": schema, "tests": [test]}, ".")
        rows = load(config, frame)
        (built,) = build_tests(config, rows, lambda path, _where: path)
        table = rows.table
        drawn = np.random.default_rng(1).choice(table.distinct, records, replace=False)
        chosen = np.union1d(drawn, np.arange(table.distinct - 10, table.distinct))
        targets = table.codes[chosen]
        for raw in (0, 1, 10):
            procedure = replace(built.procedure, sanitizer=Bands(raw))
            shifts = ENGINES["brute-force"].influence(table, chosen, procedure).shifts
            release = procedure.sanitizer.release(table, np.random.default_rng(0))
            for name, one in shifts.items():
                learn = procedure.adversaries[name].beliefs
                cost, _ = milliseconds(lambda at, its=learn, of=release, who=targets: its(of, TF(), who[at]), 100)
                figures = f"{one.distance.max():.3g} | {one.distance.mean():.3g} | {one.distance[-1]:.3g} | {cost:.3f}"
                print(f"| {title} | {raw} | {name} | {figures} |", flush=True)


SUMMARISED = [
    "sklearn.naive_bayes.GaussianNB",
    "sklearn.naive_bayes.BernoulliNB",
    {"name": "sklearn.naive_bayes.CategoricalNB", "params": {"min_categories": 2}},
    "sklearn.naive_bayes.MultinomialNB",
    "sklearn.naive_bayes.ComplementNB",
    "sklearn.discriminant_analysis.LinearDiscriminantAnalysis",
    "sklearn.neighbors.KNeighborsClassifier",
]


def statistics(config: dict[str, Any], records: int) -> None:
    """Print what one learned release without a record costs by training and from statistics, and how far both differ."""
    print(f"\n{records} records of Adult; milliseconds of processor to learn one release, one thread\n")
    print("| sanitizer | encoder | adversary | trained | now | still trained | difference |\n|---|---|---|---|---|---|---|")
    for sanitizer in ({"name": "mondrian", "k": 5}, "raw"):
        for encoder in ("scaling-hot", "bounds-binary", "quantiles-after-hot-after"):
            tests = [{"sanitizer": sanitizer, "encoder": encoder, "adversary": SUMMARISED}]
            checked = check_config(config | {"tests": tests}, ".")
            (built,) = build_tests(checked, load(checked), lambda path, _where: Path(path).read_text("utf-8"))
            table, procedure = built.rows.table, built.procedure
            chosen = np.sort(np.random.default_rng(1).choice(table.distinct, records, replace=False))
            releases, targets = list(procedure.sanitizer.leave_one_out(table, chosen)), table.codes[chosen]
            for name, adversary in procedure.adversaries.items():
                compare_learning(
                    f"{built.id.split('.')[0]} | {encoder} | {name}", adversary, procedure.encoder, releases, targets
                )


def compare_learning(title: str, adversary: Any, encoder: Any, releases: list[Release], targets: Any) -> None:
    """Print a line: both ways to learn the same releases."""
    beliefs: dict[str, dict[int, Any]] = {"train": {}, "learn": {}}

    def work(way: str, at: int) -> None:
        beliefs[way][at] = getattr(adversary, way)(releases[at], encoder, targets[at])(targets[at])

    with threadpool_limits(1):
        trained, _ = milliseconds(lambda at: work("train", at), len(releases))
        now, _ = milliseconds(lambda at: work("learn", at), len(releases))
        left = 0
        for release, target in zip(releases, targets, strict=True):
            predict = adversary.summarised.learn(release, encoder, target)
            left += predict is None or predict(target) is None
    apart = max(np.abs(beliefs["train"][at] - beliefs["learn"][at]).max() for at in range(len(releases)))
    print(f"| {title} | {trained:.2f} | {now:.2f} | {left / len(releases):.0%} | {apart:.0e} |", flush=True)


def main() -> None:
    """Print the parts that are wanted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("DIT_DATA") or ROOT.parent / "shared" / "data"))
    parser.add_argument("--records", type=int, default=20)
    parser.add_argument("--power-records", type=int, default=400)
    parser.add_argument("--parts", nargs="+", default=["before", "after", "run", "power", "overlap", "statistics"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        config = adult_config(options.data, Path(name))
        if {"before", "after"} & set(options.parts):
            speed(config, options.data, options.records, options.parts)
        if "run" in options.parts:
            run(config, Path(name))
        if "power" in options.parts:
            power(options.data, options.power_records)
        if "overlap" in options.parts:
            overlap(options.data, options.power_records)
        if "statistics" in options.parts:
            statistics(config, options.power_records)


if __name__ == "__main__":
    main()
