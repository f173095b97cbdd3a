"""Libraries that we did not write, behind our adapters, called as the shipped configs call them."""

from __future__ import annotations

import csv
from collections import Counter
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dit_dask.adapters.anonypyx import mondrian
from dit_dask.adapters.kbins import STRATEGIES, kbins
from dit_dask.errors import InputError
from dit_dask.inputs import datasets
from tests.conftest import ROOT
from tests.third_party import environment
from tests.third_party.published import anonymity, covers, leaves

SECRET = "occupation"


def config(name: str) -> dict[str, Any]:
    return yaml.safe_load((ROOT / "configs" / f"{name}.yaml").read_text("utf-8"))


def called(document: dict[str, Any], test: int = 0) -> tuple[str, dict[str, Any]]:
    """The target and the parameters of a test, where the `python` sanitizer finds them."""
    sanitizer = document["tests"][test]["sanitizer"]
    assert sanitizer["name"] == "python"
    return sanitizer["target"], sanitizer["params"]


def resolved(target: str) -> Any:
    module, name = target.split(":")
    return getattr(import_module(module), name)


def table_of(document: dict[str, Any], folder: Path) -> tuple[pd.DataFrame, list[str], list[str]]:
    """The frame that the sanitizer gets, its quasi-identifiers, and the numeric ones."""
    kinds = document["schema"]["quasi_identifiers"]
    numeric = [name for name, entry in kinds.items() if entry["kind"] == "numeric"]
    rows = pd.read_csv(folder / "adult.csv", dtype=str, keep_default_na=False)[[*kinds, SECRET]]
    rows = rows[(rows != "?").all(axis=1)].head(document["data"]["limit"]).reset_index(drop=True)
    return rows.astype(dict.fromkeys(numeric, np.int64)), list(kinds), numeric


# --- scikit-learn's KBinsDiscretizer


@pytest.mark.parametrize("test", [0, 1])
def test_kbins_publishes_intervals_that_hold_their_values(data_folder: Path, test: int) -> None:
    document = config("kbins")
    frame, keys, numeric = table_of(document, data_folder)
    before = frame.copy()
    target, params = called(document, test)
    release = resolved(target)(frame, **params)
    assert list(release.columns) == [*keys, SECRET]
    assert len(release) == len(frame) == 500
    for column in numeric:
        assert 2 <= release[column].nunique() <= params["bins"]
        assert all(map(covers, release[column], frame[column]))
    assert release[["education", SECRET]].equals(frame[["education", SECRET]])
    assert frame.equals(before)
    assert release.equals(resolved(target)(frame, **params))


def test_an_inner_edge_belongs_to_the_bin_above_and_the_maximum_to_the_last() -> None:
    frame = pd.DataFrame({"x": [0, 1, 2, 3, 4], "s": list("abcde")})
    release = kbins(frame, ["x"], bins=2, strategy="uniform")
    assert list(release["x"]) == ["[0, 2)", "[0, 2)", "[2, 4]", "[2, 4]", "[2, 4]"]


def test_quantile_bins_agree_with_numpy() -> None:
    values = np.random.default_rng(4).permutation(100) + 0.5
    release = kbins(pd.DataFrame({"x": values}), ["x"], bins=4)
    edges = [float(np.quantile(values, q, method="averaged_inverted_cdf")) for q in (0, 0.25, 0.5, 0.75, 1)]
    assert sorted(set(release["x"])) == sorted(
        f"[{_short(low)}, {_short(high)}{'])'[high < edges[-1]]}" for low, high in pairwise(edges)
    )


def _short(value: float) -> str:
    return f"{value:.0f}" if value.is_integer() else str(value)


def test_a_constant_column_says_nothing() -> None:
    assert list(kbins(pd.DataFrame({"x": [7, 7, 7]}), ["x"], bins=2)["x"]) == ["*"] * 3


