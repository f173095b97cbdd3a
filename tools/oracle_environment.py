"""Environments of packages that our tests ask: their versions and ours would fight."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path


def python_of(environment: Path, package: str) -> Path:
    """The interpreter of a package's environment, made and filled with pinned versions where there is none."""
    python = environment / "bin" / "python"
    done = environment / ".complete"
    if not done.exists():
        pins = Path(__file__).with_name(f"{package}-constraints.txt")
        venv.create(environment, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--constraint", str(pins), package], check=True, stdout=sys.stderr)
        done.touch()
    return python


def run_inside(package: str, script: str, arguments: Sequence[str]) -> int:
    """Run a script in the environment that the first argument names, with --inside and the other arguments."""
    environment, *others = arguments
    inside = [str(python_of(Path(environment), package)), "-W", "ignore", script, "--inside", *others]
    return subprocess.run(inside, check=False).returncode
