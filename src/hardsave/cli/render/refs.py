"""How checkpoints and timelines are called in what is printed.

Only the session of a command knows short names, and which timeline commands are about by default.
It says so here for as long as it lasts: what draws a checkpoint need not be handed the session.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

_LONG = re.compile(r"(?!chk_)[^\s'\"():,;/]{25,}")  # what may be the name of a timeline


class Checkpoint(Protocol):
    """What has a place on a timeline: a checkpoint, or a row of one."""

    @property
    def timeline(self) -> str: ...
    @property
    def seq(self) -> int: ...


class Names(Protocol):
    """What a session knows."""

    def ref(self, one: Checkpoint) -> str:
        """A checkpoint as it is typed."""

    def shown_name(self, timeline: str) -> str:
        """A timeline as it is typed; any other text stays as it is."""


_names: ContextVar[Names | None] = ContextVar("names", default=None)


@contextmanager
def called_by(names: Names) -> Iterator[None]:
    """Call them so, until this ends."""
    token = _names.set(names)
    try:
        yield
    finally:
        _names.reset(token)


def ref(one: Checkpoint) -> str:
    """A checkpoint as it is typed: `:14`, `fix-parser:14`."""
    names = _names.get()
    return f"{one.timeline}:{one.seq}" if names is None else names.ref(one)


def timeline(name: str) -> str:
    """A timeline as it is typed: `fix-parser`."""
    names = _names.get()
    return name if names is None else names.shown_name(name)


def in_text(text: str) -> str:
    """A text with short names for the timelines that it names."""
    return with_short_names(text, timeline)


def with_short_names(text: str, short_name: Callable[[str], str]) -> str:
    """The same, by a function that leaves alone what is the name of no timeline."""
    return _LONG.sub(lambda found: short_name(found[0]), text)
