"""How often closeness raises a false alarm, and how often it finds a leak.

python benchmarks/closeness_error_rates.py [--runs N] [--only false-alarms | power] [--first SEED] [--cases NAME …]
False alarms: ten kinds of tables at eight sizes of training, synthetic and holdout, drawn independently from one population.
Power: 4,000 records of each on 13 columns of Adult, with leaks and with honest but protected tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache

import numpy as np
import pandas as pd
from scipy import stats

import dit_dask as dit
from dit_dask.inputs import datasets
from dit_dask.measures.synthetic.closeness import encode_tables, search_in_process
from dit_dask.measures.synthetic.memorised import SEED, Findings, judge_findings
from dit_dask.measures.synthetic.relabelling import Relabelling
from dit_dask.measures.synthetic.space import join_blocks

LEFT_OUT = ["split", "fnlwgt", "education-num"]
SIZES = [
    (200, 200, 200),
    (300, 100, 100),
    (100, 300, 100),
    (100, 100, 300),
    (200, 200, 20),
    (20, 200, 200),
    (300, 300, 5),
    (60, 20, 30),
]
ROWS = 4_000
Draw = Callable[[int, np.random.Generator], pd.DataFrame]


def numbers(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Normal numbers without ties."""
    return pd.DataFrame(rng.normal(size=(rows, 5)), columns=list("abcde"))


