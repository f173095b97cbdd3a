"""Singling out, linkability and attribute inference against anonymeter, brute force and examples worked by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dit_dask as dit
from dit_dask.measures.attacks.inference import naive_matches, read_secret
from dit_dask.measures.attacks.linkability import naive_links
from dit_dask.measures.attacks.neighbours import find_nearest
from dit_dask.measures.attacks.singling_out import describe_records, read_cells, singled_out
from dit_dask.measures.attacks.success import AttackResult, Rate
from dit_dask.measures.attacks.tables import CONTROL, RELEASE, TRAINING, AttackTables
from tests.oracles.attack_tables import KNOWN, SECRETS, SIDES, leaking_tables, people, recorded, request

ROOT = Path(__file__).parents[2]
DIGITS = 1e-12  # the same formulas in another order of operations


def _same(result: AttackResult, theirs: dict[str, object]) -> None:
    assert result.rate == pytest.approx(theirs["rate"], abs=DIGITS)
    assert result.control_rate == pytest.approx(theirs["control_rate"], abs=DIGITS)
    assert result.risk == pytest.approx(theirs["risk"], abs=DIGITS)
    assert result.interval() == pytest.approx(tuple(theirs["interval"]), abs=DIGITS)


@pytest.mark.parametrize("neighbours", [1, 3])
def test_links_are_those_of_anonymeter(neighbours: int) -> None:
    found = dit.linkability(*leaking_tables(), SIDES, neighbours=neighbours)
    _same(found.results[0], recorded()[f"linkability {neighbours}"])


@pytest.mark.parametrize("secret", SECRETS)
def test_guessed_secrets_are_those_of_anonymeter(secret: str) -> None:
    tolerance = 0.05 if SECRETS[secret] else 0.0
    found = dit.attribute_inference(*leaking_tables(), [secret], known=KNOWN, tolerance=tolerance)
    _same(found.results[0], recorded()[f"inference {secret}"])


def test_predicates_of_one_column_are_those_of_anonymeter() -> None:
    theirs = recorded()["univariate"]
    found = dit.singling_out(*leaking_tables(), columns_of_predicate=1).results[0]
    assert found.attacks == theirs["attacks"]
    _same(found, theirs)


def test_predicates_of_several_columns_count_what_anonymeter_counts() -> None:
    frames = leaking_tables()
    asked = request(frames[1])["described"]
    tables = AttackTables.of(dict(zip(("training", "synthetic", "holdout"), frames, strict=True)))
    columns, names = list(tables.columns.values()), list(tables.columns)
    published = read_cells(columns, RELEASE)
    chosen = np.array([[names.index(name) for name in own] for _, own in asked])
    predicates = describe_records(columns, published, published[[row for row, _ in asked]], chosen)
    theirs = recorded()["multivariate"]
    counts = [predicates.count(read_cells(columns, table))[0] for table in range(3)]
    assert [part.tolist() for part in counts] == theirs["counts"]
    singling = counts[1] == 1
    successes = [float((counts[table][singling] == 1).sum()) for table in (0, 2)]
    total = int(singling.sum())
    assert total > 20
    _same(AttackResult("multivariate", total, successes[0], total, successes[1], 0.0), theirs)


@pytest.mark.slow
def test_anonymeter_answers_what_was_recorded(tmp_path: Path) -> None:
    frames = leaking_tables()
    paths = [tmp_path / f"{name}.csv" for name in ("training", "release", "control")]
    for frame, path in zip(frames, paths, strict=True):
        frame.to_csv(path, index=False)
    (tmp_path / "request.json").write_text(json.dumps(request(frames[1])), "utf-8")
    command = [sys.executable, ROOT / "tools" / "anonymeter_oracle.py", tmp_path / "environment"]
    asked = [*command, *paths, tmp_path / "request.json"]
    theirs = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
    assert theirs == recorded()


def _nearest_by_hand(queries: pd.DataFrame, release: pd.DataFrame, columns: list[str]) -> np.ndarray:
    """(queries, release) distances, from the definition."""
    total = np.zeros((len(queries), len(release)))
    for name in columns:
        one, other = queries[name].to_numpy(), release[name].to_numpy()
        if one.dtype == object:
            total += one[:, None] != other[None, :]
        else:
            both = np.concatenate([one, other])
            total += np.abs(one[:, None] - other[None, :]) / ((both.max() - both.min()) or 1)
    return total


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("neighbours", [1, 2, 5])
def test_the_nearest_records_are_those_of_brute_force_with_ties_by_number(seed: int, neighbours: int) -> None:
    rng = np.random.default_rng(seed)
    frames = [
        pd.DataFrame({"x": rng.integers(0, 5, size), "y": rng.integers(0, 4, size), "c": rng.choice(list("abc"), size)})
        for size in (40, 150, 60)
    ]
    tables = AttackTables.of(dict(zip(("training", "synthetic", "holdout"), frames, strict=True)))
    number = tables.numbers(RELEASE)
    assert sorted(number) == list(range(150))
    for table in (TRAINING, CONTROL):
        found = find_nearest(tables.choose(["x", "c"], "test"), (RELEASE, table), number, neighbours)
        distances = _nearest_by_hand(frames[table], frames[RELEASE], ["x", "c"])
        expected = np.array([np.lexsort((number, row.round(9)))[:neighbours] for row in distances])
        assert (number[expected] == found.number).all()


def test_a_small_example_worked_by_hand() -> None:
    training = pd.DataFrame({"a": [0.0, 10.0, 20.0, 30.0], "b": [0.0, 10.0, 20.0, 30.0], "s": list("uvuv")})
    holdout = pd.DataFrame({"a": [1.0, 11.0, 21.0, 29.0], "b": [29.0, 21.0, 11.0, 1.0], "s": list("vvuu")})
    release = pd.DataFrame({"a": [0.0, 10.0, 20.0, 30.0], "b": [0.0, 10.0, 20.0, 30.0], "s": list("uvvv")})
    links = dit.linkability(training, release, holdout, (["a"], ["b"])).results[0]
    # every training record lies on the diagonal of the release, no holdout record does
    assert (links.successes, links.control_successes, links.naive_rate) == (4.0, 0.0, pytest.approx(1 / 4))
    secrets = dit.attribute_inference(training, release, holdout, ["s"], known=["a"]).results[0]
    # nearest by a: u v v v for training u v u v, and u v v v for holdout v v u u; guessing: 1/4·1/2 + 3/4·1/2
    assert (secrets.successes, secrets.control_successes, secrets.naive_rate) == (3.0, 1.0, 0.5)
    z2 = 1.959963984540054**2
    rate, control = (3 + z2 / 2) / (4 + z2), (1 + z2 / 2) / (4 + z2)
    assert secrets.risk == pytest.approx((rate - control) / (1 - control), abs=DIGITS)


def test_intervals_of_rates_are_those_of_scipy() -> None:
    interval = stats.binomtest(17, 90).proportion_ci(0.95, method="wilson")
    found = Rate.of(17, 90, 0.95)
    assert (found.value - found.error, found.value + found.error) == pytest.approx((interval.low, interval.high), abs=1e-9)


@pytest.mark.parametrize(("published", "neighbours"), [(5, 1), (9, 2), (12, 5), (4, 3)])
def test_guessed_links_are_those_of_counting_all_pairs_of_sets(published: int, neighbours: int) -> None:
    first = set(range(neighbours))  # by symmetry one of the two sets may be fixed
    every = list(combinations(range(published), neighbours))
    shared = sum(bool(first & set(other)) for other in every)
    assert naive_links(published, neighbours) == pytest.approx(shared / len(every), abs=DIGITS)


def test_guessed_secrets_are_right_as_often_as_over_all_pairs() -> None:
    frames = leaking_tables(60, 10)
    tables = AttackTables.of(dict(zip(("training", "synthetic", "holdout"), frames, strict=True)))
    for name, tolerance in (("income", 0.05), ("sex", 0.0)):
        guesses, values = frames[1][name].to_numpy()[:, None], frames[0][name].to_numpy()[None, :]
        right = (guesses == values) if name == "sex" else np.abs(guesses - values) / np.abs(guesses) <= tolerance
        column = tables.columns[name]
        found = naive_matches(read_secret(column, 1), read_secret(column, 0), column, tolerance)
        assert found == pytest.approx(right.mean(), abs=DIGITS)


@pytest.mark.parametrize(("total", "size"), [(30, 7), (30, 29), (200, 50)])
def test_a_part_of_the_records_is_singled_out_with_the_hypergeometric_probability(total: int, size: int) -> None:
    counts = np.arange(total + 1)
    expected = stats.hypergeom.pmf(1, total, counts, size)
    assert singled_out(counts, total, size) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("attack", ["singling-out", "linkability", "attribute-inference"])
def test_copied_records_are_found_and_fresh_people_are_not(attack: str) -> None:
    """At 95% confidence a lower end above 0 is a false alarm of 2.5%: in 200 fresh releases at most 5 + 3 standard errors."""
    run = {
        "singling-out": lambda *frames: dit.singling_out(*frames, sets=4),
        "linkability": lambda *frames: dit.linkability(*frames, SIDES),
        "attribute-inference": lambda *frames: dit.attribute_inference(*frames, ["income", "sex"], known=KNOWN),
    }[attack]
    alarms = sum(run(*leaking_tables(150, 0, seed)).interval[0] > 0 for seed in range(200))
    assert alarms <= 0.025 * 200 + 3 * (200 * 0.025 * 0.975) ** 0.5
    found = sum(run(*leaking_tables(150, 60, seed)).interval[0] > 0 for seed in range(20))
    assert found >= 18


@pytest.mark.parametrize("size", [100, 300])
def test_a_smaller_or_larger_control_gives_about_the_same_risk_of_singling_out(size: int) -> None:
    """20% of 200 training records are published: the risk of rare values is 0.2 whatever the control's size."""
    risks = []
    for seed in range(10):
        training, release, _ = leaking_tables(200, 40, seed)
        control = people(np.random.default_rng([seed, 1]), size)
        risks.append(dit.singling_out(training, release, control, columns_of_predicate=1).risk)
    assert np.mean(risks) == pytest.approx(0.2, abs=0.02)


