"""Python that is named on the command line: agents (`agents.py:AGENTS`, `package.module:AGENTS`),
the handler of tasks (`server.py:handle`).

Python is imported here, and only by what was typed: nothing that is stored can name any.
"""

import importlib
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from hardsave.errors import Misuse, NotFound

AGENTS = click.option(
    "--agents",
    metavar="WHERE:NAME",
    help="Agents by name: a dict in a Python file or module, such as agents.py:AGENTS.",
)


def load_agents(where: str | None) -> dict[str, Any]:
    """The agents that were named. What its author's code raises is shown as such."""
    if where is None:
        raise Misuse("which agents? --agents FILE.py:NAME names a dict of them")
    return load_dict(where, "--agents", "agents")


def load_dict(where: str, option: str, of: str) -> dict[str, Any]:
    """A dict that was named."""
    place, name, found = _loaded(where, option)
    if not isinstance(found, Mapping):
        raise Misuse(f"{where!r} is no dict of {of}; write {name} = {{'default': …}} in {place}")
    return dict(found)


def load_handler(where: str) -> Callable[[Any], Any]:
    """The function that was named, which is called with each attempt at a task."""
    place, name, found = _loaded(where, "--handler")
    if not callable(found):
        raise Misuse(f"{where!r} is no function; write def {name}(attempt): … in {place}")
    return found  # type: ignore[no-any-return] # it is callable, and its author says with what


def _loaded(where: str, option: str) -> tuple[str, str, Any]:
    """The file or module, the name in it, and what has that name; None if nothing has."""
    place, _, name = where.rpartition(":")
    if not place or not name.isidentifier():
        raise Misuse(f"{option} is FILE.py:NAME or MODULE:NAME, not {where!r}")
    if place.endswith(".py") and not Path(place).is_file():
        raise NotFound(f"there is no file {place!r}; {option} is FILE.py:NAME or MODULE:NAME")
    try:
        with _importable(Path(place).resolve().parent if place.endswith(".py") else Path.cwd()):
            return place, name, _names(place).get(name)
    except Exception as error:
        raise Misuse(f"{place} cannot be loaded: {type(error).__name__}: {error}") from error


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """The folder comes first in the import path meanwhile, and last from then on: its functions may
    import others when they are called, and no other import shall find these by chance."""
    place = str(folder)
    sys.path.insert(0, place)
    try:
        yield
    finally:
        with suppress(ValueError):  # it may have changed the path itself
            sys.path.remove(place)
        sys.path.append(place)


def _names(place: str) -> Mapping[str, Any]:
    if place.endswith(".py"):
        return runpy.run_path(place)
    return vars(importlib.import_module(place))
