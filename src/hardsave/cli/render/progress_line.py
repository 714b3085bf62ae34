"""One line on a terminal that says how far a long call has come: numbers, percent, time left."""

import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from hardsave import wording
from hardsave.progress import CallProgress, on_progress

AFTER_SECONDS = 1.0  # what is over by then needs no line
REDRAW_SECONDS = 0.1
WINDOW_SECONDS = 15.0  # how far back the pace is looked at: it changes with the files
SURE_SECONDS = 2.0  # a shorter look tells no pace
ITEM_BYTES = 16 * 1024  # to open and to name a file takes as long as to read so many bytes
_CLEAR = "\r\x1b[K"


# How fast it goes. Pure


class Pace:
    """When it will be over, out of how far it had come when."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()

    def saw(self, at: float, fraction: float) -> None:
        self._seen.append((at, fraction))
        while len(self._seen) > 2 and self._seen[1][0] <= at - WINDOW_SECONDS:
            self._seen.popleft()

    def seconds_left(self) -> float | None:
        """None: not known."""
        if not self._seen:
            return None
        (start, begun), (now, done) = self._seen[0], self._seen[-1]
        if now - start < SURE_SECONDS or done <= begun:
            return None
        return (1 - done) * (now - start) / (done - begun)


def fraction(progress: CallProgress) -> float | None:
    """How much of it is done, from 0 to 1; None: how much there is to do is not known."""
    done = total = 0
    if progress.total_bytes is not None:
        done, total = progress.bytes, progress.total_bytes
    if progress.total_items is not None:
        weight = ITEM_BYTES if progress.total_bytes is not None else 1
        done, total = done + weight * progress.items, total + weight * progress.total_items
    return min(done / total, 1.0) if total else None


def line(
    doing: str, progress: CallProgress | None, elapsed: float, left: float | None, width: int
) -> str:
    """`0:07  reading  1,204 of 20,000 files  0.9 of 1.5 GiB  61%  0:05 left`, without what does
    not fit: the numbers go first, the largest last."""
    parts = [clock(elapsed), doing]
    items = size = ahead = ""
    if progress is not None:
        parts[1] = progress.doing
        items, size = _items(progress), _size(progress)
        known = fraction(progress)
        ahead = "" if known is None else f"{int(known * 100)}%"
        ahead += f"  {clock(left)} left" if left is not None else ""
    choices = [
        "  ".join(filter(None, [*parts, *some]))
        for some in ([items, size, ahead], [size, ahead], [ahead], [])
    ]
    return next((text for text in choices if len(text) < width), choices[-1][: width - 1])


def clock(seconds: float) -> str:
    """`0:07`, `12:30`, `1:02:03`."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _items(progress: CallProgress) -> str:
    if not progress.unit or not (progress.items or progress.total_items):
        return ""
    total = "" if progress.total_items is None else f" of {progress.total_items:,}"
    return f"{progress.items:,}{total} {progress.unit}"


def _size(progress: CallProgress) -> str:
    """`0.9 of 1.5 GiB`: in one unit, if it is the same."""
    if not progress.total_bytes:
        return wording.size(progress.bytes) if progress.bytes else ""
    done, total = wording.size(progress.bytes), wording.size(progress.total_bytes)
    number, _, unit = done.partition(" ")
    return f"{number if total.endswith(f' {unit}') else done} of {total}"


# On a terminal


class ProgressLine:
    """Drawn by a thread of its own, so that it also moves while the disk is waited for."""

    def __init__(self, what: str, file: TextIO) -> None:
        self._what = what
        self._file = file
        self._begun = time.monotonic()
        self._progress: CallProgress | None = None
        self._pace = Pace()
        self._ended = threading.Event()
        self._mutex = threading.Lock()  # one writer at a time
        self._is_shown = False
        self._thread = threading.Thread(target=self._draw, name="hardsave-progress", daemon=True)

    @contextmanager
    def shown(self) -> Iterator[None]:
        with suppress(RuntimeError):  # no further thread can be had: then nothing is drawn
            self._thread.start()
        try:
            with on_progress(self._saw):
                yield
        finally:
            self._ended.set()
            if self._thread.ident is not None:
                self._thread.join()
            self.clear()

    def clear(self) -> None:
        """Make room for a message; the next drawing brings it back."""
        with self._mutex:
            if self._is_shown:
                self._file.write(_CLEAR)
                self._file.flush()
                self._is_shown = False

    def _saw(self, progress: CallProgress) -> None:
        before = self._progress
        if before is None or before.doing != progress.doing:
            self._pace = Pace()
        self._progress = progress

    def _draw(self) -> None:
        self._ended.wait(AFTER_SECONDS)
        while not self._ended.is_set():
            self._redraw()
            self._ended.wait(REDRAW_SECONDS)

    def _redraw(self) -> None:
        now, progress, pace = time.monotonic(), self._progress, self._pace
        known = None if progress is None else fraction(progress)
        if known is not None:
            pace.saw(now, known)
        width = _width(self._file)
        text = line(self._what, progress, now - self._begun, pace.seconds_left(), width)
        with self._mutex:
            self._file.write(f"\r{text}\x1b[K")
            self._file.flush()
            self._is_shown = True


def _width(file: TextIO) -> int:
    try:
        return os.get_terminal_size(file.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def is_possible(file: TextIO) -> bool:
    """Whether a line can be drawn over: on a terminal that knows how."""
    return file.isatty() and os.environ.get("TERM") != "dumb"
