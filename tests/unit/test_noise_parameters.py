"""Privacy parameters that cannot be used end in one clear line."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dit_dask.errors import InputError
from dit_dask.kernels.mechanisms import Gaussian, Geometric, Laplace, gaussian_sigma
from dit_dask.sanitizers.noise import protection


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("laplace", {"epsilon": 0.0}, r"^s\.epsilon must be a number > 0; got 0$"),
        ("laplace", {"epsilon": -1.0}, r"^s\.epsilon must be a number > 0; got -1$"),
        ("geometric", {"epsilon": math.nan}, r"^s\.epsilon must be a number > 0; got nan$"),
        ("laplace", {}, r"^s\.epsilon is missing$"),
        (
            "laplace",
            {"epsilon": 1.0, "delta_dp": 0.1},
            r"^s\.delta_dp belongs to the gaussian mechanism; laplace takes epsilon alone$",
        ),
        ("geometric", {"epsilon": 1.0, "sigma": 0.1}, r"^s\.sigma belongs to the gaussian mechanism"),
        ("gaussian", {"epsilon": 1.0}, r"^s: gaussian needs sigma, or epsilon and delta_dp"),
        ("gaussian", {"epsilon": 1.0, "sigma": 2.0}, r"^s: gaussian takes sigma, or epsilon and delta_dp"),
        ("gaussian", {"sigma": math.inf}, r"^s\.sigma must be a finite number >= 0; got inf$"),
        ("gaussian", {"sigma": math.nan}, r"^s\.sigma must be a finite number >= 0; got nan$"),
        ("gaussian", {"epsilon": 1.0, "delta_dp": 0.0}, r"^s\.delta_dp must be a number between 0 and 1; got 0$"),
        ("gaussian", {"epsilon": 1.0, "delta_dp": 1.0}, r"^s\.delta_dp must be a number between 0 and 1; got 1$"),
        ("laplacian", {"epsilon": 1.0}, r"^s: unknown 'laplacian'; did you mean 'laplace'\?"),
    ],
)
def test_wrong_parameters_are_one_clear_line(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        protection(name, "s", **parameters)


def test_mechanisms_are_built_with_their_claims() -> None:
    assert protection("laplace", "s", epsilon=0.5).mechanism == Laplace(0.5)
    assert protection("geometric", "s", epsilon=math.inf).mechanism == Geometric(math.inf)
    claimed = protection("gaussian", "s", epsilon=0.5, delta_dp=1e-5)
    assert (claimed.mechanism, claimed.epsilon, claimed.delta_dp) == (Gaussian(gaussian_sigma(0.5, 1e-5)), 0.5, 1e-5)
    assert protection("gaussian", "s", sigma=2.0).epsilon is None
    assert protection("gaussian", "s", epsilon=math.inf, delta_dp=0.1).mechanism == Gaussian(0.0)
