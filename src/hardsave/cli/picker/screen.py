"""The picker on a real terminal: reads keys, writes frames, and leaves everything as it was."""

import io
import os
import select
import signal
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Protocol

from rich.text import Text

from hardsave.cli.picker.frame import Preview, frame
from hardsave.cli.picker.state import Cancelled, Chosen, Picker, Size, press
from hardsave.cli.render import glyphs
from hardsave.cli.render.console import console, put
from hardsave.tuples import NamedTuple

ESCAPE_SECONDS = 0.05  # an escape is a key if nothing follows it within
_ENTER = "\x1b[?1049h\x1b[?25l"  # another screen, no cursor
_LEAVE = "\x1b[?25h\x1b[?1049l"
_UNTOLD = Size(80, 24)  # of a terminal that does not know how large it is


class Feed(Protocol):
    """Where moments and previews come from. It reads in the background: a key never waits."""

    def begin(self, wake: Callable[[], None]) -> None:
        """Start to read; `wake` is called, from any thread, when there is something new."""

    def end(self) -> None:
        """Read nothing more. After this, `wake` is never called."""

    def look(self, picker: Picker) -> tuple[Picker, Preview]:
        """The picker with what was read since, and what is known of its current row."""


def pick(picker: Picker, feed: Feed) -> Chosen | None:
    """Let the user choose; None if the user cancels. Ctrl-C is KeyboardInterrupt."""
    source = sys.stdin.fileno()
    pending = b""
    with _signals() as alarm, _raw_mode(source), _fed(feed, alarm.wake):
        while True:
            picker, preview = feed.look(picker)
            if not pending:
                _show(picker, preview)
            keys, pending = _read(source, alarm.reading, pending)
            for key in keys:
                if key == "interrupt":
                    raise KeyboardInterrupt
                after = press(picker, key)
                if isinstance(after, Chosen | Cancelled):
                    return after if isinstance(after, Chosen) else None
                picker = after


@contextmanager
def _fed(feed: Feed, wake: Callable[[], None]) -> Iterator[None]:
    feed.begin(wake)
    try:
        yield
    finally:
        feed.end()


def _show(picker: Picker, preview: Preview) -> None:
    size = _size()
    lines = frame(picker, preview, size)
    _write("\x1b[H" + "\x1b[K\r\n".join(rendered(lines, size.width)) + "\x1b[K\x1b[J")


def _size() -> Size:
    """Of the terminal that is drawn on. What COLUMNS says was true when it was exported, and stdout
    may be a pipe."""
    found = os.get_terminal_size(sys.stderr.fileno())
    return Size(found.columns or _UNTOLD.width, found.lines or _UNTOLD.height)


def rendered(lines: Sequence[Text], width: int) -> list[str]:
    """Each line as the terminal wants it, cut to its width."""
    drawn = console(io.StringIO(), width=width, terminal=True)
    for line in lines:
        line.plain = glyphs.in_place(line.plain, sys.stderr.encoding)
        put(drawn, line)
    assert isinstance(drawn.file, io.StringIO)
    return drawn.file.getvalue().split("\n")[: len(lines)]


def _read(source: int, alarm: int, pending: bytes) -> tuple[list[str], bytes]:
    """Wait for keys, for another size, or for something new; also what is not a whole key yet."""
    ready, _, _ = select.select([source, alarm], [], [], ESCAPE_SECONDS if pending else None)
    if alarm in ready:
        os.read(alarm, 4096)
    data = os.read(source, 4096) if source in ready else b""
    if source in ready and not data:
        return ["escape"], b""  # the terminal is gone
    return decode(pending + data, waits=bool(ready))


@contextmanager
def _raw_mode(source: int) -> Iterator[None]:
    """Keys come one by one, without echo; in any case the terminal gets its old settings back."""
    before = termios.tcgetattr(source)
    now = termios.tcgetattr(source)
    now[0] &= ~(termios.ICRNL | termios.IXON)
    # Without signals: a stop (Ctrl-Z) would leave the shell with our screen.
    now[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN)
    now[6][termios.VMIN], now[6][termios.VTIME] = 1, 0
    try:
        termios.tcsetattr(source, termios.TCSADRAIN, now)
        _write(_ENTER)
        yield
    finally:
        _write(_LEAVE)
        termios.tcsetattr(source, termios.TCSADRAIN, before)


class _Alarm(NamedTuple):
    """A descriptor that becomes readable when there is something new to show."""

    reading: int
    wake: Callable[[], None]


@contextmanager
def _signals() -> Iterator[_Alarm]:
    """What wakes the screen: another size of the window, and threads that have read something.
    SIGTERM and SIGHUP end the process by an exception, so that the terminal is restored."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def wake() -> None:
        with suppress(BlockingIOError):  # the pipe is full of reasons to wake up
            os.write(writing, b".")

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    def resized(number: int, frame: FrameType | None) -> None:
        wake()

    kept = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    kept[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, resized)
    try:
        yield _Alarm(reading, wake)
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
        os.close(reading)
        os.close(writing)


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


# Keys

_NAMED = {
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x03": "interrupt",
    "\x04": "diff",  # Ctrl-D
    "\x06": "fork",  # Ctrl-F
    "\x07": "go on",  # Ctrl-G
    "\x0e": "down",  # Ctrl-N
    "\x10": "up",  # Ctrl-P
    "\x15": "clear",  # Ctrl-U
}
_SEQUENCES = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b[C": "right",
    "\x1b[D": "left",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1bOC": "right",
    "\x1bOD": "left",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1bOH": "home",
    "\x1bOF": "end",
    "\x1b[1~": "home",
    "\x1b[4~": "end",
    "\x1b[Z": "back tab",
}


def decode(data: bytes, *, waits: bool) -> tuple[list[str], bytes]:
    """The keys in what has come so far, and what is not whole yet.

    An escape may be a key, or begin a sequence whose rest comes in a moment: as long as that
    `waits`, it is kept. Letters stand for themselves; what is not known is left out.
    """
    keys: list[str] = []
    while data:
        used, key = _first(data)
        if used == 0 and waits:
            return keys, data
        if used == 0:
            used, key = 1, "escape" if data[:1] == b"\x1b" else ""
        data = data[used:]
        if key:
            keys.append(key)
    return keys, b""


def _first(data: bytes) -> tuple[int, str]:
    """How many bytes the first key has, 0 if some are missing; and its name, empty: unknown."""
    if data[0] == 0x1B:
        return _sequence(data)
    length = _utf8_length(data[0])
    if len(data) < length:
        return 0, ""
    text = data[:length].decode(errors="replace")
    return length, _NAMED.get(text, text if text.isprintable() and text != "\ufffd" else "")


def _sequence(data: bytes) -> tuple[int, str]:
    if len(data) == 1:
        return 0, ""
    if data[1:2] not in (b"[", b"O"):
        return 1, "escape"
    for at in range(2, len(data)):
        if 0x40 <= data[at] <= 0x7E:
            return at + 1, _SEQUENCES.get(data[: at + 1].decode("latin-1"), "")
    return 0, ""


def _utf8_length(first: int) -> int:
    """How many bytes a letter has that begins so; 1 for what begins none."""
    for low, high, length in ((0xC0, 0xE0, 2), (0xE0, 0xF0, 3), (0xF0, 0xF8, 4)):
        if low <= first < high:
            return length
    return 1
