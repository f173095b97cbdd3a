"""Singling out, linkability and attribute inference against anonymeter, brute force and examples worked by hand."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dit_dask as dit
from dit_dask.measures.attacks.inference import naive_matches, read_secret
from dit_dask.measures.attacks.linkability import naive_links
from dit_dask.measures.attacks.singling_out import describe_records, read_cells, singled_out
from dit_dask.measures.attacks.success import AttackResult
from dit_dask.measures.attacks.tables import RELEASE, AttackTables
from tests.oracles.attack_tables import KNOWN, SECRETS, SIDES, leaking_tables, people, recorded, request

ROOT = Path(__file__).parents[2]
DIGITS = 1e-12  # the same formulas in another order of operations


def _same(result: AttackResult, theirs: dict[str, object]) -> None:
    assert result.rate == pytest.approx(theirs["rate"], abs=DIGITS)
    assert result.control_rate == pytest.approx(theirs["control_rate"], abs=DIGITS)
    assert result.risk == pytest.approx(theirs["risk"], abs=DIGITS)
    assert result.interval() == pytest.approx(tuple(theirs["interval"]), abs=DIGITS)


@pytest.mark.parametrize("neighbours", [1, 3])
def test_links_are_those_of_anonymeter(neighbours: int) -> None:
    found = dit.linkability(*leaking_tables(), SIDES, neighbours=neighbours)
    _same(found.results[0], recorded()[f"linkability {neighbours}"])


@pytest.mark.parametrize("secret", SECRETS)
def test_guessed_secrets_are_those_of_anonymeter(secret: str) -> None:
    tolerance = 0.05 if SECRETS[secret] else 0.0
    found = dit.attribute_inference(*leaking_tables(), [secret], known=KNOWN, tolerance=tolerance)
    _same(found.results[0], recorded()[f"inference {secret}"])


def test_predicates_of_one_column_are_those_of_anonymeter() -> None:
    theirs = recorded()["univariate"]
    found = dit.singling_out(*leaking_tables(), columns_of_predicate=1).results[0]
    assert found.attacks == theirs["attacks"]
    _same(found, theirs)


def test_predicates_of_several_columns_count_what_anonymeter_counts() -> None:
    frames = leaking_tables()
    asked = request(frames[1])["described"]
    tables = AttackTables.of(dict(zip(("training", "synthetic", "holdout"), frames, strict=True)))
    columns, names = list(tables.columns.values()), list(tables.columns)
    published = read_cells(columns, RELEASE)
    chosen = np.array([[names.index(name) for name in own] for _, own in asked])
    predicates = describe_records(columns, published, published[[row for row, _ in asked]], chosen)
    theirs = recorded()["multivariate"]
    counts = [predicates.count(read_cells(columns, table))[0] for table in range(3)]
    assert [part.tolist() for part in counts] == theirs["counts"]
    singling = counts[1] == 1
    successes = [float((counts[table][singling] == 1).sum()) for table in (0, 2)]
    total = int(singling.sum())
    assert total > 20
    _same(AttackResult("multivariate", total, successes[0], total, successes[1], 0.0), theirs)


@pytest.mark.slow
def test_anonymeter_answers_what_was_recorded(tmp_path: Path) -> None:
    frames = leaking_tables()
    paths = [tmp_path / f"{name}.csv" for name in ("training", "release", "control")]
    for frame, path in zip(frames, paths, strict=True):
        frame.to_csv(path, index=False)
    (tmp_path / "request.json").write_text(json.dumps(request(frames[1])), "utf-8")
    command = [sys.executable, ROOT / "tools" / "anonymeter_oracle.py", tmp_path / "environment"]
    asked = [*command, *paths, tmp_path / "request.json"]
    theirs = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
    assert theirs == recorded()
