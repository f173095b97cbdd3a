"""How often attacks with a control group find a risk above 0 in releases of fresh people; 2.5% is nominal.

python benchmarks/attack_false_alarms.py [RUNS]
prints for three kinds of tables and three sizes (training, release, control) the shares for singling out, linkability and
attribute inference. The guards are left out: they change no figure.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pandas as pd

from dit_dask.measures.attacks.inference import attack_secrets
from dit_dask.measures.attacks.linkability import attack_links
from dit_dask.measures.attacks.singling_out import attack_singling_out
from dit_dask.measures.attacks.tables import AttackTables
from dit_dask.measures.synthetic.columns import align

SIZES = ((300, 300, 300), (400, 300, 100), (300, 300, 30))


def coarse(rng: np.random.Generator, size: int) -> pd.DataFrame:
    """Few values, many ties."""
    numbers = {name: rng.integers(0, levels, size) for name, levels in (("a", 10), ("b", 60), ("e", 400))}
    return pd.DataFrame(numbers | {"c": rng.choice(list("abcde"), size, p=[0.5, 0.3, 0.15, 0.04, 0.01]), "d": _sex(rng, size)})


def heavy(rng: np.random.Generator, size: int) -> pd.DataFrame:
    """Long tails, rare labels, associated columns."""
    scale = rng.lognormal(3, 1, size)
    return pd.DataFrame(
        {
            "a": np.round(scale),
            "b": np.round(scale * rng.lognormal(0, 0.5, size)),
            "c": rng.geometric(0.05, size).astype(str),
            "d": _sex(rng, size),
            "e": np.round(rng.lognormal(8, 1, size), -1),
        }
    )


def continuous(rng: np.random.Generator, size: int) -> pd.DataFrame:
    """No ties among numbers."""
    first = rng.normal(size=size)
    numbers = {"a": first, "b": first + rng.normal(size=size), "e": rng.normal(size=size)}
    return pd.DataFrame(numbers | {"c": rng.choice(list("abc"), size), "d": _sex(rng, size)})


def _sex(rng: np.random.Generator, size: int) -> np.ndarray:
    return rng.choice(["f", "m"], size)


def alarms(make: Callable[[np.random.Generator, int], pd.DataFrame], sizes: tuple[int, ...], runs: int) -> np.ndarray:
    """Return the shares of releases in which the lower end of each risk is above 0."""
    found = np.zeros(3)
    for run in range(runs):
        rng = np.random.default_rng([run, *sizes])
        frames = dict(zip(("training", "synthetic", "holdout"), (make(rng, size) for size in sizes), strict=True))
        tables = AttackTables({column.name: column for column in align(frames)}, (), run)
        risks = (
            attack_singling_out(tables, sets=4),
            attack_links(tables, (["a", "c"], ["b", "e"])),
            attack_secrets(tables, ["c", "e"]),
        )
        found += [risk.interval[0] > 0 for risk in risks]
    return found / runs


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    for kind in (coarse, heavy, continuous):
        for size in SIZES:
            print(kind.__name__, size, *(f"{share:.4f}" for share in alarms(kind, size, count)))
