"""Cron schedules."""

from __future__ import annotations

import pytest

from dit_dask.deployment import cron
from dit_dask.errors import InputError


@pytest.mark.parametrize(
    "text",
    ["0 3 * * *", "*/15 0-6,18-23 1,15 jan-mar MON-FRI", "5/10 * ? * 0", "@daily", "0 0 31 1 *", "0 0 30 2 1", "0 0 29 2 *"],
)
def test_good_schedules_pass_unchanged(text: str) -> None:
    assert cron.check(text, "--schedule") == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must be five fields"),
        ("0 3 * *", "must be five fields"),
        ("0 3 * * * *", "must be five fields"),
        ("@every 5m", "must be five fields"),
        ("60 3 * * *", "the minute must be values from 0 to 59"),
        ("0 24 * * *", "the hour must be values from 0 to 23"),
        ("0 3 0 * *", "the day of month must be values from 1 to 31"),
        ("0 3 * 13 *", "the month must be values from 1 to 12"),
        ("0 3 * * 7", "the day of week must be values from 0 to 6"),
        ("0 5-3 * * *", "the hour must be"),
        ("*/0 * * * *", "the minute must be"),
        ("*/x * * * *", "the minute must be"),
        ("1,, * * * *", "the minute must be"),
        ("mon * * * *", "the minute must be"),
        ("0 0 * * someday", "the day of week must be"),
        ("0 0 30 2 *", "never runs: no such month has a day 30"),
        ("0 0 31 4,6,9,11 *", "never runs"),
    ],
)
def test_bad_schedules_say_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(InputError, match="--schedule") as caught:
        cron.check(text, "--schedule")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_time_zones_are_known_or_refused() -> None:
    assert cron.zone("Europe/Paris", "--time-zone") == "Europe/Paris"
    with pytest.raises(
        InputError, match="--time-zone must be the name of a time zone such as Europe/Paris; got 'Europe/Atlantis'"
    ):
        cron.zone("Europe/Atlantis", "--time-zone")
