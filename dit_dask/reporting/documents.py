"""The document that --json prints of a finished run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dit_dask.audit.summary import TestSummary
from dit_dask.audit.verdict import RunVerdict
from dit_dask.measures.base import Entries
from dit_dask.reporting.criteria import describe_criteria


def run_document(url: str, summaries: Sequence[TestSummary], measures: Entries, verdict: RunVerdict) -> dict[str, Any]:
    """The figures of a run and its verdict, or one that was made of it later."""
    judged = verdict.document()
    return {
        "run": url,
        "status": verdict.status,
        "tests": [summary.document() for summary in summaries],
        "measures": [entry.document() for entry in measures],
        "criteria": [one.document() for one in describe_criteria(summaries, measures, verdict)],
        **{key: judged[key] for key in ("verdicts", "controls", "warnings")},
    }
