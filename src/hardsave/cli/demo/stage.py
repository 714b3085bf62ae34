"""What scenes are played on: a folder of their own, processes that are killed, an audience."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import click

from hardsave.agents import interpreter
from hardsave.cli.demo import slow_motion
from hardsave.cli.demo.viewer import Viewer
from hardsave.tuples import NamedTuple


class Kill(NamedTuple):
    """When a program is killed with SIGKILL, by the lines that it has printed."""

    after: int  # so many, if there is no viewer
    first: int = 1  # from here on a viewer may kill it
    last: int = 0  # here it is killed if the viewer did not do it; 0: it waits for the viewer

    def is_due(self, lines: int, viewer: Viewer | None, *, is_key: bool) -> bool:
        """Whether now. A line, or a key of the viewer's, has just come."""
        if viewer is None:
            return lines == self.after
        return lines >= self.first if is_key else lines == self.last


class Stage(NamedTuple):
    """One scene's."""

    folder: Path
    say: Callable[[str], None]
    viewer: Viewer | None = None

    @property
    def store(self) -> str:
        return f"sqlite:///{self.folder / 'store.db'}"

    def play(self, module: str, *arguments: str, kill: Kill | None = None) -> list[str]:
        """Run a module as a program, and show what it prints; it. With `kill` it is killed."""
        lines: list[str] = []
        if kill is not None and self.viewer is not None:
            self.say("   (kill it now: press any key   q: leave)")
        with self._started(module, arguments) as process:
            assert process.stdout is not None
            for line in self._heard(process.stdout):
                if line is not None:
                    self.say(line)
                    lines.append(line)
                if kill is None:
                    continue
                if kill.is_due(len(lines), self.viewer, is_key=line is None):
                    os.kill(process.pid, signal.SIGKILL)
                elif line is None:
                    self.say("   (not yet: wait for the next line)")
            code = process.wait()
        check(code == (-signal.SIGKILL if kill else 0), f"{module} ended so: {code}")
        return lines

    def _heard(self, output: IO[bytes]) -> Iterator[str | None]:
        """Lines, and None for each key of a viewer's."""
        if self.viewer is not None:
            return self.viewer.watch(output)
        return (line.decode().rstrip("\n") for line in output)

    @contextmanager
    def _started(
        self, module: str, arguments: tuple[str, ...]
    ) -> "Iterator[subprocess.Popen[bytes]]":
        """At the end of the block it is gone, also if that is Ctrl-C. A viewer's Ctrl-C is told
        this process alone: the program is in a process group of its own."""
        options = interpreter.options(os.environ)
        slowly = [] if self.viewer is None else ["-m", slow_motion.__name__]
        command = [sys.executable, *options, *(slowly or ["-m"]), module, *arguments]
        group = None if self.viewer is None else 0
        with subprocess.Popen(command, stdout=subprocess.PIPE, process_group=group) as process:
            try:
                yield process
            finally:
                process.kill()


def check(holds: bool, what: str) -> None:
    """What a scene shows is checked while it is shown."""
    if not holds:
        raise click.ClickException(f"this should not happen: {what}")
