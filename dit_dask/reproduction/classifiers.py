"""Classifiers compared, the papers' future work: how far each lets a release react to one person, and towards the truth."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask import seeds
from dit_dask.adversaries.classifier import training_threads
from dit_dask.engines import brute_force
from dit_dask.reproduction.charts import Series, line_chart
from dit_dask.reproduction.datasets import Selection
from dit_dask.reproduction.figures_of_tests import sanitizer_of
from dit_dask.reproduction.pieces import Work
from dit_dask.reproduction.report import Report, Table
from dit_dask.reproduction.v2 import EDGES
from dit_dask.values.release import Ranges, Release

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats
    from dit_dask.values.table import Table as Records

CLASSIFIERS: Mapping[str, Any] = {
    "naive Bayes": "bernoulli-nb",
    "tree": {"name": "sklearn.tree.DecisionTreeClassifier"},
    "logistic regression": {"name": "sklearn.linear_model.LogisticRegression"},
    "random forest": {"name": "sklearn.ensemble.RandomForestClassifier", "params": {"n_estimators": 25}},
    "k-NN": {"name": "sklearn.neighbors.KNeighborsClassifier", "params": {"n_neighbors": 5}},
    "gradient boosting": {
        "name": "sklearn.ensemble.GradientBoostingClassifier",
        "params": {"n_estimators": 5, "max_depth": 2},
    },
}
SLOW = "gradient boosting"  # trained anew for every record; the others need only the counts of what they tell apart
SETTINGS: Sequence[tuple[str, float]] = (("k", 1), ("k", 5), ("k", 20), ("l", 3), ("l", 5), ("epsilon", 1), ("epsilon", 0.1))
SELECTIONS = {"adult": Selection("adult", 1), "internet": Selection("internet-v2")}
NOTES = (
    "Every classifier is trained on the TF-encoded release with and without each person of a seeded random sample; "
    "`records` says how many. Distances are half sums, so 1 is the largest. `gain` is how much more belief the true value "
    "gets because of the person's own record. Seconds are processor time for one record.",
    "Epsilon: a mechanism that publishes noisy counts publishes no table, so a classifier is given one: each count plus "
    "Laplace noise, rounded, at least 0, is that many rows. Both sides have the same noise, so d is what the record does, "
    "not what the noise does; a new draw of the noise would move beliefs by much more.",
)


def build(work: Work) -> Report:
    """Compare the classifiers on both tables."""
    rows = []
    for dataset in SELECTIONS:
        for parameter, value in SETTINGS:
            name = f"{dataset} classifiers {parameter}={value:g}"
            found = work.piece(name, lambda d=dataset, p=parameter, v=value: _compare(work, d, p, v))  # type: ignore[misc]
            rows += [
                {"dataset": dataset, "parameter": f"{parameter} = {value:g}", "classifier": who, **one}
                for who, one in found.items()
            ]
    tables = [Table("classifiers", "Six classifiers over k, l and ε", rows)]
    return Report("classifiers", "Classifiers compared", tables, _charts(rows), (*NOTES, *_lessons(rows)))


def _compare(work: Work, dataset: str, parameter: str, value: float) -> dict[str, Any]:
    chosen = SELECTIONS[dataset]
    compare = _compare_noisy if parameter == "epsilon" else _compare_releases
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a solver that has not converged says so for each of thousands of models
        return {name: compare(work, dataset, chosen, value, parameter, name) for name in CLASSIFIERS}


def _sample(work: Work, table: Records, name: str) -> Any:
    size = (40 if name == SLOW else 300) // (10 if work.quick else 1)
    return np.sort(seeds.stream(7, "classifiers").choice(table.distinct, size, replace=False))


def _compare_releases(
    work: Work, _dataset: str, chosen: Selection, value: float, parameter: str, name: str
) -> dict[str, float]:
    wanted = {"sanitizer": sanitizer_of(parameter, value), "adversary": CLASSIFIERS[name], "distance": "tv"}
    (test,) = work.source.tests(chosen, [wanted])
    table = test.rows.table
    records = _sample(work, table, name)
    started = time.process_time()
    found = brute_force.influence(table, records, test.procedure)  # type: ignore[arg-type]
    seconds = time.process_time() - started
    (shifted,) = found.shifts.values()
    return _describe(shifted.distance, shifted.gain, seconds)


def _compare_noisy(work: Work, dataset: str, chosen: Selection, epsilon: float, _parameter: str, name: str) -> dict[str, float]:
    """Give the classifier rows made of noisy counts, with the same noise on both sides."""
    bins = {"sanitizer": {"name": "laplace", "epsilon": epsilon, "bins": EDGES[dataset]}}
    (test,) = work.source.tests(chosen, [bins])
    (raw,) = work.source.tests(chosen, [{"sanitizer": "raw", "adversary": CLASSIFIERS[name]}])
    (adversary,), encoder = raw.procedure.adversaries.values(), raw.procedure.encoder  # type: ignore[attr-defined]
    table = test.rows.table
    tuples, of = np.unique(table.codes, axis=0, return_inverse=True)
    counts = np.zeros((len(tuples), len(table.schema.sensitive.levels)))
    np.add.at(counts, (of.ravel(), table.secret), table.weights)
    noise = seeds.stream(7, "classifiers", epsilon).laplace(0.0, 1 / epsilon, counts.shape)
    records = _sample(work, table, name)
    distance, gain = np.empty(len(records)), np.empty(len(records))
    started = time.process_time()
    with training_threads([adversary]):
        for place, record in enumerate(records):
            target, cell = table.codes[record], (of.ravel()[record], table.secret[record])
            fewer = counts.copy()
            fewer[cell] -= 1
            sides = [adversary.beliefs(_publish(table, tuples, held + noise), encoder, target) for held in (counts, fewer)]
            distance[place] = np.abs(sides[0] - sides[1]).sum() / 2
            gain[place] = sides[0][cell[1]] - sides[1][cell[1]]
    return _describe(distance, gain, time.process_time() - started)


def _publish(table: Records, tuples: Any, noisy: Floats) -> Release:
    counts = np.rint(np.maximum(0.0, noisy)).astype(np.int64)
    kept = counts.any(axis=1)
    codes = tuples[kept].astype(np.int32)
    return Release(table.schema, Ranges(codes, codes), counts[kept])


def _describe(distance: Floats, gain: Floats, seconds: float) -> dict[str, float]:
    return {
        "records": len(distance),
        "delta": float(distance.max()),
        "mean": float(distance.mean()),
        "gain": float(gain.mean()),
        "seconds": round(seconds / len(distance), 4),
    }


def _lessons(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a reader learns, in five sentences whose numbers come from the table."""

    def mean(figure: str, who: str, what: str) -> float:
        return float(np.mean([row[figure] for row in rows if row["classifier"] == who and row["parameter"].startswith(what)]))

    def parameter(figure: str, what: str) -> float:
        return float(np.mean([row[figure] for row in rows if row["parameter"] == what]))

    names = list(CLASSIFIERS)
    widest = max(names, key=lambda who: mean("mean", who, "k"))
    calmest = min(names, key=lambda who: mean("mean", who, "k"))
    slowest = max(names, key=lambda who: mean("seconds", who, "k"))
    raw, five, twenty = (parameter("mean", f"k = {k}") for k in (1, 5, 20))
    gains = sum(row["gain"] > 0 for row in rows)
    gain, distance = (float(np.mean([row[figure] for row in rows])) for figure in ("gain", "mean"))
    sentences = (
        f"The classifier decides the figure: over k the mean distance is {mean('mean', widest, 'k'):.3g} for {widest} and "
        f"{mean('mean', calmest, 'k'):.3g} for {calmest}, so one adversary is not enough.",
        f"Sanitising lowers it for the average classifier: {raw:.3g} raw, {five:.3g} at k = 5, {twenty:.3g} at k = 20.",
        f"Distance is not gain: the mean gain is positive in {gains} of {len(rows)} lines, and on average {gain:.3g} against "
        f"a mean distance of {distance:.3g}, because classes re-form when a record leaves.",
        f"With noisy counts and the same noise on both sides the mean is {parameter('mean', 'epsilon = 1'):.3g} at ε = 1 and "
        f"{parameter('mean', 'epsilon = 0.1'):.3g} at ε = 0.1: a single row is hidden among the rows that noise adds.",
        f"Time is no reason to look at naive Bayes only: {slowest} needs {mean('seconds', slowest, 'k'):.2g} s for a record, "
        "the others learn from counts of true and false in milliseconds.",
    )
    return ["What a reader learns. " + " ".join(sentences)]


def _charts(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    axis = [f"{parameter} = {value:g}" for parameter, value in SETTINGS]
    drawn = {}
    for dataset in SELECTIONS:
        lines = []
        for who in CLASSIFIERS:
            mine = {row["parameter"]: row["mean"] for row in rows if (row["dataset"], row["classifier"]) == (dataset, who)}
            lines.append(Series(who, [mine[name] for name in axis]))
        title = f"Mean distance by classifier, {dataset}"
        drawn[f"classifiers-{dataset}"] = (title, line_chart(title, axis, lines))
    return drawn
