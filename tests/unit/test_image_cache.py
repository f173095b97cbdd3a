"""Kernels that were compiled before, in a folder that cannot be written to, are used and not compiled again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from dit_dask.kernels import image_cache
from tests.conftest import ROOT

LOCATOR = f"{image_cache.__name__}.{image_cache.ImageCacheLocator.__name__}"
LISTEN = """
from numba.core import event
compiled = []
class Listener(event.Listener):
    def on_start(self, started):
        compiled.append(started.data["dispatcher"].py_func.__name__)
    def on_end(self, ended):
        pass
event.register("numba:compile", Listener())
"""
COUNT_COMPILED = f"import sys\n{LISTEN}\nfrom dit_dask.cli import main\nassert main(sys.argv[1:]) == 0\nprint(len(compiled))"
KERNELS = """
from numba import njit
@njit(cache=True)
def inner(number):
    return number + number
@njit(cache=True)
def outer(number):
    return inner(number) + 1
"""


def python(program: str, *arguments: object, **environment: str) -> str:
    """Run a program and return the last line that it printed."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=inherited | environment, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_what_an_image_holds_is_loaded_and_what_it_lacks_is_compiled_once_into_the_other_folder(tmp_path: Path) -> None:
    (tmp_path / "image").mkdir()
    (tmp_path / "image" / "some_kernels.py").write_text(KERNELS)
    path = {"PYTHONPATH": f"{tmp_path / 'image'}:{ROOT}", "NUMBA_CPU_NAME": "generic"}
    program = LISTEN + "\nimport some_kernels, sys\nprint(some_kernels.outer(eval(sys.argv[1])), *compiled)"
    assert python(program, "20", **path) == "41 outer inner"  # when the image is built
    image = {file: file.read_bytes() for file in (tmp_path / "image" / "__pycache__").iterdir()}
    container = path | {"NUMBA_CACHE_DIR": str(tmp_path / "scratch"), "NUMBA_CACHE_LOCATOR_CLASSES": LOCATOR}
    assert python(program, "20", **container) == "41"
    assert python(program, "0.5", **container) == "2.0 outer inner"  # a type that the image does not have
    assert python(program, "0.5", **container) == "2.0"
    assert python(program, "20", **container) == "41"
    assert {file: file.read_bytes() for file in image} == image


def test_an_image_has_all_kernels_of_the_usual_audits(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, ROOT / "tools" / "compile_kernels.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    container = {"NUMBA_CACHE_DIR": str(tmp_path / "scratch"), "NUMBA_CACHE_LOCATOR_CLASSES": LOCATOR}
    demo = ROOT / "dit_dask" / "data" / "demo.yaml"
    few = ("run", demo, "--out", tmp_path / "runs", "--quiet", "--set", "data.limit=300")
    assert python(COUNT_COMPILED, *few, **container) == "0"
