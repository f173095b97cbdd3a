"""When a run counts as stalled."""

from __future__ import annotations

import pytest

from dit_dask.execution import stall
from dit_dask.execution.stall import Watchdog


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(stall.time, "monotonic", lambda: now[0])
    return now


def test_it_expires_after_the_limit_and_progress_resets_it(clock: list[float]) -> None:
    watchdog = Watchdog(60)
    for second, expired in ((60.0, False), (61.0, True)):
        clock[0] = second
        assert watchdog.expired is expired
    watchdog.reset()
    clock[0] = 121.0
    assert not watchdog.expired
    clock[0] = 122.0
    assert watchdog.expired


def test_a_long_task_extends_the_limit_unless_one_is_configured(clock: list[float]) -> None:
    patient, strict = Watchdog(), Watchdog(60)
    for watchdog in (patient, strict):
        watchdog.expect(1.0)
        watchdog.expect(100.0)
    clock[0] = 1900.0
    assert (patient.expired, strict.expired) == (False, True)
    clock[0] = 2001.0
    assert patient.expired


def test_it_names_what_it_waits_for(clock: list[float]) -> None:
    said = str(Watchdog(90).stalled([f"influence-mondrian-k2-{part:05d}" for part in range(8)]))
    assert said.startswith("no progress for 1.5 minutes, waiting for influence-mondrian-k2-00000, ")
    assert "00004 and 3 more; the same command resumes" in said
