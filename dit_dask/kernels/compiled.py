"""How kernels are compiled, cached, and loaded again by the next process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
# callable from compiled functions only: an entry from Python with many arrays takes longer to compile than most functions
INNER: dict[str, Any] = {**OPTIONS, "no_cpython_wrapper": True}
# a literal has a type of its own, and every function called with one would be compiled once more
long: Any = np.int64


class KernelCache(FunctionCache):  # type: ignore[misc]
    """numba's cache of machine code, which a process that compiles nothing reads without numba's compiler."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load what was compiled; numba would first import all that it can compile, SciPy included, which takes 0.6 s."""
        rtsys.initialize(target_context)  # what machine code calls to allocate memory
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call, or load it."""
    return _with_cache(function, OPTIONS)


def inner(function: Callable[..., Any]) -> Any:
    """Compile a function that only compiled functions call."""
    return _with_cache(function, INNER)


def _with_cache(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    dispatcher = njit(**options)(function)
    dispatcher._cache = KernelCache(function)
    return dispatcher
