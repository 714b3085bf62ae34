"""The timeline that people use: save, append, load, fork.

Contract. A save that has returned is durable, and is the head. A handle expects the head
that it last saw: of two writers on one timeline exactly one wins, the other gets `Conflict`
and nothing is written for it. Threads that share a handle are served one after the other.
If a save is interrupted or fails, it is unknown whether it was written. The handle can be used
on: a `save` finds out by itself, an `append` that would double what was written is refused
until the head was looked at.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, get_args, overload

from hardsave.errors import Misuse, NotFound
from hardsave.objects.records import CheckpointRecord, Id, TimelineRecord
from hardsave.page import Page
from hardsave.stores.base import Query
from hardsave.tasks import current
from hardsave.timeline import names
from hardsave.timeline.step_summary import StepSummary
from hardsave.vault.arguments import (
    check_asked,
    check_limit,
    cursor,
    encoded,
    microseconds,
    shaped,
    spoken,
)
from hardsave.vault.checkpoint import Checkpoint, Ref
from hardsave.vault.context import Context
from hardsave.vault.events import EventName, SaveFailed
from hardsave.vault.parts import Parts
from hardsave.vault.saving import ANY_HEAD, About, Expected, Form, SaveRequest, Saving

Directory: TypeAlias = str | os.PathLike[str]
"""A path, or a `Workspace`, which is one."""

if TYPE_CHECKING:
    from hardsave.timeline.summary import TimelineSummary
    from hardsave.vault.bisect import Bisected, BisectTry
    from hardsave.vault.capturing import Taking
    from hardsave.vault.choosing import Scope
    from hardsave.vault.guard import Guard
    from hardsave.vault.rewind import How, Rewind, What
    from hardsave.vault.undo import Operation

T = TypeVar("T")


class Timeline:
    """A handle on one timeline. Made by `vault.timeline(name)`."""

    def __init__(
        self,
        context: Context,
        name: str,
        seen: TimelineRecord | None,
        once: Id | None = None,
    ) -> None:
        self._context = context
        self._name = name
        self._lock = threading.RLock()
        self._saving = Saving(context, name, seen, once)

    @property
    def name(self) -> str:
        return self._name

    @property
    def title(self) -> str:
        """Its first prompt, or what else it was called when it got its title; empty without one."""
        found = self._context.store.timeline(self._context.user, self._name)
        return "" if found is None else found.title

    @property
    def head(self) -> Checkpoint | None:
        """The newest checkpoint; None before the first save. Counts as having seen it."""
        with self._lock:
            head = self._saving.head()
        return None if head is None else self._context.checkpoint(head)

    def __len__(self) -> int:
        """How many checkpoints were saved on it."""
        self._context.look(self._name)
        return self._context.store.count(self._context.user, self._name)

    def __bool__(self) -> bool:
        """A handle is one, however little was saved on its timeline."""
        return True

    def __repr__(self) -> str:
        return f"<timeline {self._name!r}>"

    def save(
        self,
        state: Any,
        *,
        name: str | None = None,
        kind: str | None = None,
        status: str = "running",
        description: str = "",
        metadata: Mapping[str, Any] | None = None,
        workspace: Directory | None = None,
        expect: Expected = None,
        step: StepSummary | None = None,
        title: str = "",
    ) -> Checkpoint:
        """Save a whole state. What has not changed since the last save costs a comparison.

        What another thread changes in it meanwhile may be saved now, or with the next save.
        With a `workspace` its files are captured and committed together with the state.
        `step` says what lists tell of it: the prompt, the tool call; messages and files are counted
        without it. `title` is for a timeline that has none yet.
        """
        about = self._saving.about(name, kind, status, description, metadata)
        form: Form = "parts" if isinstance(state, Parts) else "whole"
        return self._made(self._request(about, form, state, expect, step, title), workspace)

    def append(
        self,
        delta: Mapping[str, Any],
        *,
        name: str | None = None,
        kind: str | None = None,
        status: str = "running",
        description: str = "",
        metadata: Mapping[str, Any] | None = None,
        workspace: Directory | None = None,
        expect: Expected = None,
        step: StepSummary | None = None,
        title: str = "",
    ) -> Checkpoint:
        """Save the head's state with `delta` added: lists grow, other keys are replaced.

        Costs what is in `delta`, however large the state has become. Inside of an attempt at a
        task it is made once: if the attempt begins again, the same append gives the checkpoint that
        is there, unless the attempt has looked at the timeline before, and so goes on from it.
        """
        if not isinstance(delta, (dict, Mapping)):  # asks of a dict nothing more
            raise Misuse(f"append takes a dict of what is new, not {type(delta).__name__}")
        about = self._saving.about(name, kind, status, description, metadata)
        request = self._request(about, "grown", delta, expect, step, title)
        work = current.work(self._context.store, self._context.user)
        if work is None or self._saving.is_once or expect not in (None, ANY_HEAD):
            return self._made(request, workspace)
        return self._appended(request, workspace)

    def _appended(self, request: SaveRequest, workspace: Directory | None) -> Checkpoint:
        """The same as part of an attempt."""
        from hardsave.vault import appending

        own = appending.own(self._context, self._name, request.about, request.state)
        if own is None:
            return self._made(request, workspace)
        if own.made is not None and workspace is None:
            return self._checkpoint(own.made)
        if own.made is not None:  # the state is there; the files may be newer
            return self._made(request._replace(form="carried", expect=ANY_HEAD), workspace)
        try:
            about = request.about._replace(id=own.id)
            return self._made(request._replace(about=about), workspace)
        except BaseException:  # the next append like this one is the same
            own.work.give_up_append(own.id)
            raise

    def save_files(
        self,
        workspace: Directory,
        *,
        name: str | None = None,
        kind: str | None = None,
        status: str | None = "running",
        description: str = "",
        metadata: Mapping[str, Any] | None = None,
        step: StepSummary | None = None,
        title: str = "",
    ) -> Checkpoint:
        """Save the files of a workspace beside the state that the head has by then; also with its
        status, if that is None."""
        about = self._saving.about(name, kind, status, description, metadata, carries=True)
        if workspace is None:
            raise Misuse("workspace is the directory whose files are to be saved, not None")
        request = self._request(about, "carried", None, ANY_HEAD, step, title)
        return self._made(request, workspace)

    def _request(
        self,
        about: About,
        form: Form,
        state: Any,
        expect: Expected,
        step: StepSummary | None,
        title: str,
    ) -> SaveRequest:
        if step is None and title == "":
            return SaveRequest(about, form, state, expect)
        saving = self._saving
        return SaveRequest(about, form, state, expect, saving.step(step), saving.title(title))

    def _made(self, request: SaveRequest, workspace: Directory | None) -> Checkpoint:
        """The checkpoint that was asked for. Handlers are told, also of one that fails; the caller
        gets that error all the same."""
        try:
            record = self._saved(request, workspace)
            if request.form in ("whole", "parts"):
                self._context.look(self._name)
            checkpoint = self._checkpoint(record)
            self._context.events.tell("checkpoint_saved", checkpoint)
        except BaseException:  # Ctrl-C may strike after the commit, as in one who is told of it
            doubt(self, request.about.id)
            raise
        return checkpoint

    def _checkpoint(self, record: CheckpointRecord) -> Checkpoint:
        """One that the caller has made: to see it is no look at the timeline."""
        context = self._context
        return Checkpoint(record, context.objects, context.user, context.places)

    def _saved(self, request: SaveRequest, workspace: Directory | None) -> CheckpointRecord:
        try:
            with self._lock:
                waiting = self._saving.wanted()
                if workspace is None:
                    record = self._saving.save(request)
                else:
                    with self._files(workspace) as files:
                        record = self._saving.save(request, files)
                self._saving.hand_over(record, waiting)
                return record
        except Exception as error:
            self._context.events.tell("save_failed", SaveFailed(self._name, error))
            raise

    def _files(self, workspace: Directory) -> "AbstractContextManager[Taking]":
        from hardsave.vault.settling import settled  # with all that files need

        return settled(self._context, self._context.places.at(workspace))

    @overload
    def load(self, ref: Ref = "@") -> Any: ...
    @overload
    def load(self, ref: Ref = "@", *, type: type[T]) -> T: ...
    def load(self, ref: Ref = "@", *, type: Any = None) -> Any:
        """The whole state of a checkpoint, as plain data or as a `type`."""
        with self._lock:
            if ref == "@":
                self._saving.look()
            record = self._find(ref)
        state = self._context.objects.reader_of(record).load(record.root)
        return state if type is None else shaped(state, type)

    def as_saved(self, value: Any) -> Any:
        """A value as it is loaded from a save: classes that are not registered are plain data then,
        and there are no secrets, if this vault redacts. What was loaded is compared with this."""
        return self._context.objects.as_saved(value)

    def get(self, ref: Ref = "@") -> Checkpoint:
        """The checkpoint that `ref` names on this timeline."""
        with self._lock:
            if ref == "@":
                self._saving.look()
            return self._context.checkpoint(self._find(ref))

    def checkpoints(
        self,
        *,
        name: str | None = None,
        kind: str | None = None,
        status: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Page[Checkpoint]:
        """A page of checkpoints, newest first. `after` is the `next` of the page before."""
        check_limit(limit)
        check_asked(name=name, kind=kind, status=status)
        query = Query(
            timeline=self._name,
            limit=limit + 1,  # one more, to know whether another page follows
            before_seq=cursor(after),
            name=name,
            kind=kind,
            status=status,
            since=microseconds(since),
            until=microseconds(until),
        )
        rows = self._context.store.checkpoints(self._context.user, query)
        more = len(rows) > limit
        shown = [self._context.checkpoint(row) for row in rows[:limit]]
        return Page(shown, str(rows[limit - 1].seq) if more else None)

    def summary(self) -> "TimelineSummary":
        """How many checkpoints there are, under which names, from when to when."""
        from hardsave.timeline.summary import summarise  # few callers need it

        self._context.look(self._name)
        return summarise(self._context.history.line(self._name))

    def ancestors(self, ref: Ref = "@") -> Iterator[Checkpoint]:
        """The path to the root: parents, nearest first, across forks."""
        for record in self._context.history.ancestors(self._find(ref)):
            yield self._context.checkpoint(record)

    def children(self, ref: Ref = "@") -> list[Checkpoint]:
        """What was saved on top of a checkpoint, on any timeline, oldest first."""
        found = self._context.history.children(self._find(ref))
        return [self._context.checkpoint(record) for record in found]

    def leaves(self) -> list[Checkpoint]:
        """The ends of its branches: checkpoints with nothing saved on top, newest first."""
        found = self._context.history.leaves(self._name)
        return [self._context.checkpoint(record) for record in found]

    def depth(self, ref: Ref = "@") -> int:
        """How many ancestors a checkpoint has: 0 if it is a root."""
        return sum(1 for _ in self._context.history.ancestors(self._find(ref)))

    # Operations: each can be undone

    def fork(self, ref: Ref = "@", *, name: str) -> "Timeline":
        """A new timeline that starts at a checkpoint of this one. Copies nothing."""
        from hardsave.vault import rewind  # most programs only save and load

        names.check_timeline(name)
        line = Timeline(self._context, name, rewind.fork(self._context, self._find(ref), name))
        self._context.events.tell("forked", line)
        return line

    def rewind(
        self,
        ref: Ref | None = None,
        *,
        what: "What" = "all",
        status: str | None = None,
        before: datetime | None = None,
        paths: "Sequence[str] | None" = None,
        scope: "Scope | None" = None,
        git: bool = False,
        workspace: Directory | None = None,
        tasks: bool = False,
        dry_run: bool = False,
    ) -> "Rewind":
        """Take the timeline back to a checkpoint. Removes nothing, and `undo` takes it back.

        Without a ref: to the latest with this `status`, saved `before` this moment, or both.
        `what="all"` takes back state and files, if the checkpoint has files; `"state"` and
        `"files"` one of them. Before files are touched, the present is saved. `paths` restores
        only these files and directories, and leaves the head where it is.

        If another timeline has saved files in this workspace since, it refuses and lists them:
        `scope="mine"` takes back only what this timeline has changed, `"everyone"` all of it.
        `git=True` brings HEAD, branch and index back too. `workspace` names another directory
        than the one that this timeline saves. `tasks=True` rolls back the tasks whose attempts
        have saved on this timeline after the checkpoint: a worker that is at one is stopped, and
        it runs again, from its beginning, only with `tasks.retry`.
        """
        from hardsave.vault import rewind

        how = self._how(what, paths, scope, git, workspace)._replace(tasks=tasks, dry_run=dry_run)
        if tasks and paths is not None:
            raise Misuse("tasks go back with all that they did; leave tasks=True or the paths out")
        self._context.look(self._name)
        with self._lock:
            target = self._target(ref, status, microseconds(before))
            done = rewind.rewind(self._context, self._name, target, how)
            if not dry_run:
                self._saving.look()
        if done.moved or ((done.files or done.tasks) and not dry_run):
            self._context.events.tell("rewound" if done.moved else "checkpoint_restored", done)
        return done

    def _how(
        self,
        what: "What",
        paths: "Sequence[str] | None",
        scope: "Scope | None",
        git: bool,
        workspace: Directory | None,
    ) -> "How":
        from hardsave.vault.rewind import How, What

        if what not in get_args(What):
            raise Misuse(f"what is 'all', 'state' or 'files', not {what!r}")
        if scope not in (None, "mine", "everyone"):
            raise Misuse(f"scope is 'mine' or 'everyone', not {scope!r}")
        if isinstance(paths, str | bytes):
            raise Misuse(f"paths is a list of paths; write [{paths!r}]")
        if what == "state" and (git or (paths, scope, workspace) != (None, None, None)):
            raise Misuse(
                "paths, scope, git and workspace are about files; leave what='state' or these out"
            )
        place = None if workspace is None else self._context.places.at(workspace)
        given = None if paths is None else tuple(encoded(path, "the path") for path in paths)
        return How(what, given, scope, git, place)

    def guard(self, name: str | None = None, *, workspace: Directory) -> "Guard":
        """A block of risky work: saved before, taken back if it raises.

        with line.guard("risky-refactor", workspace="."):
            ...
        """
        from hardsave.vault.guard import Guard

        return Guard(self._context, self, name, self._context.places.at(workspace))

    def bisect(
        self,
        good: Ref,
        bad: Ref,
        command: Sequence[str],
        *,
        timeout: float | None = None,
        told: "Callable[[BisectTry], object] | None" = None,
    ) -> "Bisected":
        """Find the checkpoint whose files first fail a command, between a good and a bad one.

        The command runs in a scratch directory with the checkpoint's files: exit code 0 is
        good, 125 cannot be told, others are bad. The two ends are tried first, and have to be
        what they are said to be. `told` is called after each try.
        """
        from hardsave.vault.bisect import bisect, path_between

        path = path_between(self._context, self._find(good), self._find(bad))
        return bisect(self._context, path, command, timeout=timeout, told=told)

    def undo(self) -> "Operation":
        """Take back the latest operation on this timeline. Saves made since stay reachable."""
        from hardsave.vault import undo

        return self._stepped(undo.undo, "undone")

    def redo(self) -> "Operation":
        """Do again what the latest undo took back, if no operation came after it."""
        from hardsave.vault import undo

        return self._stepped(undo.redo, "redone")

    def clear(self) -> int:
        """Delete its checkpoints; its numbers go on. How many there were."""
        from hardsave.vault import rewind

        self._context.look(self._name)
        with self._lock:
            count = rewind.clear(self._context, self._name)
            self._saving.look()
        self._context.events.tell("cleared", self)
        return count

    def delete(self) -> int:
        """Delete the timeline with its checkpoints. How many there were."""
        from hardsave.vault import rewind

        self._context.look(self._name)
        with self._lock:
            count = rewind.delete(self._context, self._name)
            self._saving.look()
        self._context.events.tell("deleted", self)
        return count

    def _stepped(
        self, step: "Callable[[Context, str | None], Operation]", event: EventName
    ) -> "Operation":
        self._context.look(self._name)
        with self._lock:
            done = step(self._context, self._name)
            self._saving.look()
        self._context.events.tell(event, done)
        return done

    def _target(self, ref: Ref | None, status: str | None, before: int | None) -> CheckpointRecord:
        if ref is not None:
            if status is not None or before is not None:
                raise Misuse("rewind takes a ref, or a status and a time, not both")
            return self._find(ref)
        if status is None and before is None:
            raise Misuse("rewind needs a ref such as '@~1', a status, or a time")
        found = self._context.history.latest(self._name, status=status, before=before)
        if found is None:
            like = "" if status is None else f" with status {status!r}"
            when = "" if before is None else f" from before {spoken(before)}"
            raise NotFound(f"timeline {self._name!r} has no checkpoint{like}{when} in its history")
        return found

    def _find(self, ref: Ref) -> CheckpointRecord:
        self._context.look(self._name)
        return self._context.find(ref, self._name)


def is_strict(line: Timeline) -> bool:
    """Whether an automatic save on it that fails raises: see `Vault.strict`."""
    return line._context.is_strict()


def doubt(line: Timeline, id: Id) -> None:
    """The caller that asked for this checkpoint did not get it: see `Saving.doubt`."""
    with line._lock:
        line._saving.doubt(id)
