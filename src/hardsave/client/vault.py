"""A vault of a server: the names of `Vault`, over HTTP."""

import json
import threading
import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hardsave.client import reading
from hardsave.client.calls import Calls
from hardsave.client.checkpoint import Ref, RemoteCheckpoint, checkpoint, maker, named
from hardsave.client.follow import RemoteFollowing
from hardsave.client.jobs import RemoteJobs
from hardsave.client.line import RemoteTimeline, operation
from hardsave.client.records import (
    RemoteApproval,
    RemoteDiff,
    RemoteHealth,
    RemoteProject,
    RemoteServer,
)
from hardsave.client.tasks import RemoteTasks, task
from hardsave.errors import Misuse
from hardsave.page import Page
from hardsave.timeline.diff import FileDiff

if TYPE_CHECKING:
    from hardsave.vault.history.session_list import Session
    from hardsave.vault.restore.undo import Operation
    from hardsave.vault.search.search import Hits

API = 1


class RemoteVault:
    """Timelines of one user in one store of a server. Threads may share it."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._make = maker(calls)
        self._lock = threading.Lock()
        self._followed: weakref.WeakSet[RemoteFollowing] = weakref.WeakSet()
        self._server = reading.record(RemoteServer, calls.read(""))
        if self._server.api != API:
            raise Misuse(
                f"{calls.url} speaks version {self._server.api} of the API, and this client "
                f"{API}; install the hardsave of the server ({self._server.version})"
            )

    @property
    def url(self) -> str:
        """Where the server is."""
        return self._calls.url

    @property
    def server(self) -> RemoteServer:
        """The server, and what this caller may do there, as of when it was connected to."""
        return self._server

    @property
    def user(self) -> str | None:
        return self._server.user

    @property
    def tasks(self) -> RemoteTasks:
        """The ledger of tasks: work that survives its process."""
        return RemoteTasks(self._calls)

    @property
    def jobs(self) -> RemoteJobs:
        """Jobs: runs of agents that survive, for a worker to carry out."""
        return RemoteJobs(self._calls)

    # Looking

    def timeline(self, name: str) -> RemoteTimeline:
        """A handle on a timeline. One that does not exist begins with its first save."""
        return RemoteTimeline(name, self._calls)

    def sessions(
        self,
        *,
        workspace: str | None = None,
        text: str = "",
        prefix: str = "",
        status: str | None = None,
        limit: int = 50,
        after: str | None = None,
        deleted: bool = False,
    ) -> "Page[Session[RemoteCheckpoint]]":
        """Timelines with their titles, newest checkpoints, heads and counts, the last updated
        first."""
        from hardsave.vault.history.session_list import Session  # with what a store needs

        told = self._calls.read(
            "/timelines",
            workspace=workspace,
            text=text or None,
            prefix=prefix or None,
            status=status,
            deleted=deleted or None,
            limit=limit,
            cursor=after,
        )
        return reading.page(told, lambda each: reading.record(Session, each, self._make))

    def get(self, ref: Ref) -> RemoteCheckpoint:
        """A checkpoint by id, by a unique beginning of its id, or as `TIMELINE:N`."""
        return checkpoint(self._calls, self._calls.read("/checkpoint", ref=named(ref)))

    def checkpoints(
        self, *, labels: Mapping[str, str], limit: int = 50, after: str | None = None
    ) -> Page[RemoteCheckpoint]:
        """Checkpoints of all timelines that have these labels, newest first."""
        told = self._calls.read(
            "/checkpoints", labels=json.dumps(dict(labels)), limit=limit, cursor=after
        )
        return reading.page(told, self._make)

    def diff(
        self, old: Ref, new: Ref, *, timeline: str | None = None, limit: int = 2_000
    ) -> RemoteDiff:
        """What changed from one checkpoint to another; `new="now"` is the disk of the server's
        host. At most `limit` paths of each kind."""
        told = self._calls.read(
            "/diff",
            **{"from": named(old), "to": named(new), "timeline": timeline, "limit": limit},
        )
        state = told.get("state") or {}
        files, status = told["files"], told["status"]
        return RemoteDiff(
            **{name: tuple(state.get(name, ())) for name in ("added", "removed", "changed")},
            old_status=status["from"],
            new_status=status["to"],
            files=reading.record(FileDiff, files),
            is_cut=bool(state.get("is_cut")) or bool(files.get("is_cut")),
        )

    def search(
        self,
        text: str,
        *,
        timeline: str | None = None,
        limit: int = 50,
        after: str | None = None,
        wait: bool = False,
    ) -> "Hits[RemoteCheckpoint]":
        """Texts of states, names, descriptions and statuses, and paths of files that checkpoints
        changed, that have all words of `text`."""
        from hardsave.vault.search.search import Hit, Hits  # with what a store needs

        told = self._calls.read(
            "/search", text=text, timeline=timeline, limit=limit, cursor=after, wait=wait or None
        )
        reaches = told.get("reaches")
        return Hits(
            [reading.record(Hit, each, self._make) for each in reading.items(told)],
            told.get("next"),
            unsearched=told.get("unsearched", 0),
            reaches=None if reaches is None else reading.moment(reaches),
        )

    def operations(
        self, timeline: str | None = None, *, limit: int = 50, after: str | None = None
    ) -> "Page[Operation]":
        """A page of what was done and can be taken back, newest first."""
        told = self._calls.read("/operations", timeline=timeline, limit=limit, cursor=after)
        return reading.page(told, operation)

    def follow(self, after: str | None = None, *, timeline: str | None = None) -> RemoteFollowing:
        """What happens from now on, or since the event with the id `after`; on one timeline, or on
        all. Never with a gap, also if the server is started again meanwhile."""
        following = RemoteFollowing(self._calls, after, timeline)
        with self._lock:
            self._followed.add(following)
        return following

    def approvals(self, *, after: str | None = None) -> Page[RemoteApproval]:
        """A page of questions of jobs and tasks that a person has to answer. `after` is the `next`
        of the page before."""
        told = self._calls.read("/approvals", cursor=after)
        return reading.page(told, _approval)

    def projects(self, *, limit: int = 50, after: str | None = None) -> Page[RemoteProject]:
        """The projects that the server knows, the last updated first. `after` is the `next` of the
        page before."""
        told = self._calls.read("/projects", limit=limit, cursor=after)
        return reading.page(told, lambda each: reading.record(RemoteProject, each))

    def health(self) -> RemoteHealth:
        """How the store stands, and how many jobs and tasks are in which state."""
        return reading.record(RemoteHealth, self._calls.read("/health"))

    # Doing

    def undo(self, *, key: str | None = None) -> "Operation":
        """Take back the latest operation of this user, on any timeline. A `key` names a request
        that may be made twice: the second time it is answered, and nothing is done."""
        return operation(self._calls.act("/undo", {}, key=key))

    def redo(self, *, key: str | None = None) -> "Operation":
        """Do again what the latest undo took back, if no operation came after it."""
        return operation(self._calls.act("/redo", {}, key=key))

    def delete(self, ref: Ref, *, key: str | None = None) -> RemoteCheckpoint:
        """Delete one checkpoint; `undo` brings it back. For the `key` see `undo`."""
        told = self._calls.act("/checkpoint", key=key, method="DELETE", ref=named(ref))
        return checkpoint(self._calls, told["deleted"])

    # The end

    def close(self) -> None:
        """Close the connections, and end what follows events. A second call does nothing."""
        with self._lock:
            followed = [*self._followed]
        for following in followed:
            following.close()
        self._calls.close()

    def __enter__(self) -> "RemoteVault":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<vault at {self.url}>"


def _approval(told: Any) -> RemoteApproval:
    if not isinstance(told, dict):
        raise reading.Unreadable("a question that is no object")
    return reading.record(RemoteApproval, told, task=task(told.get("task")))
