"""From the parameters of a config to a mechanism and what it claims."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dit_dask.errors import InputError, unknown
from dit_dask.kernels.mechanisms import Gaussian, Geometric, Laplace, Mechanism, gaussian_sigma

MECHANISMS = ("laplace", "geometric", "gaussian")


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
    if name not in MECHANISMS:
        raise unknown(where, name, MECHANISMS)
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
