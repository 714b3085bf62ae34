"""Calls of a handler at any line of some files, as a signal may come there."""

import contextlib
import sys
from collections.abc import Callable, Collection, Iterator
from types import FrameType
from typing import Any


@contextlib.contextmanager
def at_line(
    number: int,
    handler: Callable[[], None],
    files: Collection[str | None],
    *,
    but: Collection[str] = (),
) -> Iterator[None]:
    """A block in which a handler is called before the nth line of these files that is reached, but
    for functions of these names."""
    left = number

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename not in files or frame.f_code.co_name in but:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                handler()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def interrupt() -> None:
    """What Ctrl-C does."""
    raise KeyboardInterrupt
