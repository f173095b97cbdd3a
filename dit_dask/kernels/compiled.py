"""How kernels are compiled, cached, and loaded again by the next process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

KNOWN = "0.68."  # the version of numba whose private parts were tried; every other compiles as it likes, which takes longer
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
# callable from compiled functions only: an entry from Python with many arrays takes longer to compile than most functions
INNER: dict[str, Any] = {**OPTIONS, "no_cpython_wrapper": True}
# a literal has a type of its own, and every function called with one would be compiled once more
long: Any = np.int64


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call, or load it."""
    if not numba.__version__.startswith(KNOWN):
        return numba.njit(cache=True, **OPTIONS)(function)
    from dit_dask.kernels.numba_parts import KernelCache

    dispatcher = numba.njit(**OPTIONS)(function)
    dispatcher._cache = KernelCache(function)
    return dispatcher


def inner(function: Callable[..., Any]) -> Any:
    """Compile a function that only compiled functions call, as a part of each of them."""
    if not numba.__version__.startswith(KNOWN):
        return numba.njit(cache=True, **INNER)(function)
    from dit_dask.kernels.numba_parts import InnerCache, InnerCompiler

    dispatcher = numba.njit(**INNER, pipeline_class=InnerCompiler)(function)
    dispatcher._cache = InnerCache(function)
    return dispatcher
