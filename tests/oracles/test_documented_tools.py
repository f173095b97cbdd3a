"""docs/third-party-tools.md, typed as it is printed."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.conftest import ROOT
from tests.oracles.test_adapters import SECRET, config, resolved, table_of
from tests.third_party import documented, environment
from tests.third_party.published import anonymity, covers

PEOPLE = pd.DataFrame(
    {"age": [17, 20, 29, 30], "town": ["Lyon", "Nice, old", "Bonn", "Bonn"], "occupation": ["cook", "clerk", "cook", "nurse"]}
)


@pytest.mark.parametrize("sanitizer", documented.functions(), ids=lambda entry: entry["target"].split(":")[1])
def test_a_documented_function_gives_a_release(sanitizer: dict[str, Any], data_folder: Path, tmp_path: Path) -> None:
    frame, _, numeric = table_of(config("anonypyx-mondrian"), data_folder)
    params = sanitizer["params"]
    keys = params.get("quasi_identifiers", ["age", "education", "hours-per-week"])
    frame, numeric = frame[[*keys, SECRET]], [key for key in numeric if key in keys]
    if ".anjana:" in sanitizer["target"]:
        environment.required()
        argv = environment.adapter(sanitizer["target"], params, numeric, tmp_path)
        release = environment.command(argv, frame, tmp_path)
    else:
        release = resolved(sanitizer["target"])(frame, **params)
    found = anonymity(release, keys, SECRET)
    assert found["k"] >= params.get("k", 1)
    assert found["l"] >= params.get("l", 1)
    assert set(release["age"]) != set(map(str, frame["age"]))


def test_the_page_shows_every_adapter() -> None:
    shown = {entry["target"].split(":")[0].rsplit(".", 1)[1] for entry in documented.functions()}
    assert shown == {"anjana", "anonypyx", "kbins"}


def test_the_documented_environment_for_anjana_works(tmp_path: Path) -> None:
    environment.required()
    params = {"quasi_identifiers": ["age", "town"], "k": 2, "suppression": 50, "hierarchies": {"age": [5, 20]}}
    (tmp_path / "params.json").write_text(json.dumps(params), "utf-8")
    places = {"/opt/anjana/bin/python": str(environment.PYTHON), "/opt/anjana/params.json": str(tmp_path / "params.json")}
    argv = [places.get(part, part) for part in documented.argv("python")]
    release = environment.command(argv, PEOPLE, tmp_path)
    assert anonymity(release, ["age", "town"], SECRET)["k"] >= 2


def test_the_documented_function_of_ones_own_works(tmp_path: Path) -> None:
    (tmp_path / "release.py").write_text(documented.python_example(), "utf-8")
    release = runpy.run_path(str(tmp_path / "release.py"))["decades"](PEOPLE, columns=["age"])
    assert list(release["age"]) == ["[10, 20)", "[20, 30)", "[20, 30)", "[30, 40)"]


@pytest.mark.skipif(shutil.which("javac") is None, reason="no Java compiler here")
def test_the_documented_java_program_works(tmp_path: Path) -> None:
    source = ROOT / "docs" / "examples" / "GeneraliseAges.java"
    clean = {"PATH": os.environ["PATH"]}
    subprocess.run(["javac", "-Werror", "-d", str(tmp_path / "tools"), str(source)], check=True, timeout=120, env=clean)
    argv = [part.replace("/opt/tools", str(tmp_path / "tools")) for part in documented.argv("java")]
    release = environment.command(argv, PEOPLE, tmp_path)
    assert list(release["age"]) == ["[10, 20)", "[20, 30)", "[20, 30)", "[30, 40)"]
    assert all(map(covers, release["age"], PEOPLE["age"]))
    assert release[["town", "occupation"]].equals(PEOPLE[["town", "occupation"]]), "quoted commas survive"


def test_the_documented_r_script_is_marked_as_not_run() -> None:
    page = (ROOT / "docs" / "third-party-tools.md").read_text("utf-8")
    assert documented.argv("Rscript")[2].endswith("local_suppression.R")
    assert (ROOT / "docs" / "examples" / "local_suppression.R").is_file()
    assert "An R script (not run in our tests" in page
