"""anjana's own environment, and the argument lists that run in it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.conftest import ROOT

PYTHON = ROOT / ".venv-anjana" / "bin" / "python"


def required() -> None:
    """Skip at a desk that has not built it; CI has."""
    if not PYTHON.exists():
        missing = "no environment for anjana: make third-party"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)


def command(argv: Sequence[str], frame: pd.DataFrame, folder: Path, **environment: str) -> pd.DataFrame:
    """Do with an argument list what the `command` sanitizer does: CSV in, CSV out, no shell, all values as text."""
    source, target = folder / "input.csv", folder / "output.csv"
    target.unlink(missing_ok=True)
    frame.to_csv(source, index=False)
    places = {"{input}": str(source), "{output}": str(target)}
    done = subprocess.run(
        [places.get(part, part) for part in argv],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return pd.read_csv(target, dtype=str, keep_default_na=False)


def adapter(target: str, params: Mapping[str, Any], numeric: Sequence[str], folder: Path) -> list[str]:
    """The argument list that calls one of our adapters inside that environment."""
    (folder / "params.json").write_text(json.dumps(params), "utf-8")
    files = ["--in", "{input}", "--out", "{output}", "--params", str(folder / "params.json")]
    return [str(PYTHON), "-m", "dit_dask.adapters", target, *files, "--numeric", *numeric]


def pycanon(releases: Sequence[pd.DataFrame], keys: Sequence[str], secret: str, folder: Path) -> list[dict[str, float]]:
    """The k, l and t of published tables in the eyes of pycanon."""
    paths = []
    for number, release in enumerate(releases):
        paths.append(str(folder / f"release-{number}.csv"))
        release.to_csv(paths[-1], index=False)
    request = json.dumps({"paths": paths, "quasi_identifiers": list(keys), "sensitive": secret})
    script = str(Path(__file__).with_name("pycanon_main.py"))
    done = subprocess.run([str(PYTHON), script], input=request, capture_output=True, text=True, timeout=120, check=True)
    return json.loads(done.stdout)
