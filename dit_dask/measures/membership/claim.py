"""What a sanitizer claims, and whether the releases refute it, support it, or are too few to tell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dit_dask.engines.noisy_counts.procedure import NoisyCounts
from dit_dask.measures.membership.epsilon import EpsilonBound, attainable_epsilon, releases_to_refute, smallest_leak

if TYPE_CHECKING:
    from dit_dask.engines.release_procedure import ReleaseProcedure

NO_CLAIM = "no epsilon is claimed, so nothing can be refuted: set epsilon on the measure"
UNCHANGED = (
    "no removal changed the release: the sanitizer does not depend on its input, or returns a stored result; a release that no "
    "person influences cannot be told from one that was not made from this table"
)


@dataclass(frozen=True)
class Claim:
    """(epsilon, delta_dp)-differential privacy for persons; epsilon is None where nothing is claimed."""

    epsilon: float | None
    delta_dp: float = 0.0


@dataclass(frozen=True)
class Conclusion:
    """The verdict on a claim; `doubt` is why figures that look well are no pass, `attainable` the most that could be shown.

    `smallest_leak` is the least share of releases that must give one person away, and none without them, to refute the claim.
    """

    claim: Claim
    epsilon_lower: float
    passed: bool | None
    reason: str
    attainable: float | None = None
    smallest_leak: float | None = None
    doubt: str | None = None


def claimed_by(procedure: ReleaseProcedure | NoisyCounts, stated: Claim) -> Claim:
    """What the sanitizer itself claims, else what the config states; a sanitizer claims by an attribute `epsilon`."""
    if isinstance(procedure, NoisyCounts):
        protection = procedure.protection
        return stated if protection.epsilon is None else Claim(protection.epsilon, protection.delta_dp)
    own: Any = getattr(procedure.sanitizer, "epsilon", None)
    return stated if own is None else Claim(float(own))


def conclude(bound: EpsilonBound, claim: Claim, releases: int, persons: int, skipped: int) -> Conclusion:
    """Compare the bound with the claim; a pass must have been able to fail, for a single person too."""
    reached = attainable_epsilon(releases, persons, claim.delta_dp, bound.confidence)
    shown = f"epsilon is at least {bound.at_least:.4g} with {100 * bound.confidence:.4g}% confidence"
    doubt = None if not skipped else f"the sanitizer failed without {skipped} persons, who are not among these figures"

    def found(passed: bool | None, reason: str, leak: float | None = None) -> Conclusion:
        return Conclusion(claim, bound.at_least, passed, reason, reached, leak, doubt)

    if claim.epsilon is None or math.isinf(claim.epsilon):
        return found(None, f"{shown}; {NO_CLAIM}")
    leak = smallest_leak(claim.epsilon, releases, persons, claim.delta_dp, bound.confidence)
    if bound.at_least > claim.epsilon:
        shown_by = "one person" if bound.shown_by == "person" else "all attacked persons together"
        return found(False, f"{shown}, more than the claimed {claim.epsilon:g}; shown by {shown_by}", leak)
    if leak is None:
        needed = releases_to_refute(claim.epsilon, persons, claim.delta_dp, bound.confidence)
        advice = "no feasible number would" if needed is None else f"set releases to {needed:,} or more"
        reason = (
            f"{shown}, but {releases:,} releases a side cannot show more than {reached:.4g} of one person, even if each "
            f"release gave that person away, and {claim.epsilon:g} is claimed: {advice}"
        )
        return found(None, reason)
    if doubt is not None:
        return found(None, f"{shown}, but {doubt}", leak)
    found_from = f"{leak:.0%} of the releases with a person, and none without, would have had to give that person away"
    reason = f"{shown}, not more than the claimed {claim.epsilon:g}; to show more, {found_from}"
    return found(True, reason, leak)


def conclude_deterministic(changed: int, claim: Claim, skipped: int) -> Conclusion:
    """A release that changes for certain has no epsilon."""
    if changed:
        reason = "the release is the same each time, and without a person it is another one: no epsilon holds"
        return Conclusion(claim, math.inf, None if claim.epsilon is None else False, reason)
    doubt = UNCHANGED if not skipped else f"{UNCHANGED}; the sanitizer failed without {skipped} persons"
    return Conclusion(claim, 0.0, None, doubt, doubt=doubt)
