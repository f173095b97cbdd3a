"""A finished run with hostile names and values, for tests of what people see of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dit_dask.cli import main

HOSTILE = (
    "<script>alert(1)</script>",
    "=cmd('calc')!A1",
    "x" * 10_000,
    "שלום עולם",
    "😀\u202eevil",
    '"><img src=x onerror=alert(1)>',
)


def hostile_table(rows: int = 120) -> pd.DataFrame:
    """A table whose names of columns and whose values try to be markup, formulas and floods."""
    random = np.random.default_rng(5)
    return pd.DataFrame(
        {
            HOSTILE[0]: random.integers(20, 60, rows),
            HOSTILE[1]: random.choice(HOSTILE, rows),
            HOSTILE[2]: random.choice(["u", "v"], rows),
            HOSTILE[3]: random.choice(["a", "b"], rows),
            HOSTILE[4]: random.choice([HOSTILE[2][:500], HOSTILE[0], "flu"], rows),
        }
    )


def hostile_config(folder: Path, **more: Any) -> Path:
    """A config that audits it, with gates that pass, fail and decide nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    hostile_table().to_csv(folder / "people.csv", index=False)
    document = {
        "version": 1,
        "name": "hostile",
        "data": {"source": "people.csv"},
        "schema": {
            "quasi_identifiers": {
                HOSTILE[0]: {"kind": "numeric"},
                HOSTILE[1]: {"kind": "categorical"},
                HOSTILE[3]: {"kind": "categorical"},
            },
            "sensitive": HOSTILE[4],
        },
        "tests": [{"sanitizer": {"name": "mondrian", "k": [2, 5, 20]}}],
        "measures": [
            {"name": "discrimination", "target": HOSTILE[4], "keys": [HOSTILE[1]]},
            {"name": "discrimination", "target": HOSTILE[4], "keys": [HOSTILE[2]]},
        ],
        "gates": ["delta <= 0.5", "share_over[0.1] <= 0.2", "quantiles[0.99] <= 0.6", "claims hold"],
        "seed": 3,
    } | more
    path = folder / "hostile.yaml"
    path.write_text(json.dumps(document, ensure_ascii=False), "utf-8")
    return path


def finished_run(folder: Path, **more: Any) -> Path:
    """Run it in this process and return the run folder."""
    config = hostile_config(folder, **more)
    assert main(["run", str(config), "--out", str(folder / "runs"), "--quiet"]) in (0, 1)
    (run,) = [path for path in (folder / "runs").iterdir() if path.is_dir() and (path / "manifest.json").exists()]
    return run


def measured_run(folder: Path) -> Path:
    """A finished run with many kinds of measures, labels, and another audit of some of the same persons."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(6)
    people = pd.DataFrame(
        {
            "patient": np.arange(160),
            "age": random.integers(20, 60, 160),
            "ward": random.choice(["north", "south", "east"], 160),
            "diagnosis": random.choice(["flu", "asthma", "diabetes", "fracture"], 160),
        }
    )
    people.to_csv(folder / "people.csv", index=False)
    other: dict[str, Any] = {
        "version": 1,
        "name": "earlier",
        "data": {"source": "people.csv", "limit": 120},
        "schema": {
            "subject": "patient",
            "quasi_identifiers": {"age": {"kind": "numeric"}, "ward": {"kind": "categorical"}},
            "sensitive": "diagnosis",
        },
        "tests": [{"label": "strict-five", "sanitizer": {"name": "mondrian", "k": 5}}],
    }
    measures = ["utility", "downcoding", "reidentification", {"name": "composition", "with": "earlier.yaml"}]
    config = other | {
        "name": "wards",
        "data": {"source": "people.csv"},
        "measures": [*measures, {"name": "membership", "releases": 20, "persons": {"sample": 10, "seed": 1}}],
        "gates": ["mean_gain <= 0.05", "claims hold", "composition.smallest_intersection >= 5", "composition.delta <= 0.2"],
    }
    for name, document in (("earlier", other), ("wards", config)):
        (folder / f"{name}.yaml").write_text(json.dumps(document), "utf-8")
    assert main(["run", str(folder / "wards.yaml"), "--out", str(folder / "runs"), "--quiet"]) == 1
    (run,) = (path for path in (folder / "runs").iterdir() if path.name.startswith("wards"))
    return run
