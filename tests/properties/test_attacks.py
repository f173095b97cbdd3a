"""Attacks with a control group: the order of rows, of columns and odd names change nothing; swapped tables swap the rates."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

import dit_dask as dit
from dit_dask.measures.attacks.risk import AttackRisk

HOSTILE = ['a"b', "<script>", "x y; drop", "if", "é\n", "{0}"]


@st.composite
def tables(draw: st.DrawFn) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Three small tables with many ties and missing cells."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    levels = draw(st.integers(2, 30))
    frames = []
    for size in (draw(st.integers(5, 40)), draw(st.integers(5, 40)), draw(st.integers(5, 40))):
        numbers = {name: rng.integers(0, levels, size).astype(float) for name in ("p", "q")}
        numbers["q"][1:][rng.random(size - 1) < 0.1] = np.nan
        labels = {name: rng.choice(list("abc"), size) for name in ("r", "s")}
        frames.append(pd.DataFrame(numbers | labels))
    return frames[0], frames[1], frames[2]


def attack(frames: tuple[pd.DataFrame, ...], names: dict[str, str] | None = None) -> list[AttackRisk]:
    p, q, r, s = (names or {}).get("p", "p"), *((names or {}).get(name, name) for name in "qrs")
    training, release, control = frames
    return [
        dit.singling_out(training, release, control, columns_of_predicate=2, sets=2),
        dit.linkability(training, release, control, ([p, r], [q, s]), neighbours=2),
        dit.attribute_inference(training, release, control, [s, p], known=[q, r]),
    ]


def figures(found: list[AttackRisk]) -> list[object]:
    return [
        (one.risk, one.interval, one.attainable, [(r.successes, r.control_successes) for r in one.results]) for one in found
    ]


@settings(max_examples=25, deadline=None)
@given(tables(), st.integers(0, 2**32 - 1))
def test_the_order_of_rows_changes_nothing(frames: tuple[pd.DataFrame, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(frame)) for frame in frames]
    shuffled = tuple(frame.iloc[order] for frame, order in zip(frames, orders, strict=True))
    first, second = attack(frames), attack(shuffled)
    assert figures(first) == figures(second)
    for one, other in zip(first, second, strict=True):
        for name, successes in one.successes.items():
            if one.name != "singling-out":  # of equal records either may be the one that is singled out
                assert (successes[orders[0]] == other.successes[name]).all()


@settings(max_examples=25, deadline=None)
@given(tables())
def test_risks_lie_in_their_intervals_and_between_0_and_1(frames: tuple[pd.DataFrame, ...]) -> None:
    for found in attack(frames):
        for result in found.results:
            low, high = result.interval()
            assert 0 <= low <= result.risk <= high <= 1
        low, high = found.interval
        assert found.risk is None or low <= found.risk <= high


@settings(max_examples=15, deadline=None)
@given(tables())
def test_swapped_training_and_control_swap_the_rates(frames: tuple[pd.DataFrame, ...]) -> None:
    training, release, control = frames
    one, other = (
        dit.linkability(*own, (["p"], ["q"])).results[0] for own in ((training, release, control), (control, release, training))
    )
    assert (one.rate, one.control_rate) == (other.control_rate, other.rate)


@settings(max_examples=15, deadline=None)
@given(tables(), st.permutations(HOSTILE))
def test_names_of_columns_change_nothing_but_the_order_of_sums(frames: tuple[pd.DataFrame, ...], chosen: list[str]) -> None:
    names = dict(zip("pqrs", sorted(chosen[:4]), strict=True))  # sorted as before: sums are added up by name
    renamed = tuple(frame.rename(columns=names) for frame in frames)
    assert figures(attack(renamed, names)) == figures(attack(frames))
