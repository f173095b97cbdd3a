"""Exact binomial confidence limits (Clopper and Pearson), one side at a time, and factors of standard errors.

scipy.stats.binomtest(...).proportion_ci finds the same limits by root search, to about 4e-13. The quantiles of the beta
distribution are kept here because they are the limits in closed form and those of every summary.json written so far.
"""

from __future__ import annotations


def lower_limit(successes: int, trials: int, tail: float) -> float:
    """The share below which so many successes or more have a probability of less than `tail`."""
    from scipy.stats import beta

    return float(beta.ppf(tail, successes, trials - successes + 1)) if successes else 0.0


def upper_limit(successes: int, trials: int, tail: float) -> float:
    """The share above which so few successes or fewer have a probability of less than `tail`."""
    from scipy.stats import beta

    return float(beta.ppf(1 - tail, successes + 1, trials - successes)) if successes < trials else 1.0


def student_factor(tail: float, freedom: int) -> float:
    """How many standard errors Student's t exceeds with a probability of `tail`; infinite without any freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1 - tail)) if freedom > 0 else float("inf")
