"""The rows that stores keep beside objects: plain, immutable, ready to be written.

They are tuples, and hold ids and times as stored, because a listing makes thousands of
them: what people see (`chk_…`, datetimes) is made when it is shown.
"""

from hardsave.objects.hashing import Hash, digest
from hardsave.tuples import NamedTuple

ID_BYTES = 12  # 96 random bits: unique on any machine, and its first digits tell ids apart

Id = bytes


def named_id(*parts: str) -> Id:
    """An id that the same parts always give, and no others."""
    return digest("".join(f"{len(each)}:{each}" for each in parts).encode())[:ID_BYTES]


filled = tuple.__new__
"""`filled(Tombstone, (id, "main", 3, None))` is `Tombstone(id, "main", 3, None)` in a sixth of the
time: no function of Python runs. For what every step makes. All fields are given, in order."""


class CheckpointRecord(NamedTuple):
    """One checkpoint. Its row is also the event of its save."""

    number: int  # the commit that wrote it; the store fills it in
    id: Id
    timeline: str
    seq: int
    parent: Id | None
    created_at: int  # microseconds since 1970, UTC
    name: str | None
    kind: str
    status: str
    description: str
    metadata: bytes
    root: Hash  # of the state
    snapshot: Hash | None = None  # of the captured files, if it has any
    workspace: bytes | None = None  # the id of the workspace that they are from
    task: str | None = None  # whose attempt saved it, if one did
    generation: int = 0  # of that task
    attempt: int = 0  # which one of that generation, from 1
    summary: bytes | None = None  # what is new in it, for lists; see `timeline.step_summary`
    hidden: int = 0  # above 0: by which commit; the store fills it in

    @property
    def roots(self) -> tuple[Hash, ...]:
        """What keeps its objects alive."""
        return (self.root,) if self.snapshot is None else (self.root, self.snapshot)

    @property
    def is_hidden(self) -> bool:
        """Deleted, and not gone yet. Below 0 it was hidden once, and shown again."""
        return self.hidden > 0


Labels = tuple[tuple[str, str], ...]
"""Keys and values that a checkpoint is found by, in the order of the keys, each key once."""


class Note(NamedTuple):
    """A small row that belongs to a checkpoint: put with it or later, and gone with it."""

    key: str
    data: bytes  # an encoded value; empty: there is none under this key any more


class Tombstone(NamedTuple):
    """What is left of a checkpoint that was dropped for good: its place in history."""

    id: Id
    timeline: str
    seq: int
    parent: Id | None


class LogRecord(NamedTuple):
    """Something that happened and is not a save."""

    number: int  # the commit that wrote it; the store fills it in
    id: Id
    timeline: str | None
    kind: str
    created_at: int
    data: bytes


class WorkspaceRecord(NamedTuple):
    """A directory of a host whose files are saved with checkpoints."""

    id: bytes  # what checkpoints name; of one that is older than ids, the path that it had
    host: str  # empty: no host has it, as after an import
    path: bytes
    epoch: int = 0  # rises whenever another host or attempt takes it over


class TimelineRecord(NamedTuple):
    """Where a timeline stands."""

    name: str
    head: Id | None
    last_seq: int  # the highest number ever given out
    created_at: int
    origin: Id | None  # the checkpoint it was forked from
    is_deleted: bool = False  # not listed, until something is saved on it again
    title: str = ""  # its first prompt, for people


class TaskRecord(NamedTuple):
    """Where a unit of work stands. What happened to it is in its entries."""

    name: str  # the id that people gave it
    text: str
    key: bytes  # what makes two tasks the same work; one task a key
    state: str  # pending, in_progress, completed, failed, rolled_back
    priority: int  # higher ones first
    created_at: int
    epoch: int  # raised by every claim, and when it is taken from its owner
    generation: int  # raised when it starts over with an empty journal
    attempts: int  # of this generation
    max_attempts: int
    not_before: int  # microseconds since 1970; 0: at once
    due: int | None  # pending: 0 now, above 0 from that moment, None if it waits for something
    after: tuple[str, ...]  # names of tasks that have to be completed first
    waits_for: str | None  # the first of them that is not; the store fills it in
    owner: Id | None  # while it is in progress
    started_at: int | None  # of the latest attempt
    ended_at: int | None
    done: int  # progress: so many
    total: int  # of so many; 0: nothing was said
    error: str | None  # of the latest attempt, if it failed
    result: bytes | None
    question: bytes | None  # what a person has to answer before it goes on
    metadata: bytes
    place: int = 0  # in the order in which tasks were added; the store fills it in


class EntryRecord(NamedTuple):
    """Something that happened to a task, or to the ledger as a whole. Never changed."""

    number: int  # the commit that wrote it; the store fills it in
    id: Id
    task: str | None
    kind: str
    generation: int
    epoch: int
    created_at: int
    step: str | None  # the path of a step, in its journal
    data: bytes


class OwnerRecord(NamedTuple):
    """A process that runs tasks, and until when it may be taken to be alive."""

    id: Id
    session: str
    host: str
    boot: bytes  # which boot of that host
    space: int  # which numbering of processes (a container has its own)
    pid: int
    pid_started: int  # tells two processes of one number apart; 0: not known here
    since: int  # microseconds since 1970, UTC
    until: int  # the lease: microseconds of a store's own time
    clock: bytes  # which time that is: see `stores.ledger.Moment`
