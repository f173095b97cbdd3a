"""Manifests and plans for tests of the run folder."""

from __future__ import annotations

from typing import Any

import numpy as np

from dit_dask.audit.manifest import InputFingerprint, Manifest, Timings
from dit_dask.audit.plan import Cost, TestPlan

CONFIG: dict[str, Any] = {"name": "small", "schema": {"sensitive": {"name": "illness"}}, "gates": []}


def new_manifest(**changes: Any) -> Manifest:
    """A manifest of a small run."""
    fields: dict[str, Any] = {
        "status": "running",
        "config": CONFIG,
        "files": [],
        "input": InputFingerprint(10, 0, 10, "digest"),
        "versions": {"dit_dask": "1"},
        "seed": 0,
        "timings": Timings("2026-11-16T00:00:00+00:00"),
    }
    return Manifest(**fields | changes)


def new_plan(tasks: int) -> dict[str, TestPlan]:
    """The plan of one test, told apart by its number of tasks."""
    return {"test": TestPlan(np.array([0, 10]), tasks, 10, Cost(0.0, 0.1))}


def tasks_of(plans: Any) -> int:
    """The number of tasks of that test."""
    return int(plans["test"].tasks)
