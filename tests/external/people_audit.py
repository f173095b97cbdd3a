"""A small table of people, and an audit of it with an external sanitizer, through the public API."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path
from typing import Any

import pandas as pd

import dit_dask as dit
from dit_dask.api import Result

HERE = Path(__file__).parent
SCHEMA: Mapping[str, Any] = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}, "job": {"kind": "categorical"}},
    "sensitive": "illness",
}


def people() -> pd.DataFrame:
    """Sixty people, a few of them alike."""
    rows = [
        {
            "name": f"person {number}",
            "age": 61 if number == 41 else 20 + number * 13 % 41 // 14 * 14,
            "town": ("Lyon", "Nice", "Bonn", "Köln")[number * 7 % 4],
            "job": ("cook", "clerk")[number % 2],
            "illness": ("flu", "cold", "gout")[number * 5 % 3],
        }
        for number in range(60)
    ]
    return pd.DataFrame(rows)


def python_sanitizer(name: str, **more: Any) -> dict[str, Any]:
    """The sanitizer that calls a function of sample_sanitizers.py."""
    return {"name": "python", "target": f"sample_sanitizers:{name}", "cache": "none"} | more


def audit(sanitizer: Mapping[str, Any], frame: pd.DataFrame | None = None, output: str | None = None, **test: Any) -> Result:
    """Audit the people with one test and the adversary of the papers, in this process, from the folder of the samples."""
    chosen = {"sanitizer": sanitizer, "adversary": "bernoulli-nb", **test}
    with chdir(HERE):
        return dit.audit(people() if frame is None else frame, schema=SCHEMA, tests=[chosen], output=output)
