"""Which paths a restore is about. Pure."""

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hardsave.errors import Misuse
from hardsave.workspace import names
from hardsave.workspace.compare import Difference
from hardsave.workspace.entries import above, lies_in


def checked(paths: Sequence[bytes]) -> list[bytes]:
    """Paths as people give them, relative to the workspace."""
    plain = [path.rstrip(b"/") for path in paths]
    for path in plain:
        fault = next(filter(None, map(names.fault, path.split(b"/"))), None)
        if fault is not None:
            raise Misuse(
                f"{os.fsdecode(path)!r} is not a path in a workspace: {fault}; "
                "give it relative to it"
            )
    return plain


class Asked(NamedTuple):
    """What was asked for."""

    paths: Sequence[bytes] | None = None  # with all that lies in them
    only: frozenset[bytes] | None = None

    def holds(self, path: bytes) -> bool:
        is_chosen = self.only is None or path in self.only
        return is_chosen and (self.paths is None or in_any(path, self.paths))


def asked_for(found: list[Difference], asked: Asked) -> list[Difference]:
    """Chosen paths, and the directories that they need above them."""
    chosen = [each for each in found if asked.holds(each.path)]
    if len(chosen) == len(found):
        return found
    needed = {over for each in chosen if each.new is not None for over in above(each.path)}
    missing = [
        each
        for each in found
        if each.old is None and each.path in needed and not asked.holds(each.path)
    ]
    return missing + chosen


def in_any(path: bytes, paths: Iterable[bytes]) -> bool:
    return any(lies_in(path, each) for each in paths)
