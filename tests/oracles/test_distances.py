"""Every distance against scipy or a hand-made formula."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy, wasserstein_distance

from dit_dask.distances import SIMPLE, OrderedWasserstein, TreeWasserstein, Wasserstein, great_circles
from dit_dask.errors import InputError
from dit_dask.values.hierarchy import parse
from tests.audits import loaded, points

belief = st.lists(st.integers(0, 20), min_size=2, max_size=6).filter(any).map(lambda counts: np.array(counts) / sum(counts))
pairs = st.integers(2, 6).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(0, 20), min_size=n, max_size=n).filter(any) for _ in "pq"))
)


def normal(counts: list[int]) -> np.ndarray:
    return np.array(counts, float)[None, :] / sum(counts)


@given(pairs)
def test_sums_divergences_and_ratios_agree_with_scipy(pair: tuple[list[int], list[int]]) -> None:
    p, q = normal(pair[0]), normal(pair[1])
    got = {name: float(distance(p, q)[0]) for name, distance in SIMPLE.items()}
    total = np.abs(p - q).sum()
    assert got["emd"] == pytest.approx(total, abs=1e-15)
    assert got["tv"] == pytest.approx(total / 2, abs=1e-15)
    assert got["emd-v1"] == pytest.approx(total / 4, abs=1e-15)
    assert got["kl"] == pytest.approx(entropy(p[0], q[0]), abs=1e-12)
    assert got["js"] == pytest.approx(jensenshannon(p[0], q[0]) ** 2 if total else 0.0, abs=1e-12)
    assert got["hellinger"] == pytest.approx(math.sqrt(max(0.0, 1 - np.sqrt(p * q).sum())), abs=1e-7)
    both = (p[0] > 0) | (q[0] > 0)
    with np.errstate(divide="ignore"):
        assert got["max-ratio"] == pytest.approx(np.abs(np.log(p[0][both]) - np.log(q[0][both])).max(), abs=1e-12)
    assert not any(math.isnan(value) for value in got.values())


@given(pairs)
def test_symmetric_distances_are_symmetric_and_zero_only_between_equals(pair: tuple[list[int], list[int]]) -> None:
    p, q = normal(pair[0]), normal(pair[1])
    for name in ("emd", "tv", "emd-v1", "js", "hellinger", "max-ratio"):
        assert SIMPLE[name](p, q)[0] == pytest.approx(SIMPLE[name](q, p)[0], abs=1e-15)
        assert SIMPLE[name](p, p)[0] == 0
        assert (SIMPLE[name](p, q)[0] > 0) == (not np.array_equal(p, q))


def test_mass_that_the_other_side_denies_is_infinite_never_nan() -> None:
    p, q = np.array([[1.0, 0.0, 0.0]]), np.array([[0.5, 0.5, 0.0]])
    assert SIMPLE["kl"](q, p)[0] == math.inf
    assert SIMPLE["max-ratio"](p, q)[0] == math.inf
    assert SIMPLE["kl"](p, q)[0] == pytest.approx(math.log(2))


@settings(max_examples=50, deadline=None)
@given(pairs)
def test_wasserstein_on_a_line_is_scipys_in_closed_form_and_by_transport(pair: tuple[list[int], list[int]]) -> None:
    p, q = normal(pair[0]), normal(pair[1])
    places = np.array([0.0, 1.0, 1.5, 4.0, 9.0, 9.5])[: p.shape[1]]
    expected = wasserstein_distance(places, places, p[0], q[0])
    assert Wasserstein(np.abs(places[:, None] - places))(p, q)[0] == pytest.approx(expected, abs=1e-9)
    assert OrderedWasserstein(np.diff(places))(p, q)[0] == pytest.approx(expected, abs=1e-14)  # sums of six terms
    assert OrderedWasserstein(np.diff(places))(p, p)[0] == 0


def test_wasserstein_of_many_records_and_1500_salaries_is_scipys_row_by_row() -> None:
    rng = np.random.default_rng(5)
    salaries = np.sort(rng.integers(20_000, 90_000, 1_500)).astype(float)
    p, q = (rng.dirichlet(np.full(1_500, 0.05), 40) for _ in "pq")
    expected = [wasserstein_distance(salaries, salaries, a, b) for a, b in zip(p, q, strict=True)]
    np.testing.assert_allclose(OrderedWasserstein(np.diff(salaries))(p, q), expected, rtol=1e-10)  # rounding of 1,500 sums


def test_what_beliefs_lack_of_1_counts_at_the_last_value() -> None:
    p, q = np.array([[0.5, 0.5 - 2**-40]]), np.array([[0.5, 0.5]])
    assert OrderedWasserstein(np.array([70_000.0]))(p, q)[0] == 0


@settings(max_examples=25, deadline=None)
@given(pairs, st.integers(0, 2**32 - 1))
def test_wasserstein_on_any_ground_is_the_linear_program(pair: tuple[list[int], list[int]], seed: int) -> None:
    p, q = normal(pair[0]), normal(pair[1])
    n = p.shape[1]
    cost = np.random.default_rng(seed).random((n, n))
    cost = np.triu(cost, 1) + np.triu(cost, 1).T
    assert Wasserstein(cost)(p, q)[0] == pytest.approx(transport(p[0], q[0], cost), abs=1e-9)


FRAME = pd.DataFrame({"x": [1, 2, 3, 4], "s": ["flu", "cold", "gout", "flu"]})
SCHEMA = {"quasi_identifiers": {"x": {"kind": "numeric"}}, "sensitive": "s"}


def distance(name: str, schema: dict = SCHEMA, frame: pd.DataFrame = FRAME) -> OrderedWasserstein | Wasserstein:
    rows = loaded(frame, schema)
    (point,) = points(rows, schema, [{"sanitizer": "raw", "distance": {"name": "wasserstein", "ground": name}}])
    return point.procedure.distance


def ground(name: str, schema: dict = SCHEMA) -> np.ndarray:
    return distance(name, schema).cost


def ordered(secrets: list[str], order: list[str] | None = None) -> list[float]:
    schema = {**SCHEMA, "sensitive": {"name": "s", "order": order} if order else "s"}
    return distance("ordered", schema, FRAME.assign(s=secrets)).gaps.tolist()


def test_an_ordered_ground_has_the_gaps_of_numbers_unless_the_given_order_contradicts_them() -> None:
    numbers = ["1", "10", "4", "1"]
    assert ordered(numbers) == [3, 6]
    assert ordered(numbers, ["10", "4", "1"]) == [6, 3]
    assert ordered(numbers, ["10", "1", "4"]) == [1, 1]


def test_an_ordered_ground_of_other_values_needs_an_order() -> None:
    values = ["flu", "cold", "gout", "flu"]
    assert ordered(values, ["gout", "flu", "cold"]) == [1, 1]
    for without_order in (values, ["1", "inf", "nan", "1"]):
        with pytest.raises(InputError, match=r"tests\[0\]\.distance\.ground: ordered needs schema\.sensitive\.order"):
            ordered(without_order)


@pytest.mark.parametrize(
    ("bins", "gaps"),
    [([0, 10, 50, 1000], [25, 495]), (["-inf", 10, 50, "inf"], [22.5, 445]), ([0, 10, 50, "inf"], [25, 445]), (2, [454])],
)
def test_bins_lie_on_a_line_at_their_middles(bins: Any, gaps: list[float]) -> None:
    """The middles are of 0, 10, 50 and 1000; of 5, 10, 50 and 900; of 5 and 7, 20 and 900."""
    found = distance("ordered", {**SCHEMA, "sensitive": {"name": "s", "bins": bins}}, FRAME.assign(s=[5, 20, 900, 7]))
    assert found.gaps.tolist() == gaps


def test_missing_cells_have_no_place_in_an_order() -> None:
    ranked = {**SCHEMA, "sensitive": {"name": "s", "order": ["gout", "flu", "cold"]}}
    rows = loaded(FRAME.assign(s=["flu", "", "gout", "cold"]), ranked, missing_as="category")
    assert rows.table.schema.sensitive.levels == ("gout", "flu", "cold", "(missing)")
    assert not rows.table.schema.sensitive.has_order


def certain(measure: Any, values: int) -> list[list[float]]:
    """The distance between being certain of one value and of another: the ground distance."""
    sure = np.eye(values)
    return [[float(measure(sure[[a]], sure[[b]])[0]) for b in range(values)] for a in range(values)]


def test_hierarchy_ground_is_the_path_length(tmp_path: Path) -> None:
    tree = tmp_path / "s.csv"
    tree.write_text("flu;virus;*\ncold;virus;*\ngout;*\n")
    schema = {**SCHEMA, "sensitive": {"name": "s", "hierarchy": str(tree)}}
    assert certain(distance("hierarchy", schema), 3) == [[0, 2, 3], [2, 0, 3], [3, 3, 0]]
    with pytest.raises(InputError, match=r"needs schema.sensitive.hierarchy"):
        distance("hierarchy")


def test_generalised_values_of_the_papers_figure_2_have_its_path_lengths(tmp_path: Path) -> None:
    tree = tmp_path / "s.csv"
    tree.write_text("Engineer;Professional;ANY\nLawyer;Professional;ANY\nDancer;Artist;ANY\nWriter;Artist;ANY\n")
    values = ["ANY", "Artist", "Dancer", "Engineer", "Lawyer", "Professional", "Writer"]
    frame = pd.DataFrame({"x": range(7), "s": values})
    schema = {**SCHEMA, "sensitive": {"name": "s", "hierarchy": str(tree)}}
    lengths = certain(distance("hierarchy", schema, frame), 7)
    assert lengths[values.index("Engineer")][values.index("Artist")] == 3
    assert lengths[values.index("Dancer")][values.index("Writer")] == 2
    assert lengths[values.index("ANY")] == [0, 1, 2, 2, 2, 1, 2]
    with pytest.raises(InputError, match="has no node for 1 values of column 's'"):
        distance("hierarchy", schema, frame.assign(s=[*values[:6], "Poet"]))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_wasserstein_on_a_tree_is_the_linear_program_over_its_path_lengths(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parent = [-1, *(int(rng.integers(node)) for node in range(1, rng.integers(3, 12)))]
    paths = [_path(parent, node) for node in range(len(parent)) if node not in parent]
    tree = parse("\n".join(";".join(f"n{step}" for step in path) for path in paths), "tree")
    chosen = sorted(rng.choice(len(parent), rng.integers(2, len(parent) + 1), replace=False).tolist())
    cost = np.array([[float(len(set(_path(parent, a)) ^ set(_path(parent, b)))) for b in chosen] for a in chosen])
    p, q = (rng.dirichlet(np.full(len(chosen), 0.5), 3) for _ in "pq")
    found = TreeWasserstein.of(tree, [f"n{node}" for node in chosen])(p, q)
    for row in range(3):
        assert found[row] == pytest.approx(transport(p[row], q[row], cost), abs=1e-9)  # the solver's tolerance
    np.testing.assert_allclose(found, Wasserstein(cost)(p, q), atol=1e-9)
    assert not TreeWasserstein.of(tree, [f"n{node}" for node in chosen])(p, p).any()


def _path(parent: list[int], node: int) -> list[int]:
    """A node and those above it."""
    return [node] if node == 0 else [node, *_path(parent, parent[node])]


def transport(p: np.ndarray, q: np.ndarray, cost: np.ndarray) -> float:
    """The cheapest way to move one distribution to another, as a linear program."""
    n = len(p)
    rows, columns = np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))
    best = linprog(cost.ravel(), A_eq=np.vstack([rows, columns])[:-1], b_eq=np.concatenate([p, q])[:-1])
    return float(best.fun)


def test_rank_counts_places_in_the_order_whatever_the_gaps_are() -> None:
    numbers = FRAME.assign(s=["1", "10", "4", "1"])
    assert distance("rank", frame=numbers).gaps.tolist() == [1, 1]
    ranked = {**SCHEMA, "sensitive": {"name": "s", "order": ["gout", "flu", "cold"]}}
    assert certain(distance("rank", ranked), 3) == [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    binned = {**SCHEMA, "sensitive": {"name": "s", "bins": [0, 10, 50, 1000]}}
    assert distance("rank", binned, FRAME.assign(s=[5, 20, 900, 7])).gaps.tolist() == [1, 1]
    with pytest.raises(InputError, match=r"tests\[0\]\.distance\.ground: rank needs schema\.sensitive\.order or bins"):
        distance("rank")


CITIES = {"London": (51.5074, -0.1278), "Paris": (48.8566, 2.3522), "Suva": (-18.1248, 178.4501), "Apia": (-13.8333, -171.7667)}


def geographic(text: str, tmp_path: Path, **keys: Any) -> Any:
    (tmp_path / "places.csv").write_text(text)
    chosen = {"name": "wasserstein", "ground": "geographic", "coordinates": str(tmp_path / "places.csv")} | keys
    frame = pd.DataFrame({"x": range(4), "s": sorted(CITIES)})
    test = {"sanitizer": "raw", "distance": {key: value for key, value in chosen.items() if value is not None}}
    return points(loaded(frame, SCHEMA), SCHEMA, [test])[0].procedure.distance


def test_geographic_ground_is_the_angle_between_places_times_the_radius_of_the_earth(tmp_path: Path) -> None:
    lines = "".join(f"{city};{place[0]};{place[1]}\n" for city, place in CITIES.items())
    for header in ("", "city;latitude;longitude\nOslo;59.9;10.7\n"):
        cost = geographic(header + lines, tmp_path).cost
        names = sorted(CITIES)
        for a in names:
            for b in names:
                (x, y), (u, v) = ([math.radians(angle) for angle in CITIES[city]] for city in (a, b))
                one, other = (
                    (math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat))
                    for lat, lon in ((x, y), (u, v))
                )
                angle = 2 * math.asin(math.dist(one, other) / 2)
                assert cost[names.index(a), names.index(b)] == pytest.approx(6371.0088 * angle, abs=1e-6)
        assert cost[names.index("London"), names.index("Paris")] == pytest.approx(343.6, abs=0.1)
        assert cost[names.index("Suva"), names.index("Apia")] < 1200  # across the date line


def test_antipodes_are_half_the_way_round() -> None:
    found = great_circles(np.array([[0.0, 0.0], [0.0, 180.0], [90.0, 5.0], [-90.0, 99.0]]))
    half = math.pi * 6371.0088
    np.testing.assert_allclose(found, half * np.array([[0, 1, 0.5, 0.5], [1, 0, 0.5, 0.5], [0.5, 0.5, 0, 1], [0.5, 0.5, 1, 0]]))


@pytest.mark.parametrize(
    ("text", "keys", "line"),
    [
        (
            "London;51.5\n",
            {},
            "tests[0].distance.coordinates: {}, line 1: expected value;latitude;longitude in decimal degrees",
        ),
        ("London;51,5;0\n", {}, "line 1: expected value;latitude;longitude in decimal degrees"),
        ("London;91;0\n", {}, "line 1: latitude must be from -90 to 90 and longitude from -180 to 180"),
        ("London;1;2\nLondon;1;3\n", {}, "line 2: the value has two places"),
        ("London;1;2\nParis;1;3\n", {}, "misses 2 of the 4 values of 's'"),
        ("", {"coordinates": None}, "tests[0].distance.coordinates is missing: geographic needs it"),
        ("", {"ground": "ordered"}, "tests[0].distance.coordinates is for ground: geographic"),
    ],
)
def test_wrong_coordinates_are_one_clear_line(text: str, keys: dict[str, Any], line: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refusal:
        geographic(text, tmp_path, **keys)
    assert line.format(tmp_path / "places.csv") in str(refusal.value)
    assert "London" not in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (",flu,cold,gout\nflu,0,1,2\ncold,1,0,2\ngout,2,2,0\n", ""),
        (",flu,cold\nflu,0,1\ncold,1,0\n", "must name each of the 3 sensitive values"),
        (",flu,cold,gout\nflu,0,1,2\ncold,9,0,2\ngout,2,2,0\n", "must be symmetric"),
        (",flu,cold,gout\nflu,0,x,2\ncold,x,0,2\ngout,2,2,0\n", "must hold numbers"),
        (",flu,cold,gout\nflu,0,1\ncold,1,0\ngout,2,2\n", "square matrix"),
    ],
)
def test_a_ground_matrix_comes_from_a_labelled_file(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "ground.csv"
    path.write_text(text)
    if message:
        with pytest.raises(InputError, match=message):
            ground(str(path))
    else:
        np.testing.assert_array_equal(ground(str(path)), [[0, 1, 2], [1, 0, 2], [2, 2, 0]])  # order: cold, flu, gout
