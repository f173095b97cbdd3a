"""What the discrimination rate accepts, refuses and shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import dit_dask as dit
from dit_dask import risk
from dit_dask.audit.grammar import check_config as check
from dit_dask.audit.grammar import read_config
from dit_dask.config.document import read_data_config
from dit_dask.errors import InputError
from dit_dask.execution.histograms import number_rows
from dit_dask.inputs.counted import CountedRows
from dit_dask.measures.discrimination.contingency import ContingencyTable
from dit_dask.measures.discrimination.listing import list_by_value
from dit_dask.run import prepare

TABLE = pd.DataFrame({"x": ["a", "b", None, "a"], "y": [1.0, 2.0, 1.0, np.nan], "z": list("pqrs")})
LONG = pd.DataFrame({"x": list("aabb") * 5, "y": list("cdcd") * 5})


@pytest.mark.parametrize(
    ("target", "keys", "more", "message"),
    [
        (TABLE["x"], TABLE["z"], {}, "1 rows miss a value of 'target'; choose missing=\"category\""),
        (TABLE["z"], TABLE[["x", "y"]], {}, "2 rows miss a value of 'x', 'y'; choose"),
        (TABLE["z"], TABLE[["z", "y"]], {}, "the target 'z' is also among the keys"),
        (TABLE["z"], TABLE["z"], {}, "the target 'z' is also among the keys"),
        (TABLE["z"][:0], TABLE[["x"]][:0], {}, "needs at least one row; the table has none"),
        (TABLE["z"], TABLE[[]], {}, "keys must have at least one column; got none"),
        (TABLE["z"], [1, 2], {}, "as many rows; got 4 and 2"),
        (TABLE["z"], TABLE["x"].iloc[::-1], {}, "the same index, row by row"),
        (TABLE[["z"]], TABLE["x"], {}, "target must be one column"),
        (LONG["x"], LONG["y"], {"missing": "own"}, "missing: unknown 'own'"),
        (LONG["x"], LONG["y"], {"estimator": "plugin"}, "did you mean 'plug-in'?"),
        (LONG["x"], LONG["y"], {"semantic": {"a": 1}}, "semantic: no group for 1 of the target's 2 values"),
        (LONG["x"], LONG["y"], {"semantic": ["a"]}, "semantic must be a mapping"),
        (LONG["x"], LONG["y"], {"semantic": {"hierarchy": "/nowhere.csv"}}, "semantic.hierarchy: cannot read"),
        (LONG["x"], [[1]] * 20, {}, ""),
        (pd.Series([[1], [2]]), [1, 2], {}, "column 'target' must hold single values"),
    ],
)
def test_wrong_input_is_one_clear_line(target: Any, keys: Any, more: dict[str, Any], message: str) -> None:
    if not message:
        assert dit.discrimination_rate(target, keys, **more) == 0.0  # a list of lists is an array of columns
        return
    with pytest.raises(InputError) as caught:
        dit.discrimination_rate(target, keys, **more)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (TABLE, "2 rows miss a value of the target or a key; choose missing"),
        (TABLE[:0], "needs at least one row"),
    ],
)
def test_wrong_input_on_dask_is_the_same_line(frame: pd.DataFrame, message: str) -> None:
    lazy = dd.from_pandas(frame, npartitions=2)
    for function in (dit.discrimination_rate, dit.discrimination_by_value, dit.discrimination_interval):
        with pytest.raises(InputError, match=message):
            function(lazy["z"], lazy[["x", "y"]])
    with pytest.raises(InputError, match="both be Dask collections"):
        dit.discrimination_rate(frame["z"], lazy["x"])
    with pytest.raises(InputError, match="same number of partitions"):
        dit.discrimination_rate(lazy["z"], dd.from_pandas(TABLE, npartitions=4)["x"])


@pytest.mark.parametrize("missing", ["category", "drop"])
def test_missing_cells_are_what_was_chosen(missing: str) -> None:
    table = pd.DataFrame({"x": ["a", "b", None, "a", "b", "c"] * 3, "y": [1.0, 2.0, 1.0, np.nan, 2.0, np.nan] * 3})
    spelled = table.fillna({"x": "?", "y": -1.0}) if missing == "category" else table.dropna()
    expected = dit.discrimination_rate(spelled["x"], spelled["y"])
    lazy = dd.from_pandas(table, npartitions=3)
    assert dit.discrimination_rate(table["x"], table["y"], missing=missing) == expected
    assert dit.discrimination_rate(lazy["x"], lazy["y"], missing=missing) == expected
    values = dit.discrimination_by_value(lazy["x"], lazy["y"], missing=missing)["value"]
    assert values.isna().sum() == (missing == "category")


def test_types_do_not_depend_on_the_block() -> None:
    table = pd.DataFrame({"x": [0.0, -0.0, 1, 2, 1, 2], "y": ["1", "1", "2", "2", "3", "3"], "b": [True, False] * 3})
    blocks = [table.iloc[:2], table.iloc[2:].assign(x=[1, 2, 1, 2])]  # integers in the second block
    lazy = dd.from_map(lambda place: blocks[place], [0, 1], meta=table.iloc[:0])
    for target, keys in (("y", ["x"]), ("x", ["y"]), ("x", ["y", "b"]), ("b", ["x"])):
        assert dit.discrimination_rate(lazy[target], lazy[keys]) == dit.discrimination_rate(table[target], table[keys])


def test_categories_and_dates_are_values() -> None:
    dates = pd.to_datetime(["2020-01-01", "2020-01-02"] * 10)
    table = LONG.assign(d=dates, c=LONG["y"].astype("category"))
    lazy = dd.from_pandas(table, npartitions=4)
    assert dit.discrimination_rate(table["c"], table["d"]) == dit.discrimination_rate(lazy["c"], lazy["d"]) == 1.0


def test_a_level_of_a_hierarchy_is_a_partition(tmp_path: Path) -> None:
    path = tmp_path / "illness.csv"
    path.write_text("flu;infection;*\ncold;infection;*\ngout;*\n", "utf-8")
    target, keys = ["flu", "cold", "gout", "gout"], [1, 2, 3, 3]
    by_level = dit.discrimination_rate(target, keys, {"hierarchy": str(path), "level": 1})
    assert by_level == dit.discrimination_rate(target, keys, {"flu": "i", "cold": "i", "gout": "*"})
    assert dit.discrimination_rate(target, keys, {"hierarchy": str(path), "level": 2}) == 1.0  # one group is left


def test_the_interval_is_the_same_for_the_same_seed_and_nearly_on_dask() -> None:
    table = pd.DataFrame({"x": list("aaab") * 10 + list("abbb") * 10, "y": ["c"] * 40 + ["d"] * 40})
    lazy = dd.from_pandas(table, npartitions=3)
    low, high = dit.discrimination_interval(table["x"], table["y"], seed=1)
    assert 0 <= low < dit.discrimination_rate(table["x"], table["y"]) < high <= 1
    assert (low, high) == dit.discrimination_interval(table["x"], table["y"], seed=1)
    assert (low, high) != dit.discrimination_interval(table["x"], table["y"], seed=2)
    # hashes number the pairs in another order, so other rows are drawn; the law is the same
    assert dit.discrimination_interval(lazy["x"], lazy["y"], seed=1) == pytest.approx((low, high), abs=0.03)
    with pytest.raises(InputError, match="level must be between 0 and 1"):
        dit.discrimination_interval(LONG["x"], LONG["y"], level=95)
    with pytest.raises(InputError, match="replicates must be an integer >= 50"):
        dit.discrimination_interval(LONG["x"], LONG["y"], replicates=5)


def test_rare_values_are_pooled_unless_asked_for() -> None:
    key = np.repeat([0, 1, 2], [10, 9, 3])
    profile = ContingencyTable.of(key, np.arange(22) % 3).profile()
    lines = list_by_value(profile, lambda place: f"secret {place}", show_values=False)
    assert [line["value"] for line in lines] == ["secret 0", None]
    assert (lines[1]["values"], lines[1]["count"]) == (2, 10)  # of 12 rows: numbers of rows are multiples of five
    assert lines[1]["refinement"] == round(np.average(profile.refinements[1:], weights=[9, 3]), 2)
    assert len(list_by_value(profile, str, show_values=True)) == 3


SCHEMA = {"quasi_identifiers": {"y": {"kind": "categorical"}}, "sensitive": "x"}
ATTACK = {"name": "discrimination", "attack": "homogeneity"}


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ({"name": "discrimination"}, "measures[0].keys is missing"),
        ({"name": "discrimination", "target": "x", "keys": ["x"]}, "the target 'x' is also among the keys"),
        ({"name": "discrimination", "target": "x", "keys": ["y", "y"]}, "names a column twice"),
        ({"name": "discrimination", "target": "q", "keys": ["y"]}, "data: no column 'q' among 2"),
        ({"name": "discrimination", "keys": ["y"], "semantic": {"c": "d"}}, "regroups a target column"),
        ({"name": "discrimination", "keys": ["y"], "semantic": "x"}, "semantic must be a mapping from values to groups"),
        ({"name": "discrimination", "keys": ["y"], "interval": 95}, "interval must be a level between 0 and 1"),
        ({"name": "discrimination", "keys": ["y"], "knowledge": "grey-box"}, "knowledge goes with attack: identity"),
        ({"name": "discrimination", "keys": ["y"], "show_values": "yes"}, "show_values must be true or false"),
        (ATTACK | {"target": "y"}, "the target of homogeneity is the sensitive attribute 'x'"),
        (ATTACK | {"attack": "identity", "target": "x"}, "the target of identity is the keys themselves"),
        (ATTACK | {"keys": ["z"]}, "measures[0].keys: quasi-identifier: unknown 'z'"),
        (ATTACK | {"knowledge": "black-box"}, "knowledge goes with attack: identity; got homogeneity"),
        (ATTACK | {"attack": "identity", "knowledge": "grey-box"}, "external goes with knowledge: grey-box"),
        (ATTACK | {"attack": "identity", "external": "a.csv"}, "no file at"),
        (ATTACK | {"attack": "semantic"}, "measures[0].semantic is missing"),
        (ATTACK | {"semantic": {"a": "b"}}, "semantic goes with attack: semantic or skewness"),
        (ATTACK | {"attack": "semantic", "semantic": {"a": "b"}}, "no group for 1 of the target's 2 values"),
        (ATTACK | {"attack": "identity", "knowledge": "black-box", "interval": 0.9}, "takes no estimator and no interval"),
        (ATTACK | {"missing": "drop"}, "a release has no missing cells"),
        (ATTACK | {"attack": "homogenity"}, "did you mean 'homogeneity'?"),
    ],
)
def test_a_wrong_measure_is_refused_before_any_work(measure: dict[str, Any], message: str) -> None:
    document = {
        "version": 1,
        "data": {"source": "frame"},
        "schema": SCHEMA,
        "tests": [{"sanitizer": "raw"}],
        "measures": [measure],
    }
    with pytest.raises(InputError) as caught:
        prepare(check(document, "."), LONG)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_measure_twice_is_refused() -> None:
    document = {"version": 1, "data": {"source": "frame"}, "schema": SCHEMA, "measures": [ATTACK, ATTACK]}
    with pytest.raises(InputError, match=r"measures\[1\] repeats another measure"):
        prepare(check(document, "."), LONG)


def ranked(frame: pd.DataFrame, size: int = 3, target: str | None = None) -> risk.Ranking:
    return risk.ranking(risk.Search([CountedRows.of(frame)], target, [], None), size, 5)


def test_risk_finds_the_columns_that_single_people_out() -> None:
    frame = pd.DataFrame({"id": range(16), "a": np.arange(16) % 4, "b": np.arange(16) // 4, "c": ["same"] * 16})
    found = ranked(frame)
    assert [risk.keys for risk in found.single] == [("id",), ("a",), ("b",), ("c",)]
    assert [risk.rate for risk in found.single] == pytest.approx([1, 0.5, 0.5, 0])
    assert found.combined[2][0].keys == ("a", "b")
    assert found.combined[2][0].alone == found.combined[2][0].rate == 1.0
    assert 3 not in found.combined  # a and b say all there is to say, and the identifier is in no combination
    assert all("id" not in risk.keys for risk in found.combined[2])


def test_greedy_search_agrees_with_the_exhaustive_one_where_it_must(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.integers(0, 2 + place, 300) for place, name in enumerate("abcdef")})
    exhaustive = ranked(frame, 4)
    monkeypatch.setattr(risk, "MOST_TRIED", 0)
    greedy = ranked(frame, 4)
    assert set(exhaustive.searched.values()) == {"exhaustive"}
    assert greedy.searched == {2: "exhaustive", 3: "greedy", 4: "greedy"}  # all pairs are always tried
    for size in (2, 3, 4):
        assert set(greedy.combined[size][0].keys) == set(exhaustive.combined[size][0].keys)
        for one in greedy.combined[size]:
            assert one.rate == pytest.approx(dit.discrimination_rate(range(300), frame[list(one.keys)]), abs=1e-12)


def test_a_pair_of_columns_that_say_nothing_alone_is_found_among_many() -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({f"noise{place}": rng.integers(0, 40, 400) for place in range(60)})
    person = rng.permutation(400)
    frame["x"], frame["y"] = person % 20, person // 20  # together they name every person, alone they are coarser than the noise
    found = ranked(frame, 2)
    assert found.combined[2][0].keys in (("x", "y"), ("y", "x"))
    assert {frozenset(keys) for keys in found.minimal} == {frozenset("xy")}


def test_near_unique_columns_are_identifiers_and_in_no_combination() -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"name": [*range(98), 0, 1], "age": rng.integers(20, 60, 100), "sex": rng.integers(0, 2, 100)})
    found = ranked(frame)
    assert found.identifiers == ("name",)
    assert [keys.keys for keys in found.combined[2]] == [("age", "sex")]
    assert "identifiers, in no combination: name" in found.text()


def test_minimal_combinations_have_no_column_too_many() -> None:
    digits = [np.arange(64) // 4**place % 4 for place in range(3)]
    frame = pd.DataFrame({"a": digits[0], "b": digits[1], "c": digits[2], "bc": digits[1] * 4 + digits[2]})
    found = ranked(frame, 4)
    assert {frozenset(keys) for keys in found.minimal} == {frozenset(("a", "bc")), frozenset(("a", "b", "c"))}


def test_a_random_secret_has_the_rate_of_chance() -> None:
    rng = np.random.default_rng(5)
    columns = {name: rng.integers(0, 30, 1000) for name in ("a", "b", "c")}
    frame = pd.DataFrame(columns | {"secret": rng.integers(0, 5, 1000)})
    found = risk.ranking(risk.Search([CountedRows.of(frame)], None, ["secret"], None), 3, 3)
    for one in (*found.combined[2], *found.combined[3]):
        rate, chance = one.sensitive["secret"]
        assert rate > 0.4  # it looks like a leak
        assert rate == pytest.approx(chance, abs=0.02)  # and is what any secret has, up to its spread


def test_risk_over_a_column_is_its_rate() -> None:
    frame = pd.DataFrame({"x": list("aabb") * 5, "y": list("cdcd") * 5, "z": list("eeff") * 5})
    found = {risk.keys: risk.rate for risk in ranked(frame, target="x").single}
    assert found == {("z",): 1.0, ("y",): 0.0}


def test_risk_needs_no_schema(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,y\n1,2\n3,4\n")
    (tmp_path / "c.yaml").write_text("version: 1\ndata: {source: t.csv}\n")
    read = read_data_config(str(tmp_path / "c.yaml"))
    assert risk.assess(read, risk.Scope()).rows == 2
    with pytest.raises(InputError, match="no column 'z' among 2"):
        risk.assess(read, risk.Scope(target="z"))
    with pytest.raises(InputError, match="schema is missing"):
        read_config(str(tmp_path / "c.yaml"))


def test_hashes_that_clash_are_told_apart_by_the_others() -> None:
    first, second = (np.array(hashes, np.uint64) for hashes in ([7, 7, 7, 9, 9], [1, 2, 1, 3, 3]))
    number, one = number_rows([first, second])
    assert [int(second[one[place]]) for place in number] == second.tolist()
    assert len(one) == 3