def heavy(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Numbers with outliers."""
    return pd.DataFrame(rng.standard_t(2, (rows, 5)), columns=list("abcde"))


def rounded(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Correlated numbers with ties."""
    base = rng.normal(size=(rows, 1))
    return pd.DataFrame(np.round(base + 0.5 * rng.normal(size=(rows, 6)), 1), columns=list("abcdef"))


def categories(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Categories of geometric frequencies."""
    return pd.DataFrame({name: np.array([f"v{code}" for code in rng.geometric(0.4, rows)], object) for name in "abcdef"})


def binary(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Three columns of two values: nearly all records are tied."""
    return pd.DataFrame({name: rng.choice(["yes", "no"], rows) for name in "abc"})


def constant(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """One column that hardly varies beside three that do not vary much."""
    return binary(rows, rng).assign(same=np.where(rng.random(rows) < 0.02, "rare", "usual"))


def zeros(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Amounts that are mostly zero, with unique ones."""
    return pd.DataFrame({name: np.where(rng.random(rows) < 0.9, 0, rng.lognormal(8, 2, rows).round()) for name in "abcd"})


def missing(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Mixed columns with missing cells."""
    frame = rounded(rows, rng).assign(kind=rng.choice(list("uvwxyz"), rows))
    return frame.mask(rng.random(frame.shape) < 0.2)


def repeated(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Records of which each is drawn from few templates."""
    templates = np.random.default_rng(1).normal(size=(60, 4)).round(2)
    return pd.DataFrame(templates[rng.integers(0, 60, rows)], columns=list("abcd"))


def census(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Records of Adult, 13 columns."""
    return adult().iloc[rng.choice(len(adult()), rows, replace=False)].reset_index(drop=True)


KINDS: dict[str, Draw] = {
    function.__name__: function
    for function in (numbers, heavy, rounded, categories, binary, constant, zeros, missing, repeated, census)
}


@cache
def adult(with_weights: bool = False) -> pd.DataFrame:
    """The 13 columns, or 14 with the census weight; a question mark is a category."""
    left_out = [name for name in LEFT_OUT if name != "fnlwgt" or not with_weights]
    return pd.read_csv(datasets.locate("adult")).drop(columns=left_out)


def p_value(training: pd.DataFrame, synthetic: pd.DataFrame, holdout: pd.DataFrame, distance: str) -> float:
    """The corrected p of the worst test, without what a verdict says beside it."""
    records = encode_tables({"training": training, "synthetic": synthetic, "holdout": holdout}, distance, 10)
    parts: dict[str, list] = {}
    for (name, _, _), part in zip(records.pieces(), search_in_process(records), strict=True):
        parts.setdefault(name, []).append(part)
    joined = {name: join_blocks(blocks) for name, blocks in parts.items()}
    views = {view: joined[str(number)] for number, view in enumerate(records.pool.views)}
    relabelling = Relabelling.of(records.pool.is_training, 0.01, SEED)
    return judge_findings(Findings(records.pool, views, joined["planted"]), relabelling)[0].p


def false_alarms(runs: int) -> None:
    """Print the shares of p at most 0.01 and 0.05; nominal plus three standard errors is the most they may be."""
    most = [level + 3 * np.sqrt(level * (1 - level) / runs) for level in (0.01, 0.05)]
    print(f"\n{runs} runs each; at most {most[0]:.3f} at 0.01 and {most[1]:.3f} at 0.05\n")
    print("| table | " + " | ".join("/".join(map(str, sizes)) for sizes in SIZES) + " |")
    print("|---" * (1 + len(SIZES)) + "|", flush=True)
    everything = []
    for place, (name, draw) in enumerate(KINDS.items()):
        cells = []
        for sizes in SIZES:
            found = []
            for run in range(runs):
                rng = np.random.default_rng([place, *sizes, run])
                pool = draw(sum(sizes), rng)  # one draw: records of a real table are drawn without replacement
                cuts = np.cumsum(sizes)
                parts = pool[: cuts[0]], pool[cuts[0] : cuts[1]], pool[cuts[1] :]
                found.append(p_value(*(part.reset_index(drop=True) for part in parts), "gower"))
            everything += found
            rates = [float((np.array(found) <= level + 1e-12).mean()) for level in (0.01, 0.05)]
            mark = "" if all(rate <= limit for rate, limit in zip(rates, most, strict=True)) else " (!)"
            cells.append(f"{rates[0]:.3f} {rates[1]:.3f}{mark}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    total = [show_share(int((np.array(everything) <= level + 1e-12).sum()), len(everything)) for level in (0.01, 0.05)]
    print(f"\nAll runs: {total[0]} at 0.01 and {total[1]} at 0.05")


def copies(training: pd.DataFrame, fresh: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Copy 0.5% of the records."""
    count = round(0.005 * len(fresh))
    return pd.concat([training.iloc[rng.choice(len(training), count, replace=False)], fresh.iloc[count:]], ignore_index=True)


def redraw(frame: pd.DataFrame, fresh: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """Replace a share of the cells by those of fresh records."""
    cells = {}
    for name in frame:
        others = fresh[name].to_numpy()[rng.integers(0, len(fresh), len(frame))]
        cells[name] = np.where(rng.random(len(frame)) < share, others, frame[name].to_numpy())
    return pd.DataFrame(cells)


def noisy(training: pd.DataFrame, fresh: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Copy 5% of the records, with 30% of their cells from other records."""
    count = round(0.05 * len(fresh))
    copied = training.iloc[rng.choice(len(training), count, replace=False)].reset_index(drop=True)
    return pd.concat([redraw(copied, fresh, 0.3, rng), fresh.iloc[count:]], ignore_index=True)


def shifted(training: pd.DataFrame, fresh: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Copy 5% of the records with noise on the numbers, and 10% of the categories from other records."""
    count = round(0.05 * len(fresh))
    copied = training.iloc[rng.choice(len(training), count, replace=False)].reset_index(drop=True)
    changed = redraw(copied, fresh, 0.1, rng)
    for name in copied.select_dtypes("number"):
        changed[name] = (copied[name] + rng.normal(0, 0.1 * training[name].std(), count)).round().astype(int)
    return pd.concat([changed, fresh.iloc[count:]], ignore_index=True)


def five_columns(training: pd.DataFrame, fresh: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Five columns of every record come from a training record."""
    rows = rng.integers(0, len(training), len(fresh))
    chosen = rng.choice(fresh.columns, 5, replace=False)
    return fresh.assign(**{name: training[name].to_numpy()[rows] for name in chosen})


def rare_numbers(training: pd.DataFrame, fresh: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Training records of which 70% of the cells are redrawn, but not the numbers."""
    rows = training.iloc[rng.integers(0, len(training), len(fresh))].reset_index(drop=True)
    changed = redraw(rows, fresh, 0.7, rng)
    return changed.assign(**{name: rows[name] for name in rows.select_dtypes("number")})


def unchanged(_training: pd.DataFrame, fresh: pd.DataFrame, _rng: np.random.Generator) -> pd.DataFrame:
    """Fresh people."""
    return fresh


def rare_protected(_training: pd.DataFrame, fresh: pd.DataFrame, _rng: np.random.Generator) -> pd.DataFrame:
    """Fresh people with rare categories replaced by the most common one."""
    counts = {name: fresh[name].value_counts() for name in fresh.select_dtypes("object")}
    return fresh.assign(**{name: fresh[name].where(fresh[name].map(n) >= 20, n.index[0]) for name, n in counts.items()})


def clipped(training: pd.DataFrame, fresh: pd.DataFrame, _rng: np.random.Generator) -> pd.DataFrame:
    """Fresh people with numbers clipped at the 1% and 99% quantiles of training."""
    edges = {name: training[name].quantile([0.01, 0.99]).astype(int).tolist() for name in fresh.select_dtypes("number")}
    return fresh.assign(**{name: fresh[name].clip(*ends) for name, ends in edges.items()})


CASES = (copies, noisy, shifted, five_columns, rare_numbers, unchanged, rare_protected, clipped)


def power(runs: int, distances: list[str], names: list[str], first: int) -> None:
    """Print how often each case is found, passes, or is undecided, and the median of the smallest leak."""
    print(f"\n{ROWS:,} training, synthetic and holdout records of Adult, level 0.01, {runs} runs each from seed {first} on\n")
    print("| synthetic table | columns, distance | found | passed | undecided | smallest leak, median |\n" + "|---" * 6 + "|")
    for distance in distances:
        for case in (case for case in CASES if case.__name__ in names):
            show_power(case, adult(), f"13, {distance}", distance, range(first, first + runs))
    show_power(copies, adult(with_weights=True), "14, with fnlwgt, gower", "gower", range(first, first + runs))


def show_power(case: Callable[..., pd.DataFrame], people: pd.DataFrame, what: str, distance: str, runs: range) -> None:
    """Print the line of one case."""
    verdicts, leaks = [], []
    for run in runs:
        rng = np.random.default_rng([run, 7])
        order = rng.permutation(len(people))[: 3 * ROWS].reshape(3, ROWS)
        training, holdout, fresh = (people.iloc[rows].reset_index(drop=True) for rows in order)
        found = dit.closeness(training, case(training, fresh, rng), holdout, distance)
        verdicts.append(found.passed)
        leaks += [] if found.smallest_leak is None else [found.smallest_leak]
    shares = [show_share(sum(verdict is value for verdict in verdicts), len(verdicts)) for value in (False, True, None)]
    leak = f"{np.median(leaks):.2%}" if leaks else ""
    print(f"| {case.__doc__} | {what} | " + " | ".join(shares) + f" | {leak} |", flush=True)


def show_share(count: int, runs: int) -> str:
    """Write a number of runs with its exact (Clopper and Pearson) interval of 95%."""
    low, high = stats.binomtest(count, runs).proportion_ci(0.95, method="exact")
    return f"{count} of {runs} ({low:.3f} to {high:.3f})"


def main() -> None:
    """Print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed of the runs of power")
    parser.add_argument("--only", choices=["false-alarms", "power"])
    parser.add_argument("--distances", nargs="+", default=["gower", "buckets"])
    parser.add_argument("--cases", nargs="+", default=[case.__name__ for case in CASES])
    options = parser.parse_args()
    if options.only != "power":
        false_alarms(options.runs)
    if options.only != "false-alarms":
        power(options.runs, options.distances, options.cases, options.first)


if __name__ == "__main__":
    main()
