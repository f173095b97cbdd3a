"""The three attacks on frames: `dit.singling_out`, `dit.linkability` and `dit.attribute_inference`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dit_dask.measures.attacks import inference as inferring
from dit_dask.measures.attacks import linkability as linking
from dit_dask.measures.attacks import singling_out as singling
from dit_dask.measures.attacks.risk import AttackRisk
from dit_dask.measures.attacks.success import CONFIDENCE
from dit_dask.measures.attacks.tables import AttackTables

if TYPE_CHECKING:
    import pandas as pd


def singling_out(
    training: pd.DataFrame,
    synthetic: pd.DataFrame,
    holdout: pd.DataFrame,
    *,
    columns_of_predicate: int | None = None,
    sets: int = singling.SETS,
    sample: int | None = None,
    confidence: float = CONFIDENCE,
    **tables: Any,
) -> AttackRisk:
    """Ask whether predicates that single out one synthetic record single out a training record more often than a new one.

    Parameters
    ----------
    training
        What the synthesizer was shown.
    synthetic
        What it made.
    holdout
        Records of the same population that it was not shown: the control.
    columns_of_predicate
        How many columns a predicate of several columns has; by default 3, or all if there are fewer.
    sets
        How many column sets are drawn for every synthetic record.
    sample
        Try so many predicates of each kind instead of all.
    confidence
        Of the intervals.
    tables
        `columns` to compare, their `kinds`, and the `seed` of draws.

    Returns
    -------
    AttackRisk
        `risk` and `interval`, `results` of each kind of predicate, and `doubts`.

    Examples
    --------
    >>> import dit_dask as dit, numpy as np, pandas as pd
    >>> rng = np.random.default_rng(1)
    >>> training, holdout = (pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc")) for _ in range(2))
    >>> dit.singling_out(training, training, holdout).risk > 0.9  # a copy is no synthetic table
    True
    """
    prepared = AttackTables.of({"training": training, "synthetic": synthetic, "holdout": holdout}, **tables)
    return singling.attack_singling_out(prepared, columns_of_predicate, sets, sample, confidence)


def linkability(
    training: pd.DataFrame,
    synthetic: pd.DataFrame,
    holdout: pd.DataFrame,
    sides: Sequence[Sequence[str]],
    *,
    neighbours: int = 1,
    sample: int | None = None,
    confidence: float = CONFIDENCE,
    **tables: Any,
) -> AttackRisk:
    """Ask whether a synthetic table links two sides of a training record more often than those of a new record.

    Parameters
    ----------
    training
        What the synthesizer was shown.
    synthetic
        What it made.
    holdout
        Records of the same population that it was not shown: the control.
    sides
        Two lists of columns: what one source knows of a person, and what another knows.
    neighbours
        How many of the nearest synthetic records of each side are considered.
    sample
        Attack so many records of each table instead of all.
    confidence
        Of the intervals.
    tables
        `columns` to compare, their `kinds`, and the `seed` of draws.

    Returns
    -------
    AttackRisk
        `risk` and `interval`, the `results` with all rates, and `doubts`.

    Examples
    --------
    >>> import dit_dask as dit, numpy as np, pandas as pd
    >>> rng = np.random.default_rng(1)
    >>> training, holdout = (pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd")) for _ in range(2))
    >>> dit.linkability(training, training, holdout, sides=(["a", "b"], ["c", "d"])).risk > 0.9
    True
    """
    prepared = AttackTables.of({"training": training, "synthetic": synthetic, "holdout": holdout}, **tables)
    return linking.attack_links(prepared, sides, neighbours, sample, confidence)


def attribute_inference(
    training: pd.DataFrame,
    synthetic: pd.DataFrame,
    holdout: pd.DataFrame,
    secrets: Sequence[str],
    *,
    known: Sequence[str] | None = None,
    tolerance: float = inferring.TOLERANCE,
    sample: int | None = None,
    confidence: float = CONFIDENCE,
    **tables: Any,
) -> AttackRisk:
    """Ask whether the nearest synthetic record tells a training record's secret more often than that of a new record.

    Parameters
    ----------
    training
        What the synthesizer was shown.
    synthetic
        What it made.
    holdout
        Records of the same population that it was not shown: the control.
    secrets
        The columns to guess, each by an attack of its own.
    known
        The columns that are known of a person; all that are no secrets by default.
    tolerance
        How far a guessed number may be off, as a part of the guess.
    sample
        Attack so many records of each table instead of all.
    confidence
        Of the intervals.
    tables
        `columns` to compare, their `kinds`, and the `seed` of draws.

    Returns
    -------
    AttackRisk
        The largest `risk` and its `interval`, `results` of each secret, and `doubts`.

    Examples
    --------
    >>> import dit_dask as dit, numpy as np, pandas as pd
    >>> rng = np.random.default_rng(1)
    >>> training, holdout = (pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd")) for _ in range(2))
    >>> dit.attribute_inference(training, training, holdout, secrets=["d"]).risk > 0.9
    True
    """
    prepared = AttackTables.of({"training": training, "synthetic": synthetic, "holdout": holdout}, **tables)
    return inferring.attack_secrets(prepared, secrets, known, tolerance, sample, confidence)
