"""What the report says to do next: a release that passed is named only where nothing else stands against it."""

from __future__ import annotations

import pytest

from dit_dask.audit.verdict import RunVerdict, Status, Verdict
from dit_dask.reporting.blocks import ReportedRun
from dit_dask.reporting.sections.verdict import next_steps, passing_tests
from tests.manifests import new_manifest
from tests.unit.summaries import summary


def run_with(*found: tuple[str, Status]) -> ReportedRun:
    verdicts = [Verdict(status, "delta <= 0.1", test, 0.0, 0.1, "") for test, status in found]
    tests = [summary(name, delta=0.1) for name in ("k2", "k5", "k10")]
    return ReportedRun("people-1", new_manifest(), tests, [], RunVerdict(verdicts), {})


@pytest.mark.parametrize(
    ("found", "passing"),
    [
        ([("k2", "failed"), ("k5", "failed"), ("k10", "passed")], ["k10"]),
        ([("k2", "failed"), ("k5", "passed"), ("k5", "inconclusive"), ("k10", "failed")], []),
        ([("k2", "failed"), ("k10", "passed"), ("closeness", "failed")], []),
        ([("k2", "failed"), ("k10", "passed"), ("", "inconclusive")], []),
        ([("k2", "failed")], []),
    ],
)
def test_only_a_release_that_passed_every_check_is_named(found: list[tuple[str, Status]], passing: list[str]) -> None:
    run = run_with(*found)
    assert passing_tests(run) == passing
    words = "".join(str(getattr(span, "text", span)) for span in next_steps(run))
    assert ("passed every check" in words) == bool(passing)
    assert ("do not publish. " in words) != bool(passing)
