"""The same vault for coroutines: the same names, awaited.

    async with hardsave.aio.open() as vault:
        line = await vault.timeline("session-1")
        await line.append({"messages": [message]})

Every method is one line over the synchronous class, run in a bounded pool of threads that
belongs to the vault. What differs, and why:

- `await line.head` and `async for line in vault.timelines()`: they read the store;
- `await line.count()` stands for `len(line)`, which Python cannot await;
- a checkpoint's state is read with `await checkpoint.read(…)`, never lazily; its files, like
  all that may block, through `checkpoint.sync`;
- handlers may be coroutine functions; they are awaited before the call that caused the
  event returns;
- steps and handlers of tasks may be coroutine functions, awaited on the caller's loop.

A call that is cancelled goes on in its thread: whether a save was written is unknown, and
the next look at the head tells.
"""

import asyncio
import logging
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Mapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from hardsave.errors import HardsaveError, Misuse
from hardsave.stores.base import Collected, Durability, Report, Stats
from hardsave.vault import checkpoint as sync_checkpoint
from hardsave.vault import line as sync_line
from hardsave.vault import vault as sync_vault
from hardsave.vault.events import EventName, SaveFailed, is_async
from hardsave.vault.line import Directory
from hardsave.vault.rewind import Rewind, What
from hardsave.vault.saving import Expected
from hardsave.vault.undo import Operation
from hardsave.vault.vault import MAX_VALUE_BYTES, POLL_SECONDS, Redact
from hardsave.vault.verify import Verification

if TYPE_CHECKING:
    import os
    from contextlib import AbstractContextManager
    from pathlib import Path

    from hardsave.tasks.awaited import Tasks
    from hardsave.timeline.diff import Diff
    from hardsave.timeline.policy import Policy
    from hardsave.timeline.retention import Plan
    from hardsave.timeline.summary import Summary
    from hardsave.vault import guard as sync_guard
    from hardsave.vault import workspace as sync_workspace
    from hardsave.vault.bisect import Bisected, Try
    from hardsave.vault.choosing import Scope
    from hardsave.vault.follow import Event, Following
    from hardsave.vault.purge import Purged
    from hardsave.vault.retain import Retained
    from hardsave.vault.search import Hits
    from hardsave.vault.transfer import Exported, Imported
    from hardsave.vault.workspace import Status
    from hardsave.workspace.watch import Watch

T = TypeVar("T")
P = ParamSpec("P")

THREADS = 16

_log = logging.getLogger(__name__)


