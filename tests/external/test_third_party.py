"""Libraries that we did not write, audited from end to end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dit_dask as dit
from dit_dask.audit.grammar import read_config
from dit_dask.config import document as config
from tests.conftest import ROOT
from tests.third_party import environment

ROWS, FEW = 110, [0, 5, 17]


def shipped(name: str) -> config.Config:
    return read_config(str(ROOT / "configs" / name))


def audited(name: str, data_folder: Path, sanitizer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Audit three of the first rows of Adult with the schema of a config."""
    schema = shipped(name).checked_schema
    quasi = {
        column: {key: value for key, value in asdict(described).items() if value is not None}
        for column, described in schema.quasi_identifiers.items()
    }
    frame = pd.read_csv(data_folder / "adult.csv", dtype=str, nrows=400, skipinitialspace=True)
    frame = frame[~frame[[*quasi, "occupation"]].isin(["?"]).any(axis=1)].head(ROWS).reset_index(drop=True)
    tests = [{"sanitizer": {**sanitizer, "cache": "none"}, "records": FEW}]
    result = dit.audit(frame, schema={"quasi_identifiers": quasi, "sensitive": "occupation"}, tests=tests)
    assert result.distances()["distance"].between(0, 2).all()
    return result.tests[0]


def test_a_mondrian_by_somebody_else_is_audited(data_folder):
    name = "anonypyx-mondrian.yaml"
    found = audited(name, data_folder, shipped(name).tests[0].sanitizer.document() | {"claim": {"k": 5}})
    assert found["claim_holds"]
    assert found["oracle"]["deterministic"]
    assert found["oracle"]["rows"] == ROWS


def test_bins_of_scikit_learn_are_audited(data_folder):
    found = audited("kbins.yaml", data_folder, shipped("kbins.yaml").tests[0].sanitizer.document())
    assert found["oracle"]["deterministic"]
    assert found["oracle"]["nearest"] == 0


@pytest.mark.parametrize("name", ["anjana-k.yaml", "anjana-l.yaml", "anjana-t.yaml"])
def test_anjana_is_audited_in_an_environment_of_its_own(name, data_folder, tmp_path):
    environment.required()
    parameters = shipped(name).tests[0].sanitizer.parameters
    argv = environment.adapter(parameters["target"], parameters["params"], ["age"], tmp_path)
    found = audited(name, data_folder, {"name": "command", "argv": argv, "claim": {"k": parameters["params"]["k"]}})
    assert found["claim_holds"]
    assert found["oracle"]["absent"] + found["oracle"]["rows"] == ROWS  # what it suppressed is missing, and counted
    assert found["oracle"]["absent"] <= ROWS / 10
