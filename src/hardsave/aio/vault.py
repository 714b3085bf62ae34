"""The awaited vault."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from hardsave.aio.checkpoint import (
    Checkpoint,
    Ref,
    awaited_event,
    awaited_hits,
    awaited_session,
    awaited_version,
    plain,
)
from hardsave.aio.line import Timeline
from hardsave.aio.pool import Pool
from hardsave.aio.workspace import Workspace
from hardsave.defaults import POLL_SECONDS
from hardsave.page import Page
from hardsave.vault import checkpoint as sync_checkpoint
from hardsave.vault import line as sync_line
from hardsave.vault import vault as sync_vault
from hardsave.vault.events import EventName, is_async
from hardsave.vault.restore.undo import Operation

if TYPE_CHECKING:
    import os

    from hardsave.aio.jobs import Jobs
    from hardsave.aio.store import Retention, VaultStore
    from hardsave.tasks.async_ledger import Tasks
    from hardsave.timeline.diff import Diff
    from hardsave.vault.history.file_history import FileVersion
    from hardsave.vault.history.follow import Event, Following
    from hardsave.vault.history.session_list import Session
    from hardsave.vault.search.search import Hits
    from hardsave.vault.transfer.transfer import Exported, Imported

T = TypeVar("T")


class Vault:
    """See `hardsave.Vault`. Made by `hardsave.aio.open()`."""

    def __init__(self, sync: sync_vault.Vault, pool: Pool) -> None:
        self._sync = sync
        self._pool = pool

    @property
    def user(self) -> str | None:
        return self._sync.user

    async def as_user(self, user: str | None, *, create: bool = False) -> "Vault":
        made = await self._pool.run(self._sync.as_user, user, create=create)
        return Vault(made, Pool(self._pool))

    @property
    def strict(self) -> bool:
        return self._sync.strict

    @property
    def tasks(self) -> "Tasks":
        from hardsave.tasks.async_ledger import Tasks  # many programs only save

        return Tasks(self._sync.tasks, self._pool)

    @property
    def jobs(self) -> "Jobs":
        from hardsave.aio.jobs import Jobs

        return Jobs(self._sync.jobs, self._pool)

    @property
    def store(self) -> "VaultStore":
        from hardsave.aio.store import VaultStore  # few callers need it

        return VaultStore(self._sync.store, self._pool)

    @property
    def retention(self) -> "Retention":
        from hardsave.aio.store import Retention

        return Retention(self._sync.retention, self._pool)

    async def timeline(self, name: str) -> Timeline:
        return Timeline(await self._pool.run(self._sync.timeline, name), self._pool)

    async def timelines(
        self, *, prefix: str = "", after: str | None = None
    ) -> AsyncIterator[Timeline]:
        def found() -> list[sync_line.Timeline]:
            return list(self._sync.timelines(prefix=prefix, after=after))

        for line in await self._pool.run(found):
            yield Timeline(line, self._pool)

    async def checkpoints(
        self, *, labels: Mapping[str, str], limit: int = 50, after: str | None = None
    ) -> Page[Checkpoint]:
        found = await self._pool.run(
            self._sync.checkpoints, labels=labels, limit=limit, after=after
        )
        return Page([Checkpoint(each, self._pool) for each in found], found.next)

    async def put_notes(self, ref: Ref, notes: Mapping[str, Any], *, replace: bool = True) -> None:
        await self._pool.run(self._sync.put_notes, plain(ref), notes, replace=replace)

    async def sessions(
        self,
        *,
        workspace: "str | os.PathLike[str] | None" = None,
        text: str = "",
        prefix: str = "",
        status: str | None = None,
        limit: int = 50,
        after: str | None = None,
        deleted: bool = False,
    ) -> "Page[Session[Checkpoint]]":
        found = await self._pool.run(
            self._sync.sessions,
            workspace=workspace,
            text=text,
            prefix=prefix,
            status=status,
            limit=limit,
            after=after,
            deleted=deleted,
        )
        return Page([awaited_session(each, self._pool) for each in found], found.next)

    async def session(self, name: str) -> "Session[Checkpoint]":
        return awaited_session(await self._pool.run(self._sync.session, name), self._pool)

    async def moments(
        self, workspace: "str | os.PathLike[str]", *, limit: int = 50, after: str | None = None
    ) -> "Page[Checkpoint]":
        found = await self._pool.run(self._sync.moments, workspace, limit=limit, after=after)
        return Page([Checkpoint(each, self._pool) for each in found], found.next)

    async def workspace(
        self,
        path: "str | os.PathLike[str]" = ".",
        *,
        include: Sequence[str] = (),
        leave_out: Sequence[str] = (),
        max_file_bytes: int | None = None,
        max_total_bytes: int | None = None,
        sure: bool = False,
    ) -> Workspace:
        made = await self._pool.run(
            self._sync.workspace,
            path,
            include=include,
            leave_out=leave_out,
            max_file_bytes=max_file_bytes,
            max_total_bytes=max_total_bytes,
            sure=sure,
        )
        return Workspace(made, self._pool)

    async def get(self, ref: Ref) -> Checkpoint:
        return Checkpoint(await self._pool.run(self._sync.get, plain(ref)), self._pool)

    async def knows(self, id: str) -> bool:
        return await self._pool.run(self._sync.knows, id)

    async def file_history(
        self, ref: Ref, path: str, *, limit: int = 50, after: str | None = None
    ) -> "Page[FileVersion[Checkpoint]]":
        found = await self._pool.run(
            self._sync.file_history, plain(ref), path, limit=limit, after=after
        )
        return Page([awaited_version(each, self._pool) for each in found], found.next)

    async def diff(self, old: Ref, new: Ref) -> "Diff":
        return await self._pool.run(self._sync.diff, plain(old), plain(new))

    async def export_file(
        self, path: "str | os.PathLike[str]", *, timelines: Iterable[str] | None = None
    ) -> "Exported":
        return await self._pool.run(self._sync.export_file, path, timelines=timelines)

    async def import_file(self, path: "str | os.PathLike[str]") -> "Imported":
        return await self._told("imported", await self._pool.run(self._sync.import_file, path))

    def on(self, event: EventName, handler: Callable[..., Any]) -> Callable[[], None]:
        """See `hardsave.Vault.on`; `handler` may be a coroutine function."""
        if not is_async(handler):
            return self._sync.on(event, lambda about: handler(self._wrapped(about)))
        if event.startswith("task_"):  # told in the middle of calls, wherever these are made
            loop = asyncio.get_running_loop()
            return self._sync.on(
                event,
                lambda about: asyncio.run_coroutine_threadsafe(handler(about), loop).result(),
            )
        self._sync.on(event, lambda about: None)()  # refuses an event that does not exist
        handlers = self._pool.handlers.setdefault(event, [])
        handlers.append(handler)

        def off() -> None:
            if handler in handlers:
                handlers.remove(handler)

        return off

    async def undo(self, *, key: str | None = None) -> Operation:
        done, is_new = await self._pool.run_once(self._sync.undo, key=key)
        return await self._told("undone", done) if is_new else done

    async def redo(self, *, key: str | None = None) -> Operation:
        done, is_new = await self._pool.run_once(self._sync.redo, key=key)
        return await self._told("redone", done) if is_new else done

    async def operations(
        self, timeline: str | None = None, *, limit: int = 50, after: str | None = None
    ) -> Page[Operation]:
        return await self._pool.run(self._sync.operations, timeline, limit=limit, after=after)

    async def delete(
        self, ref: Ref, *, timeline: str | None = None, key: str | None = None
    ) -> Checkpoint:
        deleted, is_new = await self._pool.run_once(
            self._sync.delete, plain(ref), timeline=timeline, key=key
        )
        checkpoint = Checkpoint(deleted, self._pool)
        return await self._told("deleted", checkpoint) if is_new else checkpoint

    async def _told(self, event: EventName, done: T) -> T:
        await self._pool.tell(event, done)
        return done

    async def search(
        self,
        text: str,
        *,
        timeline: str | Iterable[str] | None = None,
        limit: int = 50,
        after: str | None = None,
        wait: bool = False,
    ) -> "Hits[Checkpoint]":
        found = await self._pool.run(
            self._sync.search, text, timeline=timeline, limit=limit, after=after, wait=wait
        )
        return awaited_hits(found, self._pool)

    def follow(
        self,
        after: int | None = None,
        *,
        poll_seconds: float = POLL_SECONDS,
        stop: Callable[[], bool] | None = None,
    ) -> "AsyncIterator[Event[Checkpoint]]":
        begun = self._pool.run(self._sync.follow, after, poll_seconds=poll_seconds, stop=stop)
        return self._followed(asyncio.ensure_future(begun), poll_seconds)

    async def _followed(
        self, begun: "asyncio.Future[Following]", poll_seconds: float
    ) -> "AsyncIterator[Event[Checkpoint]]":
        following = await begun

        def is_over() -> bool:
            return self._pool.is_closed or following.is_over

        while not is_over():
            events = await self._pool.run(following.read)
            for event in events:
                if is_over():
                    return
                yield awaited_event(event, self._pool)
            if not events:
                await asyncio.sleep(poll_seconds)

    async def close(self) -> None:
        await self._pool.close()
        await asyncio.to_thread(self._sync.close)

    async def __aenter__(self) -> "Vault":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _wrapped(self, about: object) -> object:
        if isinstance(about, sync_checkpoint.Checkpoint):
            return Checkpoint(about, self._pool)
        return Timeline(about, self._pool) if isinstance(about, sync_line.Timeline) else about
