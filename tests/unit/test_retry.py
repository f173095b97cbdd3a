"""Which failures of a storage are transient, and how long they are waited for."""

from __future__ import annotations

import errno
import time

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

from dit_dask.storage import retry


def answer(code: str, status: int) -> ClientError:
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "PutObject")


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


TRANSIENT = [
    ConnectionRefusedError(),
    TimeoutError(),
    EndpointConnectionError(endpoint_url="http://localhost"),
    ReadTimeoutError(endpoint_url="http://localhost"),
    answer("SlowDown", 503),
    answer("TooManyRequests", 429),
    caused(OSError(errno.EIO, "said so"), answer("InternalError", 500)),
    OSError(errno.ENETUNREACH, "no way"),
]
FINAL = [
    FileNotFoundError(),
    PermissionError(),
    caused(PermissionError(), answer("AccessDenied", 403)),
    caused(OSError(errno.EINVAL, "no"), answer("PreconditionFailed", 412)),
    OSError(errno.ENOSPC, "full"),
    ValueError("bad"),
]


@pytest.mark.parametrize("error", TRANSIENT, ids=repr)
def test_a_server_that_is_away_or_overloaded_may_come_back(error: Exception) -> None:
    assert retry.is_transient(error)


@pytest.mark.parametrize("error", FINAL, ids=repr)
def test_a_refusal_is_final(error: Exception) -> None:
    assert not retry.is_transient(error)


class Clock:
    """Time that passes only while someone sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "sleep", clock.sleep)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    return clock


@pytest.mark.parametrize("away", [0.0, 1.0, 20.0, 80.0])
def test_an_outage_is_waited_for_with_growing_pauses(clock: Clock, away: float) -> None:
    def call() -> str:
        if clock.now < away:
            raise ConnectionRefusedError
        return "here"

    assert retry.retry_transient(call) == "here"
    assert clock.pauses == sorted(clock.pauses)
    assert clock.now <= away + retry.LONGEST_PAUSE


def test_waiting_for_an_outage_has_a_limit(clock: Clock) -> None:
    with pytest.raises(ConnectionRefusedError):
        retry.retry_transient(lambda: (_ for _ in ()).throw(ConnectionRefusedError()), patience=30)
    assert 20 < clock.now <= 30


def test_a_refusal_is_raised_at_once(clock: Clock) -> None:
    with pytest.raises(PermissionError):
        retry.retry_transient(lambda: (_ for _ in ()).throw(PermissionError()))
    assert clock.pauses == []


def test_an_interrupt_during_an_outage_is_not_retried(clock: Clock) -> None:
    calls = []

    def interrupted() -> None:
        calls.append(1)
        try:
            raise ConnectionResetError
        except ConnectionResetError:
            raise KeyboardInterrupt  # noqa: B904 - as inside a client's own pause

    with pytest.raises(KeyboardInterrupt):
        retry.retry_transient(interrupted)
    assert calls == [1]
