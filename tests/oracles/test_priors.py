"""Prior knowledge, multiplied into the beliefs of a reference that shares no code, on every engine."""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dit_dask.adversaries import Adversary
from dit_dask.adversaries.bernoulli_nb import BernoulliNB
from dit_dask.adversaries.conditional_frequency import ConditionalFrequency
from dit_dask.adversaries.prior import Prior
from dit_dask.audit.test import Test as Point
from dit_dask.distances import SIMPLE
from dit_dask.encoders.tf import TF
from dit_dask.engines import ENGINES
from dit_dask.engines.brute_force import compute_beliefs
from dit_dask.engines.power import attainable
from dit_dask.errors import InputError
from dit_dask.values.table import Table
from tests.audits import WORKED, WORKED_SCHEMA, checked, loaded, points
from tests.oracles import reference
from tests.properties.code_tables import tables
from tests.properties.strategies import People, people
from tests.properties.test_power import beliefs, candidates, planted

UNHURRIED = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
TREE = {"name": "sklearn.tree.DecisionTreeClassifier", "params": {"random_state": 0}}


def draw_prior(domain: list[str], seed: str) -> dict[str, float]:
    """Unequal probabilities that sum to 1."""
    weights = [random.Random(f"{seed} {value}").randint(1, 9) for value in domain]
    return {value: weight / sum(weights) for value, weight in zip(domain, weights, strict=True)}


def weigh(belief: list[float], prior: dict[str, float] | None, domain: list[str]) -> list[float]:
    """Bayes' rule, in plain Python."""
    products = [p * (1 if prior is None else prior[value]) for p, value in zip(belief, domain, strict=True)]
    return [product / sum(products) for product in products]


@pytest.mark.parametrize(
    ("engine", "adversaries"),
    [
        ("auto", ["bernoulli-nb", "conditional-frequency"]),
        ("brute-force", ["bernoulli-nb", "conditional-frequency"]),
        ("auto", ["bernoulli-nb", "conditional-frequency", TREE]),
    ],
    ids=["exact", "brute-force", "mixed"],
)
@settings(UNHURRIED, max_examples=6)
@given(table=people(24), by_group=st.booleans())
def test_beliefs_with_and_without_the_record_are_multiplied_by_the_prior(
    engine: str, adversaries: list[Any], table: People, by_group: bool
) -> None:
    domain = sorted(set(table.secrets))
    first = [str(record[0]) for record in table.records]
    groups = sorted(set(first))[::2] if by_group else [""]  # of the others nothing is known
    priors = {group: draw_prior(domain, group) for group in groups}
    with tempfile.TemporaryDirectory() as folder:
        before, schema = Path.cwd(), table.schema_in(Path(folder))
        os.chdir(folder)
        try:
            header, cell = ("q0;value;probability\n", "{};") if by_group else ("", "")
            lines = [f"{cell.format(group)}{value};{p!r}\n" for group in groups for value, p in priors[group].items()]
            Path("prior.csv").write_text(header + "".join(lines))
            test = {"sanitizer": {"name": "mondrian", "k": 2}, "adversary": adversaries, "engine": engine, "prior": "prior.csv"}
            rows = loaded(table.frame, schema)
            (point,) = points(rows, schema, [test])
        finally:
            os.chdir(before)
    shifts = ENGINES[point.engine].influence(rows.table, np.arange(rows.table.distinct), point.procedure).shifts
    for adversary, believe in {
        "bernoulli-nb": reference.naive_bayes,
        "conditional-frequency": reference.conditional_frequency,
    }.items():
        found = reference.leave_one_out(table.records, table.secrets, table.attributes, believe, k=2)
        known = [priors.get(group if by_group else "") for group in first]
        sides = [[weigh(side, prior, domain) for side in both] for both, prior in zip(found, known, strict=True)]
        expected = [reference.emd(*both) for both in sides]
        # products and sums of logarithms round differently
        np.testing.assert_allclose(shifts[adversary].distance[rows.index], expected, atol=1e-9)


