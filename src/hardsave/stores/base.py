"""The contract of a store: one way to write, a handful of reads.

A store keeps, for each user separately: objects by hash, checkpoints, timelines, the log and
the ledger of tasks (see `stores.ledger`). `user=None` is a user like any other, not all of them.

Writing
    `commit(batch)` is all or nothing. When it returns, the batch is durable to the degree
    that the store was opened with. It may be repeated: a batch whose event is already there
    is recognised before anything else and answers as it did the first time, also to another
    process, and however far the timeline has moved since: its reply may have been lost. So may that
    of every other call that writes; each may be repeated.

Numbers
    The commits of a user are ordered: each gets a number above all that this user's commits had
    before. A reader that has seen one of them sees all below it, too: there are no gaps that are
    filled later. The numbers of two users have nothing to do with each other. Where a server is
    replaced by a replica that lacks some of what was committed, numbers go back, and are given
    again: then `generation` changes.

Raised
    `Conflict`     a timeline is no longer where the batch expects it: nothing was written
    `ObjectsGone`  (a Conflict) an object that the batch points at is not stored any more
    `CheckpointGone` (a Conflict) a checkpoint that it relies on was dropped
    `LeaseLost`    (a Conflict) a task is not at the epoch that it names; see `stores.ledger`
    `WorkspaceTaken` (a Conflict) a workspace is not at the epoch that it names; see
                   `stores.workspaces`
    `Unavailable`  the store cannot be used now. Whether the batch was written is *unknown*
                   to the caller, who repeats it or gives up
    `Corrupt`      stored bytes are damaged
    `Misuse`       the same thread is in the middle of a commit: a signal handler has interrupted
                   it to make another, which would wait for the first for ever

Reading
    A read sees every commit that returned before it began, in this process or in another. Pages
    are cut by key, never by offset; no read counts rows to find its place.

Hidden and dropped
    A checkpoint that was deleted is hidden: no listing, count or prefix finds it, `checkpoint`
    does, and it can be shown again. One that was dropped is gone for good and leaves a
    tombstone, so that its children can tell it from one that was lost.

Objects
    Storing an object that is there already changes nothing. An object is never stored
    before those it refers to: they come earlier in the same batch, or `requires` names them.
    Stores do not look inside objects, and do not check hashes: the reader above does.
    An object goes only by `collect`, and only if no checkpoint, hidden ones included, leads
    to it. What is stored ahead of its checkpoint is protected by a pin.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Literal, Protocol

from hardsave.errors import Conflict
from hardsave.objects.hashing import Hash
from hardsave.objects.records import (
    CheckpointRecord,
    EntryRecord,
    Id,
    Labels,
    LogRecord,
    Note,
    TimelineRecord,
    Tombstone,
    filled,
)
from hardsave.stores.claims import Claims
from hardsave.stores.ledger import NO_WORK, LedgerStore, Work
from hardsave.stores.results import Collected, Stats
from hardsave.stores.workspaces import WorkspaceMove, WorkspaceStore
from hardsave.tuples import NamedTuple

Durability = Literal["power", "process"]
"""What a commit that has returned survives: a power loss, or only the death of its process."""
Survives = Literal["power", "process", "nothing"]
"""What it really survives: nothing, if the store is gone with its process."""


class ObjectsGone(Conflict):
    """Objects that a batch relies on are no longer stored. Store them again, and repeat."""


class CheckpointGone(Conflict):
    """A checkpoint that a batch relies on was dropped."""


class Move(NamedTuple):
    """A timeline goes from `expect` (None: it does not exist) to `become`. Its title changes only
    if these two differ in it: what a handle remembers of it may have been purged since."""

    expect: TimelineRecord | None
    become: TimelineRecord


class Changes(NamedTuple):
    """What operations change and saves do not.

    `latest` holds if no log entry of this user has a number above it; `keeps` if each of
    these checkpoints is there and was not dropped. What names nothing changes nothing.
    """

    moves: Sequence[Move] = ()  # of other timelines than the batch's own
    checkpoints: Sequence[CheckpointRecord] = ()  # added beside the event, before it
    tombstones: Sequence[Tombstone] = ()
    hide: Collection[Id] = ()  # by this commit
    show: Collection[int] = ()  # what these commits hid is shown again
    hide_again: Collection[int] = ()  # what these commits hid, and was shown again
    drop: Collection[Id] = ()  # for good; each leaves a tombstone
    replace: Sequence[CheckpointRecord] = ()  # by id: all but number, place and time anew
    forget_log: int = 0  # log entries up to this number go
    forget_workspaces: Collection[bytes] = ()  # by id: their rows go, no checkpoint does
    keeps: Collection[Id] = ()
    latest: int | None = None
    purges: bool = False  # something must be gone: see `Store.last_purge`


NO_CHANGES = Changes()
_NO_OBJECTS: Mapping[Hash, bytes] = MappingProxyType({})
NO_LABELS: Mapping[Id, Labels] = MappingProxyType({})
NO_NOTES: Mapping[Id, Sequence[Note]] = MappingProxyType({})


class Batch(NamedTuple):
    """What one commit writes, and what must still hold for it to be written.

    `event` is the checkpoint saved, or the entry of log or ledger for what was done; its id is
    the id of the batch. `move` holds if head and last number of its timeline are as expected.
    `labels` take the place of those that these checkpoints had. `notes` are added to these
    checkpoints; one that has the key of an earlier one takes its place, and removes it if its data
    are empty. Both may speak of checkpoints that the batch adds; what names none is left out.
    """

    user: str | None
    event: CheckpointRecord | LogRecord | EntryRecord
    move: Move | None = None
    objects: Mapping[Hash, bytes] = _NO_OBJECTS
    requires: Collection[Hash] = ()
    changes: Changes = NO_CHANGES
    work: Work = NO_WORK
    labels: Mapping[Id, Labels] = NO_LABELS
    notes: Mapping[Id, Sequence[Note]] = NO_NOTES
    workspaces: Sequence[WorkspaceMove] = ()  # in order, each on what those before it have made


def of_ledger(user: str | None, event: EntryRecord, work: Work) -> Batch:
    """A batch of tasks alone."""
    nothing = (None, _NO_OBJECTS, (), NO_CHANGES)
    return filled(Batch, (user, event, *nothing, work, NO_LABELS, NO_NOTES, ()))


class Query(NamedTuple):
    """Checkpoints of one timeline, newest first. Every condition narrows; None does not."""

    timeline: str
    limit: int
    before_seq: int | None = None  # the cursor: only numbers below it
    seq: int | None = None
    name: str | None = None
    kind: str | None = None
    status: str | None = None
    since: int | None = None  # microseconds, inclusive
    until: int | None = None  # microseconds, inclusive
    hidden: bool = False  # hidden ones too
    labels: Labels = ()  # only those that have all of these


FILES_WITHIN = 20
"""Among so many of its newest checkpoints, the files are looked for that a timeline is about."""


class TimelineQuery(NamedTuple):
    """Timelines, those with the latest update first, then by name. Its update is the latest time at
    which it was made or one of its checkpoints, hidden ones aside."""

    limit: int
    after: tuple[int, str] | None = None  # the cursor: update and name of the last one before
    workspace: bytes | None = None  # only those whose newest files are of this workspace: of the
    # newest `FILES_WITHIN` checkpoints the first that has any, or else the head
    deleted: bool = False  # deleted ones too
    prefix: str = ""  # only those whose names begin with it
    text: str = ""  # only those that have it in name or title; a to z in capitals or not
    status: str | None = None  # only those whose newest checkpoint has it


class TimelineRow(NamedTuple):
    """A timeline as `recent_timelines` lists it."""

    line: TimelineRecord
    updated_at: int
    newest: CheckpointRecord | None  # the newest on it that is not hidden
    head: CheckpointRecord | None
    saved: int  # how many checkpoints it has, hidden ones aside


class Turn(Protocol):
    """A turn that this process has; see `Store.once`."""

    def read(self) -> bytes:
        """What the process that had this turn last has written; nothing if none ever has."""

    def write(self, note: bytes) -> None:
        """Leave a short note, of up to `MAX_NOTE` bytes, for the next that takes this turn."""


MAX_NOTE = 1_000


class Store(LedgerStore, WorkspaceStore, Protocol):
    """See the module's docstring for what every method promises. What only a store in files of
    this host can do is in `stores.on_disk`."""

    @property
    def is_shared(self) -> bool:
        """Whether processes of several hosts may use it at once. Then `moment` counts in one clock
        for all of them, and a pin or a turn that one host has taken holds on all."""

    @property
    def claims(self) -> Claims:
        """What of all that is done with a store this one does not do; see `stores.claims`."""

    def durability(self) -> Survives:
        """What a commit that has returned really survives, as far as the medium tells: it may be
        less than what was asked for when the store was opened."""

    def failover(self) -> str:
        """What may be lost when another host takes the store over; empty if none can."""

    def users(self) -> list[str | None]:
        """All users that something may be stored of, in no order."""

    def commit(self, batch: Batch) -> int:
        """Write a batch; the number of its commit."""

    def read(self, user: str | None, hashes: Collection[Hash]) -> dict[Hash, bytes]:
        """The objects found. What is not there is left out. May hold more than was asked for."""

    def missing(self, user: str | None, hashes: Collection[Hash]) -> set[Hash]:
        """Those of `hashes` that are not stored."""

    def scan(self, user: str | None) -> Iterator[Mapping[Hash, bytes]]:
        """All objects of a user in the order in which they lie, a part at a time: each part is
        read once, and no more than one is in memory.

        What was stored when it began comes, unless it is removed before its turn. Other callers
        may write, collect and compact meanwhile: an object that is moved comes too, perhaps for a
        second time, and one that is new may come. `Corrupt` where a part cannot be read.
        """

    def timeline(self, user: str | None, name: str) -> TimelineRecord | None:
        """A timeline's record; None if it does not exist."""

    def timelines(
        self,
        user: str | None,
        after: str | None,
        limit: int,
        *,
        deleted: bool = False,
        prefix: str = "",
    ) -> list[TimelineRecord]:
        """Timelines by name, those after the name `after`; with `deleted` ones or without. With a
        `prefix` only those whose names begin with it, and no others are read."""

    def recent_timelines(self, user: str | None, query: TimelineQuery) -> list[TimelineRow]:
        """A page of timelines, those that were saved on or made last first."""

    def checkpoint(self, user: str | None, id: Id) -> CheckpointRecord | None:
        """One checkpoint by its whole id."""

    def checkpoints_between(
        self, user: str | None, low: Id, high: Id, limit: int
    ) -> list[CheckpointRecord]:
        """Checkpoints whose id lies between two ids, both included."""

    def checkpoints(self, user: str | None, query: Query) -> list[CheckpointRecord]:
        """A page of a timeline's checkpoints, newest first."""

    def labelled(
        self, user: str | None, labels: Labels, before: int | None, limit: int
    ) -> list[CheckpointRecord]:
        """Checkpoints of all timelines that have all of these labels, at least one, the newest
        commit first, those before commit `before`."""

    def labels(self, user: str | None, ids: Collection[Id]) -> dict[Id, Labels]:
        """The labels of these checkpoints, hidden ones too. Those that have none are left out."""

    def notes(self, user: str | None, ids: Collection[Id]) -> dict[Id, list[Note]]:
        """The notes of these checkpoints, hidden ones too, in the order in which their keys first
        came. Those that have none are left out."""

    def put_notes(
        self, user: str | None, id: Id, notes: Sequence[Note], *, replace: bool = True
    ) -> None:
        """Add notes to a checkpoint, all or none, as durable as a commit. To do it again changes
        nothing. Without `replace` those stay whose key is there already.

        `CheckpointGone` if there is no such checkpoint.
        """

    def count(self, user: str | None, timeline: str) -> int:
        """How many checkpoints a timeline has."""

    def children(self, user: str | None, parent: Id) -> list[CheckpointRecord]:
        """The checkpoints saved on top of one, on any timeline, in the order of commits. The one
        may have been dropped since."""

    def branches(
        self, user: str | None, timeline: str, first: int, last: int
    ) -> list[CheckpointRecord]:
        """Where the history of a timeline forks: checkpoints saved on top of those with the numbers
        `first` to `last`, but for each one's successor on the timeline itself; in the order of
        commits. With a page of checkpoints that is a page of the graph."""

    def ancestors(self, user: str | None, id: Id, limit: int) -> list[CheckpointRecord]:
        """A checkpoint, its parent, the parent of that, and so on, hidden ones too: up to a root,
        or to one whose parent is there no more."""

    def saved(self, user: str | None, after: int, limit: int) -> list[CheckpointRecord]:
        """Checkpoints in the order of their commits, after commit `after`; hidden ones too."""

    def captured(
        self,
        user: str | None,
        workspace: bytes,
        before: int | None,
        limit: int,
        *,
        hidden: bool = True,
    ) -> list[CheckpointRecord]:
        """Checkpoints with files of a workspace, the newest commit first, those before commit
        `before`; with hidden ones or without."""

    def tombstone(self, user: str | None, id: Id) -> Tombstone | None:
        """What is left of a checkpoint that was dropped."""

    def tombstones(
        self, user: str | None, timeline: str, before_seq: int | None, limit: int
    ) -> list[Tombstone]:
        """Those of a timeline, highest number first, those below `before_seq`."""

    def log(self, user: str | None, after: int, limit: int) -> list[LogRecord]:
        """Log entries in the order of their commits, those after commit `after`."""

    def log_before(
        self, user: str | None, before: int | None, limit: int, timeline: str | None = None
    ) -> list[LogRecord]:
        """Log entries newest first, those before commit `before`; with a `timeline` only its own
        and those that name none, which may be about any."""

    def log_entry(self, user: str | None, id: Id) -> LogRecord | None:
        """One log entry by its id; None if there is none, or it was forgotten."""

    def put(
        self, user: str | None, objects: Mapping[Hash, bytes], *, pin: bytes, seconds: float
    ) -> None:
        """Store objects ahead of the batch that will point at them.

        Until `unpin`, or so many seconds of the store's own time (`moment`) after the last `put`
        with this pin, no host collects objects of this user. A store may let go of it earlier only
        if the process that holds it is known to be gone.
        """

    def unpin(
        self,
        user: str | None,
        pin: bytes,
        *,
        given_up: Callable[[bytes], Collection[Hash]] | None = None,
    ) -> None:
        """Give a pin back. One that is gone is fine.

        `given_up`, which tells what an object refers to: no batch will point at what was put under
        it. A store may remove at once, and free the disk space of, what nothing refers to.
        """

    def collect(
        self, refs: Callable[[bytes], Collection[Hash]], *, exact: bool = False
    ) -> Collected:
        """Remove objects that no checkpoint leads to, and free their disk space.

        `refs` tells what an object refers to. May run beside any number of writers; a store
        may keep some of what could go if that saves work, unless `exact` forbids it: then
        every byte of what could go when it was called is gone from the store's own files, if
        not yet from a backup. A user with a pin is left for another time, and named in the answer.

        `Corrupt` if a checkpoint leads to an object that is not there or does not match its
        hash: what lies behind it would go, though it may still be put back. Nothing of that
        user is removed.
        """

    def latest_number(self, user: str | None) -> int:
        """No commit of this user that has returned has a number above this one, every commit that
        begins after this call gets one, and reads that begin after it see all up to this number; 0
        if there is none yet."""

    def generation(self) -> bytes:
        """Changes if commits that had returned may be gone, and their numbers given again: a
        replica that lacked them has taken over, or an earlier state of the store was put back. What
        was read before says nothing about such a store. Costs nothing: it is that of the last
        answer, or an earlier one that the next answer shows to have passed."""

    def local(self, what: str) -> str | None:
        """The path of a file or a folder of this host that goes with this store, for what can be
        made anew; None: keep it in memory. It ends with `what`, and what comes before that is
        always the same."""

    def last_purge(self, user: str | None) -> int:
        """The number of this user's last commit that `purges`; 0 if none has. What any host has
        made from what was stored before that commit may hold what must be gone."""

    def once(self, name: str) -> AbstractContextManager[Turn | None]:
        """A turn that one process of all hosts has at a time, until its block ends or it dies. None
        if another one has it: nothing waits."""

    def stats(self, user: str | None) -> Stats:
        """How much is stored."""

    def forget(self) -> None:
        """Drop what is kept in memory: the next reads ask the medium."""

    def check_usable(self) -> None:
        """`Unavailable` or `Corrupt` if its medium was removed, replaced, damaged or closed to this
        process since it was opened. Looks at the beginning alone, and writes nothing."""

    def verify(self) -> Sequence[str]:
        """What is wrong with the store's own structure, one line each; empty if nothing."""

    def close(self) -> None:
        """Release everything. A second call does nothing; any other call is `Misuse`."""


NESTED = (
    "this thread is in the middle of a save, and a signal handler or a finalizer has interrupted "
    "it to save once more; let it note what is to be done, and save after"
)


def position(record: TimelineRecord | None) -> tuple[Id | None, int] | None:
    """What a move's expectation is compared by."""
    return None if record is None else (record.head, record.last_seq)


def conflict_message(
    name: str, standing: TimelineRecord | None, expect: TimelineRecord | None
) -> str:
    """What to say when a timeline is not where a batch expects it."""
    if standing is None:
        return f"timeline {name!r} does not exist any more"
    if expect is None:
        return f"timeline {name!r} exists already"
    return f"timeline {name!r} has moved on to number {standing.last_seq}: another writer saved"
