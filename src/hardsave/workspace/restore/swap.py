"""Replaces and removes files so that nothing is lost that another program writes meanwhile.

Between a last look at a file and the call that replaces it, another program may write. So the old
file gets a temporary name of ours, in the same call in which the new one takes its place; no other
program knows that name, and there the old file is compared. If it is as expected, it is removed.
Anything else gets its own name back.

A process may die in between. What then has the temporary name is the new file, the old one, or what
another program wrote in that moment, always whole: `settle` tells them apart.
"""

import os

from hardsave.tuples import NamedTuple
from hardsave.workspace.entries import Entry
from hardsave.workspace.filesystem.safe_open import exchange, rename_to_nothing
from hardsave.workspace.restore import disk_state
from hardsave.workspace.restore.preconditions import Unexpected

_CHANGED = "changed after the present was saved"


class Name(NamedTuple):
    """A name in an open directory."""

    name: bytes
    directory: int

    def remove(self) -> None:
        os.unlink(self.name, dir_fd=self.directory)

    def becomes(self, other: "Name") -> None:
        os.rename(self.name, other.name, src_dir_fd=self.directory, dst_dir_fd=other.directory)


class Change(NamedTuple):
    """What is expected at a place, and what shall be there; None if it goes."""

    place: Name
    before: Entry
    after: Entry | None


def replace(staged: Name, aside: Name, change: Change) -> None:
    """Put what is staged in its place. Raises `Unexpected` if there is something else than
    expected, which stays then."""
    place, before, after = change
    staged.becomes(aside)
    try:
        is_done = exchange(*aside, *place)
        if not is_done:  # this file system cannot: between check and rename a write would be lost
            if not disk_state.is_entry(*place, before):
                raise Unexpected(_CHANGED)
            aside.becomes(place)
            return
    except (OSError, Unexpected):  # not after a Ctrl-C: then it is unknown which of the two it is
        aside.remove()
        raise
    if not disk_state.is_entry(*aside, before):
        assert after is not None
        raise Unexpected(_given_back(aside, place, after))
    aside.remove()


def take_away(aside: Name, change: Change) -> None:
    """Remove what lies at a place. Raises `Unexpected` if it is something else, which stays."""
    place, before, _ = change
    rename_to_nothing(*place, *aside)
    if not disk_state.is_entry(*aside, before):
        raise Unexpected(_put_back(aside, place))
    aside.remove()


def settle(aside: Name, change: Change) -> None:
    """Clean up what a process that died has left aside. Raises `Unexpected` if another program
    wrote it."""
    place, before, after = change
    if disk_state.look(*aside) is None:
        return
    if disk_state.is_entry(*aside, before) or disk_state.is_entry(*aside, after):
        aside.remove()
    elif after is None:
        raise Unexpected(_put_back(aside, place))
    elif disk_state.is_entry(*place, after):
        raise Unexpected(_given_back(aside, place, after))
    else:
        raise Unexpected(_lies(aside))


def _given_back(aside: Name, place: Name, after: Entry) -> str:
    """Undo an exchange. If another program has written once more, the newest file keeps the name,
    and nothing is removed."""
    try:
        exchange(*aside, *place)
        if disk_state.is_entry(*aside, after):
            aside.remove()
            return _CHANGED
        exchange(*aside, *place)
    except FileNotFoundError:  # what we had put there is gone
        return _put_back(aside, place)
    return _lies(aside)


def _put_back(aside: Name, place: Name) -> str:
    try:
        rename_to_nothing(*aside, *place)
    except FileExistsError:
        return _lies(aside)
    return _CHANGED


def _lies(aside: Name) -> str:
    name = os.fsdecode(aside.name)
    return f"{_CHANGED}, twice: what was there in between lies beside it as {name!r}"
