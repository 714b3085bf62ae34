"""The line that says how far a long command has come."""

import io
import threading

import pytest

from hardsave.cli.render import progress_line
from hardsave.cli.render.progress_line import Pace, ProgressLine, clock, fraction, line
from hardsave.progress import CallProgress, meter

GIB = 1 << 30
HALF = CallProgress("reading", "files", 10_000, GIB, 20_000, 2 * GIB)


def test_a_line_has_numbers_percent_and_time_left() -> None:
    shown = "0:07  reading  10,000 of 20,000 files  1.0 of 2.0 GiB  50%  0:08 left"
    assert line("saving", HALF, 7.1, 7.6, 80) == shown


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (60, "0:07  reading  1.0 of 2.0 GiB  50%  0:08 left"),
        (40, "0:07  reading  50%  0:08 left"),
        (20, "0:07  reading"),
        (10, "0:07  rea"),
    ],
)
def test_where_there_is_little_room_the_time_left_stays_longest(width: int, shown: str) -> None:
    assert line("saving", HALF, 7, 8, width) == shown


def test_what_is_not_known_is_not_said() -> None:
    looking = CallProgress("looking", "files", 1_204, 0, None, None)
    assert line("saving", looking, 2, None, 80) == "0:02  looking  1,204 files"
    assert line("saving", None, 2, None, 80) == "0:02  saving"
    some = CallProgress("importing", "", 0, 200 << 20, None, 2 * GIB)
    assert line("importing", some, 2, None, 80) == "0:02  importing  200.0 MiB of 2.0 GiB  9%"


def test_a_file_counts_as_well_as_its_bytes() -> None:
    assert fraction(HALF) == 0.5
    assert fraction(CallProgress("", "files", 5, 0, 10, 0)) == 0.5, "all of them are empty"
    assert fraction(CallProgress("", "files", 5, 0, 10, None)) == 0.5
    assert fraction(CallProgress("", "files", 5, 0, None, None)) is None
    assert fraction(CallProgress("", "", 0, 0, 0, 0)) is None, "nothing to do"
    grown = CallProgress("", "", 0, 30, None, 20)
    assert fraction(grown) == 1, "a file that grew while it was read"


def test_the_time_left_is_told_by_the_pace() -> None:
    pace = Pace()
    assert pace.seconds_left() is None
    for second in range(11):
        pace.saw(100.0 + second, 0.02 * second)
    assert pace.seconds_left() == pytest.approx(40)


def test_a_pace_that_changes_is_followed() -> None:
    pace = Pace()
    for second in range(60):
        pace.saw(second, 0.001 * second)
    for second in range(60, 80):
        pace.saw(second, 0.059 + 0.02 * (second - 59))
    assert pace.seconds_left() == pytest.approx((1 - 0.459) / 0.02)


def test_too_short_a_look_and_a_standstill_tell_nothing() -> None:
    short, still = Pace(), Pace()
    for tenth in range(15):
        short.saw(tenth / 10, tenth / 100)
    for second in range(60):
        still.saw(second, 0.3)
    assert short.seconds_left() is still.seconds_left() is None


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.4, "0:00"), (7.5, "0:08"), (750, "12:30"), (3_723, "1:02:03")]
)
def test_a_clock_has_minutes_and_hours(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown


def test_the_line_shows_what_the_library_reports_and_goes_in_the_end() -> None:
    terminal = io.StringIO()
    drawn = ProgressLine("saving", terminal)
    with drawn.shown():
        meter("looking", "files").add(3)
        drawn._redraw()
        drawn.clear()
        drawn._redraw()
    shown = "\r0:00  looking\x1b[K"
    assert terminal.getvalue() == f"{shown}\r\x1b[K{shown}\r\x1b[K"


def test_what_is_quick_shows_nothing() -> None:
    terminal = io.StringIO()
    with ProgressLine("saving", terminal).shown():
        meter("looking", "files").add(3)
    assert terminal.getvalue() == ""


def test_without_a_thread_nothing_is_drawn_and_the_work_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    terminal, done = io.StringIO(), False
    with ProgressLine("saving", terminal).shown():
        done = True
    assert done
    assert terminal.getvalue() == ""


def test_no_line_is_drawn_into_a_file_or_on_a_terminal_without_commands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    assert progress_line.is_possible(Terminal())
    assert not progress_line.is_possible(io.StringIO())
    monkeypatch.setenv("TERM", "dumb")
    assert not progress_line.is_possible(Terminal())
