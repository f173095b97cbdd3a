"""How many runs with 0.5% copies can be found at all: the test of identical records alone, with more and more knowledge.

python benchmarks/copies_power.py [--runs N] [--first SEED]
4,000 training, synthetic and holdout records of Adult, 13 columns, p <= 0.01. A copy counts more if an equal record
is unlikely by chance; so what is known about that decides. Three ways to know it:
- from the other training and holdout records, as closeness does;
- from all records of Adult but the new people of the synthetic table, by the same estimator;
- exactly: Adult itself is the population, records are drawn from it with replacement, and the weights are those of the most
  powerful test (Neyman and Pearson). No test of exchanging training and holdout records finds more there.
"""

from __future__ import annotations

import argparse

import numpy as np
from closeness_error_rates import ROWS, adult, show_share

from dit_dask.kernels.density import record_density
from dit_dask.measures.synthetic.nearness import LEAST, RATES
from dit_dask.measures.synthetic.relabelling import Relabelling, Statistic, judge

COPIES = 20
RELABELLINGS = 999
SMALLEST_SHARE = 1e-6


def estimate_density(rows: np.ndarray, others: np.ndarray, own: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    """How likely each row is among the others; own[i] of these is left out."""
    shares, ranks, other_ranks = np.empty(rows.shape), np.empty(rows.shape), np.empty(others.shape)
    for column in range(rows.shape[1]):
        counts = np.bincount(others[:, column], minlength=int(rows[:, column].max()) + 1) / len(others)
        rank = np.cumsum(counts) - counts / 2
        shares[:, column] = np.maximum(counts[rows[:, column]], SMALLEST_SHARE)
        ranks[:, column], other_ranks[:, column] = rank[rows[:, column]], rank[others[:, column]]
    return record_density(rows, shares, ranks, others, other_ranks, ordered, own)


def find_by_estimates(codes: np.ndarray, ordered: np.ndarray, seed: int) -> list[bool]:
    """Whether the copies of one run are found with the first and the second way to know how likely a record is."""
    rng = np.random.default_rng([seed, 7])
    training, holdout, fresh = rng.permutation(len(codes))[: 3 * ROWS].reshape(3, ROWS)
    synthetic = np.concatenate([training[rng.choice(ROWS, COPIES, replace=False)], fresh[COPIES:]])
    real = np.concatenate([training, holdout])
    rows, number = np.unique(codes[np.concatenate([real, synthetic])], axis=0, return_inverse=True)
    group, copied = number.ravel()[: 2 * ROWS], number.ravel()[2 * ROWS :]
    members, hits = np.bincount(group, minlength=len(rows)), np.bincount(copied, minlength=len(rows))
    matched = np.flatnonzero((members > 0) & (hits > 0))
    holder = np.zeros(len(rows), np.int64)
    holder[group] = np.arange(2 * ROWS)
    elsewhere = np.union1d(np.setdiff1d(np.arange(len(codes)), synthetic), training)
    densities = (
        estimate_density(rows[matched], codes[real], holder[matched], ordered),
        estimate_density(rows[matched], codes[elsewhere], np.searchsorted(elsewhere, real[holder[matched]]), ordered),
    )
    labels = Relabelling.of(np.arange(2 * ROWS) < ROWS, 0.01, seed)
    found = []
    for density in densities:
        statistics = []
        for rate in RATES:
            weight = np.zeros(len(rows))
            told = np.log1p(rate / np.maximum(density * ROWS, LEAST))
            weight[matched] = hits[matched] * told / members[matched]
            statistics.append(Statistic.of("identical", f"{rate}", weight[group]))
        found.append(judge(statistics, labels).p <= 0.01)
    return found


def find_with_replacement(codes: np.ndarray, seed: int) -> bool:
    """Whether the most powerful test finds the copies of one run, if Adult is the population and its frequencies are known."""
    rows, number = np.unique(codes, axis=0, return_inverse=True)
    frequency = np.bincount(number.ravel()) / len(codes)
    rng = np.random.default_rng([seed, 77])
    training, holdout, synthetic = number.ravel()[rng.integers(0, len(codes), (3, ROWS))]
    synthetic[:COPIES] = training[rng.choice(ROWS, COPIES, replace=False)]
    real, hits, rate = np.concatenate([training, holdout]), np.bincount(synthetic, minlength=len(rows)), COPIES / ROWS
    matched = np.flatnonzero(np.isin(real, synthetic))
    kinds, group = np.unique(real[matched], return_inverse=True)

    def likelihood(is_training: np.ndarray) -> float:
        inside = np.bincount(group[is_training[matched]], minlength=len(kinds))
        return float((hits[kinds] * np.log(1 - rate + rate * inside / (ROWS * frequency[kinds]))).sum())

    true = likelihood(np.arange(2 * ROWS) < ROWS)
    drawn = [likelihood(rng.permutation(2 * ROWS) < ROWS) >= true - 1e-12 for _ in range(RELABELLINGS)]
    return (1 + sum(drawn)) / (1 + RELABELLINGS) <= 0.01


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=120)
    parser.add_argument("--first", type=int, default=30_000)
    options = parser.parse_args()
    people = adult()
    codes = np.column_stack([np.unique(people[name], return_inverse=True)[1].ravel() for name in people]).astype(np.int64)
    ordered = np.array([people[name].dtype.kind in "iuf" for name in people], np.int64)
    seeds = range(options.first, options.first + options.runs)
    by_estimates = np.array([find_by_estimates(codes, ordered, seed) for seed in seeds])
    exactly = sum(find_with_replacement(codes, seed) for seed in seeds)
    print("| how likely an equal record is, is known from | copies found |\n|---|---|")
    print(f"| the other training and holdout records | {show_share(int(by_estimates[:, 0].sum()), options.runs)} |")
    print(
        f"| all records but the new people of the synthetic table | {show_share(int(by_estimates[:, 1].sum()), options.runs)} |"
    )
    print(f"| the population, which is Adult, drawn with replacement | {show_share(exactly, options.runs)} |")


if __name__ == "__main__":
    main()
