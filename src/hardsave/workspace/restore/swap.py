"""Replacing and removing what was looked at, and nothing else.

Between a last look at a file and the call that replaces it, somebody may write. So what is to go
gets a name of ours, in one call, in which the new one takes its place; there nobody else finds it,
and it is looked at. Only what is as expected goes for good. Anything else gets its own name back.

A process may die in between. What then lies aside is the new one, the old one, or what somebody
wrote in that moment, always whole: `settle` tells them apart.
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
    """What has to lie at a place, and what shall; nothing, if it goes."""

    place: Name
    before: Entry
    after: Entry | None


def replace(staged: Name, aside: Name, change: Change) -> None:
    """Put what is staged in its place. `Unexpected` if that holds something else than expected,
    which stays then."""
    place, before, after = change
    staged.becomes(aside)
    try:
        is_done = exchange(*aside, *place)
        if not is_done:  # this file system cannot: a moment is left in which nobody looks
            if not disk_state.is_entry(*place, before):
                raise Unexpected(_CHANGED)
            aside.becomes(place)
            return
    except (OSError, Unexpected):  # after a Ctrl-C nobody knows which of the two lies there
        aside.remove()
        raise
    if not disk_state.is_entry(*aside, before):
        assert after is not None
        raise Unexpected(_given_back(aside, place, after))
    aside.remove()


def take_away(aside: Name, change: Change) -> None:
    """Remove what lies at a place. `Unexpected` if it is something else, which stays then."""
    place, before, _ = change
    rename_to_nothing(*place, *aside)
    if not disk_state.is_entry(*aside, before):
        raise Unexpected(_put_back(aside, place))
    aside.remove()


def settle(aside: Name, change: Change) -> None:
    """See to what somebody who died has left aside. `Unexpected` if it is nobody's of ours."""
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
    """Undo an exchange. Somebody may have been quicker once more: then what is newest keeps the
    name, and nothing is removed."""
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
