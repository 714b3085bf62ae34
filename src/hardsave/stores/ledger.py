"""The part of the contract that is about tasks: the ledger.

A task has a row with its state, and entries that say what happened to it; both are written by
`commit`, in one batch with the checkpoint and objects that belong to them. An entry is never
changed, and its number is a commit's, so that it can be copied and followed like a save.

Epochs
    A move or a fence names the epoch that a task must be at. A process that takes a task raises
    it, so of two processes that hold the same task only one can write: the other gets `LeaseLost`.

Owners
    A process that runs tasks holds a lease, in the store's own time (`moment`): no change of a
    host's clock moves it. For a store of one host that is the time that the host was awake since it
    booted, so no process dies in its sleep; for a shared one it is the time of its server, the same
    on all hosts. `hold` renews it; it takes no number, and need not survive a power loss, after
    which the process is gone too. A batch that reclaims an owner's lease holds only if that owner
    has not renewed it since it was looked at; one that names an owner as `alive` only if no process
    has reclaimed its lease (`LeaseLost`).

Entries about the ledger as a whole
    With `keep_itself` all but so many of them go, the oldest first; the latest of each kind
    stays in any case, and so does what the batch adds. A batch that names the `latest` of a kind
    holds only if no other batch has added a later one (`Conflict`): of two callers that count on
    from the same entry, one succeeds.

Waiting
    A pending task that names others in `after` waits for the first that is not completed:
    the store fills in `waits_for`, sets `due` to None, and looks again each time that a task is
    completed or rolled back, inside the same commit.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Protocol

from hardsave.objects.records import EntryRecord, Id, OwnerRecord, TaskRecord
from hardsave.tuples import NamedTuple


class Fence(NamedTuple):
    """A task must be at this epoch."""

    task: str
    epoch: int


class Latest(NamedTuple):
    """The latest entry of a kind about the ledger as a whole must be this one, or there is none."""

    kind: str
    id: Id | None


class TaskMove(NamedTuple):
    """A task goes from epoch `expect` (None: neither its name nor its key exist) to `become`."""

    expect: int | None
    become: TaskRecord


class Work(NamedTuple):
    """What a batch does to the ledger, and what must hold for it."""

    fences: Sequence[Fence] = ()
    latest: Latest | None = None
    moves: Sequence[TaskMove] = ()
    entries: Sequence[EntryRecord] = ()  # added before all else that the batch adds
    alive: Collection[Id] = ()  # owners whose leases no process has reclaimed
    reclaim: Sequence[OwnerRecord] = ()  # removed, if their leases are as they are here
    forget: Collection[str] = ()  # tasks that go for good, with all their entries
    keep_itself: int | None = None  # of the entries about the ledger as a whole so many stay


NO_WORK = Work()
OVERTAKEN = "another process has just added an entry of kind {!r}: read the latest, then repeat"
RECLAIMED = "this process was taken for dead: its lease had passed, and others have its tasks now"


class TaskQuery(NamedTuple):
    """Tasks in the order in which they were added, or the newest first. Every condition narrows;
    None does not."""

    limit: int
    after: int = 0  # the cursor: the place of the last task before, which may be gone by now
    state: str | None = None
    owner: Id | None = None
    newest_first: bool = False


class Moment(NamedTuple):
    """The store's own time, in microseconds. Two of one clock can be compared, even if two hosts
    have asked; two of different clocks never. It has nothing to do with where a process runs."""

    clock: bytes
    at: int


class LedgerStore(Protocol):
    """See the module's docstring for what every method promises."""

    def moment(self) -> Moment:
        """The time that leases and pins are measured by; it never goes back. On two hosts the clock
        is the same only if the store is shared."""

    def hold(self, user: str | None, owner: OwnerRecord, *, is_new: bool = False) -> bool:
        """Renew a lease, or take one; False if another process has reclaimed it."""

    def let_go(self, user: str | None, owner: Id) -> None:
        """Give a lease back. One that is gone is fine."""

    def owners(self, user: str | None) -> list[OwnerRecord]:
        """All owners that hold a lease, by when they came."""

    def task(self, user: str | None, name: str) -> TaskRecord | None:
        """One task by its name."""

    def task_by_key(self, user: str | None, key: bytes) -> TaskRecord | None:
        """One task by its key."""

    def tasks(self, user: str | None, query: TaskQuery) -> list[TaskRecord]:
        """A page of tasks."""

    def due(self, user: str | None, now: int, limit: int) -> list[TaskRecord]:
        """Pending tasks that are due, by priority and then in the order they were added."""

    def retries(
        self, user: str | None, since: int, until: int, after: int, limit: int
    ) -> list[TaskRecord]:
        """Pending tasks that were tried before, and whose next attempt is due after `since` and by
        `until`: a page of them in the order they were added, those whose place is above `after`."""

    def task_counts(self, user: str | None) -> dict[str, int]:
        """How many tasks are in which state."""

    def entries(
        self, user: str | None, task: str | None, after: int = 0, limit: int = 1_000
    ) -> list[EntryRecord]:
        """What happened to a task, steps left out, in order; None: to the ledger as a whole."""

    def happened(self, user: str | None, after: int, limit: int) -> list[EntryRecord]:
        """What happened to all tasks and to the ledger as a whole, steps left out, in the order
        of commits, after commit `after`."""

    def latest_entry(self, user: str | None, kind: str) -> EntryRecord | None:
        """The latest entry of a kind about the ledger as a whole."""

    def journal(self, user: str | None, task: str, generation: int) -> list[EntryRecord]:
        """The steps of one generation of a task, in the order of their commits."""


def every(store: LedgerStore, user: str | None, query: TaskQuery) -> Iterator[TaskRecord]:
    """All tasks that a query asks for, in pages as long as its limit says; those that were read
    may change or go meanwhile."""
    while rows := store.tasks(user, query):
        yield from rows
        query = query._replace(after=rows[-1].place)


def first_unmet(after: Sequence[str], is_completed: Callable[[str], bool]) -> str | None:
    """What a task has to wait for."""
    return next((name for name in after if not is_completed(name)), None)


def lost_message(task: str, standing: int | None, epoch: int) -> str:
    """What to say when a task is not at the epoch that a batch expects."""
    if standing is None:
        return f"task {task!r} does not exist any more: it was forgotten"
    return (
        f"task {task!r} is not this attempt's any more: it was claimed anew, handed back, "
        f"cancelled, finished, or forgotten and added again (epoch {standing}, not {epoch})"
    )
