"""Summaries of tests, as a run folder keeps them."""

from __future__ import annotations

from typing import Any

from dit_dask.audit.summary import TestSummary

DOCUMENT: dict[str, Any] = {
    "adversaries": {},
    "attainable": None,
    "test": "mondrian-k5",
    "parameters": {"sanitizer": {"name": "mondrian", "k": 5}, "records": "all"},
    "engine": "exact",
    "engine_reason": "the sanitizer keeps its tree",
    "classes": 7,
    "smallest_class": 5,
    "claim_holds": True,
    "claim_broken": {"classes": 0, "records": 0},
    "seconds": 1.25,
}


def summary(test: str = "mondrian-k5", **more: Any) -> TestSummary:
    """A summary with the given statistics and nothing else that is worth a look."""
    return TestSummary.read(DOCUMENT | {"test": test} | more)
