"""Another process that does what it is told, line by line, and answers each time."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench.machine import ROOT, check


class Companion:
    """One that listens."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def answer(self, word: str = "") -> str:
        """What it says next; to a word, if one is said."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(word)
        self._process.stdin.flush()
        said = self._process.stdout.readline().strip()
        check(bool(said), f"{self._process.args!r} has ended")
        return said


@contextmanager
def companion(module: str, *options: str) -> Iterator[Companion]:
    """A module of ours as a process, once it has said that it is ready."""
    command = [sys.executable, "-m", module, *options]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            found = Companion(process)
            check(found.answer() == "ready", f"{module} did not begin")
            yield found
        except BaseException:
            process.kill()
            raise
        assert process.stdin is not None
        process.stdin.close()
        check(process.wait() == 0, f"{module} failed")
