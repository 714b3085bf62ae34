"""Awaited checkpoints, and what is found and has one."""

from collections.abc import Awaitable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from hardsave.aio.pool import Pool
from hardsave.timeline.step_summary import StepSummary
from hardsave.vault import checkpoint as sync_checkpoint
from hardsave.vault.save.request import Expected

if TYPE_CHECKING:
    from hardsave.vault.history.file_history import FileVersion
    from hardsave.vault.history.follow import Event
    from hardsave.vault.history.graph import GraphNode
    from hardsave.vault.history.session_list import Session
    from hardsave.vault.search.search import Hit, Hits


class Checkpoint:
    """See `hardsave.Checkpoint`. Its state is read with `await checkpoint.read(…)`."""

    __slots__ = ("_pool", "_sync")

    def __init__(self, sync: sync_checkpoint.Checkpoint, pool: Pool) -> None:
        self._sync = sync
        self._pool = pool

    @property
    def id(self) -> str:
        return self._sync.id

    @property
    def timeline(self) -> str:
        return self._sync.timeline

    @property
    def seq(self) -> int:
        return self._sync.seq

    @property
    def parent(self) -> str | None:
        return self._sync.parent

    @property
    def created_at(self) -> datetime:
        return self._sync.created_at

    @property
    def name(self) -> str | None:
        return self._sync.name

    @property
    def kind(self) -> str:
        return self._sync.kind

    @property
    def status(self) -> str:
        return self._sync.status

    @property
    def description(self) -> str:
        return self._sync.description

    @property
    def summary(self) -> StepSummary | None:
        return self._sync.summary

    @property
    def by(self) -> str | None:
        return self._sync.by

    @property
    def user(self) -> str | None:
        return self._sync.user

    @property
    def metadata(self) -> Mapping[str, Any]:
        return self._sync.metadata

    @property
    def labels(self) -> Awaitable[Mapping[str, str]]:
        return self._pool.run(lambda: self._sync.labels)

    @property
    def notes(self) -> Awaitable[Mapping[str, Any]]:
        return self._pool.run(lambda: self._sync.notes)

    @property
    def task(self) -> str | None:
        return self._sync.task

    @property
    def attempt(self) -> int | None:
        return self._sync.attempt

    async def read(self, *path: Any) -> Any:
        return await self._pool.run(self._sync.read, *path)

    @property
    def sync(self) -> sync_checkpoint.Checkpoint:
        """The same checkpoint for code that may block."""
        return self._sync

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Checkpoint) and self._sync == other._sync

    def __hash__(self) -> int:
        return hash(self._sync)

    def __repr__(self) -> str:
        return repr(self._sync)


def blocking(expect: Checkpoint | Expected) -> Expected:
    return expect.sync if isinstance(expect, Checkpoint) else expect


Ref = Checkpoint | str
"""As the other one: what names a checkpoint."""


def plain(ref: Ref) -> sync_checkpoint.Ref:
    return ref.sync if isinstance(ref, Checkpoint) else ref


def awaited_hit(hit: "Hit[sync_checkpoint.Checkpoint]", pool: Pool) -> "Hit[Checkpoint]":
    newest = None if hit.newest is None else Checkpoint(hit.newest, pool)
    found = hit.replace(checkpoint=Checkpoint(hit.checkpoint, pool), newest=newest)
    return cast("Hit[Checkpoint]", found)


def awaited_hits(found: "Hits[sync_checkpoint.Checkpoint]", pool: Pool) -> "Hits[Checkpoint]":
    from hardsave.vault.search.search import Hits  # loaded by the search

    hits = [awaited_hit(hit, pool) for hit in found]
    return Hits(hits, found.next, unsearched=found.unsearched, reaches=found.reaches)


def awaited_session(
    one: "Session[sync_checkpoint.Checkpoint]", pool: Pool
) -> "Session[Checkpoint]":
    newest = None if one.newest is None else Checkpoint(one.newest, pool)
    head = None if one.head is None else Checkpoint(one.head, pool)
    return cast("Session[Checkpoint]", one.replace(newest=newest, head=head))


def awaited_node(
    node: "GraphNode[sync_checkpoint.Checkpoint]", pool: Pool
) -> "GraphNode[Checkpoint]":
    branches = tuple(Checkpoint(each, pool) for each in node.branches)
    found = node.replace(checkpoint=Checkpoint(node.checkpoint, pool), branches=branches)
    return cast("GraphNode[Checkpoint]", found)


def awaited_version(
    version: "FileVersion[sync_checkpoint.Checkpoint]", pool: Pool
) -> "FileVersion[Checkpoint]":
    found = version.replace(checkpoint=Checkpoint(version.checkpoint, pool))
    return cast("FileVersion[Checkpoint]", found)


def awaited_event(event: "Event[sync_checkpoint.Checkpoint]", pool: Pool) -> "Event[Checkpoint]":
    about = None if event.checkpoint is None else Checkpoint(event.checkpoint, pool)
    return cast("Event[Checkpoint]", event.replace(checkpoint=about))
