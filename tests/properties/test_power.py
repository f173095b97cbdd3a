"""The planted person against brute force: every candidate is added to the raw table, and adversaries learn again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dit_dask.adversaries import Adversary
from dit_dask.adversaries.bernoulli_nb import BernoulliNB
from dit_dask.adversaries.conditional_frequency import ConditionalFrequency
from dit_dask.adversaries.narrowest_class import NarrowestClass
from dit_dask.distances import SIMPLE
from dit_dask.encoders.tf import TF
from dit_dask.engines.power import attainable, attainable_counts
from dit_dask.kernels import laplace
from dit_dask.sanitizers.raw import Raw
from dit_dask.values.schema import Attribute, Schema, Secret
from dit_dask.values.table import Table, collapse
from tests.properties.code_tables import tables

UNHURRIED = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


def candidates(table: Table) -> list[tuple[tuple[int, ...], int]]:
    """Every q of the table, and the rarest combination of its values that nobody has, with every secret."""
    present = {tuple(codes) for codes in table.codes.tolist()}
    rarest = []
    for column in table.codes.T:
        rows = {code: int(table.weights[column == code].sum()) for code in sorted(set(column.tolist()))}
        rarest.append(sorted(rows, key=lambda code: (rows[code], code)))
    nobody = next((q for q in _product(rarest) if q not in present), None)
    known = sorted(present) + ([] if nobody is None else [nobody])
    return [(q, secret) for q in known for secret in range(len(table.schema.sensitive.levels))]


def _product(lists: list[list[int]]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    for values in lists:
        found = [(*q, value) for q in found for value in values][:5_000]
    return found


def planted(table: Table, q: tuple[int, ...], secret: int) -> Table:
    codes = np.concatenate([np.repeat(table.codes, table.weights, axis=0), np.array([q], np.int32)])
    secrets = np.append(np.repeat(table.secret, table.weights), secret).astype(np.int32)
    return collapse(table.schema, codes, secrets)[0]


def beliefs(table: Table, adversary: Adversary, q: tuple[int, ...]) -> np.ndarray:
    return adversary.beliefs(Raw().release(table, np.random.default_rng(0)), TF(), np.array(q, np.int32))


@settings(UNHURRIED, max_examples=40)
@given(tables(14, fewest_rows=2, fewest_secrets=1), st.sampled_from([BernoulliNB(), ConditionalFrequency()]))
def test_the_attainable_distance_is_the_largest_of_all_planted_persons(table: Table, adversary: Adversary) -> None:
    distances, gains = [], []
    for q, secret in candidates(table):
        sides = [beliefs(one, adversary, q) for one in (planted(table, q, secret), table)]
        distances.append(np.abs(sides[0] - sides[1]).sum())
        gains.append(sides[0][secret] - sides[1][secret])
    found = attainable(table, {"only": adversary}, TF(), SIMPLE["emd"], 0)
    assert found.distance == pytest.approx(max(distances), abs=1e-12)  # logarithms here, products there
    assert found.gain == pytest.approx(max(gains), abs=1e-12)
    assert (found.candidates, found.is_sampled, found.adversary) == (len(distances), False, "only")
    half = attainable(table, {"only": adversary}, TF(), SIMPLE["tv"], 0)
    assert half.distance == pytest.approx(found.distance / 2, abs=1e-12)


PANEL: dict[str, Adversary] = {"nb": BernoulliNB(), "cf": ConditionalFrequency(), "narrow": NarrowestClass()}


@settings(UNHURRIED, max_examples=40)
@given(tables(12, fewest_secrets=2), st.sampled_from(["emd", "js", "hellinger", "kl", "max-ratio"]))
def test_a_panel_reaches_the_largest_distance_and_the_largest_gain_of_any_member(table: Table, name: str) -> None:
    distances: dict[str, float] = {}
    gains = []
    for q, secret in candidates(table):
        for member, adversary in PANEL.items():
            with_person, without = (beliefs(one, adversary, q) for one in (planted(table, q, secret), table))
            moved = float(SIMPLE[name](with_person[None], without[None])[0])
            distances[member] = max(distances.get(member, 0.0), moved)
            gains.append(with_person[secret] - without[secret])
    found = attainable(table, PANEL, TF(), SIMPLE[name], 0)
    assert found.distance == pytest.approx(max(distances.values()), rel=1e-9, abs=1e-12)  # logarithms here, products there
    assert distances[found.adversary] == pytest.approx(found.distance, rel=1e-9, abs=1e-12)
    assert found.gain == pytest.approx(max(gains), abs=1e-12)


@settings(UNHURRIED, max_examples=40)
@given(tables(14, fewest_secrets=2))
def test_the_attainable_distance_of_counts_is_the_largest_without_noise(table: Table) -> None:
    secrets = len(table.schema.sensitive.levels)
    expected = []
    for q, secret in candidates(table):
        inside = (table.codes == np.array(q)).all(axis=1)
        counts = np.bincount(table.secret[inside], table.weights[inside], secrets)
        counts[secret] += 1
        order = np.argsort(-counts, kind="stable")
        own = np.flatnonzero(counts[order] == counts[secret])[-1]
        expected.append(laplace.distances(counts[order][None].astype(np.int64), np.array([own]), secrets, np.inf)[0])
    found = attainable_counts(table, 1.0, "counts")
    assert found.distance == pytest.approx(max(expected), abs=1e-12)


def test_sixty_diagnoses_cannot_exceed_the_bound() -> None:
    rng = np.random.default_rng(4)
    values = np.arange(400.0)
    schema = Schema((Attribute("age", "numeric", tuple(values), values),) * 2, Secret("s", tuple(f"d{n}" for n in range(60))))
    codes = rng.integers(0, 400, (300, 2)).astype(np.int32)
    table = collapse(schema, codes, rng.integers(0, 60, 300).astype(np.int32))[0]
    assert attainable_counts(table, 1.0, "counts").distance == pytest.approx(2 * 59 / (60 * 61), abs=1e-15)
