"""The viewer of a demo: a person at a terminal, who goes on with a key, and kills with a key."""

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from hardsave.errors import Misuse

LEAVING = (b"q", b"Q", b"\x04")  # Ctrl-D
_BLOCK = 4096


class Left(Exception):
    """The viewer has seen enough."""


class Viewer:
    """Presses keys on a terminal."""

    def __init__(self, keyboard: int) -> None:
        self._keyboard = keyboard

    def wait(self) -> None:
        """Until a key is pressed; `Left` if it is one that leaves."""
        self._read_key()

    def watch(self, output: IO[bytes]) -> Iterator[str | None]:
        """The lines of a program as they come, and None for each key that is pressed meanwhile;
        `Left` if it is one that leaves."""
        program, begun = output.fileno(), b""
        while True:
            ready, _, _ = select.select([program, self._keyboard], [], [])
            if self._keyboard in ready:
                self._read_key()
                yield None
            if program in ready:
                found = os.read(program, _BLOCK)
                if not found:
                    return
                *lines, begun = (begun + found).split(b"\n")
                yield from (line.decode() for line in lines)

    def _read_key(self) -> None:
        if os.read(self._keyboard, _BLOCK)[:1] in (b"", *LEAVING):
            raise Left


@contextmanager
def at_terminal() -> Iterator[Viewer]:
    """Keys are read as they are pressed, and not shown; afterwards the terminal is as it was.
    SIGTERM and a closed terminal end the demo like Ctrl-C: what it has started is ended, too. A
    shell that the viewer went to with Ctrl-Z leaves the terminal in its own way: SIGCONT tells."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Misuse("--interactive waits for keys, and there is no terminal; leave it out")
    keyboard = sys.stdin.fileno()
    ways = termios.tcgetattr(keyboard)
    ending = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.default_int_handler) for number in ending}
    before[signal.SIGCONT] = signal.signal(signal.SIGCONT, lambda *_: tty.setcbreak(keyboard))
    try:
        tty.setcbreak(keyboard)
        yield Viewer(keyboard)
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, ways)
        for number, handler in before.items():
            signal.signal(number, handler)