@settings(UNHURRIED, max_examples=30)
@given(
    tables(14, fewest_rows=2, fewest_secrets=1),
    st.sampled_from([BernoulliNB(), ConditionalFrequency()]),
    st.integers(0, 2**32 - 1),
)
def test_the_attainable_distance_is_that_of_planted_persons_of_whom_something_is_known(
    table: Table, adversary: Adversary, seed: int
) -> None:
    secrets = len(table.schema.sensitive.levels)
    weights = np.random.default_rng(seed).dirichlet(np.ones(secrets)) + 1e-3
    code = int(table.codes[0, 0])
    distances = []
    for q, secret in candidates(table):
        sides = [beliefs(one, adversary, q) * (weights if q[0] == code else 1) for one in (planted(table, q, secret), table)]
        distances.append(np.abs(sides[0] / sides[0].sum() - sides[1] / sides[1].sum()).sum())
    prior = Prior((0,), {(code,): 0}, weights[None])
    found = attainable(table, {"one": adversary}, TF(), SIMPLE["emd"], 0, prior)
    assert found.distance == pytest.approx(max(distances), abs=1e-9)  # sums in another order


def test_an_even_prior_changes_nothing_and_a_strong_one_hides_the_record(tmp_path: Path) -> None:
    rows = loaded(WORKED, WORKED_SCHEMA)
    priors = {"even": (0.5, 0.5), "strong": (1e-9, 1 - 1e-9)}
    delta = {}
    for name, (cancer, flu) in priors.items():
        (tmp_path / name).write_text(f"Cancer;{cancer}\nFlu;{flu}\n")
        delta[name] = _distances(rows, prior=str(tmp_path / name))
    np.testing.assert_allclose(delta["even"], _distances(rows), rtol=0, atol=1e-15)  # products round
    np.testing.assert_allclose(_distances(rows), [1, 1, 2 / 3, 1 / 3, 1 / 3], atol=1e-15)
    assert max(delta["strong"]) < 1e-8


def _distances(rows: Any, **more: Any) -> np.ndarray:
    test = {"sanitizer": {"name": "mondrian", "k": 2}, "adversary": "conditional-frequency", **more}
    (point,) = points(rows, WORKED_SCHEMA, [test])
    everyone = np.arange(rows.table.distinct)
    distances: np.ndarray = ENGINES[point.engine].influence(rows.table, everyone, point.procedure).distance[rows.index]
    return distances


def build(text: str, tmp_path: Path, schema: Any = WORKED_SCHEMA, frame: pd.DataFrame = WORKED) -> Point:
    (tmp_path / "prior.csv").write_text(text)
    return points(loaded(frame, schema), schema, [{"sanitizer": "raw", "prior": str(tmp_path / "prior.csv")}])[0]


def test_groups_of_several_columns_are_found_by_their_values(tmp_path: Path) -> None:
    lines = "age;gender;value;probability\n28.0;M;Flu;0.9\n28.0;M;Cancer;0.1\n99;F;Cancer;0.5\n99;F;Flu;0.5\n"
    prior = build(lines, tmp_path).procedure.prior
    assert (prior.places, dict(prior.group_of)) == ((0, 1), {(0, 1): 0})
    assert prior.probabilities.tolist() == [[0.1, 0.9], [0.5, 0.5]]


