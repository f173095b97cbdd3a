"""Counts with noise: the mechanisms that a config may name, and what each claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dit_dask.config.constraints import Anything, Field, Integer, ListOf, MapOf, Number, OneOf, Record
from dit_dask.config.registry import Context, Kind, Tunable
from dit_dask.errors import InputError
from dit_dask.kernels.mechanisms import Gaussian, Geometric, Laplace, Mechanism, gaussian_sigma

PROCEDURE = "noisy-counts"
BINS = Field(
    MapOf(OneOf([(int, Integer(1)), (list, ListOf(Anything(), 2))], "a number of bins, or a list of edges")),
    {},
    description="numeric attributes in intervals: so many of equal frequency, or edges",
)
EPSILON = Field(Number(above=0), None, sweep=True, description="of the mechanism; inf is no noise")


@dataclass(frozen=True)
class Protection:
    """A mechanism with its claim: (epsilon, delta_dp)-differential privacy; epsilon is None where nothing is claimed."""

    mechanism: Mechanism
    epsilon: float | None
    delta_dp: float = 0.0


def laplace(where: str, *, epsilon: float | None) -> Protection:
    """Laplace noise of scale 1 / epsilon."""
    return Protection(Laplace(checked := _check_epsilon(epsilon, where)), checked)


def geometric(where: str, *, epsilon: float | None) -> Protection:
    """Two-sided geometric noise."""
    return Protection(Geometric(checked := _check_epsilon(epsilon, where)), checked)


def gaussian(
    where: str, *, epsilon: float | None = None, delta_dp: float | None = None, sigma: float | None = None
) -> Protection:
    """Normal noise of a given sigma, which claims nothing, or of the smallest sigma for epsilon and delta_dp."""
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
    return Protection(Gaussian(gaussian_sigma(_check_epsilon(epsilon, where), delta_dp)), epsilon, delta_dp)


def _check_epsilon(epsilon: float | None, where: str) -> float:
    if epsilon is None:
        raise InputError(f"{where}.epsilon is missing")
    if not epsilon > 0:
        raise InputError(f"{where}.epsilon must be a number > 0; got {epsilon:g}")
    return epsilon


def _kind(build: Callable[..., Protection], fields: Mapping[str, Field]) -> Kind[Protection]:
    """A mechanism whose function takes its own fields by name."""

    def built(parameters: Mapping[str, Any], context: Context) -> Protection:
        return build(f"{context.where}.sanitizer", **{key: parameters[key] for key in fields})

    tunable = {key: TUNABLE[key] for key in fields if key in TUNABLE}
    return Kind(Record({**fields, "bins": BINS}), built, procedure=PROCEDURE, tunable=tunable)


TUNABLE = {
    "epsilon": Tunable((10.0, 5.0, 2.0, 1.0, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)),
    "sigma": Tunable((0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)),
}
DELTA_DP = Field(Number(above=0), None, sweep=True, description="the mechanism's delta, not the test's")
KINDS = {
    "laplace": _kind(laplace, {"epsilon": EPSILON}),
    "geometric": _kind(geometric, {"epsilon": EPSILON}),
    "gaussian": _kind(gaussian, {"epsilon": EPSILON, "delta_dp": DELTA_DP, "sigma": Field(Number(), None, sweep=True)}),
}
