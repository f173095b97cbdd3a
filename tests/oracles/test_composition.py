"""Composition of two releases against plain Python: remove the person from both tables, sanitise both again, count."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

import dit_dask as dit
from dit_dask.audit.gates import parse
from dit_dask.audit.verdict import Evidence, judge
from dit_dask.errors import InputError
from dit_dask.measures.base import MeasureEntry
from tests.oracles import reference

TOWNS = (("a", "north", "*"), ("b", "north", "*"), ("c", "south", "*"), ("d", "south", "*"))
SCHEMA = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical", "hierarchy": "towns.csv"}},
    "sensitive": "illness",
}
ILLNESSES = ("asthma", "cold", "flu")


def snapshots(seed: int, people: int = 40, shown: int = 32) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    everyone = pd.DataFrame(
        {
            "who": np.arange(people),
            "age": rng.integers(20, 60, people),
            "town": rng.choice([path[0] for path in TOWNS], people),
            "illness": rng.choice(ILLNESSES, people),
        }
    )
    first, second = (everyone.sample(shown, random_state=seed + place) for place in (1, 2))
    return first, second


def audit_both(
    folder: Path, first: pd.DataFrame, second: pd.DataFrame, k: tuple[int, int] = (3, 4), **keys: Any
) -> tuple[dit.Result, dict[str, Any]]:
    """Audit the second table, composed with a config of the first."""
    (folder / "towns.csv").write_text("\n".join(";".join(path) for path in TOWNS))
    schema = keys.pop("schema", SCHEMA)
    first.to_csv(folder / "first.csv", index=False)
    second.to_csv(folder / "second.csv", index=False)
    other = {"version": 1, "data": {"source": "first.csv"}, "schema": schema}
    (folder / "first.yaml").write_text(yaml.safe_dump(other | {"tests": [{"sanitizer": {"name": "mondrian", "k": k[0]}}]}))
    measure = {"name": "composition", "with": str(folder / "first.yaml"), "records": True, "match": {"key": "who"}} | keys
    located = {name: dict(one) for name, one in schema["quasi_identifiers"].items()}
    located["town"]["hierarchy"] = str(folder / "towns.csv")
    result = dit.audit(
        second,
        schema=schema | {"quasi_identifiers": located},
        tests=[{"sanitizer": {"name": "mondrian", "k": k[1]}}],
        measures=[measure],
        controls=False,
    )
    (entry,) = result.measures
    return result, entry


class Plain:
    """One table, sanitised by the reference, with everything as lists."""

    def __init__(self, frame: pd.DataFrame, k: int, ages: list[int]) -> None:
        self.who, self.k = frame["who"].tolist(), k
        self.records = list(zip(frame["age"].tolist(), frame["town"].tolist(), strict=True))
        self.secrets = frame["illness"].tolist()
        self.attributes = (reference.Numeric(ages), reference.Tree(TOWNS))
        self.root = reference.mondrian(self.records, self.secrets, self.attributes, k=k)

    def without(self, person: int, frame: pd.DataFrame) -> Plain:
        return Plain(frame[frame["who"] != person], self.k, list(self.attributes[0].values))

    def class_of(self, person: int) -> set[int]:
        row = self.who.index(person)
        return next({self.who[one] for one in leaf.rows} for leaf in reference.leaves(self.root) if row in leaf.rows)

    def counts(self, target: Any) -> Counter[str]:
        """How many rows of the last node on the target's path have each illness; shares times a node's rows are counts."""
        node = self.root
        while node.attribute is not None:
            attribute, value = self.attributes[node.attribute], target[node.attribute]
            below = [
                child
                for key, child in node.children
                if (attribute.covers(key, value) if node.split is None else (key == "left") == (value <= node.split))
            ]
            if not below:
                break
            node = below[0]
        return Counter(self.secrets[row] for row in node.rows)

    def bayes(self, target: Any) -> list[float]:
        return reference.naive_bayes(self.root, self.secrets, self.attributes, target, ILLNESSES)


def normalised(values: list[float]) -> list[float]:
    return [value / sum(values) for value in values]


def believe(first: Plain, second: Plain, target: Any) -> list[list[float]]:
    counts = [side.counts(target) for side in (first, second)]
    common = [min(one[value] for one in counts) for value in ILLNESSES]
    if not any(common):
        shares = [normalised([one[value] for value in ILLNESSES]) for one in counts]
        common = [(a + b) / 2 for a, b in zip(*shares, strict=True)]
    whole = [[side.secrets.count(value) / len(side.secrets) for value in ILLNESSES] for side in (first, second)]
    beliefs = [side.bayes(target) for side in (first, second)]
    product = [
        (a + b) / 2 * p / a * q / b for a, b, p, q in zip(*whole, *beliefs, strict=True)
    ]  # every illness is in both tables
    return [normalised(common), normalised(product)]


def alone(side: Plain, target: Any) -> list[list[float]]:
    return [normalised([side.counts(target)[value] for value in ILLNESSES]), side.bayes(target)]


@pytest.mark.parametrize("seed", range(4))
def test_every_figure_is_that_of_plain_python(tmp_path: Path, seed: int) -> None:
    first, second = snapshots(seed)
    result, entry = audit_both(tmp_path, first, second)
    frames = second, first
    plain = [Plain(frame, k, sorted(frame["age"])) for frame, k in zip(frames, (4, 3), strict=True)]
    linked = sorted(set(first["who"]) & set(second["who"]))
    sizes, values, distances = {}, {}, {}
    for person in linked:
        target = plain[0].records[plain[0].who.index(person)]
        classes = [side.class_of(person) for side in plain]
        sizes[person] = len(classes[0] & classes[1])
        values[person] = len(set.intersection(*(set(side.counts(target)) for side in plain)))
        less = [side.without(person, frame) for side, frame in zip(plain, frames, strict=True)]
        both = [reference.emd(p, q) for p, q in zip(believe(*plain, target), believe(*less, target), strict=True)]
        ones = [
            max(reference.emd(p, q) for p, q in zip(alone(a, target), alone(b, target), strict=True))
            for a, b in zip(plain, less, strict=True)
        ]
        distances[person] = (*both, *ones)
    smallest = [min(len(leaf.rows) for leaf in reference.leaves(side.root)) for side in plain]
    assert (entry["in_both"], entry["k_first"], entry["k_second"]) == (len(linked), *smallest)
    assert entry["smallest_intersection"] == entry["smallest_intersection_rows"] == min(sizes.values())
    assert entry["below_both"] == pytest.approx(np.mean([size < min(smallest) for size in sizes.values()]), abs=1e-15)
    assert entry["homogeneous"] == pytest.approx(np.mean([value == 1 for value in values.values()]), abs=1e-15)
    assert entry["least_values"] == min(values.values())
    largest = np.max(list(distances.values()), axis=0)
    names = ("delta_intersection", "delta_evidence", "delta_first", "delta_second")
    np.testing.assert_allclose([entry[name] for name in names], largest, atol=1e-12)  # sums in another order
    assert entry["delta"] == max(entry["delta_intersection"], entry["delta_evidence"])
    measured = result.measured(entry["id"])
    own = second["who"].tolist()
    expected = [max(distances[person][:2]) if person in distances else math.nan for person in own]
    np.testing.assert_allclose(measured["distance"], expected, atol=1e-12)
    np.testing.assert_array_equal(measured["intersection"], [sizes.get(person, math.nan) for person in own])


def test_a_limit_that_two_raw_releases_would_keep_is_no_pass(tmp_path: Path) -> None:
    first, second = snapshots(3)
    _, entry = audit_both(tmp_path, first, second)
    both = sorted(set(first["who"]) & set(second["who"]))
    shares = [Counter(table["illness"]) for table in (first, second)]
    prior = {one: sum(count[one] / count.total() for count in shares) / 2 for one in ILLNESSES}
    known = second[second["who"].isin(both)]["illness"]
    largest = max(sum(abs((one == true) - prior[one]) for one in ILLNESSES) for true in known)
    assert entry["attainable"] == {"smallest_intersection": 1, "delta": pytest.approx(largest, abs=1e-12)}
    evidence = Evidence([], [MeasureEntry("composition", "c", {}, {"name": "mondrian"}, None, [], 9, entry, [])])
    for text in (f"composition.delta <= {largest + 0.1}", "composition.smallest_intersection >= 1"):
        (verdict,) = judge([parse(text, "gates[0]", ["composition"])], evidence)
        assert (verdict.status, "could not have failed" in verdict.reason) == ("inconclusive", True)


def test_two_classes_that_share_one_value_disclose_it(tmp_path: Path) -> None:
    """Two hospitals publish 2-anonymous classes without one value for all; who was in both has the value they share."""
    first = pd.DataFrame({"who": [1, 2, 3, 4], "age": [20, 30, 50, 60], "town": list("aacc"), "illness": [*ILLNESSES, "flu"]})
    second = pd.DataFrame(
        {"who": [1, 6, 7, 8], "age": [20, 21, 50, 60], "town": list("aacc"), "illness": ["asthma", *ILLNESSES]}
    )
    second.loc[1, "illness"] = "flu"
    _, entry = audit_both(tmp_path, first, second, (2, 2))
    assert (entry["in_both"], entry["smallest_intersection"], entry["k_first"], entry["k_second"]) == (1, 1, 2, 2)
    assert (entry["homogeneous"], entry["below_both"]) == (1.0, 1.0)
    # with the person in both classes the belief in asthma is 1; the tables less one person are single classes
    assert entry["delta_intersection"] > entry["delta_first"] > 0


def test_nobody_in_both_is_inconclusive_and_never_a_pass(tmp_path: Path) -> None:
    first, second = snapshots(5)
    (tmp_path / "towns.csv").write_text("\n".join(";".join(path) for path in TOWNS))
    first.assign(who=first["who"] + 1000).to_csv(tmp_path / "first.csv", index=False)
    second.to_csv(tmp_path / "second.csv", index=False)
    document = {"version": 1, "schema": SCHEMA, "tests": [{"sanitizer": {"name": "mondrian", "k": 3}}]}
    (tmp_path / "first.yaml").write_text(yaml.safe_dump(document | {"data": {"source": "first.csv"}}))
    composed = {"name": "composition", "with": str(tmp_path / "first.yaml"), "match": {"key": "who"}}
    located = {"age": {"kind": "numeric"}, "town": {"kind": "categorical", "hierarchy": str(tmp_path / "towns.csv")}}
    gates = ["composition.delta <= 2", "composition.smallest_intersection >= 1", "composition <= 2"]
    result = dit.audit(
        second, schema=SCHEMA | {"quasi_identifiers": located}, tests=document["tests"], measures=[composed], gates=gates
    )
    assert [verdict.status for verdict in result.verdict.verdicts] == ["inconclusive"] * 3
    assert "no person is in both tables" in result.verdict.verdicts[0].reason


def test_figures_of_fewer_than_ten_persons_of_a_large_table_are_withheld(tmp_path: Path) -> None:
    first, second = snapshots(2)
    shared = second["who"].isin(first["who"]).to_numpy()
    few = np.flatnonzero(shared)[:9]
    second = second.assign(who=[who if place in few else who + 500 for place, who in enumerate(second["who"])])
    result, entry = audit_both(tmp_path, first, second)
    assert (entry["in_both"], entry["delta"], entry["smallest_intersection"]) == (9, None, None)
    assert "fewer than 10 persons" in entry["reason"]
    assert np.count_nonzero(~np.isnan(result.measured(entry["id"])["distance"])) == 9


def test_a_release_alone_has_intersections_and_no_delta(tmp_path: Path) -> None:
    first, second = snapshots(6)
    published = first.assign(age=np.where(first["age"] < 40, "[20-39]", "[40-59]"), town="*").drop(columns="who")
    published.to_csv(tmp_path / "published.csv", index=False)
    (tmp_path / "towns.csv").write_text("\n".join(";".join(path) for path in TOWNS))
    first.to_csv(tmp_path / "first.csv", index=False)
    sanitizer = {"name": "precomputed", "full": "published.csv", "match": "order"}
    document = {"version": 1, "data": {"source": "first.csv"}, "schema": SCHEMA, "tests": [{"sanitizer": sanitizer}]}
    (tmp_path / "first.yaml").write_text(yaml.safe_dump(document))
    located = {"age": {"kind": "numeric"}, "town": {"kind": "categorical", "hierarchy": str(tmp_path / "towns.csv")}}
    result = dit.audit(
        second,
        schema=SCHEMA | {"quasi_identifiers": located},
        tests=[{"sanitizer": {"name": "mondrian", "k": 4}}],
        measures=[{"name": "composition", "with": str(tmp_path / "first.yaml"), "match": {"key": "who"}}],
        gates=["composition.delta <= 2", "composition.smallest_intersection >= 2"],
        controls=False,
    )
    (entry,) = result.measures
    assert (entry["basis"], entry["delta"]) == ("releases alone", None)
    assert [one.status for one in result.verdict.verdicts] == [
        "inconclusive",
        "passed" if entry["smallest_intersection"] >= 2 else "failed",
    ]
    side = Plain(second, 4, sorted(second["age"]))
    young = set(first["who"][first["age"] < 40])
    linked = set(first["who"]) & set(second["who"])
    classes = {who: side.class_of(who) & linked for who in linked}
    sizes = [len(classes[who] & young if who in young else classes[who] - young) for who in linked]
    assert entry["smallest_intersection"] == min(sizes)
    assert entry["mean_intersection"] == pytest.approx(np.mean(sizes), abs=1e-12)


def test_persons_with_several_rows_are_matched_by_subject_and_leave_with_all_of_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    tables = []
    for seed in (1, 2):
        first, _ = snapshots(8, people=24, shown=24)
        again = first.iloc[rng.choice(24, 10, replace=False)].assign(age=lambda one: one["age"] + 1)
        tables.append(pd.concat([first, again]).sample(frac=0.9, random_state=seed))
    _, entry = audit_both(tmp_path, *tables, schema=SCHEMA | {"subject": "who"}, match="subject")
    assert entry["in_both"] == len(set(tables[0]["who"]) & set(tables[1]["who"]))
    assert entry["delta"] is not None
    assert entry["smallest_intersection"] <= entry["smallest_intersection_rows"]
    _, named = audit_both(tmp_path, *tables, schema=SCHEMA | {"subject": "who"}, match={"key": "who"})  # the same, by its name
    assert {**named, "id": "", "parameters": {}} == {**entry, "id": "", "parameters": {}}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_row_order_changes_no_bit_of_means(tmp_path: Path, seed: int) -> None:
    first, second = snapshots(seed, people=120, shown=100)
    _, entry = audit_both(tmp_path, first, second)
    _, shuffled = audit_both(tmp_path, first, second.sample(frac=1, random_state=seed))
    assert shuffled == entry


def test_rows_of_equal_quasi_identifiers_are_linked_only_where_nobody_else_has_them(tmp_path: Path) -> None:
    first, second = snapshots(9)
    _, entry = audit_both(tmp_path, first, second, match="quasi-identifiers")
    keys = ["age", "town"]
    single = [frame[~frame.duplicated(keys, keep=False)][keys] for frame in (first, second)]
    assert entry["in_both"] == len(single[0].merge(single[1]))
    shared = second[second.duplicated(keys, keep=False)][keys].merge(first[keys].drop_duplicates())
    assert entry["ambiguous_rows"] == len(shared)


def test_wrong_input_is_one_line_that_names_the_place(tmp_path: Path) -> None:
    first, second = snapshots(1)
    for keys, message in {
        "with": ({"with": str(tmp_path / "none.yaml")}, r"measures\[0\].with: config .*none.yaml: No such file"),
        "run": ({"with": str(tmp_path / "runs")}, r"measures\[0\].with: "),
        "key": ({"match": {"key": "nobody"}}, "nobody"),
        "subject": ({"match": "subject"}, r"measures\[0\].match: the schema has no subject"),
        "test": ({"test": "mondrian-k9"}, r"measures\[0\].test of the other audit: unknown 'mondrian-k9'.*mondrian-k3"),
    }.values():
        with pytest.raises(InputError, match=message):
            audit_both(tmp_path, first, second, **keys)
