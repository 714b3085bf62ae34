"""The awaited workspace."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from hardsave.aio.checkpoint import Checkpoint, Ref, plain
from hardsave.aio.line import Timeline
from hardsave.aio.pool import Pool
from hardsave.record import Record
from hardsave.vault.restore.rewind import Rewind

if TYPE_CHECKING:
    import os
    from contextlib import AbstractContextManager
    from pathlib import Path

    from hardsave.vault import workspace as sync_workspace
    from hardsave.vault.restore.path_choice import Scope
    from hardsave.vault.save.captured import CapturedFiles
    from hardsave.vault.workspace import Watching, WorkspaceStatus

T = TypeVar("T")


class Workspace:
    """See `hardsave.Workspace`."""

    def __init__(self, sync: "sync_workspace.Workspace", pool: Pool) -> None:
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

    async def capture(self) -> "CapturedFiles":
        return await self._pool.run(self._sync.capture)

    async def save_files(
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
            self._sync.save_files,
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

    async def status(self, against: Ref | None = None) -> "WorkspaceStatus":
        return await self._pool.run(self._sync.status, None if against is None else plain(against))

    def watch(self) -> "AbstractContextManager[Watching]":
        return self._sync.watch()

    async def dirty_files(self) -> list[str]:
        return await self._pool.run(self._sync.dirty_files)

    async def restore(
        self,
        ref: Ref,
        *,
        paths: Sequence[str] | None = None,
        scope: "Scope | None" = None,
        git: bool = False,
        dry_run: bool = False,
        expect: Checkpoint | Rewind | str | None = None,
    ) -> Rewind:
        done = await self._pool.run(
            self._sync.restore,
            plain(ref),
            paths=paths,
            scope=scope,
            git=git,
            dry_run=dry_run,
            expect=expect.sync if isinstance(expect, Checkpoint) else expect,
        )
        if done.files and not dry_run:
            await self._pool.tell("checkpoint_restored", done)
        return done

    async def take_over(self, ref: Ref | None = None) -> "Workspace":
        wanted = None if ref is None else plain(ref)
        return Workspace(await self._pool.run(self._sync.take_over, wanted), self._pool)

    async def fork(
        self,
        ref: Ref,
        directory: "str | os.PathLike[str]",
        *,
        name: str | None = None,
        key: str | None = None,
    ) -> "Fork":
        made, is_new = await self._pool.run_once(
            self._sync.fork, plain(ref), directory, name=name, key=key
        )
        line = Timeline(made.timeline, self._pool)
        if is_new:
            await self._pool.tell("forked", line)
        return Fork(line, Workspace(made.workspace, self._pool))

    def __fspath__(self) -> str:
        return self._sync.__fspath__()

    def __repr__(self) -> str:
        return repr(self._sync)


class Fork(Record):
    """See `hardsave.Fork`."""

    timeline: Timeline
    workspace: Workspace
