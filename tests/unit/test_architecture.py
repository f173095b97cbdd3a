"""The layout of the package, its import contract and docs/architecture.md say the same."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from types import ModuleType

import pytest

import dit_dask
from tests.conftest import ROOT

PACKAGE = ROOT / "dit_dask"
MOST_ENTRIES = 35


def contract_layers() -> list[set[str]]:
    """The layers of the import contract, the highest first; `a | b` and `a : b` are names of one layer."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    (layered,) = [contract for contract in contracts if contract["type"] == "layers"]
    return [set(re.split(r"\s*[|:]\s*", layer)) for layer in layered["layers"]]


def table_layers() -> list[set[str]]:
    """The rows of the page's table of layers: those whose first cell holds nothing but names in backticks."""
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    tables = re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE)
    for table in tables:
        cells = [row.split("|")[1].strip() for row in table.splitlines()[2:]]
        if all(re.fullmatch(r"`[\w/]+`(, `[\w/]+`)*", cell) for cell in cells):
            layers = [{name.rstrip("/") for name in re.findall(r"`([\w/]+)`", cell)} for cell in cells]
            if any("cli" in layer for layer in layers):
                return layers
    return []


def test_the_page_has_the_layers_of_the_import_contract_in_the_same_order() -> None:
    assert table_layers() == contract_layers()


def test_every_layer_of_the_contract_is_in_the_package_and_the_other_way_round() -> None:
    entries = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert set().union(*contract_layers()) == entries - {"__init__"}


def test_no_module_is_a_drawer_for_everything() -> None:
    names = {path.stem for path in PACKAGE.rglob("*.py")}
    assert "parts" in names
    assert not names & {"utils", "util", "common", "helpers", "helper", "misc"}


def test_the_top_of_the_package_fits_in_the_head() -> None:
    entries = [path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= MOST_ENTRIES, sorted(entries)


def test_decision_records_have_numbers_of_their_own() -> None:
    names = sorted(path.name for path in (ROOT / "docs" / "decisions").iterdir())
    assert names
    assert all(re.fullmatch(r"\d{3}-[a-z0-9-]+\.md", name) for name in names), names
    numbers = [name[:3] for name in names]
    assert len(set(numbers)) == len(numbers), names


@pytest.mark.parametrize("name", dit_dask.__all__)
def test_a_public_name_is_never_the_folder_of_the_same_name(name: str) -> None:
    import_module("dit_dask.audit.manifest")  # as any import from that folder, it could make `dit_dask.audit` the folder

    assert not isinstance(getattr(dit_dask, name), ModuleType)


def test_every_file_that_the_table_of_changes_names_exists() -> None:
    rows = (ROOT / "docs" / "architecture.md").read_text("utf-8").partition("## Where to change what")[2]
    named = set(re.findall(r"`([a-z_]+/[a-z_/]*(?:\.[a-z0-9.]+)?)`", rows))
    assert len(named) > 15
    assert not [name for name in named if not (ROOT / "dit_dask" / name).exists() and not (ROOT / name).exists()]
