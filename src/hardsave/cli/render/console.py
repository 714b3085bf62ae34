"""rich's console, as we use it. Imported with the first line that is drawn, and not before."""

import errno
import os
import sys
from typing import TextIO

from rich.console import Console, RenderableType
from rich.theme import Theme

from hardsave import wording

UNBOUNDED = 100_000  # columns: what goes to a file or a program is not cut

STYLES = {
    "ref": "cyan",
    "name": "bold",
    "head": "bold green",
    "quiet": "dim",
    "added": "green",
    "removed": "red",
    "changed": "yellow",
    "warning": "yellow",
    "error": "bold red",
    "hunk": "cyan",
    "role": "bold blue",
    "tool": "magenta",
    "found": "bold yellow",
    "chosen": "reverse",
}


class _Console(Console):
    """Leaves the streams of this process alone."""

    def on_broken_pipe(self) -> None:
        """rich would end the process here, and let stdout lead nowhere: also that of an agent
        which this process is about to become."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def console(file: TextIO, *, width: int | None = None, terminal: bool | None = None) -> Console:
    """What draws on a file: in colour and cut to its width if it is a terminal, else neither."""
    is_terminal = file.isatty() if terminal is None else terminal
    return _Console(
        file=file,
        force_terminal=is_terminal,
        width=width if is_terminal else UNBOUNDED,
        soft_wrap=not is_terminal,
        theme=Theme(STYLES),
        markup=False,
        emoji=False,
        highlight=False,
    )


class Verbatim:
    """Lines that a terminal shows with escapes spelt out, and a pipe gets byte for byte: a patch
    has to apply."""

    def __init__(self, text: str) -> None:
        self.text = text  # bytes that are no UTF-8 as surrogates


def put(console: Console, line: RenderableType) -> None:
    """Print a line. Left to itself, rich forgets that a text is to be cut and not wrapped."""
    if isinstance(line, Verbatim) and not console.is_terminal:
        console.file.flush()
        sys.stdout.buffer.write(line.text.encode("utf-8", "surrogateescape"))
        return
    if isinstance(line, str):
        line = wording.passage(line)  # an agent may have written what it quotes
    no_wrap, overflow = (getattr(line, name, None) for name in ("no_wrap", "overflow"))
    console.print(line, no_wrap=no_wrap, overflow=overflow, crop=False)
