"""The timeline that people use: save, append, load, fork.

Contract. A save that has returned is durable, and is the head. A handle expects the head
that it last saw: of two writers on one timeline exactly one wins, the other gets `Conflict`
and nothing is written for it. Threads that share a handle are served one after the other.
If a save is interrupted or fails, it is unknown whether it was written. The handle can be used
on: a `save` finds out by itself, an `append` that would double what was written is refused
until the head was looked at.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, overload

from hardsave.errors import Misuse, NotFound
from hardsave.objects.records import CheckpointRecord, Id, Labels
from hardsave.page import Page, cursor_of
from hardsave.stores.base import Query
from hardsave.stores.ledger import Work
from hardsave.timeline import names
from hardsave.vault import request_key
from hardsave.vault.arguments import (
    check_asked,
    check_limit,
    cursor,
    microseconds,
    shaped,
    spoken,
)
from hardsave.vault.checkpoint import Checkpoint, Ref, named
from hardsave.vault.context import Context
from hardsave.vault.events import EventName
from hardsave.vault.line_saves import Directory, TimelineSaves
from hardsave.vault.request_key import Request

if TYPE_CHECKING:
    from hardsave.timeline.step_summary import FileCounts
    from hardsave.timeline.summary import TimelineSummary
    from hardsave.vault.history.bisect import Bisected, BisectTry
    from hardsave.vault.history.graph import GraphNode
    from hardsave.vault.restore.guard import Guard
    from hardsave.vault.restore.path_choice import Scope
    from hardsave.vault.restore.rewind import Rewind
    from hardsave.vault.restore.rewind_request import What
    from hardsave.vault.restore.undo import Operation

T = TypeVar("T")


class Timeline(TimelineSaves):
    """A handle on one timeline. Made by `vault.timeline(name)`."""

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
        labels: Mapping[str, str] | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Page[Checkpoint]:
        """A page of checkpoints, newest first; with `labels` those that have all of these. `after`
        is the `next` of the page before."""
        check_limit(limit)
        check_asked(name=name, kind=kind, status=status)
        listing = f"checkpoints {self._context.user!r} {self._name!r}"
        query = Query(
            timeline=self._name,
            limit=limit + 1,  # one more, to know whether another page follows
            before_seq=cursor(after, listing),
            name=name,
            kind=kind,
            status=status,
            since=microseconds(since),
            until=microseconds(until),
            labels=() if labels is None else self._labels(labels),
        )
        rows = self._context.store.checkpoints(self._context.user, query)
        more = len(rows) > limit
        shown = [self._context.checkpoint(row) for row in rows[:limit]]
        return Page(shown, cursor_of(listing, rows[limit - 1].seq) if more else None)

    def _labels(self, given: Mapping[str, str]) -> Labels:
        from hardsave.vault.save.attached import labels_of  # few programs ask for them

        return labels_of(self._context, given)

    def summary(self) -> "TimelineSummary":
        """How many checkpoints there are, under which names, from when to when."""
        from hardsave.timeline.summary import summarise  # few callers need it

        self._context.look(self._name)
        return summarise(self._context.history.line(self._name))

    def files_changed(self) -> "FileCounts | None":
        """How many files its head has added, changed and removed since the timeline began, or was
        forked; None if that is not known."""
        from hardsave.vault.history.files_changed import files_changed  # few callers need it

        self._context.look(self._name)
        return files_changed(self._context, self._name)

    def graph(
        self, *, limit: int = 1_000, after: str | None = None
    ) -> "Page[GraphNode[Checkpoint]]":
        """A page of its checkpoints, newest first, each with what was saved on top of it besides
        the next one, and whether the head stands on it. `after` is the `next` of the page
        before."""
        from hardsave.vault.history.graph import graph  # few programs draw it

        return graph(self._context, self._name, limit, after)

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

    def fork(self, ref: Ref = "@", *, name: str, key: str | None = None) -> "Timeline":
        """A new timeline that starts at a checkpoint of this one. Copies nothing. For the `key`
        see `rewind`."""
        from hardsave.vault.restore import rewind  # most programs only save and load

        names.check_timeline(name)
        context = self._context
        request = request_key.request(context, key, "fork", self._name, named(ref), name)
        standing, is_new = request_key.once(
            context,
            request,
            lambda: rewind.fork(context, self._find(ref), name, request),
            lambda _: context.store.timeline(context.user, name),
        )
        line = Timeline(context, name, standing)
        if is_new:
            context.events.tell("forked", line)
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
        expect: "Checkpoint | Rewind | str | None" = None,
        key: str | None = None,
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

        `expect` is the head that the caller has seen, or what a dry run with the same arguments has
        returned, or its `plan`: `Conflict` if the head has moved since, or the files or tasks that
        the plan was about. `key` names a request that may be made twice: the second time it is
        answered from the log, and nothing is done.
        """
        from hardsave.vault.restore import rewind, rewind_request

        how = rewind_request.how(self._context, what, paths, scope, git, workspace)
        how = how._replace(
            tasks=tasks,
            dry_run=dry_run,
            expect=rewind_request.expected(expect),
        )
        if tasks and paths is not None:
            raise Misuse("tasks go back with all that they did; leave tasks=True or the paths out")
        context, when = self._context, microseconds(before)
        request = rewind_request.asked(context, self._name, key, how, ref, status, when)
        context.look(self._name)
        with self._lock:
            done, is_new = request_key.once(
                context,
                request,
                lambda: rewind.rewind(
                    context, self._name, self._target(ref, status, when), how.under(request)
                ),
                lambda entry: rewind.rewound_before(context, entry),
            )
            if not dry_run:
                self._saving.look()
        if is_new and (done.moved or ((done.files or done.tasks) and not dry_run)):
            context.events.tell("rewound" if done.moved else "checkpoint_restored", done)
        return done

    def guard(self, name: str | None = None, *, workspace: Directory) -> "Guard":
        """A block of risky work: saved before, taken back if it raises.

        with line.guard("risky-refactor", workspace="."):
            ...
        """
        from hardsave.vault.restore.guard import Guard

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
        from hardsave.vault.history.bisect import bisect, path_between

        path = path_between(self._context, self._find(good), self._find(bad))
        return bisect(self._context, path, command, timeout=timeout, told=told)

    def undo(self, *, key: str | None = None) -> "Operation":
        """Take back the latest operation on this timeline. Saves made since stay reachable. For the
        `key` see `rewind`."""
        from hardsave.vault.restore import undo

        return self._stepped("undo", undo.undo, "undone", key)

    def redo(self, *, key: str | None = None) -> "Operation":
        """Do again what the latest undo took back, if no operation came after it."""
        from hardsave.vault.restore import undo

        return self._stepped("redo", undo.redo, "redone", key)

    def clear(self, *, key: str | None = None) -> int:
        """Delete its checkpoints; its numbers go on. How many there were."""
        from hardsave.vault.restore import rewind

        return self._emptied("clear", rewind.clear, "cleared", key)

    def delete(self, *, key: str | None = None) -> int:
        """Delete the timeline with its checkpoints. How many there were."""
        from hardsave.vault.restore import rewind

        return self._emptied("delete", rewind.delete, "deleted", key)

    def _emptied(
        self,
        kind: str,
        empty: "Callable[[Context, str, Request], int]",
        event: EventName,
        key: str | None,
    ) -> int:
        from hardsave.vault.restore import rewind

        context = self._context
        request = request_key.request(context, key, kind, self._name)
        context.look(self._name)
        with self._lock:
            count, is_new = request_key.once(
                context, request, lambda: empty(context, self._name, request), rewind.hidden_before
            )
            self._saving.look()
        if is_new:
            context.events.tell(event, self)
        return count

    def _stepped(
        self,
        kind: str,
        step: "Callable[[Context, str | None, Request], Operation]",
        event: EventName,
        key: str | None,
    ) -> "Operation":
        self._context.look(self._name)
        with self._lock:
            done, is_new = stepped(self._context, self._name, kind, step, key)
            self._saving.look()
        if is_new:
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


