"""A program on a terminal of its own, and what its user would see there."""

import fcntl
import os
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyte

# The new process takes the terminal as its own, as a shell's child has it: Ctrl-C reaches it.
_LAUNCH = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)
LEAVES = b"\x1b[?1049l"  # the other screen
SECONDS = 60  # a bound for a machine that is busy; nothing takes that long


class _Terminal(pyte.Screen):
    """Answers what programs ask a terminal: where the cursor is, what it can do."""

    def __init__(self, width: int, height: int, *, answer: Callable[[str], None]) -> None:
        super().__init__(width, height)
        self._answer = answer

    def write_process_input(self, data: str) -> None:
        self._answer(data)


class Screen:
    """Starts a program, types, looks."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        width: int = 100,
        height: int = 30,
    ) -> None:
        self._master, slave = os.openpty()
        self.screen = _Terminal(width, height, answer=self.type)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self._set_size(width, height)
        self.ways = termios.tcgetattr(slave)
        self._slave = slave
        self.process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, *command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env={"TERM": "xterm-256color", "PATH": os.environ["PATH"], **environment},
            start_new_session=True,
        )

    def __enter__(self) -> "Screen":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)
        os.close(self._slave)

    # Looking

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def wait_for(self, wanted: str, *, gone: bool = False, key: str = "") -> str:
        """Look until a text is on the screen, or is gone; press a key every second meanwhile.

        A user reads first, and a program that has drawn its first picture does not listen yet: it
        forgets what was typed before, or ends because of it. He presses the key again.
        """
        end = time.monotonic() + SECONDS
        pressed = time.monotonic() - 0.5
        while (wanted in self.text) == gone:
            if time.monotonic() > pressed + 1:
                self.type(key)
                pressed = time.monotonic()
            has_ended = self.process.poll() is not None
            is_new = self._look()
            is_over = (has_ended and not is_new) or time.monotonic() > end
            assert not is_over, f"no {wanted!r} on the screen:\n{self.text}"
        return self.text

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Look until what is drawn is so: a picture may come in several pieces."""
        end = time.monotonic() + SECONDS
        while not is_so():
            self._look()
            assert time.monotonic() < end, f"it never is so:\n{self.text}"

    def ended(self) -> int:
        """Look until the program has ended; its exit code."""
        end = time.monotonic() + SECONDS
        while self.process.poll() is None:
            assert time.monotonic() < end, f"it does not end:\n{self.text}"
            self._look()
        while self._look():
            pass
        return self.process.returncode

    def _look(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], 0.05)
        if not ready:
            return False
        data = os.read(self._master, 65536)
        self.raw += data
        before, left, after = data.rpartition(LEAVES)
        self._stream.feed(before)
        if left:  # pyte has one screen only: what lay under the other is forgotten
            self.screen.reset()
        self._stream.feed(after)
        return bool(data)

    def is_as_before(self) -> bool:
        """Whether the terminal has the ways that it had before the program began."""
        return termios.tcgetattr(self._slave) == self.ways

    # Doing

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def resize(self, width: int, height: int) -> None:
        self._set_size(width, height)
        self.screen.resize(height, width)

    def _set_size(self, width: int, height: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
