"""What scenes are played on: a folder of their own, processes that are killed, an audience."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click

from hardsave.agents import interpreter
from hardsave.tuples import NamedTuple


class Stage(NamedTuple):
    """One scene's."""

    folder: Path
    say: Callable[[str], None]

    @property
    def store(self) -> str:
        return f"sqlite:///{self.folder / 'store.db'}"

    def play(self, module: str, *arguments: str, kill_after: int = 0) -> list[str]:
        """Run a module as a program, and show what it prints; it. With `kill_after` it is killed
        with SIGKILL as soon as it has printed so many lines."""
        options = interpreter.options(os.environ)
        command = [sys.executable, *options, "-m", module, *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        lines: list[str] = []
        for line in process.stdout:
            self.say(line.rstrip("\n"))
            lines.append(line)
            if len(lines) == kill_after:
                os.kill(process.pid, signal.SIGKILL)
        process.stdout.close()
        code = process.wait()
        check(code == (-signal.SIGKILL if kill_after else 0), f"{module} ended so: {code}")
        return lines


def check(holds: bool, what: str) -> None:
    """What a scene shows is checked while it is shown."""
    if not holds:
        raise click.ClickException(f"this should not happen: {what}")
