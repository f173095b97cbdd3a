"""Adversaries that train at random: every repeat and side has its own random_state; what draws nothing has no spread."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

from dit_dask import seeds
from dit_dask.distances import EPSILONS
from dit_dask.engines import brute_force, repeated
from tests.audits import loaded, points

SCHEMA = {"quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}}, "sensitive": "illness"}
RNG = np.random.default_rng(5)
FRAME = pd.DataFrame(
    {"age": RNG.integers(20, 40, 24), "town": RNG.choice(["a", "b"], 24), "illness": RNG.choice(["x", "y", "z"], 24)}
)
ROWS = loaded(FRAME, SCHEMA)
FOREST = {"name": "sklearn.ensemble.RandomForestClassifier", "params": {"n_estimators": 2}}
NETWORK = {
    "name": "sklearn.neural_network.MLPClassifier",
    "params": {"hidden_layer_sizes": [2], "max_iter": 20_000, "solver": "lbfgs"},
}
TEST = {"sanitizer": {"name": "mondrian", "k": 3}, "encoder": {"continuous": "bounds", "categorical": "hot"}}


def built(adversary: object, repeats: int | None = 6, **keys: object) -> tuple[object, object]:
    test = TEST | {"adversary": adversary} | ({} if repeats is None else {"repeats": repeats}) | keys
    (point,) = points(ROWS, SCHEMA, [test], seed=3)
    return point.rows.table, point.procedure


def learned(adversary: object, records: np.ndarray, **keys: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Beliefs with the record, without it, and with it again: [m, repeats, n]."""
    table, procedure = built(adversary, **keys)
    (by_name,), _, _ = brute_force.compute_beliefs([table], records, [procedure])
    (beliefs,) = by_name.values()
    (again,) = brute_force.beliefs_on_full([table], records, [procedure], "again")
    return beliefs.full, beliefs.without, next(iter(again.values()))


@pytest.mark.parametrize("adversary", [FOREST, NETWORK])
def test_every_repeat_of_every_side_is_a_training_of_its_own(adversary: object) -> None:
    full, without, again = learned(adversary, np.arange(4))
    for side in (full, without, again):
        assert len(np.unique(side.round(12), axis=1)[0]) > 1
    assert not np.array_equal(full, again)
    assert np.abs(full - again).max() > 0.01  # with one random_state for both sides they would be equal


def test_beliefs_are_those_of_scikit_learn_with_the_derived_random_state() -> None:
    table, procedure = built(FOREST)
    full, without, _ = learned(FOREST, np.array([5]))
    (forest,) = procedure.adversaries.values()
    removal = table.removals(np.array([5]))[0][0]
    for side, found, part in (("full", full, table), (removal, without, table.without(5))):
        release = procedure.sanitizer.release(part, np.random.default_rng(0))
        features = procedure.encoder.classes(release, table.codes[5])
        where, secret = np.nonzero(release.counts)
        for repeat in range(6):
            state = seeds.integer(forest.seed, "training", side, repeat)
            model = RandomForestClassifier(n_estimators=2, random_state=state)
            model.fit(features[where], secret, sample_weight=release.counts[where, secret].astype(float))
            wanted = model.predict_proba(procedure.encoder.target(release, table.codes[5])[None])[0]
            np.testing.assert_array_equal(found[0, repeat][model.classes_], wanted)


def test_a_random_state_of_the_user_is_kept_in_all_repeats() -> None:
    chosen = FOREST | {"params": {"n_estimators": 2, "random_state": 7}}
    full, without, again = learned(chosen, np.arange(4))
    for side in (full, without, again):
        assert (side == side[:, :1]).all()
    np.testing.assert_array_equal(full, again)


def test_without_repeats_both_sides_have_the_same_random_state() -> None:
    _, procedure = built(FOREST, repeats=None)
    (forest,) = procedure.redraw("full", 0).adversaries.values()
    (other,) = procedure.redraw(3, 0).adversaries.values()
    assert forest.model.random_state == other.model.random_state == forest.seed


@settings(max_examples=4, deadline=None)
@given(st.integers(1, 4))
def test_no_cut_of_the_records_changes_a_bit(size: int) -> None:
    table, procedure = built([FOREST, "conditional-frequency"], 4)
    records = np.arange(5)
    whole = repeated.influence(table, records, procedure)
    parts = [repeated.influence(table, records[start : start + size], procedure) for start in range(0, 5, size)]
    np.testing.assert_array_equal(whole.distance, np.concatenate([part.distance for part in parts]))
    for name, values in whole.estimates.items():
        np.testing.assert_array_equal(values, np.concatenate([part.estimates[name] for part in parts]), name)


TREE = {"name": "sklearn.tree.DecisionTreeClassifier", "params": {"random_state": 1}}


@settings(max_examples=12, deadline=None)
@given(
    st.integers(2, 9),
    st.sampled_from([{"name": "mondrian", "k": 2}, {"name": "mondrian", "l": 2}, "raw", "suppressed"]),
    st.sampled_from(["panel", TREE]),
    st.sampled_from(["tf", TEST["encoder"]]),
)
def test_a_deterministic_pair_has_no_spread(repeats: int, sanitizer: object, adversary: object, encoder: object) -> None:
    table, procedure = built(adversary, repeats, sanitizer=sanitizer, encoder=encoder)
    records = np.arange(4)
    exact = brute_force.influence(table, records, replace(procedure, repeats=1))
    found = repeated.influence(table, records, procedure)
    np.testing.assert_allclose(found.distance, exact.distance, rtol=1e-12)  # means of equal numbers round
    for name in ("stderr", "bias", "noise", "expected_noise"):
        assert (found.estimates[name] == 0).all(), name
    assert np.isin(found.estimates["excess_stderr"], [0.0, np.inf]).all()  # a half of one draw shows no spread
    for name, limit in EPSILONS.items():
        np.testing.assert_array_equal(found.estimates[f"over_{name}"], exact.distance >= limit)
        assert (found.estimates[f"noise_over_{name}"] == 0).all()


def test_in_a_single_draw_the_largest_distance_of_a_persons_rows_counts() -> None:
    frame = FRAME.assign(person=np.arange(24) // 2)
    schema = SCHEMA | {"subject": "person"}
    (point,) = points(loaded(frame, schema), schema, [TEST | {"adversary": FOREST, "repeats": 5}])
    table, records = point.rows.table, np.flatnonzero(point.rows.table.subject < 3)
    (by_name,), _, _ = brute_force.compute_beliefs([table], records, [point.procedure])
    (beliefs,) = by_name.values()
    single = np.abs(beliefs.full - beliefs.without).sum(axis=2)
    found = repeated.influence(table, records, point.procedure)
    for place, record in enumerate(records):
        rows = [other for other, one in enumerate(records) if table.subject[one] == table.subject[record]]
        for name, limit in EPSILONS.items():
            assert found.estimates[f"over_{name}"][place] == (single[rows].max(axis=0) >= limit).mean()
