"""Counts with noise: the mechanisms that a config may name, and what each claims."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dit_dask.config.constraints import Anything, Field, Integer, ListOf, MapOf, Number, OneOf, Record
from dit_dask.config.registry import Context, Kind
from dit_dask.errors import InputError, unknown
from dit_dask.kernels.mechanisms import Gaussian, Geometric, Laplace, Mechanism, gaussian_sigma

PROCEDURE = "noisy-counts"
BINS = Field(
    MapOf(OneOf([(int, Integer(1)), (list, ListOf(Anything(), 2))], "a number of bins, or a list of edges")),
    {},
    description="numeric attributes in intervals: so many of equal frequency, or edges",
)
EPSILON = Field(Number(above=0), None, sweep=True, description="of the mechanism; inf is no noise")
PARAMETERS = {
    "laplace": Record({"epsilon": EPSILON, "bins": BINS}),
    "geometric": Record({"epsilon": EPSILON, "bins": BINS}),
    "gaussian": Record(
        {
            "epsilon": EPSILON,
            "delta_dp": Field(Number(above=0), None, sweep=True, description="the mechanism's delta, not the test's"),
            "sigma": Field(Number(), None, sweep=True),
            "bins": BINS,
        }
    ),
}


@dataclass(frozen=True)
class Protection:
    """A mechanism with its claim: (epsilon, delta_dp)-differential privacy; epsilon is None where nothing is claimed."""

    mechanism: Mechanism
    epsilon: float | None
    delta_dp: float = 0.0


def protection(
    name: str, where: str, epsilon: float | None = None, delta_dp: float | None = None, sigma: float | None = None
) -> Protection:
    """Build a mechanism; Gaussian noise takes sigma, or epsilon and delta_dp, the others epsilon alone."""
    if name not in PARAMETERS:
        raise unknown(where, name, PARAMETERS)
    if epsilon is not None and not epsilon > 0:
        raise InputError(f"{where}.epsilon must be a number > 0; got {epsilon:g}")
    if name == "gaussian":
        return _gaussian(where, epsilon, delta_dp, sigma)
    for key, value in (("delta_dp", delta_dp), ("sigma", sigma)):
        if value is not None:
            raise InputError(f"{where}.{key} belongs to the gaussian mechanism; {name} takes epsilon alone")
    if epsilon is None:
        raise InputError(f"{where}.epsilon is missing")
    return Protection(Laplace(epsilon) if name == "laplace" else Geometric(epsilon), epsilon)


def _gaussian(where: str, epsilon: float | None, delta_dp: float | None, sigma: float | None) -> Protection:
    if sigma is not None:
        if epsilon is not None or delta_dp is not None:
            raise InputError(f"{where}: gaussian takes sigma, or epsilon and delta_dp; got sigma and one of the others")
        if not 0 <= sigma < math.inf:
            raise InputError(f"{where}.sigma must be a finite number >= 0; got {sigma:g}")
        return Protection(Gaussian(sigma), None)
    if epsilon is None or delta_dp is None:
        raise InputError(f"{where}: gaussian needs sigma, or epsilon and delta_dp (the mechanism's, not the test's delta)")
    if not 0 < delta_dp < 1:
        raise InputError(f"{where}.delta_dp must be a number between 0 and 1; got {delta_dp:g}")
    return Protection(Gaussian(gaussian_sigma(epsilon, delta_dp)), epsilon, delta_dp)


def _build(parameters: Mapping[str, Any], context: Context) -> Protection:
    claimed = {key: parameters[key] for key in ("epsilon", "delta_dp", "sigma") if key in parameters}
    return protection(parameters["name"], f"{context.where}.sanitizer", **claimed)


KINDS = {name: Kind(record, _build, procedure=PROCEDURE) for name, record in PARAMETERS.items()}
