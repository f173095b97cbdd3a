"""The exact engine against brute force and against the published procedure, on samples of real tables."""

from __future__ import annotations

import csv
from dataclasses import replace
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest

from dit_dask.adversaries import Adversary
from dit_dask.adversaries.bernoulli_nb import BernoulliNB
from dit_dask.adversaries.conditional_frequency import ConditionalFrequency
from dit_dask.distances import SIMPLE
from dit_dask.encoders.tf import TF
from dit_dask.engines import ReleaseProcedure, brute_force, exact
from dit_dask.sanitizers.mondrian import Mondrian
from dit_dask.sanitizers.predicates import Predicates
from dit_dask.values.hierarchy import parse
from dit_dask.values.schema import Attribute, Schema, Secret
from dit_dask.values.table import Table, collapse
from tests.conftest import DATA, require_data
from tests.oracles import reference

ADULT = ("adult.csv", "adult", ("age", "education", "marital-status", "hours-per-week", "native-country"), "occupation")
INTERNET = (
    "internet_usage.csv",
    "internet",
    ("age", "country", "education_attainment", "major_occupation", "marital_status", "race"),
    "household_income",
)
NUMERIC = ("age", "hours-per-week")
RULES = {
    "k=5": Mondrian(Predicates(k=5)),
    "k=5 basic": Mondrian(Predicates(k=5, strict=False)),
    "k=20": Mondrian(Predicates(k=20)),
    "l=3": Mondrian(Predicates(l=3)),
    "l=3 not tightened": Mondrian(Predicates(l=3, tighten=False)),
}


def sample(source: tuple, rows: int) -> list[dict[str, str]]:
    """Read the first complete rows."""
    name, _, qi, secret = source
    with (require_data() / name).open(encoding="utf-8") as file:
        used = ((row, {row[column] for column in (*qi, secret)}) for row in csv.DictReader(file))
        complete = (row for row, values in used if "?" not in values and row["age"] != "Not-Say")
        return list(islice(complete, rows))


def hierarchy_text(source: tuple, column: str) -> str:
    return (DATA / "hierarchies" / f"kassem_{source[1]}_{column}.csv").read_text(encoding="utf-8")


def table_of(source: tuple, rows: list[dict[str, str]]) -> tuple[Table, np.ndarray]:
    """Code the rows; also return each row's distinct record."""
    _, _, qi, sensitive = source
    attributes, codes = [], []
    for column in qi:
        if column in NUMERIC:
            values, inverse = np.unique([float(row[column]) for row in rows], return_inverse=True)
            attributes.append(Attribute(column, "numeric", tuple(values.tolist()), values))
            codes.append(inverse)
        else:
            tree = parse(hierarchy_text(source, column), column)
            attributes.append(Attribute(column, "categorical", tree.leaves, None, tree))
            codes.append([tree.leaves.index(row[column]) for row in rows])
    levels, secret = np.unique([row[sensitive] for row in rows], return_inverse=True)
    schema = Schema(tuple(attributes), Secret(sensitive, tuple(levels.tolist())))
    return collapse(schema, np.array(codes, np.int32).T, secret.astype(np.int32))


def procedure_of(rule: str, adversary: Adversary) -> ReleaseProcedure:
    return ReleaseProcedure(RULES[rule], TF(), {"only": adversary}, SIMPLE["emd"], 0, "test")


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("source", [ADULT, INTERNET], ids=["adult", "internet"])
def test_distances_equal_brute_force(source: tuple, rule: str) -> None:
    table, _ = table_of(source, sample(source, 4000))
    procedures = [procedure_of(rule, adversary) for adversary in (BernoulliNB(), ConditionalFrequency())]
    some = np.random.default_rng(5).choice(table.distinct, 600, replace=False)
    again = SimpleNamespace(release=RULES[rule].release)  # hides what it shares with the exact engine
    expected = brute_force.together(
        [table] * len(procedures), some, [replace(procedure, sanitizer=again) for procedure in procedures]
    )
    for procedure, wanted in zip(procedures, expected, strict=True):
        everyone = exact.influence(table, np.arange(table.distinct), procedure)
        np.testing.assert_array_equal(everyone.distance[some], wanted.distance)
        np.testing.assert_array_equal(everyone.predicted[some], wanted.predicted)
        np.testing.assert_array_equal(everyone.predicted_without[some], wanted.predicted_without)


@pytest.mark.parametrize("adversary", ["naive_bayes", "conditional_frequency"])
@pytest.mark.parametrize(
    "parameters",
    [{"k": 5}, {"k": 5, "variant": "basic"}, {"l": 3}, {"l": 3, "tighten": False}],
    ids=["k=5", "k=5 basic", "l=3", "l=3 not tightened"],
)
@pytest.mark.parametrize("source", [ADULT, INTERNET], ids=["adult", "internet"])
def test_distances_equal_the_published_procedure(source: tuple, parameters: dict, adversary: str) -> None:
    rows = sample(source, 300)
    table, record_of = table_of(source, rows)
    attributes = []
    for column in source[2]:
        if column in NUMERIC:
            attributes.append(reference.Numeric(tuple(float(row[column]) for row in rows)))
        else:
            paths = (tuple(line.split(";")) for line in hierarchy_text(source, column).splitlines() if line)
            attributes.append(reference.Tree(tuple(paths)))
    records = [tuple(float(row[c]) if c in NUMERIC else row[c] for c in source[2]) for row in rows]
    secrets = [row[source[3]] for row in rows]
    pairs = reference.leave_one_out(records, secrets, attributes, getattr(reference, adversary), **parameters)
    expected = [reference.emd(p, q) for p, q in pairs]
    rule = "l=3" if "l" in parameters else "k=5 basic" if "variant" in parameters else "k=5"
    rule += "" if parameters.get("tighten", True) else " not tightened"
    model = BernoulliNB() if adversary == "naive_bayes" else ConditionalFrequency()
    found = exact.influence(table, np.arange(table.distinct), procedure_of(rule, model))
    np.testing.assert_allclose(found.distance[record_of], expected, rtol=0, atol=1e-12)
