"""The first run ever: while this process compiles some kernels, another one compiles others into the same cache."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from dit_dask.kernels.exact_engine import evaluate

# compiling holds a lock of numba, so threads would wait for each other
PROGRAM = "from dit_dask.engines.exact import compile_ahead; compile_ahead()"


def is_compiled() -> bool:
    """Whether the exact engine was compiled before, on this machine and by this version of numba or another."""
    return any(Path(evaluate.stats.cache_path).glob(f"exact_engine.{evaluate.__name__}-*.nbi"))


@contextmanager
def compile_beside(engines: Collection[str]) -> Iterator[None]:
    """Have another process compile while the exact engine is first used here; it ends with the block."""
    if "exact" not in engines or is_compiled():
        yield
        return
    nowhere = subprocess.DEVNULL
    command = [sys.executable, "-P", "-c", PROGRAM]  # without the working folder, where modules may have any name
    process = subprocess.Popen(  # noqa: S603 - our own code  # nosec B603
        command, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True
    )
    try:
        yield
    finally:
        process.kill()  # by now this process has compiled, or loaded, all that it needs
        process.wait()
