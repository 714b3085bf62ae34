"""A directory whose files a vault captures and restores."""

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from hardsave.errors import Conflict, NotFound
from hardsave.objects.records import CheckpointRecord
from hardsave.record import Record
from hardsave.timeline import names
from hardsave.timeline.diff import FileDiff
from hardsave.timeline.refs import to_text
from hardsave.vault import request_key
from hardsave.vault.checkpoint import Checkpoint, Ref, named
from hardsave.vault.context import Context
from hardsave.vault.files import (
    Files,
    GitState,
    LeftOut,
    difference,
    git_state,
    left_out_of,
)
from hardsave.vault.line import Timeline
from hardsave.vault.request_key import Request
from hardsave.vault.restore import copy_into as copying
from hardsave.vault.restore import rewind
from hardsave.vault.restore.path_choice import Scope
from hardsave.vault.restore.rewind import Rewind
from hardsave.vault.restore.settling import settled
from hardsave.vault.save.captured import CapturedFiles, capture
from hardsave.vault.workspaces.place import Place
from hardsave.vault.workspaces.places import Shown
from hardsave.workspace.git.uncommitted import dirty
from hardsave.workspace.scan.git_context import GitContext
from hardsave.workspace.scan.result import Scan


class WorkspaceStatus(Record):
    """How a workspace differs from what was last saved of it."""

    last: Checkpoint | None
    """The newest checkpoint with files of this workspace, or the one that was asked for."""
    files: FileDiff
    """From there to the present; everything is `added` if nothing was saved yet."""
    not_captured: tuple[LeftOut, ...]
    git: GitState | None
    files_id: str = ""
    """Of the files as they are: the `files.id` of a checkpoint that has the same. Empty if nothing
    was saved yet."""
    ignored: tuple[str, ...] = ()
    """Ignored files that nothing else has: secrets, local settings and databases."""


class Watching(Protocol):
    """What `workspace.watch()` hands over."""

    def wait(self, *, quiet: float = ..., limit: float = ..., timeout: float | None = ...) -> bool:
        """Wait until something changed and then nothing did for `quiet` seconds, or until it has
        gone on for `limit` seconds. False: nothing changed within `timeout` seconds, or `wake`
        or `close` was called."""

    def wake(self) -> None:
        """End a `wait` of another thread."""

    def close(self) -> None:
        """Watch no more."""


