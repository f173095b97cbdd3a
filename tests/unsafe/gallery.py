"""Cases of the gallery, and how one is judged: by the command, in a folder of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import dit_dask as dit
from dit_dask.api import Result
from dit_dask.cli import main
from tests.unsafe.tables import CLINIC

HERE = Path(__file__).parent


@dataclass(frozen=True, eq=False)
class Case:
    """A table, how it is to be published, the gates, and what the command must say of it.

    `warning` is part of a warning that must be there.
    """

    id: str
    frame: pd.DataFrame
    tests: Sequence[Mapping[str, Any]]
    gates: Sequence[str]
    status: str
    schema: Mapping[str, Any] = field(default_factory=lambda: CLINIC)
    measures: Sequence[Mapping[str, Any]] = ()
    warning: str = ""

    def write(self, folder: Path) -> Path:
        """Write the table and the config."""
        self.frame.to_csv(folder / "table.csv", index=False)
        document = {
            "version": 1,
            "name": "case",
            "data": {"source": "table.csv"},
            "schema": dict(self.schema),
            "tests": [dict(test) for test in self.tests],
            "measures": [dict(measure) for measure in self.measures],
            "gates": list(self.gates),
            "output": str(folder / "runs"),
        }
        path = folder / "case.yaml"
        path.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
        return path


def mondrian(k: int, **more: Any) -> dict[str, Any]:
    """A test of k-anonymity; `variant` is the sanitizer's, all other keys are the test's."""
    variant = {"variant": more.pop("variant")} if "variant" in more else {}
    return {"sanitizer": {"name": "mondrian", "k": k, **variant}, **more}


def parametrize(cases: Sequence[Case]) -> pytest.MarkDecorator:
    """One test for each case, named after it."""
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in cases])


def judge_by_command(case: Case, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    """Run `dit run --json` and return its exit code and what it printed."""
    code = main(["run", str(case.write(folder)), "--json", "--quiet"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, document


def audit_external(function: str, frame: pd.DataFrame, gates: Sequence[str], **more: Any) -> Result:
    """Audit a function of sanitizers.py in this process."""
    sanitizer = {"name": "python", "target": f"sanitizers:{function}", "cache": "none", **more}
    with chdir(HERE):
        return dit.audit(frame, schema=CLINIC, tests=[{"sanitizer": sanitizer}], gates=gates)
