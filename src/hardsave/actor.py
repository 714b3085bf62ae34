"""Who acts: the name that stands in the log with what is done in a block.

    with hardsave.acting_as("ada"):
        vault.timeline("main").rewind("@~1")
        vault.tasks.cancel("report")

It is kept in a context variable, as the deadline is (`progress`): no function on the way hands it
on, and a coroutine's call finds it in the thread that it runs in. Nothing is written without it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from hardsave.defaults import MAX_NAME
from hardsave.errors import Misuse

_KEY = "by"

_actor: ContextVar[str | None] = ContextVar("hardsave_actor", default=None)

actor = _actor.get
"""The name of the caller; None if it gave none."""


@contextmanager
def acting_as(name: str) -> Iterator[None]:
    """Keep a name with what is done in this block: see `by` of operations, of checkpoints and of
    what happened to tasks.

    A text of up to 200 characters on one line, kept as it is. Of nested blocks the inner name
    counts. What a worker's attempts do to their tasks has no name.
    """
    _check(name)
    token = _actor.set(name)
    try:
        yield
    finally:
        _actor.reset(token)


def signed(about: Mapping[str, Any]) -> Mapping[str, Any]:
    """What an entry says, with the name of the caller, if it gave one."""
    name = _actor.get()
    return about if name is None else {**about, _KEY: name}


def signature(about: Mapping[str, Any] | None) -> str | None:
    """The name that an entry was written with."""
    name = None if about is None else about.get(_KEY)
    return name if isinstance(name, str) else None  # entries of workers may have something else


def _check(name: Any) -> None:
    is_one = isinstance(name, str) and 0 < len(name) <= MAX_NAME and name.strip() != ""
    if not is_one or not (name.isprintable() or _is_line(name)):
        raise Misuse(f"who acts is a text of 1 to {MAX_NAME} characters on one line, not {name!r}")


def _is_line(name: str) -> bool:
    from unicodedata import category  # most names can be printed

    return all(category(each) not in ("Cc", "Cs", "Zl", "Zp") for each in name)
