"""A timeline of a server: what is on it, and what can be done to it."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hardsave.client import reading
from hardsave.client.calls import Calls, given
from hardsave.client.checkpoint import Ref, RemoteCheckpoint, checkpoint, maker, named
from hardsave.client.records import RemoteRewind
from hardsave.errors import NotFound
from hardsave.page import Page
from hardsave.timeline.step_summary import FileCounts
from hardsave.timeline.summary import TimelineSummary
from hardsave.values.spelling import from_json, to_json

if TYPE_CHECKING:
    from hardsave.vault.history.graph import GraphNode
    from hardsave.vault.restore.path_choice import Scope
    from hardsave.vault.restore.rewind_request import What
    from hardsave.vault.restore.undo import Operation
    from hardsave.vault.save.request import AnyHead

    Expected = RemoteCheckpoint | str | AnyHead | None


class RemoteTimeline:
    """A handle on one timeline of a server, with the names of `Timeline`. Made by
    `vault.timeline(name)`, which asks for nothing."""

    def __init__(self, name: str, calls: Calls) -> None:
        self._name = name
        self._calls = calls
        self._make = maker(calls)
        self._seen: str | None = None  # the head that this handle saw last

    @property
    def name(self) -> str:
        return self._name

    @property
    def title(self) -> str:
        """Its first prompt, or what else it was called; empty without one."""
        found = self._told()
        return "" if found is None else str(found["title"])

    @property
    def head(self) -> RemoteCheckpoint | None:
        """The newest checkpoint; None before the first save. Counts as having seen it."""
        found = self._told()
        head = None if found is None else found.get("head")
        return None if head is None else self._now_at(checkpoint(self._calls, head))

    def _told(self) -> Any:
        """What the server says of it; None if it is not there."""
        try:
            return self._calls.read("/timeline", timeline=self._name)
        except NotFound:
            return None

    def _now_at(self, head: RemoteCheckpoint) -> RemoteCheckpoint:
        self._seen = head.id
        return head

    # Looking

    def load(self, ref: Ref = "@") -> Any:
        """The whole state of a checkpoint, as plain data; classes that are registered come back as
        themselves."""
        told = self._calls.read("/state", ref=named(ref), timeline=self._name)
        return from_json(told["value"])

    def get(self, ref: Ref = "@") -> RemoteCheckpoint:
        """The checkpoint that `ref` names on this timeline."""
        told = self._calls.read("/checkpoint", ref=named(ref), timeline=self._name)
        found = checkpoint(self._calls, told)
        return self._now_at(found) if ref == "@" else found

    def checkpoints(
        self,
        *,
        name: str | None = None,
        kind: str | None = None,
        status: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        labels: Mapping[str, str] | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Page[RemoteCheckpoint]:
        """A page of checkpoints, newest first; with `labels` those that have all of these. `after`
        is the `next` of the page before."""
        told = self._calls.read(
            "/checkpoints",
            timeline=self._name,
            name=name,
            kind=kind,
            status=status,
            since=None if since is None else since.astimezone().isoformat(),
            until=None if until is None else until.astimezone().isoformat(),
            labels=json.dumps(dict(labels)) if labels else None,
            limit=limit,
            cursor=after,
        )
        return reading.page(told, self._make)

    def summary(self) -> TimelineSummary:
        """How many checkpoints there are, under which names, from when to when."""
        told = self._calls.read("/timeline", timeline=self._name)
        return reading.record(TimelineSummary, told.get("summary"))

    def files_changed(self) -> FileCounts | None:
        """How many files its head has added, changed and removed since the timeline began, or was
        forked; None if that is not known."""
        told = self._calls.read("/timeline/files", timeline=self._name)
        counts = told.get("files")
        return None if counts is None else reading.record(FileCounts, counts)

    def graph(
        self, *, limit: int = 1_000, after: str | None = None
    ) -> "Page[GraphNode[RemoteCheckpoint]]":
        """A page of its checkpoints, newest first, each with what was saved on top of it besides
        the next one, and whether the head stands on it."""
        from hardsave.vault.history.graph import GraphNode  # with what a store needs

        told = self._calls.read("/graph", timeline=self._name, limit=limit, cursor=after)
        return reading.page(told, lambda each: reading.record(GraphNode, each, self._make))

    # Saving

    def save(
        self,
        state: Any,
        *,
        name: str | None = None,
        kind: str | None = None,
        status: str = "running",
        description: str = "",
        metadata: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        notes: Mapping[str, Any] | None = None,
        workspace: str | None = None,
        expect: "Expected" = None,
        title: str = "",
        key: str | None = None,
    ) -> RemoteCheckpoint:
        """Save a whole state. `workspace` is a directory of the server's host, whose files are
        saved with it, if the server may read it.

        `expect` is the head that it builds on: None means the one that this handle saw last, if it
        has seen one, `hardsave.ANY_HEAD` whichever there is. `Conflict` if there is another.
        """
        about = given(name=name, kind=kind, status=status, description=description, title=title)
        beside = _beside(metadata, labels, notes, workspace)
        return self._saved({"state": to_json(state), **about, **beside}, expect, key)

    def append(
        self,
        delta: Mapping[str, Any],
        *,
        name: str | None = None,
        kind: str | None = None,
        status: str = "running",
        description: str = "",
        metadata: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        notes: Mapping[str, Any] | None = None,
        workspace: str | None = None,
        expect: "Expected" = None,
        title: str = "",
        key: str | None = None,
    ) -> RemoteCheckpoint:
        """Save the head's state with `delta` added: lists grow, other keys are replaced. See `save`
        for the rest."""
        about = given(name=name, kind=kind, status=status, description=description, title=title)
        beside = _beside(metadata, labels, notes, workspace)
        return self._saved({"delta": to_json(delta), **about, **beside}, expect, key)

    def save_files(
        self,
        workspace: str,
        *,
        name: str | None = None,
        kind: str | None = None,
        status: str = "running",
        description: str = "",
        metadata: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        notes: Mapping[str, Any] | None = None,
        title: str = "",
        key: str | None = None,
    ) -> RemoteCheckpoint:
        """Save the files of a directory of the server's host, beside the state that the head has by
        then."""
        about = given(name=name, kind=kind, status=status, description=description, title=title)
        told = self._act(
            "/checkpoints", {**about, **_beside(metadata, labels, notes, workspace)}, key
        )
        return self._now_at(checkpoint(self._calls, told))

    def _saved(self, body: dict[str, Any], expect: "Expected", key: str | None) -> RemoteCheckpoint:
        told = self._act("/checkpoints", body, key, match=self._expected(expect))
        return self._now_at(checkpoint(self._calls, told))

    def _expected(self, expect: "Expected") -> str | None:
        if expect is None:
            return self._seen
        if isinstance(expect, RemoteCheckpoint | str):
            return named(expect)
        return None  # ANY_HEAD

    def _act(
        self, path: str, body: dict[str, Any], key: str | None, *, match: str | None = None
    ) -> Any:
        return self._calls.act(path, {"timeline": self._name, **body}, key=key, match=match)

    # Going back

    def fork(self, ref: Ref = "@", *, name: str, key: str | None = None) -> "RemoteTimeline":
        """A new timeline that starts at a checkpoint of this one. Copies nothing. A `key` names a
        request that may be made twice: the second time it is answered, and nothing is done."""
        self._act("/fork", {"ref": named(ref), "name": name}, key)
        return RemoteTimeline(name, self._calls)

    def rewind(
        self,
        ref: Ref,
        *,
        what: "What" = "all",
        paths: Sequence[str] | None = None,
        scope: "Scope | None" = None,
        git: bool = False,
        tasks: bool = False,
        dry_run: bool = False,
        expect: "RemoteRewind[RemoteCheckpoint] | RemoteCheckpoint | str | None" = None,
        key: str | None = None,
    ) -> RemoteRewind[RemoteCheckpoint]:
        """Take the timeline back to a checkpoint. Removes nothing, and `undo` takes it back.

        `dry_run` only tells what would be done. `expect` is that answer, its `plan`, or the head
        that has to be there: `Conflict` if something is not as it was. For the `key` see `fork`.
        """
        body = given(
            ref=named(ref),
            what=what,
            paths=None if paths is None else to_json(list(paths)),
            scope=scope,
            git=git,
            tasks=tasks,
        )
        if dry_run:
            told = self._act("/rewind/preview", body, key)
        else:
            told = self._act("/rewind", body, key, match=_promised(expect))
        done: RemoteRewind[RemoteCheckpoint] = reading.record(RemoteRewind, told, self._make)
        if done.moved:
            self._seen = done.target.id
        return done

    def undo(self, *, key: str | None = None) -> "Operation":
        """Take back the latest operation on this timeline. For the `key` see `fork`."""
        self._seen = None
        return operation(self._act("/undo", {}, key))

    def redo(self, *, key: str | None = None) -> "Operation":
        """Do again what the latest undo took back, if no operation came after it."""
        self._seen = None
        return operation(self._act("/redo", {}, key))

    def clear(self, *, key: str | None = None) -> int:
        """Delete its checkpoints; its numbers go on. How many there were."""
        self._seen = None
        return int(self._act("/timeline/clear", {}, key)["cleared"])

    def delete(self, *, key: str | None = None) -> int:
        """Delete the timeline with its checkpoints. How many there were."""
        self._seen = None
        told = self._calls.act("/timeline", key=key, method="DELETE", timeline=self._name)
        return int(told["deleted"])

    def __repr__(self) -> str:
        return f"<timeline {self._name!r} of {self._calls.url}>"


def operation(told: Any) -> "Operation":
    """An operation out of an answer."""
    from hardsave.vault.restore.undo import Operation  # with what a store needs

    if not isinstance(told, dict):
        raise reading.Unreadable("an operation that is no object")
    about = from_json(told.get("about") or {})
    by = {} if told.get("by") is None else {"by": told["by"]}  # who did it, where `by` looks
    return reading.record(Operation, told, about={**about, **by})


def _beside(
    metadata: Mapping[str, Any] | None,
    labels: Mapping[str, str] | None,
    notes: Mapping[str, Any] | None,
    workspace: str | None,
) -> dict[str, Any]:
    """What lies beside the state of a checkpoint. Values are spelt one by one: their keys are
    those of the body."""
    return given(
        metadata=None if metadata is None else {k: to_json(v) for k, v in metadata.items()},
        labels=None if labels is None else dict(labels),
        notes=None if notes is None else {k: to_json(v) for k, v in notes.items()},
        workspace=workspace,
    )


def _promised(expect: "RemoteRewind[RemoteCheckpoint] | RemoteCheckpoint | str | None") -> str:
    """What has to be so for a rewind to be made, as If-Match has it."""
    if expect is None:
        return "*"
    return expect.plan if isinstance(expect, RemoteRewind) else named(expect)
