"""Published numbers beside ours: the median and the range over random samples, and what explains a difference."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from dit_dask.reproduction.published import Number

REPRODUCED = "reproduced"
SAMPLE = "the random sample, which is unpublished"
UNEXPLAINED = "unexplained"


def summarise(values: Sequence[float]) -> dict[str, Any]:
    """Ours: the median and the range over samples, and every value for the JSON file."""
    return {"ours": statistics.median(values), "least": min(values), "most": max(values), "samples": list(values)}


def explain(published: Number | None, values: Sequence[float], others: Sequence[tuple[str, float]] = ()) -> str:
    """Say what explains a difference: rounding, the sample, or another reading among `others` that gives the number."""
    if published is None:
        return "not printed; a figure without numbers"
    slack = published.rounding * (1 + 1e-9)
    if min(abs(value - published.value) for value in values) <= slack and len(values) == 1:
        return REPRODUCED
    if min(values) - slack <= published.value <= max(values) + slack and len(values) > 1:
        return SAMPLE
    for name, value in others:
        if abs(value - published.value) <= slack:
            return name
    return UNEXPLAINED


def nearest(published: Number, variants: Sequence[tuple[str, float]]) -> tuple[str, float]:
    """The variant whose figure is nearest to the published one, the first of equals."""
    return min(variants, key=lambda variant: abs(variant[1] - published.value))


def falls(values: Sequence[float], *, slack: float = 0.0) -> bool:
    """Whether each value is at most the one before it."""
    return all(after <= before + slack for before, after in itertools.pairwise(values))


def claim(text: str, where: str, holds: Sequence[bool]) -> dict[str, Any]:
    """A sentence of a paper, and in how many samples it is true of our figures."""
    return {"claim": text, "where": where, "true in": f"{sum(holds)} of {len(holds)}"}


def by_sample(samples: Sequence[Any], figure: Callable[[Any], float]) -> list[float]:
    """One figure of every sample."""
    return [figure(sample) for sample in samples]
