"""Privacy parameters that cannot be used end in one clear line."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dit_dask.errors import InputError
from dit_dask.kernels.mechanisms import Gaussian, Geometric, Laplace, gaussian_sigma
from dit_dask.sanitizers.noise import gaussian, geometric, laplace
from tests.audits import WORKED_SCHEMA, checked


@pytest.mark.parametrize(
    ("mechanism", "parameters", "message"),
    [
        (laplace, {"epsilon": 0.0}, r"^s\.epsilon must be a number > 0; got 0$"),
        (laplace, {"epsilon": -1.0}, r"^s\.epsilon must be a number > 0; got -1$"),
        (geometric, {"epsilon": math.nan}, r"^s\.epsilon must be a number > 0; got nan$"),
        (laplace, {"epsilon": None}, r"^s\.epsilon is missing$"),
        (gaussian, {"epsilon": 1.0}, r"^s: gaussian needs sigma, or epsilon and delta_dp"),
        (gaussian, {"epsilon": 1.0, "sigma": 2.0}, r"^s: gaussian takes sigma, or epsilon and delta_dp"),
        (gaussian, {"sigma": math.inf}, r"^s\.sigma must be a finite number >= 0; got inf$"),
        (gaussian, {"sigma": math.nan}, r"^s\.sigma must be a finite number >= 0; got nan$"),
        (gaussian, {"epsilon": 1.0, "delta_dp": 0.0}, r"^s\.delta_dp must be a number between 0 and 1; got 0$"),
        (gaussian, {"epsilon": 1.0, "delta_dp": 1.0}, r"^s\.delta_dp must be a number between 0 and 1; got 1$"),
    ],
)
def test_wrong_parameters_are_one_clear_line(mechanism: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        mechanism("s", **parameters)


@pytest.mark.parametrize(
    ("sanitizer", "message"),
    [
        ({"name": "laplace", "epsilon": 1.0, "delta_dp": 0.1}, r"tests\[0\]\.sanitizer: key: unknown 'delta_dp'"),
        ({"name": "geometric", "epsilon": 1.0, "sigma": 0.1}, r"tests\[0\]\.sanitizer: key: unknown 'sigma'"),
        ({"name": "laplacian", "epsilon": 1.0}, r"tests\[0\]\.sanitizer: unknown 'laplacian'; did you mean 'laplace'\?"),
    ],
)
def test_a_mechanism_takes_its_own_parameters_only(sanitizer: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        checked(WORKED_SCHEMA, [{"sanitizer": sanitizer}])


def test_mechanisms_are_built_with_their_claims() -> None:
    assert laplace("s", epsilon=0.5).mechanism == Laplace(0.5)
    assert geometric("s", epsilon=math.inf).mechanism == Geometric(math.inf)
    claimed = gaussian("s", epsilon=0.5, delta_dp=1e-5)
    assert (claimed.mechanism, claimed.epsilon, claimed.delta_dp) == (Gaussian(gaussian_sigma(0.5, 1e-5)), 0.5, 1e-5)
    assert gaussian("s", sigma=2.0).epsilon is None
    assert gaussian("s", epsilon=math.inf, delta_dp=0.1).mechanism == Gaussian(0.0)