class Workspace:
    """Made by `vault.workspace(path)`."""

    def __init__(self, context: Context, place: Place) -> None:
        self._context = context
        self._place = place

    @property
    def path(self) -> Path:
        return self._place.path

    @property
    def last(self) -> Checkpoint | None:
        """The newest checkpoint with files of this workspace, on any timeline."""
        record = self._last()
        return None if record is None else self._context.checkpoint(record)

    def save_files(
        self,
        *,
        timeline: str | None = None,
        name: str | None = None,
        kind: str | None = None,
        status: str = "running",
        description: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> Checkpoint:
        """Save the files as they are, beside the state that the timeline's head has.

        Without a `timeline` on the one that last saved here; the first time on `main`.
        """
        return self._line(timeline).save_files(
            self, name=name, kind=kind, status=status, description=description, metadata=metadata
        )

    def capture(self) -> CapturedFiles:
        """The files as they are now, for a save that is still to come: of a state that is only
        known when other tools may already have changed them.

            captured = workspace.capture()
            line.save(state, workspace=captured)

        Nothing of the user's is collected until that save, `captured.close()`, or for an hour.
        """
        return capture(self._context, self._place)

    def status(self, against: Ref | None = None) -> WorkspaceStatus:
        """What has changed since the last checkpoint, or the one that is named. Makes no
        checkpoint; contents that it has read on the way may lie in the store until the next gc."""
        fetch = self._context.objects.fetch
        last = self.last if against is None else self._line(None).get(against)
        with settled(self._context, self._place, only_looks=True) as files:
            if last is None:
                return _unsaved(*files.look())
            taken = files.take()
            if not taken.objects:
                files.done()  # it is what was saved last: the next look may build on this one
            now = Files(taken.address, Shown(self._place.root), fetch, taken.objects)
            diff = difference(last.files, now)
            return WorkspaceStatus(last, diff, now.not_captured, now.git, now.id, now.ignored)

    def watch(self) -> "AbstractContextManager[Watching]":
        """Watch the directory, for a process that stays.

            with workspace.watch() as watching:
                while watching.wait():
                    line.save_files(workspace)

        As long as it lasts, every capture of this vault looks only at what may have changed;
        whenever that cannot be told, at everything. `watching.wait()` returns after each burst of
        changes.
        """
        return self._place.watched()

    def dirty_files(self) -> list[str]:
        """Files that git tracks and that are not as they are staged, and files that it does not
        know; none without a repository. Reads every tracked file, so it takes a while."""
        with settled(self._context, self._place) as files:
            around, scan = files.look()
        if around.position is None or not around.is_top:
            return []
        return [os.fsdecode(path) for path in dirty(self.path, around.position, scan.files())]

    def restore(
        self,
        ref: Ref,
        *,
        paths: Sequence[str] | None = None,
        scope: Scope | None = None,
        git: bool = False,
        dry_run: bool = False,
        expect: "Checkpoint | Rewind | str | None" = None,
    ) -> Rewind:
        """Bring files back as a checkpoint has them, here. No timeline moves; `undo` takes it back.

        What is here is saved first. Files that are ignored and not in the checkpoint stay. For
        `expect` see `Timeline.rewind`.
        """
        line = self._line(None)
        return line.rewind(
            ref,
            what="files",
            paths=paths,
            scope=scope,
            git=git,
            workspace=self,
            dry_run=dry_run,
            expect=expect,
        )

    def fork(
        self,
        ref: Ref,
        directory: "str | os.PathLike[str]",
        *,
        name: str | None = None,
        key: str | None = None,
    ) -> "Fork":
        """Put a checkpoint's files into a new directory, with a timeline of its own.

        The timeline is called `name`, or else like the directory, and begins with a checkpoint
        of its own there. `undo` takes the timeline away, and leaves the directory to you. For the
        `key` see `Timeline.rewind`.
        """
        path = Path(directory).absolute()
        name = path.name if name is None else name
        names.check_timeline(name)
        context = self._context
        asked = (str(self.path), named(ref), str(path), name)
        request = request_key.request(context, key, "fork into", *asked)
        _, is_new = request_key.once(
            context, request, lambda: self._filled(ref, path, name, request), lambda _: None
        )
        line = Timeline(context, name, context.store.timeline(context.user, name))
        if is_new:
            context.events.tell("forked", line)
        return Fork(line, Workspace(context, context.places.at(path)))

    def _filled(self, ref: Ref, path: Path, name: str, request: Request) -> None:
        context = self._context
        source = context.find(ref, self._line(None).name)
        standing = context.store.timeline(context.user, name)
        if standing is not None and not standing.is_deleted:
            raise Conflict(f"timeline {name!r} exists already; choose another name")
        copying.fill(
            context,
            source,
            path,
            lambda place: rewind.fork(context, source, name, request, place),
            request,
        )

    def take_over(self, ref: Ref | None = None) -> "Workspace":
        """Have this directory be the workspace that a checkpoint's files are of, on whichever host
        and in whichever directory it was until now; without a `ref`, have it anew. The workspace.

        A capture that another host or attempt has begun there is refused with `WorkspaceTaken`.
        Files stay as they are, here and there: `restore` brings those of a checkpoint.
        """
        from hardsave.vault.workspaces.takeover import take_over  # few programs do

        context = self._context
        id = None
        if ref is not None:
            found = context.find(ref, self._line(None).name)
            if found.workspace is None:
                raise NotFound(
                    f"checkpoint {to_text(found.id)} was saved without files; choose one that has "
                    "a snapshot"
                )
            id = found.workspace
        take_over(context, self._place, id)
        return Workspace(context, context.places.at(self._place.root))

    def _line(self, timeline: str | None) -> Timeline:
        context = self._context
        if timeline is None:
            last = self._last()
            name = "main" if last is None else last.timeline
        else:
            name = names.check_timeline(timeline)
        return Timeline(context, name, context.store.timeline(context.user, name))

    def _last(self) -> CheckpointRecord | None:
        before: int | None = None
        context = self._context
        while rows := context.store.captured(context.user, self._place.id, before, 10):
            for row in rows:
                if not row.is_hidden:
                    return row
            before = rows[-1].number
        return None

    def __fspath__(self) -> str:
        return os.fsdecode(self._place.root)

    def __repr__(self) -> str:
        return f"<workspace {os.fspath(self.path)!r}>"


def _unsaved(around: GitContext, scan: Scan) -> WorkspaceStatus:
    """Everything is new: then nothing has to be read."""
    paths = [*scan.files(), *[path for path in scan.directories() if path]]
    left_out = left_out_of(sorted(scan.not_captured))
    added = tuple(sorted(os.fsdecode(path) for path in paths))
    return WorkspaceStatus(
        None,
        FileDiff(added=added),
        left_out,
        None if around.position is None else git_state(around.position),
        ignored=tuple(os.fsdecode(one.path) for one in sorted(scan.not_captured) if one.is_ignored),
    )


class Fork(Record):
    """A try of its own: where it saves, and where it works."""

    timeline: Timeline
    workspace: Workspace