def stepped(
    context: Context,
    timeline: str | None,
    kind: str,
    step: "Callable[[Context, str | None, Request], Operation]",
    key: str | None,
) -> "tuple[Operation, bool]":
    """An undo or a redo, and whether it was made now."""
    from hardsave.vault.restore import undo

    request = request_key.request(context, key, kind, timeline)
    return request_key.once(
        context,
        request,
        lambda: step(context, timeline, request),
        lambda entry: undo.turned_before(context, entry),
    )


def delete_with_tasks(
    line: Timeline, request: Request, about: Mapping[str, Any], work: Callable[[], Work]
) -> Work:
    """Delete a timeline, and in the same commit do to tasks what `work` says; what that was."""
    from hardsave.vault.restore import rewind

    context, name = line._context, line.name
    context.look(name)
    with line._lock:
        done = rewind.delete_with_tasks(context, name, request, about, work)
        line._saving.look()
    context.events.tell("deleted", line)
    return done


def checkpoint_at(line: Timeline, id: Id) -> Checkpoint | None:
    """A checkpoint by its id, also one that is deleted; None if it was dropped."""
    found = line._context.store.checkpoint(line._context.user, id)
    return None if found is None else line._context.checkpoint(found)


def is_strict(line: Timeline) -> bool:
    """Whether an automatic save on it that fails raises: see `Vault.strict`."""
    return line._context.is_strict()


def doubt(line: Timeline, id: Id) -> None:
    """The caller that asked for this checkpoint did not get it: see `Saving.doubt`."""
    with line._lock:
        line._saving.doubt(id)