class _Pool:
    """The threads of one vault, and its handlers that are coroutine functions."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="hardsave-aio")
        self.handlers: dict[str, list[Callable[..., Awaitable[Any]]]] = {}
        self.is_closed = False

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        if self.is_closed:
            raise Misuse("this vault is closed; open it again")
        # In a copy of the caller's context: what an attempt saves is known to be its own.
        bound = partial(call, *args, **kwargs)
        return await loop.run_in_executor(self._threads, copy_context().run, bound)

    async def tell(self, event: EventName, about: object) -> None:
        for handler in tuple(self.handlers.get(event, ())):
            try:
                await handler(about)
            except Exception:  # noqa: BLE001 # anything at all: what has been saved is saved
                _log.exception("a handler of %s failed: %r", event, handler)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise  # it is we who are cancelled
                _log.exception("a handler of %s was cancelled: %r", event, handler)

    async def close(self) -> None:
        self.is_closed = True
        await asyncio.to_thread(self._threads.shutdown)


class Checkpoint:
    """See `hardsave.Checkpoint`. Its state is read with `await checkpoint.read(…)`."""

    __slots__ = ("_pool", "_sync")

    def __init__(self, sync: sync_checkpoint.Checkpoint, pool: _Pool) -> None:
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
    def user(self) -> str | None:
        return self._sync.user

    @property
    def metadata(self) -> Mapping[str, Any]:
        return self._sync.metadata

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


class Page(Sequence[Checkpoint]):
    """See `hardsave.Page`."""

    def __init__(self, sync: sync_checkpoint.Page, pool: _Pool) -> None:
        self._items = [Checkpoint(item, pool) for item in sync]
        self.next = sync.next

    @overload
    def __getitem__(self, at: int) -> Checkpoint: ...
    @overload
    def __getitem__(self, at: slice) -> list[Checkpoint]: ...
    def __getitem__(self, at: int | slice) -> Checkpoint | list[Checkpoint]:
        return self._items[at]

    def __len__(self) -> int:
        return len(self._items)


class Timeline:
    """See `hardsave.Timeline`."""

    def __init__(self, sync: sync_line.Timeline, pool: _Pool) -> None:
        self._sync = sync
        self._pool = pool

    @property
    def name(self) -> str:
        return self._sync.name

    @property
    def head(self) -> Awaitable[Checkpoint | None]:
        return self._head()

    async def _head(self) -> Checkpoint | None:
        found = await self._pool.run(lambda: self._sync.head)
        return None if found is None else Checkpoint(found, self._pool)

    async def count(self) -> int:
        """How many checkpoints were saved on it."""
        return await self._pool.run(self._sync.__len__)

    def __repr__(self) -> str:
        return repr(self._sync)

    async def save(
        self,
        state: Any,
        *,
        name: str | None = None,
        kind: str | None = None,
        status: str = "running",
        description: str = "",
        metadata: Mapping[str, Any] | None = None,
        workspace: Directory | None = None,
        expect: Checkpoint | Expected = None,
    ) -> Checkpoint:
        return await self._saved(
            self._pool.run(
                self._sync.save,
                state,
                name=name,
                kind=kind,
                status=status,
                description=description,
                metadata=metadata,
                workspace=workspace,
                expect=_blocking(expect),
            )
        )

    async def append(
        self,
        delta: Mapping[str, Any],
        *,
        name: str | None = None,
        kind: str | None = None,
        status: str = "running",
        description: str = "",
        metadata: Mapping[str, Any] | None = None,
        workspace: Directory | None = None,
        expect: Checkpoint | Expected = None,
    ) -> Checkpoint:
        return await self._saved(
            self._pool.run(
                self._sync.append,
                delta,
                name=name,
                kind=kind,
                status=status,
                description=description,
                metadata=metadata,
                workspace=workspace,
                expect=_blocking(expect),
            )
        )

    async def snapshot(
        self,
        workspace: Directory,
        *,
        name: str | None = None,
        kind: str | None = None,
        status: str = "running",
        description: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> Checkpoint:
        return await self._saved(
            self._pool.run(
                self._sync.snapshot,
                workspace,
                name=name,
                kind=kind,
                status=status,
                description=description,
                metadata=metadata,
            )
        )

    @overload
    async def load(self, ref: str = "@") -> Any: ...
    @overload
    async def load(self, ref: str = "@", *, type: type[T]) -> T: ...
    async def load(self, ref: str = "@", *, type: Any = None) -> Any:
        return await self._pool.run(self._sync.load, ref, type=type)

    async def get(self, ref: str = "@") -> Checkpoint:
        return Checkpoint(await self._pool.run(self._sync.get, ref), self._pool)

    async def checkpoints(
        self,
        *,
        name: str | None = None,
        kind: str | None = None,
        status: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Page:
        page = await self._pool.run(
            self._sync.checkpoints,
            name=name,
            kind=kind,
            status=status,
            since=since,
            until=until,
            limit=limit,
            after=after,
        )
        return Page(page, self._pool)

    async def summary(self) -> "Summary":
        return await self._pool.run(self._sync.summary)

    async def fork(self, ref: str = "@", *, name: str) -> "Timeline":
        line = Timeline(await self._pool.run(self._sync.fork, ref, name=name), self._pool)
        await self._pool.tell("forked", line)
        return line

    async def ancestors(self, ref: str = "@") -> AsyncIterator[Checkpoint]:
        for found in await self._pool.run(lambda: list(self._sync.ancestors(ref))):
            yield Checkpoint(found, self._pool)

    async def children(self, ref: str = "@") -> list[Checkpoint]:
        found = await self._pool.run(self._sync.children, ref)
        return [Checkpoint(checkpoint, self._pool) for checkpoint in found]

    async def leaves(self) -> list[Checkpoint]:
        found = await self._pool.run(self._sync.leaves)
        return [Checkpoint(checkpoint, self._pool) for checkpoint in found]

    async def depth(self, ref: str = "@") -> int:
        return await self._pool.run(self._sync.depth, ref)

    async def rewind(
        self,
        ref: str | None = None,
        *,
        what: What = "all",
        status: str | None = None,
        before: datetime | None = None,
        paths: Sequence[str] | None = None,
        scope: "Scope | None" = None,
        git: bool = False,
        workspace: Directory | None = None,
        tasks: bool = False,
        dry_run: bool = False,
    ) -> Rewind:
        done = await self._pool.run(
            self._sync.rewind,
            ref,
            what=what,
            status=status,
            before=before,
            paths=paths,
            scope=scope,
            git=git,
            workspace=workspace,
            tasks=tasks,
            dry_run=dry_run,
        )
        if done.moved or ((done.files or done.tasks) and not dry_run):
            await self._pool.tell("rewound" if done.moved else "restored", done)
        return done

    def guard(self, name: str | None = None, *, workspace: Directory) -> "Guard":
        return Guard(self._sync.guard(name, workspace=workspace), self._pool)

    async def bisect(
        self,
        good: str,
        bad: str,
        command: Sequence[str],
        *,
        timeout: float | None = None,  # noqa: ASYNC109 # of the command, as on the other side
        told: "Callable[[Try], object] | None" = None,
    ) -> "Bisected":
        return await self._pool.run(
            self._sync.bisect, good, bad, command, timeout=timeout, told=told
        )

    async def undo(self) -> Operation:
        return await self._told("undone", await self._pool.run(self._sync.undo))

    async def redo(self) -> Operation:
        return await self._told("redone", await self._pool.run(self._sync.redo))

    async def clear(self) -> int:
        count = await self._pool.run(self._sync.clear)
        await self._pool.tell("cleared", self)
        return count

    async def delete(self) -> int:
        count = await self._pool.run(self._sync.delete)
        await self._pool.tell("deleted", self)
        return count

    async def _told(self, event: EventName, done: T) -> T:
        await self._pool.tell(event, done)
        return done

    async def _saved(self, saving: Awaitable[sync_checkpoint.Checkpoint]) -> Checkpoint:
        try:
            checkpoint = Checkpoint(await saving, self._pool)
        except HardsaveError as error:
            await self._pool.tell("save_failed", SaveFailed(self.name, error))
            raise
        await self._pool.tell("checkpoint_saved", checkpoint)
        return checkpoint


class Guard:
    """See `hardsave.Timeline.guard`."""

    def __init__(self, sync: "sync_guard.Guard", pool: _Pool) -> None:
        self._sync = sync
        self._pool = pool

    @property
    def sync(self) -> "sync_guard.Guard":
        """What it saved and took back."""
        return self._sync

    async def __aenter__(self) -> "Guard":
        await self._pool.run(self._sync.__enter__)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Also when it is cancelled: what failed is taken back before anything goes on.
        await asyncio.shield(self._pool.run(self._sync.__exit__, kind, error, trace))


class Workspace:
    """See `hardsave.Workspace`."""

    def __init__(self, sync: "sync_workspace.Workspace", pool: _Pool) -> None:
        self._sync = sync
        self._pool = pool

    @property
    def path(self) -> "Path":
        return self._sync.path

    @property
    def sync(self) -> "sync_workspace.Workspace":
        """The same workspace for code that may block."""
        return self._sync

    @property
    def last(self) -> Awaitable[Checkpoint | None]:
        return self._last()

    async def _last(self) -> Checkpoint | None:
        found = await self._pool.run(lambda: self._sync.last)
        return None if found is None else Checkpoint(found, self._pool)

    async def snapshot(
        self,
        *,
        timeline: str | None = None,
        name: str | None = None,
        kind: str | None = None,
        status: str = "running",
        description: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> Checkpoint:
        saved = await self._pool.run(
            self._sync.snapshot,
            timeline=timeline,
            name=name,
            kind=kind,
            status=status,
            description=description,
            metadata=metadata,
        )
        checkpoint = Checkpoint(saved, self._pool)
        await self._pool.tell("checkpoint_saved", checkpoint)
        return checkpoint

    async def status(self, against: str | None = None) -> "Status":
        return await self._pool.run(self._sync.status, against)

    def watch(self) -> "AbstractContextManager[Watch]":
        return self._sync.watch()

    async def dirty_files(self) -> list[str]:
        return await self._pool.run(self._sync.dirty_files)

    async def restore(
        self,
        ref: str,
        *,
        paths: Sequence[str] | None = None,
        scope: "Scope | None" = None,
        git: bool = False,
        dry_run: bool = False,
    ) -> Rewind:
        done = await self._pool.run(
            self._sync.restore, ref, paths=paths, scope=scope, git=git, dry_run=dry_run
        )
        if done.files and not dry_run:
            await self._pool.tell("restored", done)
        return done

    async def fork(
        self, ref: str, directory: "str | os.PathLike[str]", *, name: str | None = None
    ) -> "tuple[Timeline, Workspace]":
        made = await self._pool.run(self._sync.fork, ref, directory, name=name)
        line = Timeline(made.timeline, self._pool)
        await self._pool.tell("forked", line)
        return line, Workspace(made.workspace, self._pool)

    def __fspath__(self) -> str:
        return self._sync.__fspath__()

    def __repr__(self) -> str:
        return repr(self._sync)


class Vault:
    """See `hardsave.Vault`. Made by `hardsave.aio.open()`."""

    def __init__(self, sync: sync_vault.Vault, pool: _Pool) -> None:
        self._sync = sync
        self._pool = pool

    @property
    def user(self) -> str | None:
        return self._sync.user

    @property
    def tasks(self) -> "Tasks":
        from hardsave.tasks.awaited import Tasks  # many programs only save

        return Tasks(self._sync.tasks, self._pool)

    async def timeline(self, name: str, *, once: str | None = None) -> Timeline:
        return Timeline(await self._pool.run(self._sync.timeline, name, once=once), self._pool)

    async def timelines(self) -> AsyncIterator[Timeline]:
        for line in await self._pool.run(lambda: list(self._sync.timelines())):
            yield Timeline(line, self._pool)

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

    async def plan_retention(self, policy: "Policy | None" = None) -> "Plan":
        return await self._pool.run(self._sync.plan_retention, policy)

    async def apply(self, plan: "Plan") -> "Retained":
        return await self._told("retained", await self._pool.run(self._sync.apply, plan))

    async def get(self, ref: str) -> Checkpoint:
        return Checkpoint(await self._pool.run(self._sync.get, ref), self._pool)

    async def diff(self, old: Checkpoint | str, new: Checkpoint | str) -> "Diff":
        return await self._pool.run(self._sync.diff, _plain(old), _plain(new))

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

    async def undo(self) -> Operation:
        return await self._told("undone", await self._pool.run(self._sync.undo))

    async def redo(self) -> Operation:
        return await self._told("redone", await self._pool.run(self._sync.redo))

    async def operations(self, timeline: str | None = None) -> AsyncIterator[Operation]:
        for found in await self._pool.run(lambda: list(self._sync.operations(timeline))):
            yield found

    async def delete(self, ref: str) -> Checkpoint:
        checkpoint = Checkpoint(await self._pool.run(self._sync.delete, ref), self._pool)
        return await self._told("deleted", checkpoint)

    async def _told(self, event: EventName, done: T) -> T:
        await self._pool.tell(event, done)
        return done

    async def search(
        self, text: str, *, timeline: str | None = None, limit: int = 50, after: str | None = None
    ) -> "Hits[Checkpoint]":
        return await self._pool.run(
            lambda: _awaited(
                self._sync.search(text, timeline=timeline, limit=limit, after=after), self._pool
            )
        )

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
                yield _awaited_event(event, self._pool)
            if not events:
                await asyncio.sleep(poll_seconds)

    async def verify(self, ref: str | None = None) -> Verification:
        return await self._pool.run(self._sync.verify, ref)

    async def repair(self) -> Report:
        return await self._pool.run(self._sync.repair)

    async def stats(self) -> Stats:
        return await self._pool.run(self._sync.stats)

    async def gc(self) -> Collected:
        return await self._told("collected", await self._pool.run(self._sync.gc))

    async def compact(self) -> None:
        await self._pool.run(self._sync.compact)

    async def purge(
        self, ref: str | None = None, *, timeline: str | None = None, text: str | None = None
    ) -> "Purged":
        purged = self._pool.run(self._sync.purge, ref, timeline=timeline, text=text)
        return await self._told("purged", await purged)

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


class _Opening:
    """What `open` returns: to be awaited, or entered with `async with`."""

    def __init__(self, open_sync: Callable[[], sync_vault.Vault]) -> None:
        self._open_sync = open_sync
        self._vault: Vault | None = None

    def __await__(self) -> Generator[Any, None, Vault]:
        return self._open().__await__()

    async def __aenter__(self) -> Vault:
        self._vault = await self._open()
        return self._vault

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._vault is not None:
            await self._vault.close()

    async def _open(self) -> Vault:
        pool = _Pool()
        opened: list[sync_vault.Vault] = []
        try:
            await pool.run(lambda: opened.append(self._open_sync()))
        except BaseException:
            await pool.close()  # waits for the thread, which may have opened it all the same
            for vault in opened:
                vault.close()
            raise
        return Vault(opened[0], pool)


def open(
    url: str | None = None,
    *,
    user: str | None = None,
    durability: Durability = "power",
    max_value_bytes: int = MAX_VALUE_BYTES,
    redact: Redact = False,
) -> _Opening:
    """See `hardsave.open`."""
    return _Opening(
        lambda: sync_vault.open_vault(
            url,
            user=user,
            durability=durability,
            max_value_bytes=max_value_bytes,
            redact=redact,
        )
    )


def _blocking(expect: Checkpoint | Expected) -> Expected:
    return expect.sync if isinstance(expect, Checkpoint) else expect


def _plain(given: Checkpoint | str) -> sync_checkpoint.Checkpoint | str:
    return given.sync if isinstance(given, Checkpoint) else given


def _awaited(found: "Hits[sync_checkpoint.Checkpoint]", pool: _Pool) -> "Hits[Checkpoint]":
    from hardsave.vault.search import Hit, Hits

    return Hits([Hit(Checkpoint(hit.checkpoint, pool), *hit[1:]) for hit in found], found.next)


def _awaited_event(event: "Event[sync_checkpoint.Checkpoint]", pool: _Pool) -> "Event[Checkpoint]":
    from hardsave.vault.follow import Event

    about = None if event.checkpoint is None else Checkpoint(event.checkpoint, pool)
    return Event(*event[:4], checkpoint=about, data=event.data)
