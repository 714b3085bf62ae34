import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from hardsave import wording
from hardsave.cli.render import times
from hardsave.errors import Misuse

NOW = datetime(2026, 6, 15, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.2, "now"),
        (1, "1 second ago"),
        (59, "59 seconds ago"),
        (60, "1 minute ago"),
        (7_199, "1 hour ago"),
        (86_400 * 3, "3 days ago"),
        (86_400 * 15, "2 weeks ago"),
        (86_400 * 70, "2 months ago"),
        (86_400 * 800, "2 years ago"),
        (-5, "in the future"),
    ],
)
def test_how_long_ago(seconds: float, said: str) -> None:
    assert wording.ago(NOW - timedelta(seconds=seconds), NOW) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "?"),
        (0, "now"),
        (58, "58s"),
        (61, "1m"),
        (7_300, "2h"),
        (86_400 * 40, "1mo"),
        (86_400 * 800, "2y"),
    ],
)
def test_an_age_in_a_few_letters(seconds: int, said: str) -> None:
    assert times.briefly(NOW - timedelta(seconds=seconds), NOW) == said


@pytest.mark.parametrize(
    ("text", "hours"), [("90m", 1.5), ("2h", 2), ("1d", 24), ("1w", 168), ("0.5h", 0.5)]
)
def test_a_span_is_so_long_ago(text: str, hours: float) -> None:
    assert times.span(text) == timedelta(hours=hours)
    assert times.moment(text, NOW) == NOW - timedelta(hours=hours)


def test_a_date_with_a_zone_is_that_moment() -> None:
    assert times.moment("2026-01-31T14:00+02:00", NOW) == datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_a_date_without_a_zone_is_local_time() -> None:
    assert times.moment("2026-01-31T14:00", NOW) == datetime(2026, 1, 31, 14).astimezone()


@pytest.mark.parametrize(
    ("text", "hours"), [("2 hours ago", 2), ("1 hour ago", 1), ("90 minutes ago", 1.5)]
)
def test_as_the_log_says_it(text: str, hours: float) -> None:
    assert times.moment(text, NOW) == NOW - timedelta(hours=hours)


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("today", datetime(2026, 6, 14, 22, tzinfo=UTC)),
        ("yesterday", datetime(2026, 6, 13, 22, tzinfo=UTC)),
        ("13:30", datetime(2026, 6, 15, 11, 30, tzinfo=UTC)),
        ("9:05", datetime(2026, 6, 15, 7, 5, tzinfo=UTC)),
        ("14:00", datetime(2026, 6, 15, 12, tzinfo=UTC)),
        ("14:01", datetime(2026, 6, 14, 12, 1, tzinfo=UTC)),  # that of today is yet to come
    ],
)
def test_days_and_times_of_the_day_are_local(
    in_berlin: None, text: str, expected: datetime
) -> None:
    assert times.moment(text, NOW) == expected


def test_a_day_begins_by_its_own_offset(in_berlin: None) -> None:
    """Summer time began at two in the morning of 29 March."""
    then = datetime(2026, 3, 29, 12, tzinfo=UTC)
    assert times.moment("today", then) == datetime(2026, 3, 28, 23, tzinfo=UTC)
    assert times.moment("00:30", then) == datetime(2026, 3, 28, 23, 30, tzinfo=UTC)


@pytest.mark.parametrize("text", ["25:00", "12:60", "tomorrow"])
def test_no_time_of_any_day_is_refused(text: str) -> None:
    with pytest.raises(Misuse, match="yesterday"):
        times.moment(text, NOW)


@pytest.mark.parametrize("text", ["", "soon", "2 hours", "-3h", "99999999d"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(Misuse, match="2h"):
        times.moment(text, NOW)
    with pytest.raises(Misuse, match="2h"):
        times.span(text)


@pytest.mark.parametrize("text", ["999999w", "0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00"])
def test_what_no_calendar_has_is_no_time(text: str) -> None:
    with pytest.raises(Misuse, match="is no time"):
        times.moment(text, NOW)
    with pytest.raises(Misuse, match="is no time to come"):
        times.coming(text, NOW.replace(year=9990))


@pytest.mark.parametrize(("text", "hours"), [("90m", 1.5), ("2h", 2), ("1w", 168)])
def test_a_span_to_come_is_in_so_long(text: str, hours: float) -> None:
    assert times.coming(text, NOW) == NOW + timedelta(hours=hours)


def test_a_time_of_the_day_to_come_is_the_next_one(in_berlin: None) -> None:
    """It is 14:00 there."""
    assert times.coming("15:30", NOW) == datetime(2026, 6, 15, 13, 30, tzinfo=UTC)
    assert times.coming("13:30", NOW) == datetime(2026, 6, 16, 11, 30, tzinfo=UTC)
    before_winter = datetime(2026, 10, 24, 20, tzinfo=UTC)
    assert times.coming("13:30", before_winter) == datetime(2026, 10, 25, 12, 30, tzinfo=UTC)


def test_a_date_to_come_is_that_moment() -> None:
    assert times.coming("2026-07-01T10:00Z", NOW) == datetime(2026, 7, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize("text", ["2 hours ago", "yesterday", "", "soon"])
def test_what_has_passed_is_no_time_to_come(text: str) -> None:
    with pytest.raises(Misuse, match="write in how long"):
        times.coming(text, NOW)
