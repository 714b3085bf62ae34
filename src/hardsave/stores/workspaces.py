"""The part of the contract that is about workspaces: which directory of which host files are of.

A checkpoint names the workspace that its files are of by an id. The row of that id has a host,
a path and an epoch; a host has one workspace at a path. A batch names the epoch that a
workspace must be at, and what it becomes; a capture names it as it was when the capture began.
To take it over raises the epoch, so captures that began before on another host are refused.
Several workspaces without a host, which come with imports, may have the same path.
"""

import os
from typing import Protocol

from hardsave.errors import WorkspaceTaken
from hardsave.objects.records import WorkspaceRecord
from hardsave.tuples import NamedTuple

NO_HOST = ""
"""Of a workspace that no host has: it came with an import."""


class WorkspaceMove(NamedTuple):
    """A workspace goes from epoch `expect` (None: there is none of this id) to `become`; its host
    has no other one at that path. One that becomes what it is is not written."""

    expect: int | None
    become: WorkspaceRecord


class WorkspaceStore(Protocol):
    """See the module's docstring for what every method promises."""

    def workspace(self, user: str | None, id: bytes) -> WorkspaceRecord | None:
        """One workspace by its id."""

    def workspace_at(self, user: str | None, host: str, path: bytes) -> WorkspaceRecord | None:
        """The workspace that a host has at a path; of several without a host the one with the
        lowest id."""

    def workspaces(
        self, user: str | None, after: tuple[str, bytes, bytes], limit: int
    ) -> list[WorkspaceRecord]:
        """Workspaces by host, path and id, in the order of their bytes; those after these three.
        The first come after `("", b"", b"")`."""


def check_workspace(
    move: WorkspaceMove, standing: WorkspaceRecord | None, there: WorkspaceRecord | None
) -> None:
    """Raise what keeps a workspace from becoming what a move says: `standing` has its id, `there`
    its host and path."""
    become = move.become
    if (None if standing is None else standing.epoch) != move.expect:
        raise WorkspaceTaken(taken_message(become, standing))
    if become.host != NO_HOST and there is not None and there.id != become.id:
        raise WorkspaceTaken(taken_message(become, there))


def taken_message(wanted: WorkspaceRecord, standing: WorkspaceRecord | None) -> str:
    """What to say when a workspace is not at the epoch that a batch expects, or not alone."""
    shown = repr(os.fsdecode(wanted.path))
    if standing is None:
        return f"the workspace {shown} was forgotten meanwhile: save it again"
    if standing.id != wanted.id:
        return f"another workspace is at {shown} by now: save it again"
    if (standing.host, standing.path) == (wanted.host, wanted.path):
        return (
            f"the workspace {shown} was taken over before this capture was saved (epoch "
            f"{standing.epoch}): look what is there, then save it again"
        )
    place = repr(os.fsdecode(standing.path))
    owner = f"host {standing.host}" if standing.host else "no host"
    return (
        f"the workspace {shown} was taken over before this capture was saved: it is {place} of "
        f"{owner} now; go on there, or save this directory again, as a workspace of its own"
    )
