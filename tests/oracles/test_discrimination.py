"""Discrimination rates against the deck, scikit-learn and enumeration."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import homogeneity_score

import dit_dask as dit
from dit_dask import seeds
from dit_dask.measures.discrimination import attacks
from dit_dask.measures.discrimination.chance import compute_chance_rate
from dit_dask.measures.discrimination.published import Published, descend_all, find_members
from dit_dask.values.release import Ranges, Release, Sets
from tests.audits import loaded, points

AGES = [22, 22, 22, 45, 63, 40, 35, 35, 32]
STARS = ["2*"] * 3 + ["≥40"] * 3 + ["3*"] * 3
# the deck's printed figures follow from the first list of diseases; its printed table is the second
FITTING = ["lung"] * 3 + ["stomach", "diabetes", "aids"] + ["aids", "aids", "lung"]
PRINTED = ["lung"] * 3 + ["stomach", "diabetes", "flu"] + ["aids", "aids", "diabetes"]
DIVERSE = ["colon", "stomach", "lung", "stomach", "diabetes", "aids", "aids", "flu", "lung"]
DECK = 0.01  # it prints two digits and truncates some

CASES = {
    "identity": (AGES, {"2*": 1, "≥40": 0.78, "3*": 0.87}, 0.66),
    "3-anonymous, as its figures need": (FITTING, {"2*": 1, "≥40": 0.70, "3*": 0.83}, 0.52),
    "3-anonymous, as printed": (PRINTED, {"2*": 1, "≥40": 0.76, "3*": 0.86}, 0.62),
    "3-diverse": (DIVERSE, {"2*": 0.78, "≥40": 0.78, "3*": 0.78}, 0.36),
}


@pytest.mark.parametrize("case", CASES)
def test_the_decks_tables(case: str) -> None:
    target, by_value, whole = CASES[case]
    found = dit.discrimination_by_value(target, STARS).set_index("value")
    assert found["rate"].to_dict() == pytest.approx(by_value, abs=DECK)
    assert found["count"].tolist() == [3, 3, 3]
    assert dit.discrimination_rate(target, STARS) == pytest.approx(whole, abs=DECK)


def test_the_decks_age_over_nine_subjects() -> None:
    assert dit.discrimination_rate(range(9), [22, 35, 63, 22, 22, 35, 45, 35, 40]) == pytest.approx(0.66, abs=DECK)


def test_the_decks_zip_and_age_together() -> None:
    table = pd.DataFrame({"zip": ["355**"] * 3 + ["3581*"] * 3 + ["355**"] * 3, "age": STARS})
    assert dit.discrimination_rate(DIVERSE, table) == dit.discrimination_rate(DIVERSE, STARS)  # the age alone fixes the class
    assert dit.discrimination_rate(DIVERSE, table["zip"]) < dit.discrimination_rate(DIVERSE, table)


SCHEMA = {"quasi_identifiers": {"age": {"kind": "numeric"}}, "sensitive": "disease"}
LOW, HIGH = np.array([[0], [3], [1]], np.int32), np.array([[0], [5], [2]], np.int32)  # ranks of 22, 32, 35, 40, 45, 63
SETS = np.array([[1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1], [0, 1, 1, 0, 0, 0]], bool)


def deck_release(diseases: list[str], *, as_sets: bool) -> tuple[Release, object]:
    rows = loaded(pd.DataFrame({"age": AGES, "disease": diseases}), SCHEMA)
    levels = rows.table.schema.sensitive.levels
    counts = np.array([[diseases[three : three + 3].count(level) for level in levels] for three in (0, 3, 6)])
    published = Sets(np.arange(3, dtype=np.int32)[:, None], (SETS,)) if as_sets else Ranges(LOW, HIGH)
    return Release(rows.table.schema, published, counts), rows.table


@pytest.mark.parametrize("as_sets", [False, True])
def test_the_decks_attacks_on_a_release(as_sets: bool) -> None:
    release, table = deck_release(FITTING, as_sets=as_sets)
    homogeneity = attacks.homogeneity(release, [0], None, "plug-in")
    names = [homogeneity.published.label(group) for group in range(3)]
    assert names == ["22", "[40, 63]", "[32, 35]"]
    assert homogeneity.profile.rates.tolist() == pytest.approx([1, 0.70, 0.83], abs=DECK)
    assert homogeneity.profile.rate.value == pytest.approx(0.52, abs=DECK)
    identity, held = attacks.white_box(release, table, [0], "plug-in")
    assert held.exact
    assert identity.profile.rates.tolist() == pytest.approx([1, 0.78, 0.87], abs=DECK)
    assert identity.profile.rate.value == pytest.approx(0.66, abs=DECK)


def test_black_and_grey_box_on_the_decks_table() -> None:
    release, _ = deck_release(FITTING, as_sets=False)
    third = math.log2(3)
    black = attacks.guess_identity(release, [0], [None]).profile
    prior = {22: 1 / 3, 40: 1 / 9, 45: 1 / 9, 63: 1 / 9, 32: 1 / 6, 35: 1 / 6}  # each class even over what it covers
    entropy = -sum(p * math.log2(p) for p in prior.values())
    assert black.rate.value == pytest.approx(1 - (third / 3 + 1 / 3) / entropy, abs=1e-12)
    known = np.array([0.0, 3, 1, 0, 0, 0])  # 32 three times, 35 once, nothing of 40 and more: even there
    grey = attacks.guess_identity(release, [0], [known]).profile
    prior = prior | {32: 1 / 4, 35: 1 / 12}
    entropy = -sum(p * math.log2(p) for p in prior.values())
    quarter = 2 - 0.75 * third
    assert grey.rate.value == pytest.approx(1 - (third / 3 + quarter / 3) / entropy, abs=1e-12)


TWO = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}, "job": {"kind": "categorical"}},
    "sensitive": "illness",
}


def people(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 32, rows),
            "town": rng.choice(["Bonn", "Köln", "Lyon"], rows),
            "job": rng.choice(["cook", "clerk"], rows, p=[0.3, 0.7]),
            "illness": rng.choice(["cold", "flu", "gout"], rows),
        }
    )


def mondrian(rows: int, seed: int, k: int) -> tuple[Release, pd.DataFrame, object]:
    frame = people(rows, seed)
    table = loaded(frame, TWO)
    (test,) = points(table, TWO, [{"sanitizer": {"name": "mondrian", "k": k}}])
    return test.procedure.sanitizer.release(table.table, seeds.stream(0, "x")), frame, table


def test_attacks_on_mondrian_equal_scikit_learn_on_its_rows() -> None:
    release, frame, rows = mondrian(300, 5, 7)
    classes = np.array([release.tree.descend(codes).start for codes in rows.table.codes])[rows.index]
    for places in ([0], [1, 2], [0, 1, 2]):
        shown = release.published.keys()[classes]
        mine = ["|".join(map(str, row[[*places, *(3 + place for place in places)]])) for row in shown]
        original = frame.iloc[:, places].astype(str).agg("|".join, axis=1)
        homogeneity = attacks.homogeneity(release, places, None, "plug-in").profile.rate.value
        assert homogeneity == pytest.approx(homogeneity_score(frame["illness"], mine), abs=1e-12)
        identity = attacks.white_box(release, rows.table, places, "plug-in")[0].profile.rate.value
        assert identity == pytest.approx(homogeneity_score(original, mine), abs=1e-12)
        groups = np.array([0, 1, 1])
        semantic = attacks.homogeneity(release, places, groups, "plug-in").profile.rate.value
        assert semantic == pytest.approx(homogeneity_score(frame["illness"] == "cold", mine), abs=1e-12)
        skewed = attacks.skewness(release, places, "plug-in")
        each = {v: homogeneity_score(frame["illness"] == v, mine) for v in ("cold", "flu", "gout")}
        assert {line["value"]: line["rate"] for line in skewed.more["partitions"]} == pytest.approx(each, abs=1e-12)
        assert skewed.profile.rate.value == pytest.approx(max(each.values()), abs=1e-12)
        assert skewed.more["worst"]["value"] == max(each, key=each.get)


@pytest.mark.parametrize("places", [[0], [1, 2], [0, 1, 2]])
@pytest.mark.parametrize("grey", [False, True])
def test_predictions_equal_enumeration(places: list[int], grey: bool) -> None:
    release, _, rows = mondrian(120, 2, 6)
    attributes = [rows.table.schema.quasi_identifiers[place] for place in places]
    rng = np.random.default_rng(1)
    known = [rng.integers(0, 3, len(attribute.levels)).astype(float) if grey else None for attribute in attributes]
    joint: Counter[tuple[object, object]] = Counter()
    total = release.counts.sum()
    for held, low, high in zip(release.counts.sum(axis=1), release.published.low, release.published.high, strict=True):
        sides = []
        for place, weights in zip(places, known, strict=True):
            codes = range(low[place], high[place] + 1)
            w = {code: 1.0 if weights is None else weights[code] for code in codes}
            w = w if sum(w.values()) else dict.fromkeys(codes, 1.0)
            sides.append([(code, value / sum(w.values())) for code, value in w.items()])
        key = tuple((low[place], high[place]) for place in places)
        for combination in itertools.product(*sides):
            joint[tuple(code for code, _ in combination), key] += held / total * math.prod(p for _, p in combination)
    values, keys = Counter(), Counter()
    for (x, y), p in joint.items():
        values[x] += p
        keys[y] += p
    left = -sum(p * math.log2(p / keys[y]) for (_, y), p in joint.items() if p)
    entropy = -sum(p * math.log2(p) for p in values.values() if p)
    assert attacks.guess_identity(release, places, known).profile.rate.value == pytest.approx(1 - left / entropy, abs=1e-12)


def test_members_follow_the_tree_and_else_what_covers_them() -> None:
    release, _, rows = mondrian(250, 3, 5)
    by_hand = [release.tree.descend(codes).start for codes in rows.table.codes]
    assert descend_all(release.tree, rows.table.codes).tolist() == by_hand
    without = Release(release.schema, release.published, release.counts)
    held = find_members(without, rows.table)
    assert np.bincount(held.record, held.share).tolist() == pytest.approx([1.0] * rows.table.distinct)
    published = Published.of(without, [0, 1, 2])
    for record, holder, share in zip(held.record, held.holder, held.share, strict=True):
        codes = rows.table.codes[record]
        assert all(
            sets[value[holder], code] for sets, value, code in zip(published.coverage, published.value, codes, strict=True)
        )
        inside = without.covers(codes).all(axis=1)
        mine = without.counts[inside, rows.table.secret[record]]
        assert share == pytest.approx(without.counts[holder, rows.table.secret[record]] / mine.sum())


def test_a_record_that_no_class_covers_is_in_no_class() -> None:
    release, table = deck_release(FITTING, as_sets=False)
    without = Release(release.schema, Ranges(LOW[:2], HIGH[:2]), release.counts[:2])
    attacked, held = attacks.white_box(without, table, [0], "plug-in")
    assert attacked.profile.count.tolist() == [3, 3, 3]  # the last group is what is not published
    assert attacked.more["not_published"] == 3
    assert attacked.published.label(2) == "(not published)"
    assert set(table.codes[held.record, 0]) == {0, 3, 4, 5}


@pytest.mark.parametrize(("estimator", "bias_left"), [("miller-madow", 0.5), ("grassberger", 0.3)])
def test_corrected_estimates_are_nearer_to_the_truth(estimator: str, bias_left: float) -> None:
    rng = np.random.default_rng(4)
    p = np.array([[0.30, 0.05, 0.05, 0.02], [0.05, 0.20, 0.03, 0.02], [0.02, 0.03, 0.08, 0.15]])
    keys, values = p.sum(axis=1), p.sum(axis=0)
    left = -sum(q * math.log2(q / keys[y]) for y, row in enumerate(p) for q in row)
    truth = 1 - left / -sum(q * math.log2(q) for q in values)
    plain, corrected = [], []
    for _ in range(300):
        y, x = np.divmod(rng.choice(12, 60, p=p.ravel()), 4)
        plain.append(dit.discrimination_rate(x, y))
        corrected.append(dit.discrimination_rate(x, y, estimator=estimator))
    assert np.mean(plain) > truth + 0.03  # few rows seem to tell more than they do
    assert abs(np.mean(corrected) - truth) < bias_left * abs(np.mean(plain) - truth)


def test_the_bootstrap_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(9)
    p = np.array([[0.30, 0.10, 0.05], [0.05, 0.10, 0.40]])
    left = -sum(q * math.log2(q / row.sum()) for row in p for q in row)
    truth = 1 - left / -sum(q * math.log2(q) for q in p.sum(axis=0))
    covered = 0
    for place in range(150):
        y, x = np.divmod(rng.choice(6, 400, p=p.ravel()), 3)
        low, high = dit.discrimination_interval(x, y, level=0.9, replicates=200, seed=place)
        covered += low <= truth <= high
    assert 0.82 <= covered / 150 <= 0.97  # 0.9 with the noise of 150 tries and of 200 replicates


@pytest.mark.parametrize(("keys", "target"), [("aabbc", "xxyyy"), ("abcde", "xyxyx"), ("aaabb", "xyzxy"), ("aaaaa", "xxyyz")])
def test_the_chance_level_is_the_mean_over_all_shuffles(keys: str, target: str) -> None:
    rates = [homogeneity_score(list(shuffled), list(keys)) for shuffled in itertools.permutations(target)]
    counts = [np.unique(list(text), return_counts=True)[1] for text in (keys, target)]
    assert compute_chance_rate(*counts) == pytest.approx(np.mean(rates), abs=1e-12)


def test_the_chance_level_of_many_rows_is_the_mean_over_random_shuffles() -> None:
    rng = np.random.default_rng(2)
    keys, target = rng.integers(0, 300, 2000), rng.geometric(0.3, 2000)
    rates = [homogeneity_score(rng.permutation(target), keys) for _ in range(200)]
    chance = compute_chance_rate(*(np.unique(column, return_counts=True)[1] for column in (keys, target)))
    assert chance == pytest.approx(np.mean(rates), abs=5 * np.std(rates) / np.sqrt(200))  # five standard errors
