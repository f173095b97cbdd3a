"""Trade-offs: which choices no other one beats in both risk and loss of utility."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dit_dask.audit.statistics import Figure
from dit_dask.deciding.figures import LOSSES, RISKS, labels_of
from dit_dask.errors import unknown

DRAWN_RISKS = ("delta", "share_over[0.1]", "mean_gain")


def choose_loss(points: Sequence[Mapping[str, Figure]]) -> str | None:
    """The first measure of lost utility that all points have; None if there is none."""
    return next((name for name in labels_of(LOSSES) if all(point[name] is not None for point in points)), None)


def find_frontier(points: Sequence[Mapping[str, Figure]], risk: str, loss: str | None) -> list[int]:
    """Return the places of the points that no other beats, the smallest loss first.

    A point is beaten by one whose risk and loss are both at most as large, and one of them smaller.
    """
    if risk not in labels_of(RISKS):
        raise unknown("risk", risk, labels_of(RISKS))
    if loss is None:
        return []
    known = [(place, point[loss], point[risk]) for place, point in enumerate(points)]
    pairs = [(place, lost, at_risk) for place, lost, at_risk in known if lost is not None and at_risk is not None]
    kept = [
        (lost, at_risk, place)
        for place, lost, at_risk in pairs
        if not any(a <= lost and b <= at_risk and (a, b) != (lost, at_risk) for _, a, b in pairs)
    ]
    return [place for _, _, place in sorted(kept)]
