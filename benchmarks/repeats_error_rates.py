"""How often verdicts on sanitizers that draw at random are wrong: releases that ignore the removal, and planted leaks.

    python benchmarks/repeats_error_rates.py [runs]

Beliefs are drawn directly, without releases: of `ROWS` records one leaks by `theta`, the others not at all; the gate is
`delta <= 0.5`. Bounds are those of the package; the first column judges the plain distance. Each figure is the smallest and
the largest share of runs over the four laws of beliefs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from dit_dask.engines.exceedance import row_bounds
from dit_dask.engines.influence import Estimates
from dit_dask.engines.repeated import Laws, above_noise, jackknife, law_distance

ROWS, LIMIT, LARGEST = 5, 0.5, 2.0
Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def _coin(chance: float, height: float) -> Draw:
    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        first = height * (rng.random(shape) < chance)
        return np.stack([first, 1 - first], axis=-1)

    return draw


LAWS: dict[str, Draw] = {
    "smooth": lambda rng, shape: rng.dirichlet(np.full(5, 4.0), shape),
    "nearly certain, one of 10": lambda rng, shape: rng.dirichlet(np.full(10, 0.1), shape),
    "two values": _coin(0.2, 1.0),
    "rare": _coin(0.05, 0.5),
}
LEAKS = {
    "none": (0.0, False),
    "0.48 in all draws": (0.48, False),
    "0.52 in all draws": (0.52, False),
    "0.6 in few draws": (0.6, True),
    "1.5 in all draws": (1.5, False),
}


def leak(beliefs: np.ndarray, rng: np.random.Generator, theta: float, is_rare: bool) -> np.ndarray:
    """Move all draws a little towards a value that nobody believes in, or a few of them entirely."""
    away = np.append(np.zeros(beliefs.shape[-1] - 1), 1.0)
    weight = (rng.random(len(beliefs)) < theta / 2).astype(float) if is_rare else np.full(len(beliefs), theta / 2)
    return (1 - weight[:, None]) * beliefs + weight[:, None] * away


def verdict(law: Draw, repeats: int, theta: float, is_rare: bool, seed: int) -> tuple[bool, bool, bool]:
    """Whether the plain distance fails, whether the lower end fails, and whether the upper end passes."""
    rng = np.random.default_rng([seed, repeats])

    def draw(shape: tuple[int, ...]) -> np.ndarray:
        beliefs = law(rng, shape)
        return np.concatenate([beliefs, np.zeros((*shape, 1))], axis=-1)

    full, again, without = draw((repeats,)), draw((repeats,)), draw((ROWS, repeats))
    without[0] = leak(without[0], rng, theta, is_rare)
    laws = Laws(np.tile(full, (ROWS, 1, 1)), without, np.tile(again, (ROWS, 1, 1)))
    distance = law_distance(laws.full, laws.without)
    estimates = {"stderr": jackknife(laws.full, laws.without), **above_noise([laws], 1.0, distance, 0)}
    bounds = row_bounds(Estimates(np.arange(ROWS), estimates, estimates, distance), repeats, LARGEST)
    return distance.max() > LIMIT, bounds.low.max() > LIMIT, bounds.high.max() <= LIMIT


def main(runs: int) -> None:
    """Print the shares of runs with each verdict."""
    print(f"{ROWS} rows, gate delta <= {LIMIT}, {runs} runs of each of {len(LAWS)} laws of beliefs")
    print("| repeats | leak | plain d fails | fails | passes |\n|---|---|---|---|---|")
    for repeats in (4, 20, 100):
        for leaks_by, (theta, is_rare) in LEAKS.items():
            found = [
                np.mean([verdict(law, repeats, theta, is_rare, seed) for seed in range(runs)], axis=0) for law in LAWS.values()
            ]
            shares = [f"{least:.2f} to {most:.2f}" for least, most in zip(np.min(found, 0), np.max(found, 0), strict=True)]
            print("| " + " | ".join([str(repeats), leaks_by, *shares]) + " |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
