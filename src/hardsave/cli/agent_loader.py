"""Agents that are named on the command line: `agents.py:AGENTS`, `package.module:AGENTS`.

Python is imported here, and only by what was typed: nothing that is stored can name any.
"""

import importlib
import runpy
import sys
from collections.abc import Iterator, Mapping
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
    place, _, name = where.rpartition(":")
    if not place or not name.isidentifier():
        raise Misuse(f"--agents is FILE.py:NAME or MODULE:NAME, not {where!r}")
    if place.endswith(".py") and not Path(place).is_file():
        raise NotFound(f"there is no file {place!r}; --agents is FILE.py:NAME or MODULE:NAME")
    try:
        with _importable(Path(place).resolve().parent if place.endswith(".py") else Path.cwd()):
            found = _names(place).get(name)
    except Exception as error:
        raise Misuse(f"{place} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(found, Mapping):
        raise Misuse(f"{where!r} is no dict of agents; write {name} = {{'default': …}} in {place}")
    return dict(found)


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
