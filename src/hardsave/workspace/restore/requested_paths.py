"""Which paths a restore is about. Pure."""

import os
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from hardsave.errors import Misuse
from hardsave.tuples import NamedTuple
from hardsave.workspace import file_names
from hardsave.workspace.entries import DIRECTORY, above, lies_in
from hardsave.workspace.snapshot.compare import Difference


def checked(paths: Sequence[bytes]) -> list[bytes]:
    """Paths as people give them, relative to the workspace."""
    plain = [path.rstrip(b"/") for path in paths]
    for path in plain:
        fault = next(filter(None, map(file_names.fault, path.split(b"/"))), None)
        if fault is not None:
            raise Misuse(
                f"{os.fsdecode(path)!r} is not a path in a workspace: {fault}; "
                "give it relative to it"
            )
    return plain


class RequestedPaths(NamedTuple):
    """What was asked for."""

    paths: Sequence[bytes] | None = None  # with all that lies in them
    only: frozenset[bytes] | None = None

    def holds(self, path: bytes) -> bool:
        is_chosen = self.only is None or path in self.only
        return is_chosen and (self.paths is None or in_any(path, self.paths))

    def lies_in(self, path: bytes) -> bool:
        """Whether some of it lies in this one."""
        return any(lies_in(each, path) for each in (*(self.paths or ()), *(self.only or ())))


class Selected(NamedTuple):
    """What is to be restored, and what cannot be: those paths, and what stands in their way,
    which is no directory and is not to be touched."""

    found: list[Difference]
    obstructed: Mapping[bytes, bytes] = MappingProxyType({})


def selected(found: list[Difference], asked: RequestedPaths) -> Selected:
    """Chosen paths, and the directories that they need above them."""
    chosen = [each for each in found if asked.holds(each.path)]
    if len(chosen) == len(found):
        return Selected(found)
    others = {each.path: each for each in found if not asked.holds(each.path)}
    solid = {path for path, each in others.items() if each.old and each.old.type != DIRECTORY}
    obstructed = {
        each.path: next(over for over in above(each.path) if over in solid)
        for each in chosen
        if each.new is not None and not solid.isdisjoint(above(each.path))
    }
    chosen = [each for each in chosen if each.path not in obstructed]
    needed = {over for each in chosen if each.new is not None for over in above(each.path)}
    missing = [each for each in others.values() if each.old is None and each.path in needed]
    return Selected(missing + chosen, obstructed)


def in_any(path: bytes, paths: Iterable[bytes]) -> bool:
    return any(lies_in(path, each) for each in paths)