def test_a_sample_tries_so_many_attacks_and_estimates_the_same_risk() -> None:
    frames = leaking_tables(400, 80)
    every, some = (dit.singling_out(*frames, columns_of_predicate=1, sample=sample).results[0] for sample in (None, 500))
    assert (every.attacks > 1000, some.attacks) == (True, 500)
    assert some.interval()[0] <= every.risk <= some.interval()[1]
    links = dit.linkability(*frames, SIDES, sample=200)
    assert (links.results[0].attacks, links.results[0].control_attacks) == (200, 200)
    assert np.isfinite(links.successes["links"]).sum() == 200


def test_predicates_have_no_more_columns_than_the_tables() -> None:
    training, release, control = (frame[["age", "income"]] for frame in leaking_tables(100, 20))
    found = [dit.singling_out(training, release, control, columns_of_predicate=width) for width in (None, 2)]
    assert found[0].results == found[1].results
    with pytest.raises(dit.InputError, match="from 1 to the 2 columns; got 3"):
        dit.singling_out(training, release, control, columns_of_predicate=3)


def test_missing_values_are_equal_to_each_other_and_far_from_all_others() -> None:
    training = pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": ["x", None, "y"], "s": list("uvw")})
    found = dit.attribute_inference(training, training, training, ["s"], known=["a", "b"]).results[0]
    assert found.successes == 3


def test_a_control_that_was_trained_on_is_doubted() -> None:
    training, release, _ = leaking_tables()
    found = dit.linkability(training, release, training, SIDES)
    assert any("control records equal a training record" in doubt for doubt in found.doubts)


def test_numbered_rows_and_labels_that_nobody_has_are_doubted() -> None:
    training, release, control = (frame.assign(id=np.arange(len(frame)) + 1000 * k) for k, frame in enumerate(leaking_tables()))
    found = dit.linkability(training, release.assign(city="Elsewhere"), control, SIDES)
    assert any("'id' numbers or names the rows" in doubt for doubt in found.doubts)
    assert any("labels that no real record has" in doubt for doubt in found.doubts)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sides": (["age"], ["age"])}, "sides must name every column once"),
        ({"sides": (["age"], ["agee"])}, "sides: column"),
        ({"sides": (["age"],)}, "sides must be two lists"),
        ({"sides": (["age"], ["income"]), "confidence": 1.5}, "confidence must be a number between 0 and 1"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(dit.InputError, match=message):
        dit.linkability(*leaking_tables(40, 5), **arguments)
