"""Where answers go: data to stdout, messages to stderr, questions only to a terminal.

Each answer is given twice, as data and as lines, and only the one that is wanted is made. rich
is loaded when the first line is printed, so `--json` and `--help` do not pay for it.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hardsave import wording
from hardsave.cli.hints import PROGRAM, Invocation
from hardsave.cli.render import pager, progress_line
from hardsave.errors import Misuse

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Lines = Iterable["RenderableType"]


class Output:
    """The answers of one command."""

    def __init__(self, *, as_json: bool, invocation: Invocation) -> None:
        self.as_json = as_json
        self._invocation = invocation
        self._progress: progress_line.ProgressLine | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether the answer goes to a terminal."""
        return sys.stdout.isatty()

    @property
    def can_ask(self) -> bool:
        """Whether a user at a terminal can answer a question."""
        return not self.as_json and sys.stdin.isatty() and sys.stderr.isatty()

    @cached_property
    def console(self) -> "Console":
        from hardsave.cli.render.console import console

        return console(sys.stdout)

    @cached_property
    def messages(self) -> "Console":
        from hardsave.cli.render.console import console

        return console(sys.stderr)

    # Answers

    def result(
        self, data: Callable[[], Any], lines: Callable[[], Lines], *, paged: bool = False
    ) -> None:
        """The answer of a command: one JSON document, or lines."""
        if self.as_json:
            document = _json(data(), indent=2)
            with _named_stdout():
                print(document, flush=True)
        elif paged and self.is_terminal:
            pager.show(self.console, lines())
        else:
            for line in lines():
                with _named_stdout():
                    _put(self.console, line)

    def event(self, data: Callable[[], Any], line: "Callable[[], RenderableType]") -> None:
        """One of many answers, as it comes: a line, of JSON or for people."""
        if self.as_json:
            print(_json(data()), flush=True)
        else:
            _put(self.console, line())
            self.console.file.flush()

    def say(self, *lines: "RenderableType") -> None:
        """A message to the user; programs that read JSON do not need it."""
        if not self.as_json:
            if self._progress is not None:
                self._progress.clear()
            for line in lines:
                if isinstance(line, str):
                    self._say(self.in_context(line), whole=PROGRAM in line)
                else:
                    _put(self.messages, line)

    def _say(self, text: str, *, whole: bool) -> None:
        """A `whole` line stays one, however long: a command is copied from it. The terminal shows
        it on several, and knows that they are one."""
        self.messages.print(wording.passage(text), soft_wrap=whole or None)

    def in_context(self, message: str) -> str:
        """A message whose commands have the -C and --store of this one."""
        return self._invocation.in_context(message)

    def hint(self, what: str, *typed: str) -> None:
        """A command to type next."""
        self.to_type(what, self._invocation.command(*typed))

    def to_type(self, what: str, command: str) -> None:
        """The same for a command of another program."""
        if not self.as_json:
            self._say(f"{what}: {command}", whole=True)

    # Questions

    def confirm(self, question: str, *, yes: bool, what: str) -> bool:
        """Whether to go on. Without a terminal to ask on, and without --yes: `Misuse`."""
        return yes or self.ask(question, {"y": "yes", "n": "no"}, what=what) == "y"

    def ask(
        self, question: str, answers: dict[str, str], *, what: str, default: str | None = None
    ) -> str:
        """One of the answers, by its first letter. Enter alone is the default, or else the last
        one; the end of input is always the last one."""
        if not self.can_ask:
            raise Misuse(f"{what} asks first, and there is no terminal to answer on; add --yes")
        last = list(answers)[-1]
        shown = ", ".join(
            f"{word} ({key}, Enter)" if key == default else f"{word} ({key})"
            for key, word in answers.items()
        )
        while True:
            self.messages.print(f"{question} {shown} ", end="", style="bold")
            self.messages.file.flush()
            line = sys.stdin.readline()
            given = line.strip().lower()[:1] or default or last
            if given in answers or not line:
                return given if line else last

    # Long work

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """Shows on a terminal how far something has come, if it takes a while."""
        if self.as_json or not progress_line.is_possible(sys.stderr):
            yield
            return
        self._progress = progress_line.ProgressLine(what, sys.stderr)
        try:
            with self._progress.shown():
                yield
        finally:
            self._progress = None


def _json(answer: Any, *, indent: int | None = None) -> str:
    from hardsave.values.text import dumps  # nor does --help pay for this

    return dumps(answer, indent=indent)


def _put(console: "Console", line: "RenderableType") -> None:
    from hardsave.cli.render.console import put

    put(console, line)


@contextmanager
def _named_stdout() -> Iterator[None]:
    """An answer that cannot be written is no failure of what it tells about: a save that is done is
    not to be taken for one that found no room."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, "the answer, on stdout") from error


@contextmanager
def stdout_is_stderr() -> Iterator[None]:
    """What other programs, or agents in this one, print meanwhile is a message, not our data."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        with redirect_stdout(sys.stderr):  # what Python code prints in this process, too
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
