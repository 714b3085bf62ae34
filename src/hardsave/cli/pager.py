"""Long answers on a terminal, through the pager that its user likes."""

import io
import os
import shlex
import signal
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# What git gives it too: leave if all fits on the screen, let colours through, do not clear.
LESS = "FRX"


Put: TypeAlias = "Callable[[Console, RenderableType], None]"


def show(console: "Console", lines: "Iterable[RenderableType]", put: Put) -> None:
    """Print lines, in a pager if they are more than the terminal has rows."""
    text = _rendered(console, lines, put)
    command = _command()
    if command is None or text.count("\n") < console.height:
        console.file.write(text)
        return
    _through(command, text)


def _rendered(console: "Console", lines: "Iterable[RenderableType]", put: Put) -> str:
    kept, console.file = console.file, io.StringIO()
    try:
        for line in lines:
            put(console, line)
        return str(console.file.getvalue())
    finally:
        console.file = kept


def _command() -> list[str] | None:
    """None: the user wants no pager, or has none."""
    chosen = os.environ.get("HARDSAVE_PAGER", os.environ.get("PAGER", "less"))
    command = shlex.split(chosen)
    return command if command and command != ["cat"] else None


def _through(command: list[str], text: str) -> None:
    import subprocess  # most answers fit on a screen

    environment = {"LESS": LESS, **os.environ}
    # Ctrl-C in a pager is the pager's own business.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        subprocess.run(command, input=text.encode("utf-8", "replace"), env=environment, check=False)
    except FileNotFoundError:
        os.write(1, text.encode("utf-8", "replace"))
    finally:
        signal.signal(signal.SIGINT, before)
