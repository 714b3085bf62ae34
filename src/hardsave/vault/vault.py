"""The `Vault`: an open store, as one user sees it.

What each method does lives in a module of its own beside this one, imported when it is first
called; here the parts are only put together.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from hardsave.defaults import MAX_VALUE_BYTES, POLL_SECONDS
from hardsave.errors import Conflict, Misuse, NotFound, Unavailable
from hardsave.logs import log
from hardsave.objects.records import ID_BYTES, CheckpointRecord, Id, TimelineRecord
from hardsave.objects.types import DEFAULT_TYPES, Types
from hardsave.stores import on_disk, requests
from hardsave.stores.base import Store
from hardsave.stores.host.identity import host_id
from hardsave.stores.lent import lend
from hardsave.timeline import names
from hardsave.timeline.history import History
from hardsave.timeline.refs import from_text
from hardsave.vault.arguments import Redact, check_asked, check_cap, redaction_of, several
from hardsave.vault.checkpoint import Checkpoint, Ref, named, record_of
from hardsave.vault.context import Context
from hardsave.vault.events import EventName, Events, Handler
from hardsave.vault.line import Timeline, stepped
from hardsave.vault.objects import Objects
from hardsave.vault.restore.own_moves import OwnMoves
from hardsave.vault.workspaces.places import Places

if TYPE_CHECKING:
    from hardsave.page import Page
    from hardsave.tasks.ledger import Tasks
    from hardsave.timeline.diff import Diff
    from hardsave.vault.history.file_history import FileVersion
    from hardsave.vault.history.follow import Following
    from hardsave.vault.history.session_list import Session
    from hardsave.vault.jobs.ledger import Jobs
    from hardsave.vault.request_key import Request
    from hardsave.vault.restore.undo import Operation
    from hardsave.vault.search.index import SearchIndex
    from hardsave.vault.search.search import Hits
    from hardsave.vault.store import Retention, VaultStore
    from hardsave.vault.transfer.transfer import Exported, Imported
    from hardsave.vault.workspace import Workspace
    from hardsave.vault.workspaces.projects import Moves

Done = TypeVar("Done")


class Vault:
    """Timelines of one user in one store. Threads may share it; processes open their own."""

    def __init__(
        self,
        store: Store,
        *,
        user: str | None = None,
        types: Types = DEFAULT_TYPES,
        max_value_bytes: int = MAX_VALUE_BYTES,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000,
        new_id: Callable[[], Id] = lambda: os.urandom(ID_BYTES),
        redact: Redact = False,
        directory: str | None = None,
        included: Callable[[bytes], tuple[str, ...]] = lambda _: (),
        is_strict: Callable[[], bool] = lambda: False,
        host: Callable[[], str] = host_id,
        moves: "Moves" = (),
    ) -> None:
        check_cap(max_value_bytes)
        self._same = partial(  # for another user
            Vault,
            types=types,
            max_value_bytes=max_value_bytes,
            clock=clock,
            new_id=new_id,
            redact=redact,
            directory=directory,
            included=included,
            is_strict=is_strict,
            host=host,
            moves=moves,
        )
        self._url = on_disk.url_of(store)  # or that it was opened by
        self._lender: Vault | None = None  # whose store this is; None: its own
        self._release = store.close
        self._sharing: set[Vault] = set()  # open vaults of other users on this store
        self._directory = directory  # whose project's settings hold; None: of no project
        self._closing = threading.Event()
        self._opening = threading.Lock()
        self._tasks: Tasks | None = None
        self._context = Context(
            store=store,
            user=user,
            objects=Objects(store, user, types, max_value_bytes, redaction_of(redact)),
            history=History(store, user),
            events=Events(),
            clock=clock,
            new_id=new_id,
            search_index=_search_index(store, user),
            places=Places(store, user, included, host),
            moves=OwnMoves(),
            is_strict=is_strict,
        )
        self._recover()
        self._follow(moves)

    def _follow(self, moves: "Moves") -> None:
        """Have the workspaces of a project that was moved be where it is now. Where that cannot be
        written now, the next to open it does."""
        if moves:
            from hardsave.vault.workspaces.takeover import follow_move

            try:
                for old, new in moves:
                    follow_move(self._context, os.fsencode(old), os.fsencode(new))
            except (Unavailable, Conflict) as error:
                log(__name__).warning("a move to %s is not noted yet: %s", moves[-1][1], error)

    def _recover(self) -> None:
        """Settle what was interrupted while files were restored: the log says how, so this comes
        before anything that shortens the log."""
        journals = self._context.places.interrupted()
        if journals:
            from hardsave.vault.restore.recovery import recover_all

            recover_all(self._context, journals)

    @property
    def user(self) -> str | None:
        return self._context.user

    def as_user(self, user: str | None, *, create: bool = False) -> "Vault":
        """The same store as another user sees it, sharing what is open: for a server that has one
        store and many users. To close it releases what it holds, not the store; it is closed with
        this vault at the latest.

        `NotFound` for a user of whom nothing is stored, unless `create`: then the user begins with
        the first save.
        """
        from hardsave.vault import users  # most programs have one

        if self._closing.is_set():
            raise Misuse("this vault is closed; open it again")
        users.check(self._context.store, user, create=create)
        lender = self._lender or self
        store, give_back = lend(lender._context.store)
        made = self._same(store, user=user)
        made._lender, made._release = lender, give_back
        with lender._opening:
            lender._sharing.add(made)
        return made

    @property
    def strict(self) -> bool:
        """Whether saves that an agent loop makes by itself raise when they fail."""
        return self._context.is_strict()

    @property
    def tasks(self) -> "Tasks":
        """The ledger of tasks: work that survives its process."""
        with self._opening:
            if self._tasks is None:
                from hardsave.vault.tasks import open_tasks  # many programs only save

                self._tasks = open_tasks(self._context, self._directory, self.store.upkeep)
            return self._tasks

    @property
    def jobs(self) -> "Jobs":
        """Jobs: runs of agents that survive, for a worker to carry out."""
        from hardsave.vault.jobs.ledger import Jobs  # many programs only save

        return Jobs(self, now=lambda: datetime.fromtimestamp(self._context.clock() / 1e6, UTC))

    @property
    def store(self) -> "VaultStore":
        """The store as a whole: its size, its soundness, its room, and what must be forgotten."""
        from hardsave.vault.store import VaultStore  # few callers need it

        return VaultStore(self._context, self._directory, self._recover)

    @property
    def retention(self) -> "Retention":
        """Which checkpoints are kept, and for how long."""
        from hardsave.vault.store import Retention

        return Retention(self._context, self._directory, self._recover)

    def timeline(self, name: str) -> Timeline:
        """A handle on a timeline. One that does not exist begins with its first save."""
        names.check_timeline(name)
        return Timeline(self._context, name, self._context.store.timeline(self.user, name))

    def timelines(self, *, prefix: str = "", after: str | None = None) -> Iterator[Timeline]:
        """All timelines, by name; with a `prefix` those whose names begin with it, and with `after`
        those behind that name."""
        check_asked(prefix=prefix, after=after)
        for record in self._context.history.timelines(prefix=prefix, after=after):
            yield Timeline(self._context, record.name, record)

    def checkpoints(
        self, *, labels: Mapping[str, str], limit: int = 50, after: str | None = None
    ) -> "Page[Checkpoint]":
        """Checkpoints of all timelines that have these labels, in the order in which they were
        saved, newest first. `after` is the `next` of the page before."""
        from hardsave.vault.save.attached import labelled

        return labelled(self._context, labels, limit, after)

    def put_notes(self, ref: Ref, notes: Mapping[str, Any], *, replace: bool = True) -> None:
        """Put data beside a checkpoint that is there, each under a key. A key that is there gets
        the new data, or keeps the old with `replace=False`. All of them are written or none.

        They are read as `checkpoint.notes`, copied and exported with the checkpoint, and gone with
        it. The history has no trace of them: what belongs to a state is saved in it.
        """
        from hardsave.vault.save.attached import put_notes

        put_notes(self._context, ref, notes, replace=replace)

    def sessions(
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
        """Timelines with their titles, newest checkpoints, heads and counts, the last updated
        first.

        With a `workspace` only those whose newest files are of this directory: of their newest
        twenty checkpoints the first that has files, or else the head. `text` is looked for in names
        and titles, `prefix` is how names begin, `status` that of the newest checkpoint. `deleted`
        ones come along if they are asked for. `after` is the `next` of the page before.
        """
        from hardsave.vault.history.session_list import (  # few programs list what they did
            Narrowed,
            sessions,
        )

        narrowed = Narrowed(text, prefix, status, deleted)
        return sessions(self._context, workspace, limit, after, narrowed)

    def session(self, name: str) -> "Session[Checkpoint]":
        """One timeline as `sessions` lists it, deleted or not; `NotFound` if there is none."""
        from hardsave.vault.history.session_list import session

        return session(self._context, name)

    def moments(
        self, workspace: "str | os.PathLike[str]", *, limit: int = 50, after: str | None = None
    ) -> "Page[Checkpoint]":
        """Checkpoints with files of a directory, of all timelines together, in the order in which
        they were saved, newest first. `after` is the `next` of the page before."""
        from hardsave.vault.history.session_list import moments

        return moments(self._context, workspace, limit, after)

    def workspace(
        self,
        path: "str | os.PathLike[str]" = ".",
        *,
        include: Sequence[str] = (),
        leave_out: Sequence[str] = (),
        max_file_bytes: int | None = None,
        max_total_bytes: int | None = None,
        sure: bool = False,
    ) -> "Workspace":
        """A directory whose files are captured and restored.

        `include` names patterns of files to capture although they look secret or are ignored,
        beside those of the user's settings; of a directory that is ignored, all that is in it, but
        for secrets. `leave_out` names paths
        that are neither captured nor restored, with all that begin like them.
        `max_file_bytes` and `max_total_bytes` bound what is captured; what goes beyond is
        listed as not captured. `/` and a home directory need `sure=True`.
        """
        from hardsave.vault.workspace import Workspace  # with all that files need

        place = self._context.places.at(path)
        place.allow(
            include=several(include, "include"),
            leave_out=several(leave_out, "leave_out"),
            max_file_bytes=max_file_bytes,
            max_total_bytes=max_total_bytes,
            sure=sure,
        )
        return Workspace(self._context, place)

    def get(self, ref: Ref) -> Checkpoint:
        """A checkpoint by id, by a unique beginning of its id, or as `TIMELINE:N`."""
        return self._context.checkpoint(self._context.find(ref))

    def knows(self, id: str) -> bool:
        """Whether a checkpoint with this whole id is here or was, deleted and dropped ones too: for
        a program that keeps copies elsewhere, to tell its own from others'."""
        if not names.is_full_id(id):
            return False
        store, plain = self._context.store, from_text(id)
        return (store.checkpoint(self.user, plain) or store.tombstone(self.user, plain)) is not None

    def file_history(
        self, ref: Ref, path: str, *, limit: int = 50, after: str | None = None
    ) -> "Page[FileVersion[Checkpoint]]":
        """Which checkpoints have added, changed or removed a file, newest first: from this one back
        through its ancestors. `after` is the `next` of the page before."""
        from hardsave.vault.history.file_history import history

        return history(self._context, self.get(ref), path, limit, after)

    def diff(self, old: Ref, new: Ref) -> "Diff":
        """What changed from one checkpoint to another."""
        from hardsave.timeline.diff import compare  # with difflib, which few callers need

        before, after = self._record(old), self._record(new)
        found = compare(self._context.objects.verbatim, before, after)
        if before.snapshot == after.snapshot or None in (before.snapshot, after.snapshot):
            return found
        from hardsave.vault.files import difference

        one, two = (self._context.checkpoint(each).files for each in (before, after))
        return found.replace(files=difference(one, two))

    def export_file(
        self, path: "str | os.PathLike[str]", *, timelines: Iterable[str] | None = None
    ) -> "Exported":
        """Write timelines, or all, with all that their history needs, into one file.

        A file that is there is replaced if it is an export, and only by a complete one.
        """
        from hardsave.vault.transfer import (
            transfer,  # with zstd and SQLite, which saves may not need
        )

        return transfer.export_file(self._context, path, timelines)

    def import_file(self, path: "str | os.PathLike[str]") -> "Imported":
        """Add what an export holds and is not here yet; one operation, which `undo` takes back.

        Checkpoints keep their ids, numbers and times. A timeline that has another history
        here comes under a new name.
        """
        from hardsave.vault.transfer import transfer

        return self._told("imported", transfer.import_file(self._context, path))

    def on(self, event: EventName, handler: Handler) -> Callable[[], None]:
        """Call `handler` whenever `event` happens in this vault; calling the answer ends it.

        `checkpoint_saved` hands over the checkpoint; `save_failed` a `SaveFailed` with the
        timeline's name and the error, which the caller gets too; `forked`, `cleared` and
        `deleted` the timeline (`deleted` also a checkpoint); `rewound` the `Rewind`; `undone` and
        `redone` the `Operation`; `imported`, `retained`, `collected` and `purged` what
        `import_file`, `retention.apply`, `store.gc` and `store.purge` return; `task_completed`,
        `task_failed` and the others the task, as it stands then. A handler that raises is
        logged, and changes nothing about what was done.
        """
        return self._context.events.on(event, handler)

    def undo(self, *, key: str | None = None) -> "Operation":
        """Take back the latest operation of this user, on any timeline. A `key` names a request
        that may be made twice: see `Timeline.rewind`."""
        from hardsave.vault.restore import undo  # most programs only save and load

        return self._stepped("undo", undo.undo, "undone", key)

    def redo(self, *, key: str | None = None) -> "Operation":
        """Do again what the latest undo took back, if no operation came after it."""
        from hardsave.vault.restore import undo

        return self._stepped("redo", undo.redo, "redone", key)

    def _stepped(
        self,
        kind: str,
        step: "Callable[[Context, str | None, Request], Operation]",
        event: EventName,
        key: str | None,
    ) -> "Operation":
        done, is_new = stepped(self._context, None, kind, step, key)
        return self._told(event, done) if is_new else done

    def operations(
        self, timeline: str | None = None, *, limit: int = 50, after: str | None = None
    ) -> "Page[Operation]":
        """A page of what was done and can be taken back, newest first: on a timeline, or on all.
        `after` is the `next` of the page before."""
        from hardsave.vault.restore import undo

        check_asked(timeline=timeline)
        return undo.page(self._context, timeline, limit, after)

    def delete(
        self, ref: Ref, *, timeline: str | None = None, key: str | None = None
    ) -> Checkpoint:
        """Delete one checkpoint; `undo` brings it back. If it is the head, its parent is next.
        With a `timeline`, `ref` may be one on that, such as `@`. For the `key` see
        `Timeline.rewind`."""
        from hardsave.vault import request_key
        from hardsave.vault.restore import rewind

        context = self._context
        if timeline is not None:
            names.check_timeline(timeline)
        asked = (named(ref),) if timeline is None else (named(ref), timeline)
        request = request_key.request(context, key, "delete one", *asked)
        record, is_new = request_key.once(
            context,
            request,
            lambda: rewind.delete_one(context, context.find(ref, timeline), request),
            lambda entry: rewind.deleted_before(context, entry),
        )
        checkpoint = context.checkpoint(record)
        return self._told("deleted", checkpoint) if is_new else checkpoint

    def _told(self, event: EventName, done: Done) -> Done:
        """Tell the handlers of an event what was done."""
        self._context.events.tell(event, done)
        return done

    def search(
        self,
        text: str,
        *,
        timeline: str | Iterable[str] | None = None,
        limit: int = 50,
        after: str | None = None,
        wait: bool = False,
    ) -> "Hits[Checkpoint]":
        """Texts of states, names, descriptions and statuses, and paths of files that checkpoints
        changed, that have all words of `text`; on one timeline, several, or all.

        `"a phrase"` stands in quotes, `begin*` means any word that begins so. The best come
        first, and of equals the newest. Each is shown once a timeline, where it first appeared.

        What was saved since the last search is taken in first, as far as a quarter of a second goes
        (see `unsearched` and `reaches` of the answer), or with `wait` to the end.
        """
        from hardsave.vault.search.search import search  # with json, which few callers need

        return search(self._context, text, timeline, limit, after, wait=wait)

    def follow(
        self,
        after: int | None = None,
        *,
        poll_seconds: float = POLL_SECONDS,
        stop: Callable[[], bool] | None = None,
    ) -> "Following":
        """What happens from now on, or since event number `after`: saves and log entries.

        Events of this user come in the order of their commits, from every process, each once.
        `after=0` begins at the beginning. Ends when the vault is closed, or `stop()` is true. An
        event of kind `reload` says that a replica which lacked commits has taken over: what was
        told may be gone, so read it again.
        """
        from hardsave.vault.history.follow import Following  # most programs act, and never look on

        return Following(self._context, self._closing, after, poll_seconds, stop)

    def close(self) -> None:
        """Release the store, unless it is another vault's. A second call does nothing."""
        self._closing.set()
        with self._opening:
            sharing, self._sharing = self._sharing, set()
        with ExitStack() as steps:
            steps.callback(self._release)
            if self._lender is not None:
                self._lender._sharing.discard(self)
            steps.callback(self._context.places.close)
            if self._tasks is not None:
                steps.callback(self._tasks.close)
            for each in sharing:
                steps.callback(each.close)

    def __enter__(self) -> "Vault":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _record(self, given: Ref) -> CheckpointRecord:
        if not isinstance(given, Checkpoint):
            return self._context.find(given)
        if given.user != self.user:
            raise NotFound(
                f"checkpoint {given.id} is not one of this user's; look it up in this vault"
            )
        return record_of(given)