@given(
    values=st.lists(st.floats(-1e6, 1e6, allow_subnormal=False) | st.integers(-50, 50), min_size=2, max_size=40),
    bins=st.integers(2, 6),
    strategy=st.sampled_from(STRATEGIES),
)
@settings(max_examples=80, deadline=None)
def test_every_number_lies_in_its_published_bin(values: list[float], bins: int, strategy: str) -> None:
    frame = pd.DataFrame({"x": np.array(values, dtype=float)})
    release = kbins(frame, ["x"], min(bins, len(values)), strategy)
    assert all(map(covers, release["x"], frame["x"]))


# --- Mondrian of anonypyx


@pytest.mark.parametrize(("test", "goal"), [(0, {"k": 5, "l": 1}), (1, {"k": 5, "l": 3})])
def test_anonypyx_keeps_its_promise_on_adult(data_folder: Path, test: int, goal: dict[str, int]) -> None:
    document = config("anonypyx-mondrian")
    frame, keys, _ = table_of(document, data_folder)
    before = frame.copy()
    target, params = called(document, test)
    release = resolved(target)(frame, **params)
    found = anonymity(release, keys, SECRET)
    assert found["k"] >= goal["k"]
    assert found["l"] >= goal["l"]
    assert len(release.groupby(keys)) > 20, "one class would keep any promise"
    assert Counter(release[SECRET]) == Counter(frame[SECRET]), "every record is published once"
    assert_matches(release, frame, keys)
    assert frame.equals(before)
    assert release.equals(resolved(target)(frame, **params))


def assert_matches(release: pd.DataFrame, frame: pd.DataFrame, keys: list[str]) -> None:
    """Every published class has as many originals with its secrets as it says, all covered by its values."""
    for values, group in release.groupby(keys):
        inside = frame[[all(map(covers, values, row)) for row in frame[keys].itertuples(index=False)]]
        assert not Counter(group[SECRET]) - Counter(inside[SECRET])


def test_anonypyx_on_a_table_cut_by_hand() -> None:
    frame = pd.DataFrame(
        {"age": [20, 21, 40, 41, 60, 61], "town": ["Lyon", "Lyon", "Nice", "Bonn", "Bonn", "Bonn"], "illness": list("abcabc")}
    )
    release = mondrian(frame.set_axis([8, 8, 1, 0, 5, 5]), ["age", "town"], "illness", k=2)  # labels do not matter
    # median 40.5: three rows each side, which cannot be cut again
    assert sorted(map(tuple, release.to_numpy())) == [
        *(("[20, 40]", "{Lyon, Nice}", secret) for secret in "abc"),
        *(("[41, 61]", "Bonn", secret) for secret in "abc"),
    ]


def test_the_cut_of_a_category_follows_the_order_of_rows() -> None:
    frame = pd.DataFrame({"town": list("aabbccdd"), "s": list("xyxyxyxy")})
    shuffled = frame.iloc[[0, 4, 2, 6, 1, 5, 3, 7]]
    releases = [set(mondrian(table, ["town"], "s", k=4)["town"]) for table in (frame, shuffled)]
    assert releases == [{"{a, b}", "{c, d}"}, {"{a, c}", "{b, d}"}]


def test_names_and_values_that_look_like_the_librarys_own_do_no_harm() -> None:
    frame = pd.DataFrame(
        {"a": ["b_c", "b_c", "x", "x"], "a_b": ["c", "c", "y", "y"], "count": [1, 1, 9, 9], "group_id": list("pqpq")}
    )
    release = mondrian(frame, ["a", "a_b", "count"], "group_id", k=2)
    assert Counter(map(tuple, release.to_numpy())) == Counter(
        [("b_c", "c", "1", "p"), ("b_c", "c", "1", "q"), ("x", "y", "9", "p"), ("x", "y", "9", "q")]
    )


def test_labels_with_commas_are_joined_by_tildes() -> None:
    frame = pd.DataFrame({"job": ["cook, chef", "clerk"], "s": ["x", "y"]})
    assert set(mondrian(frame, ["job"], "s", k=2)["job"]) == {"clerk~cook, chef"}
    with pytest.raises(InputError, match="could not be read back"):
        mondrian(pd.DataFrame({"job": ["a,b", "a~b"], "s": ["x", "y"]}), ["job"], "s", k=2)


