"""The awaited timeline."""

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, overload

from hardsave.aio.checkpoint import Checkpoint, Ref, awaited_node, blocking, plain
from hardsave.aio.guard import Guard
from hardsave.aio.pool import Pool
from hardsave.page import Page
from hardsave.timeline.step_summary import FileCounts, StepSummary
from hardsave.vault import checkpoint as sync_checkpoint
from hardsave.vault import line as sync_line
from hardsave.vault.events import EventName, SaveFailed
from hardsave.vault.line_saves import Directory
from hardsave.vault.restore.rewind import Rewind
from hardsave.vault.restore.rewind_request import What
from hardsave.vault.restore.undo import Operation
from hardsave.vault.save.receipt import Receipt, receipt
from hardsave.vault.save.request import Expected

if TYPE_CHECKING:
    from hardsave.timeline.summary import TimelineSummary
    from hardsave.vault.history.bisect import Bisected, BisectTry
    from hardsave.vault.history.graph import GraphNode
    from hardsave.vault.restore.path_choice import Scope
    from hardsave.vault.save.captured import CapturedFiles

T = TypeVar("T")


class Timeline:
    """See `hardsave.Timeline`."""

    def __init__(self, sync: sync_line.Timeline, pool: Pool) -> None:
        self._sync = sync
        self._pool = pool

    @property
    def name(self) -> str:
        return self._sync.name

    @property
    def title(self) -> Awaitable[str]:
        return self._pool.run(lambda: self._sync.title)

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
        labels: Mapping[str, str] | None = None,
        notes: Mapping[str, Any] | None = None,
        workspace: "Directory | CapturedFiles | None" = None,
        expect: Checkpoint | Expected = None,
        step: StepSummary | None = None,
        title: str = "",
        id: str | None = None,
        parent: Ref | None = "@",
    ) -> Checkpoint:
        return await self._handed_over(
            functools.partial(
                self._sync.save,
                state,
                name=name,
                kind=kind,
                status=status,
                description=description,
                metadata=metadata,
                labels=labels,
                notes=notes,
                workspace=workspace,
                expect=blocking(expect),
                step=step,
                title=title,
                id=id,
                parent=None if parent is None else plain(parent),
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
        labels: Mapping[str, str] | None = None,
        notes: Mapping[str, Any] | None = None,
        workspace: "Directory | CapturedFiles | None" = None,
        expect: Checkpoint | Expected = None,
        step: StepSummary | None = None,
        title: str = "",
        id: str | None = None,
        parent: Ref | None = "@",
    ) -> Checkpoint:
        return await self._handed_over(
            functools.partial(
                self._sync.append,
                delta,
                name=name,
                kind=kind,
                status=status,
                description=description,
                metadata=metadata,
                labels=labels,
                notes=notes,
                workspace=workspace,
                expect=blocking(expect),
                step=step,
                title=title,
                id=id,
                parent=None if parent is None else plain(parent),
            ),
            doubts=True,
        )

    async def save_files(
        self,
        workspace: "Directory | CapturedFiles",
        *,
        name: str | None = None,
        kind: str | None = None,
        status: str | None = "running",
        description: str = "",
        metadata: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        notes: Mapping[str, Any] | None = None,
        step: StepSummary | None = None,
        title: str = "",
        id: str | None = None,
    ) -> Checkpoint:
        return await self._handed_over(
            functools.partial(
                self._sync.save_files,
                workspace,
                name=name,
                kind=kind,
                status=status,
                description=description,
                metadata=metadata,
                labels=labels,
                notes=notes,
                step=step,
                title=title,
                id=id,
            )
        )

    async def copy(
        self,
        ref: Ref,
        *,
        metadata: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        expect: Checkpoint | Expected = None,
        id: str | None = None,
        parent: Ref | None = "@",
    ) -> Checkpoint:
        return await self._handed_over(
            functools.partial(
                self._sync.copy,
                plain(ref),
                metadata=metadata,
                labels=labels,
                expect=blocking(expect),
                id=id,
                parent=None if parent is None else plain(parent),
            )
        )

    @overload
    async def load(self, ref: Ref = "@") -> Any: ...
    @overload
    async def load(self, ref: Ref = "@", *, type: type[T]) -> T: ...
    async def load(self, ref: Ref = "@", *, type: Any = None) -> Any:
        return await self._pool.run(self._sync.load, plain(ref), type=type)

    async def as_saved(self, value: Any) -> Any:
        return await self._pool.run(self._sync.as_saved, value)

    async def get(self, ref: Ref = "@") -> Checkpoint:
        return Checkpoint(await self._pool.run(self._sync.get, plain(ref)), self._pool)

    async def checkpoints(
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
    ) -> Page[Checkpoint]:
        page = await self._pool.run(
            self._sync.checkpoints,
            name=name,
            kind=kind,
            status=status,
            since=since,
            until=until,
            labels=labels,
            limit=limit,
            after=after,
        )
        return Page([Checkpoint(each, self._pool) for each in page], page.next)

    async def summary(self) -> "TimelineSummary":
        return await self._pool.run(self._sync.summary)

    async def files_changed(self) -> "FileCounts | None":
        return await self._pool.run(self._sync.files_changed)

    async def fork(self, ref: Ref = "@", *, name: str, key: str | None = None) -> "Timeline":
        pool = self._pool
        made, is_new = await pool.run_once(self._sync.fork, plain(ref), name=name, key=key)
        line = Timeline(made, pool)
        return await self._told("forked", line) if is_new else line

    async def graph(
        self, *, limit: int = 1_000, after: str | None = None
    ) -> "Page[GraphNode[Checkpoint]]":
        found = await self._pool.run(self._sync.graph, limit=limit, after=after)
        return Page([awaited_node(each, self._pool) for each in found], found.next)

    async def ancestors(self, ref: Ref = "@") -> AsyncIterator[Checkpoint]:
        for found in await self._pool.run(lambda: list(self._sync.ancestors(plain(ref)))):
            yield Checkpoint(found, self._pool)

    async def children(self, ref: Ref = "@") -> list[Checkpoint]:
        found = await self._pool.run(self._sync.children, plain(ref))
        return [Checkpoint(checkpoint, self._pool) for checkpoint in found]

    async def leaves(self) -> list[Checkpoint]:
        found = await self._pool.run(self._sync.leaves)
        return [Checkpoint(checkpoint, self._pool) for checkpoint in found]

    async def depth(self, ref: Ref = "@") -> int:
        return await self._pool.run(self._sync.depth, plain(ref))

    async def rewind(
        self,
        ref: Ref | None = None,
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
        expect: Checkpoint | Rewind | str | None = None,
        key: str | None = None,
    ) -> Rewind:
        done, is_new = await self._pool.run_once(
            self._sync.rewind,
            None if ref is None else plain(ref),
            what=what,
            status=status,
            before=before,
            paths=paths,
            scope=scope,
            git=git,
            workspace=workspace,
            tasks=tasks,
            dry_run=dry_run,
            expect=expect.sync if isinstance(expect, Checkpoint) else expect,
            key=key,
        )
        if is_new and (done.moved or ((done.files or done.tasks) and not dry_run)):
            await self._pool.tell("rewound" if done.moved else "checkpoint_restored", done)
        return done

    def guard(self, name: str | None = None, *, workspace: Directory) -> "Guard":
        return Guard(self._sync.guard(name, workspace=workspace), self._pool)

    async def bisect(
        self,
        good: Ref,
        bad: Ref,
        command: Sequence[str],
        *,
        timeout: float | None = None,  # noqa: ASYNC109 # of the command, as on the other side
        told: "Callable[[BisectTry], object] | None" = None,
    ) -> "Bisected":
        return await self._pool.run(
            self._sync.bisect, plain(good), plain(bad), command, timeout=timeout, told=told
        )

    async def undo(self, *, key: str | None = None) -> Operation:
        done, is_new = await self._pool.run_once(self._sync.undo, key=key)
        return await self._told("undone", done) if is_new else done

    async def redo(self, *, key: str | None = None) -> Operation:
        done, is_new = await self._pool.run_once(self._sync.redo, key=key)
        return await self._told("redone", done) if is_new else done

    async def clear(self, *, key: str | None = None) -> int:
        count, is_new = await self._pool.run_once(self._sync.clear, key=key)
        if is_new:
            await self._pool.tell("cleared", self)
        return count

    async def delete(self, *, key: str | None = None) -> int:
        count, is_new = await self._pool.run_once(self._sync.delete, key=key)
        if is_new:
            await self._pool.tell("deleted", self)
        return count

    async def _told(self, event: EventName, done: T) -> T:
        await self._pool.tell(event, done)
        return done

    async def _saved(self, saving: Awaitable[sync_checkpoint.Checkpoint]) -> Checkpoint:
        try:
            checkpoint = Checkpoint(await saving, self._pool)
        except Exception as error:
            await self._pool.tell("save_failed", SaveFailed(self.name, error))
            raise
        await self._pool.tell("checkpoint_saved", checkpoint)
        return checkpoint

    async def _handed_over(
        self, save: Callable[[], sync_checkpoint.Checkpoint], *, doubts: bool = False
    ) -> Checkpoint:
        """What a save makes. For one who was cancelled it is not begun any more: it might come
        after what he saves next. If it was, it may be written, though he does not get it; what he
        appends must not be doubled then by asking once more."""
        waiting = Receipt(doubts=doubts)

        def made() -> sync_checkpoint.Checkpoint:
            receipt.set(waiting)  # in the context of this call alone
            return save()

        try:
            return await self._saved(self._pool.run(made))
        except asyncio.CancelledError:
            waiting.is_refused = True
            if doubts and waiting.id is not None and not self._pool.is_closed:
                await self._pool.run_to_the_end(sync_line.doubt, self._sync, waiting.id)
            raise
