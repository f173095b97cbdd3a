"""When a run counts as stalled."""

from __future__ import annotations

import pytest

from dit_dask.execution import stall as watchdog
from dit_dask.execution.stall import Watchdog


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(watchdog.time, "monotonic", lambda: now[0])
    return now


def test_it_waits_for_the_limit_and_begins_anew_when_fed(clock: list[float]) -> None:
    dog = Watchdog(60)
    for second, hungry in ((60.0, False), (61.0, True)):
        clock[0] = second
        assert dog.expired is hungry
    dog.feed()
    clock[0] = 120.0
    assert not dog.expired


def test_a_task_that_is_known_to_take_long_is_borne_with_unless_a_limit_is_set(clock: list[float]) -> None:
    patient, strict = Watchdog(), Watchdog(60)
    for dog in (patient, strict):
        dog.expect(1.0)
        dog.expect(100.0)
    clock[0] = 1900.0
    assert (patient.expired, strict.expired) == (False, True)
    clock[0] = 2001.0
    assert patient.expired


def test_it_names_what_it_waits_for(clock: list[float]) -> None:
    said = str(Watchdog(90).stalled([f"influence-mondrian-k2-{part:05d}" for part in range(8)]))
    assert said.startswith("no progress for 1.5 minutes, waiting for influence-mondrian-k2-00000, ")
    assert "00004 and 3 more; the same command resumes" in said