@pytest.mark.parametrize(
    ("closeness", "distance", "t"),
    [("max distance", max, 0.4), ("earth mover's distance", lambda differences: sum(differences) / 2, 0.5)],
)
def test_t_is_what_the_library_says_it_is(data_folder: Path, closeness: str, distance: Any, t: float) -> None:
    frame, _, _ = table_of(config("anonypyx-mondrian"), data_folder)
    keys = ["education", "marital-status"]
    release = mondrian(frame, keys, SECRET, k=5, t=t, closeness=closeness)
    whole = frame[SECRET].value_counts(normalize=True)
    farthest = max(
        distance(abs(group[SECRET].value_counts(normalize=True).reindex(whole.index, fill_value=0) - whole))
        for _, group in release.groupby(keys)
    )
    assert t / 2 < farthest <= t, "a bound that binds, and holds"


@given(
    rows=st.lists(st.tuples(st.integers(-9, 9), st.sampled_from("uvw"), st.sampled_from("xyz")), min_size=2, max_size=25),
    k=st.integers(1, 4),
)
@settings(max_examples=25, deadline=None)
def test_mondrian_of_any_table_is_k_anonymous_and_true(rows: list[tuple[int, str, str]], k: int) -> None:
    frame = pd.DataFrame(rows, columns=["age", "town", SECRET])
    release = mondrian(frame, ["age", "town"], SECRET, k=min(k, len(rows)))
    assert anonymity(release, ["age", "town"], SECRET)["k"] >= min(k, len(rows))
    assert Counter(release[SECRET]) == Counter(frame[SECRET])
    assert_matches(release, frame, ["age", "town"])


# --- anjana, in the environment that it needs

GOALS = [("anjana-k", {"k": 5}), ("anjana-l", {"k": 5, "l": 4}), ("anjana-t", {"k": 5, "t": 0.5})]


