"""Kernels: what a process compiled is loaded by the next ones, functions inside of others included."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

KERNELS = """
import numpy as np
from dit_dask.kernels.compiled import compiled, inner

@inner
def double(number):
    return number + number

@inner
def allocate(number):
    return np.full(3, double(number))

@compiled
def total(number):
    return allocate(number).sum() + double(number)

@compiled
def quadruple(number):
    return double(double(number))
"""
LISTEN = """
import sys
from numba import typeof
from numba.core import event
names = []
class Listener(event.Listener):
    def on_start(self, started):
        names.append(started.data["dispatcher"].py_func.__name__)
    def on_end(self, ended):
        pass
event.register("numba:compile", Listener())
import some_kernels as kernels
print(eval(sys.argv[1]), *(name for name in names if hasattr(kernels, name)))
"""


def evaluate(folder: Path, expression: str) -> str:
    """In a new process: a value, and the kernels that were compiled for it."""
    done = subprocess.run(
        [sys.executable, "-c", LISTEN, expression],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": f"{folder}:{Path(__file__).parents[2]}", "NUMBA_CACHE_DIR": str(folder / "cache")},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_processes_share_the_functions_inside_of_kernels(tmp_path: Path) -> None:
    (tmp_path / "some_kernels.py").write_text(KERNELS, "utf-8")
    assert evaluate(tmp_path, "len(kernels.allocate.compile((typeof(1),)).__doc__) > 0") == "True allocate double"
    assert evaluate(tmp_path, "kernels.total(5)") == "40 total"
    assert evaluate(tmp_path, "kernels.total(5)") == "40"
    assert evaluate(tmp_path, "kernels.quadruple(5)") == "20 quadruple"
    assert evaluate(tmp_path, "kernels.total(0.5), kernels.total(5)") == "(4.0, 40) total allocate double"


def test_a_change_of_the_source_compiles_again(tmp_path: Path) -> None:
    (tmp_path / "some_kernels.py").write_text(KERNELS, "utf-8")
    assert evaluate(tmp_path, "kernels.quadruple(5)") == "20 quadruple double"
    (tmp_path / "some_kernels.py").write_text(KERNELS.replace("number + number", "3 * number"), "utf-8")
    assert evaluate(tmp_path, "kernels.quadruple(5)") == "45 quadruple double"