def test_the_id_of_a_test_changes_only_if_it_has_a_prior(tmp_path: Path) -> None:
    named = build("Flu;0.5\nCancer;0.5\n", tmp_path)
    assert named.id.startswith("raw.prior-")
    assert points(loaded(WORKED, WORKED_SCHEMA), WORKED_SCHEMA, [{"sanitizer": "raw"}])[0].id == "raw"
    assert "prior" not in checked(WORKED_SCHEMA).tests[0].identity()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "is empty; expected lines value;probability"),
        ("Flu;0.5\nCancer;0.4\n", ": probabilities must sum to 1; got 0.9"),
        ("Flu;1\n", ": misses 1 of the 2 values of 'disease'"),
        ("Flu;0.5\nCold;0.5\n", ", line 2: not one of the 2 values of 'disease'"),
        ("Flu;0.5\nFlu;0.5\n", ", line 2: the value is listed twice"),
        ("Flu;0\nCancer;1\n", ", line 1: the probability must be a number above 0 and at most 1"),
        ("Flu;half\nCancer;0.5\n", ", line 1: the probability must be a number above 0 and at most 1"),
        ("Flu;0.5\nCancer\n", ", line 2: expected 2 cells value;probability; got 1"),
        ("M;Flu;0.5\nM;Cancer;0.5\n", ", line 1: expected 2 cells value;probability; got 3"),
        ("gander;value;probability\nM;Flu;0.5\nM;Cancer;0.5\n", ": column: unknown 'gander'; did you mean 'gender'?"),
        ("gender;value;probability\nM;Flu;0.5\nM;Cancer;0.4\n", ", group 1 of 1: probabilities must sum to 1; got 0.9"),
        ("gender;value;probability\nX;Flu;0.5\nX;Cancer;0.5\n", "has no group of gender that is in the table"),
        ("age;v;probability\n28;Flu;0.5\n28;Cancer;0.5\n28.0;Flu;0.5\n28.0;Cancer;0.5\n", "writes one group in two ways"),
        ("probability\n0.5\n", ": its header must be different columns, the value and probability"),
    ],
)
def test_a_wrong_prior_is_one_clear_line_without_values(text: str, line: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refusal:
        build(text, tmp_path)
    message = str(refusal.value)
    assert message.startswith("tests[0].prior: ")
    assert line in message
    assert "Cancer" not in message


def test_dates_are_no_groups(tmp_path: Path) -> None:
    schema = WORKED_SCHEMA | {"quasi_identifiers": {"age": {"kind": "date"}}}
    frame = WORKED.assign(age=["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04", "2020-01-05"])
    with pytest.raises(InputError, match="column 'age' must not be dates"):
        build("age;value;probability\n2020-01-01;Flu;0.5\n2020-01-01;Cancer;0.5\n", tmp_path, schema, frame)


def test_noisy_counts_have_no_prior() -> None:
    with pytest.raises(InputError, match=r"tests\[0\].prior: noisy counts are the belief itself"):
        checked(WORKED_SCHEMA, [{"sanitizer": {"name": "laplace", "epsilon": 1}, "prior": "prior.csv"}])


def test_laws_of_repeated_releases_are_weighed_draw_by_draw(tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": [1, 2, 3, 4] * 6, "gender": list("MF") * 12, "disease": ["Flu", "Flu", "Cancer"] * 8})
    (tmp_path / "prior.csv").write_text("gender;value;probability\nM;Flu;0.2\nM;Cancer;0.8\n")
    rows, table = loaded(frame, WORKED_SCHEMA), loaded(frame, WORKED_SCHEMA).table
    test = {"sanitizer": {"name": "resample"}, "repeats": 4, "adversary": "bernoulli-nb"}
    plain, weighed = points(rows, WORKED_SCHEMA, [test, test | {"prior": str(tmp_path / "prior.csv")}])
    everyone = np.arange(table.distinct)
    ((learned,), _, _) = compute_beliefs([table], everyone, [plain.procedure])
    expected = []
    for record in everyone:
        prior = {"Cancer": 0.8, "Flu": 0.2} if table.schema.quasi_identifiers[1].levels[table.codes[record, 1]] == "M" else None
        sides = [
            [weigh(draw, prior, ["Cancer", "Flu"]) for draw in side[record].tolist()]
            for side in (learned["bernoulli-nb"].full, learned["bernoulli-nb"].without)
        ]
        gaps = [
            abs(x - y)
            for value in (0, 1)
            for x, y in zip(*(sorted(draw[value] for draw in side) for side in sides), strict=True)
        ]
        expected.append(sum(gaps) / 4)
    found = ENGINES[weighed.engine].influence(table, everyone, weighed.procedure)
    np.testing.assert_allclose(found.distance, expected, rtol=0, atol=1e-12)  # sums in another order
