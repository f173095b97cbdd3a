"""Accuracy and closeness against sdmetrics, which lives in an environment of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import dit_dask as dit
from dit_dask.measures.synthetic.buckets import put_in_buckets
from dit_dask.measures.synthetic.columns import align

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_sdmetrics_finds_the_same_distances(tmp_path: Path, data_folder: Path) -> None:
    adult = pd.read_csv(data_folder / "adult.csv", na_values="?").drop(columns="split").sample(1500, random_state=4)
    training, synthetic = adult[:900].reset_index(drop=True), adult[900:].reset_index(drop=True)
    columns = [put_in_buckets(column, 10) for column in align({"original": training, "synthetic": synthetic})]
    frames = {"training": training, "synthetic": synthetic}
    for place, name in enumerate(("binned", "binned_synthetic")):
        frames[name] = pd.DataFrame({column.name: [f"b{code}" for code in column.codes[place]] for column in columns})
    for name, frame in frames.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    command = [sys.executable, ROOT / "tools" / "sdmetrics_oracle.py", tmp_path / "environment"]
    asked = [*command, *(tmp_path / f"{name}.csv" for name in frames)]
    theirs = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)

    closest = dit.closeness(training, synthetic, training, "gower")
    assert closest.dcr.tolist() == pytest.approx(theirs["dcr"], abs=1e-12)  # they add the columns up in another order
    found = dit.accuracy(training, synthetic, ways=(1, 2)).by_combination
    for name, complement in theirs["tv"].items():
        # they count a bucket that the original lacks as 1e-6 of a row: at most 12 of these in 900 rows
        assert 1 - found[name,].tvd == pytest.approx(complement, abs=2e-8)
    for one, other, similarity in theirs["pairs"]:
        assert 1 - found[one, other].tvd == pytest.approx(similarity, abs=1e-12)
    assert len(theirs["tv"]) == 15
    assert len(theirs["pairs"]) == 105