def timeline_records(vault: Vault) -> Iterator[TimelineRecord]:
    """All timelines by name, deleted ones too: what names and titles are read from, ten thousand
    at a time."""
    return vault._context.history.timelines(deleted=True)


def last_purge(vault: Vault) -> int:
    """The number of the last commit that purged something of this user; 0 if none has. What was
    read before it may not hold any more."""
    return vault._context.store.last_purge(vault.user)


def generation(vault: Vault) -> bytes:
    """Another one if numbers of commits may have been given again; see `Store.generation`."""
    return vault._context.store.generation()


def last_commit(vault: Vault) -> int:
    """No commit of this user that has returned has a number above this one."""
    return vault._context.store.latest_number(vault.user)


def check_key_unused(vault: Vault, key: str) -> None:
    """`Conflict` if the key is that of an operation, or of something that was done to a task."""
    requests.check_unused(vault._context, key)


def _search_index(store: Store, user: str | None) -> "Callable[[], SearchIndex]":
    """The one of a vault, loaded and made with the first search."""
    made: list[SearchIndex] = []
    turn = threading.Lock()

    def found() -> "SearchIndex":
        from hardsave.vault.search.index import SearchIndex, name_for

        with turn:
            if not made:
                made.append(SearchIndex(store.local(name_for(user))))
            return made[0]

    return found
