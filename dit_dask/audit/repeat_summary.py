"""What repeats show, as summary.json has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from dit_dask.engines.influence import CurvePoint, Exceedance, ExceedanceShares, Excess


def repeats_document(repeats: Exceedance) -> dict[str, Any]:
    """As in summary.json."""
    excess = {name: asdict(one) | {"interval": list(one.interval)} for name, one in repeats.excess.items()}
    return asdict(repeats) | {"excess": excess, "curve": [asdict(point) for point in repeats.curve]}


def read_repeats(document: Mapping[str, Any]) -> Exceedance:
    """The inverse of `repeats_document`; runs of earlier versions have no curve."""
    over = {limit: ExceedanceShares(**shares) for limit, shares in document["over"].items()}
    excess = {
        name: Excess(one["estimate"], (float(one["interval"][0]), float(one["interval"][1])))
        for name, one in document["excess"].items()
    }
    curve = tuple(CurvePoint(**point) for point in document.get("curve", ()))
    return Exceedance(**dict(document) | {"over": over, "excess": excess, "curve": curve})