@pytest.fixture(scope="module", params=GOALS, ids=[name for name, _ in GOALS])
def anjana(request: pytest.FixtureRequest, data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A release by anjana, called through a command as the config's sanitizer would call the function."""
    environment.required()
    name, goal = request.param
    folder = tmp_path_factory.mktemp(name)
    document = config(name)
    frame, keys, numeric = table_of(document, data_folder)
    target, params = called(document)
    argv = environment.adapter(target, params, numeric, folder)
    release = environment.command(argv, frame, folder, PYTHONHASHSEED="1")
    return {"release": release, "frame": frame, "keys": keys, "params": params, "goal": goal, "argv": argv, "folder": folder}


def test_anjana_keeps_its_promise_by_our_count_and_by_pycanon(anjana: dict[str, Any]) -> None:
    release, goal = anjana["release"], anjana["goal"]
    found = anonymity(release, anjana["keys"], SECRET)
    assert found["k"] >= goal["k"]
    assert found["l"] >= goal.get("l", 1)
    assert found["t"] <= goal.get("t", 1)
    assert len(release.groupby(anjana["keys"])) > 1, "one class would keep any promise"
    (theirs,) = environment.pycanon([release], anjana["keys"], SECRET, anjana["folder"])
    assert {key: theirs[key] for key in found} == pytest.approx(found, abs=1e-12)  # two orders of summing the shares


def test_anjana_suppresses_exactly_the_small_classes_of_its_recoding(anjana: dict[str, Any]) -> None:
    """Recode every row with the levels seen in the release: what is missing there must be all classes below k."""
    release, frame, keys, params = (anjana[key] for key in ("release", "frame", "keys", "params"))
    assert list(release.columns) == [*keys, SECRET], "no column that tells where a row was"
    recoded = pd.DataFrame({key: _recoded(frame[key], params["hierarchies"][key], set(release[key])) for key in keys})
    recoded[SECRET] = frame[SECRET]
    if anjana["goal"].keys() == {"k"}:
        sizes = recoded.groupby(keys)[SECRET].transform("size")
        recoded = recoded[sizes >= params["k"]]
        assert len(frame) - len(recoded) > 0, "the config asks for suppression"
        assert recoded.reset_index(drop=True).equals(release)
    lost = len(frame) - len(release)
    assert lost <= params["suppression"] * len(frame) / 100
    assert not Counter(map(tuple, release.to_numpy())) - Counter(map(tuple, recoded.to_numpy()))


def _recoded(column: pd.Series[Any], source: Any, published: set[str]) -> list[str]:
    """The only level of a hierarchy whose values are those published, applied to a whole column."""
    if isinstance(source, list):
        ladders = {value: [str(value), *(_bucket(value, width) for width in source), "*"] for value in column}
    else:
        with open(datasets.resolve(source), encoding="utf-8") as file:
            paths = {row[0]: row for row in csv.reader(file, delimiter=";")}
        depth = max(map(len, paths.values()))
        # a shallow leaf stays itself until its parent's turn comes
        ladders = {leaf: [leaf] * (depth - len(path)) + path for leaf, path in paths.items()}
    for level in range(len(next(iter(ladders.values())))):
        recoded = [ladders[value][level] for value in column]
        if published <= set(recoded):
            return recoded
    raise AssertionError("no level of the hierarchy holds the published values")


def _bucket(value: int, width: int) -> str:
    return f"[{value - value % width}, {value - value % width + width})"


def test_anjana_gives_the_same_table_whatever_the_hash_seed(anjana: dict[str, Any]) -> None:
    again = environment.command(anjana["argv"], anjana["frame"], anjana["folder"], PYTHONHASHSEED="2")
    assert again.equals(anjana["release"])


def test_labels_of_rows_are_not_taken_for_positions(data_folder: Path, tmp_path: Path) -> None:
    """The library takes them so; nothing is suppressed here, because that would renumber the rows and hide it."""
    environment.required()
    document = config("anjana-t")
    frame, _, numeric = table_of(document, data_folder)
    target, params = called(document)
    releases = [
        environment.command(
            environment.adapter(name, params | {"suppression": 0}, numeric, tmp_path), frame, tmp_path, PYTHONPATH=str(ROOT)
        )
        for name in (target, "tests.third_party.relabelled:t_closeness")
    ]
    assert releases[0].equals(releases[1])


def test_anjana_publishes_only_values_that_cover_the_originals(data_folder: Path, tmp_path: Path) -> None:
    """Without suppression rows stay in place, so each can be held against its own original."""
    environment.required()
    document = config("anjana-k")
    frame, keys, numeric = table_of(document, data_folder)
    target, params = called(document)
    argv = environment.adapter(target, params | {"suppression": 0}, numeric, tmp_path)
    release = environment.command(argv, frame, tmp_path)
    assert len(release) == len(frame)
    for key in keys:
        source = params["hierarchies"][key]
        below = leaves(Path(datasets.resolve(source))) if isinstance(source, str) else {}
        assert all(covers(published, value, below) for published, value in zip(release[key], frame[key], strict=True))


def test_anjana_on_a_table_done_by_hand(tmp_path: Path) -> None:
    """Two ages a decade, one person alone: suppressed if 20 % may be, else everything becomes *."""
    environment.required()
    frame = pd.DataFrame({"age": [20, 29, 30, 39, 50], "town": ["a", "a", "b", "b", "c"], "illness": list("xyxyx")})
    params: dict[str, Any] = {"quasi_identifiers": ["age", "town"], "k": 2, "hierarchies": {"age": [10]}}
    target = "dit_dask.adapters.anjana:k_anonymity"
    lenient = environment.command(environment.adapter(target, params | {"suppression": 20}, ["age"], tmp_path), frame, tmp_path)
    assert list(lenient["age"]) == ["[20, 30)", "[20, 30)", "[30, 40)", "[30, 40)"]
    assert list(lenient["town"]) == ["a", "a", "b", "b"]
    strict = environment.command(environment.adapter(target, params, ["age"], tmp_path), frame, tmp_path)
    assert set(strict["age"]) | set(strict["town"]) == {"*"}
    assert list(strict["illness"]) == list("xyxyx")
    # what is anonymous already stays as it is, and what anjana prints then does not reach standard output
    as_it_was = environment.command(environment.adapter(target, params | {"k": 1}, ["age"], tmp_path), frame, tmp_path)
    assert as_it_was.equals(frame.astype(str))
