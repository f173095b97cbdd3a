"""Exact binomial confidence limits (Clopper and Pearson), one side at a time, and factors of standard errors.

scipy.stats.binomtest(...).proportion_ci finds the same limits by root search, to about 4e-13. The quantiles of the beta
distribution are kept here because they are the limits in closed form and those of every summary.json written so far.
"""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from typing import Any


def lower_limit(successes: int, trials: int, tail: float) -> float:
    """The share below which so many successes or more have a probability of less than `tail`."""
    return float(special().betaincinv(successes, trials - successes + 1, tail)) if successes else 0.0


def upper_limit(successes: int, trials: int, tail: float) -> float:
    """The share above which so few successes or fewer have a probability of less than `tail`."""
    return float(special().betaincinv(successes + 1, trials - successes, 1 - tail)) if successes < trials else 1.0


def student_factor(tail: float, freedom: int) -> float:
    """How many standard errors Student's t exceeds with a probability of `tail`; infinite without any freedom."""
    return float(special().stdtrit(freedom, 1 - tail)) if freedom > 0 else float("inf")


@cache
def special() -> Any:
    """Return SciPy's special functions: the compiled ones alone, if nobody has imported the whole package, which takes 0.2 s.

    For this the package is there for a moment without having been executed, so no other thread may look.
    """
    name = "scipy.special"
    spec = find_spec(name) if name not in sys.modules and threading.active_count() == 1 else None
    if spec is not None:
        sys.modules[name] = module_from_spec(spec)
        try:
            with suppress(ImportError):  # in a version that has another layout
                return import_module(f"{name}._ufuncs")
        finally:
            del sys.modules[name]
    return import_module(name)
