"""Long answers on a terminal, through the pager that its user likes."""

import io
import os
import shlex
import signal
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hardsave.cli.render import glyphs

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# What git gives it too: leave if all fits on the screen, let colours through, do not clear.
LESS = "FRX"


def show(console: "Console", lines: "Iterable[RenderableType]") -> None:
    """Print lines, in a pager if they are more than the terminal has rows."""
    text = _rendered(console, lines)
    command = _command()
    fits = text.count("\n") < console.height
    if command is None or fits or not _through(command, text, console):
        console.file.write(text)


def _rendered(console: "Console", lines: "Iterable[RenderableType]") -> str:
    from hardsave.cli.render.console import put

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
    try:
        command = shlex.split(chosen)
    except ValueError:  # a quote that is not closed
        return None
    return command if command and command != ["cat"] else None


def _through(command: list[str], text: str, console: "Console") -> bool:
    """Whether there is such a pager."""
    import subprocess  # most answers fit on a screen

    environment = {"LESS": LESS, **os.environ}
    # Ctrl-C in a pager is the pager's own business. It would inherit it if we ignored the signal.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        written = text.encode(console.encoding, glyphs.SPELT)
        subprocess.run(command, input=written, env=environment, check=False)
    except OSError:  # it is not there, or is nothing that can be run
        return False
    finally:
        signal.signal(signal.SIGINT, before)
    return True
