"""The (epsilon, delta) curve and the bias of the distance between laws, on laws that are known.

    python benchmarks/epsilon_delta.py [runs]

Coverage: beliefs of a few persons are drawn directly, all of them compared with the same draws with the record, as in a test.
A run is wrong if the upper end of the curve is below the true largest Pr[d >= epsilon] at any epsilon, or the lower end above.
Bias: counts with Laplace noise, whose exact distance is a closed form (docs/laplace.md).
"""

from __future__ import annotations

import sys

import numpy as np

from dit_dask.distances import EPSILONS
from dit_dask.engines.exceedance import epsilon_delta
from dit_dask.engines.influence import Estimates
from dit_dask.engines.repeated import bias, law_distance
from dit_dask.kernels import laplace

PERSONS, TRUTH = 20, 100_000
CONCENTRATIONS = {"smooth": 8.0, "nearly certain": 0.3, "close": 200.0}
COUNTS = ([1, 0, 0], [3, 1, 0, 0, 0], [1] + [0] * 19)


def shares(distances: np.ndarray) -> dict[str, np.ndarray]:
    """Return by epsilon (persons,): how often distances[persons, draws] reach it."""
    return {name: (distances >= limit).mean(axis=1) for name, limit in EPSILONS.items()}


def draw(rng: np.random.Generator, concentration: float, repeats: int) -> tuple[np.ndarray, np.ndarray]:
    """Beliefs with the record [repeats, 4] and without each person [persons, repeats, 4], who move them more and more."""
    centre = np.array([0.4, 0.3, 0.2, 0.1])
    full = rng.dirichlet(concentration * centre, repeats)
    moved = [centre + np.array([-0.3, 0.1, 0.1, 0.1]) * person / PERSONS for person in range(PERSONS)]
    return full, np.stack([rng.dirichlet(concentration * one, repeats) for one in moved])


def coverage(runs: int) -> None:
    """Print the share of runs in which any end of the curve is wrong."""
    print("| law | repeats | upper end wrong | lower end wrong | mean width at epsilon 0.5 |\n|---|---|---|---|---|")
    for law, concentration in CONCENTRATIONS.items():
        full, without = draw(np.random.default_rng(1), concentration, TRUTH)
        true = {name: float(found.max()) for name, found in shares(np.abs(full - without).sum(axis=2)).items()}
        for repeats in (5, 20, 100):
            wrong, width = np.zeros(2), 0.0
            for run in range(runs):
                full, without = draw(np.random.default_rng([run, repeats]), concentration, repeats)
                found = {f"over_{name}": one for name, one in shares(np.abs(full - without).sum(axis=2)).items()}
                found |= {f"noise_{name}": one for name, one in found.items()} | {"p_value": np.ones(PERSONS)}
                curve = epsilon_delta(Estimates(np.arange(PERSONS), found, found, np.ones(PERSONS)), repeats, 2.0)
                known = dict(zip(EPSILONS, curve, strict=True))
                error = 4 * np.sqrt(0.25 / TRUTH)  # of the truth, which is a simulation
                wrong[0] += any(point.at_most < true[name] - error for name, point in known.items())
                wrong[1] += any(point.at_least > true[name] + error for name, point in known.items())
                width += (known["0.5"].at_most - known["0.5"].at_least) / runs
            print(f"| {law} | {repeats} | {wrong[0] / runs:.3f} | {wrong[1] / runs:.3f} | {width:.2f} |", flush=True)


def biases(runs: int) -> None:
    """Print the true bias of the distance between laws beside the mean of its estimate."""
    print(
        "| counts | noise epsilon | repeats | exact d | mean of d | its bias | bias estimated |\n|---|---|---|---|---|---|---|"
    )
    for counts in COUNTS:
        for epsilon in (0.1, 1.0, 10.0):
            vector = np.array(counts)
            own = int(np.flatnonzero(vector == vector[0])[-1])
            exact = float(laplace.distances(vector[None], np.array([own]), len(vector), epsilon)[0])
            for repeats in (8, 20, 100):
                rng = np.random.default_rng([repeats, len(counts)])
                x, y = (sample(rng, side, epsilon, (runs, repeats)) for side in (vector, vector - (vector == vector.max())))
                found, estimate = law_distance(x, y), bias(x, y)
                cells = f"{counts[:5]}{'…' if len(counts) > 5 else ''} | {epsilon:g} | {repeats} | {exact:.4f}"
                print(f"| {cells} | {found.mean():.4f} | {found.mean() - exact:.4f} | {estimate.mean():.4f} |", flush=True)


def sample(rng: np.random.Generator, counts: np.ndarray, epsilon: float, shape: tuple[int, int]) -> np.ndarray:
    """Draw beliefs [runs, repeats, n] from counts with Laplace noise."""
    noisy = 1 + np.maximum(0.0, counts + rng.laplace(0.0, 1 / epsilon, (*shape, len(counts))))
    return noisy / noisy.sum(axis=-1, keepdims=True)


if __name__ == "__main__":
    chosen = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    coverage(chosen)
    biases(chosen)
