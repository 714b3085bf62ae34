"""The ledger: the only truth about work. `vault.tasks` is one of these."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hardsave.defaults import LEASE_SECONDS
from hardsave.errors import Conflict, HardsaveError, LeaseLost, Misuse, Unavailable
from hardsave.logs import log
from hardsave.objects.records import Id, TaskRecord
from hardsave.page import Page, cursor_of, place_of
from hardsave.progress import check_deadline
from hardsave.stores import requests
from hardsave.stores.ledger import Fence, TaskQuery, Work, every
from hardsave.stores.requests import Request
from hardsave.tasks import (
    acts,
    adding,
    claiming,
    current,
    iterations,
    ledger_values,
    names,
    recovery,
    settings,
    states,
    threads,
)
from hardsave.tasks import attempt as attempts
from hardsave.tasks.acts import TRIES
from hardsave.tasks.attempt import Attempt
from hardsave.tasks.context import KEPT, LedgerContext
from hardsave.tasks.lease import Lease
from hardsave.tasks.retry import DEFAULT, Retry
from hardsave.tasks.settings import Recovery, TaskSettings, checked_recovery
from hardsave.tasks.stats import TaskEvent, TaskStats, counted, happening
from hardsave.tasks.steps import UnknownPolicy
from hardsave.tasks.task import Task, view

if TYPE_CHECKING:
    from hardsave.tasks.executor import Runner
    from hardsave.tasks.reclaim import Foreseen
    from hardsave.tasks.recovery import RecoveryReport

PAGE = 500
_UPKEEP_ROUNDS = 10  # after which it is asked whether it is due


class Tasks(threads.Shared):
    """The tasks of one user. Threads may share it; processes open their own."""

    def __init__(
        self,
        context: LedgerContext,
        settings: TaskSettings = settings.DEFAULT,
        upkeep: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__()
        self._context = context
        self._settings = settings
        self._upkeep = upkeep  # of the store, now and then
        self._own: Lease | None = None  # for attempts outside of any runner

    # Adding and looking

    def add(
        self,
        id: str,
        text: str = "",
        *,
        key: str | None = None,
        max_attempts: int | None = None,
        priority: int = 0,
        not_before: datetime | None = None,
        after: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> Task:
        """Add a task, unless it is there already: by its id, or by its key (by default its
        text, or its id if it has none). It may be tried 3 times, if neither `max_attempts` nor
        the project's settings say otherwise.

        What is there stays as it is, and comes back with `is_new=False`; if it has failed and
        has attempts left, it is put back to work under its old identity.
        """
        check_deadline()
        record = adding.new(
            self._context,
            id=id,
            text=text,
            key=key,
            max_attempts=self._settings.max_attempts if max_attempts is None else max_attempts,
            priority=priority,
            not_before=not_before,
            after=after,
            metadata=metadata,
        )
        for name in record.after:
            self._found(name)
        for _ in range(TRIES):
            standing = self._standing(record)
            if standing is not None and not adding.means_to_go_on(standing):
                return self._view(standing)
            try:
                if standing is None:
                    return self._view(acts.add(self._context, record), is_new=True)
                again = states.retried(standing, extra=False)
                return self._view(acts.changed(self._context, standing, "retried", again))
            except Conflict:  # another process was faster: look again
                current.check(self._context.store, self._context.user)
        raise Conflict(f"others added or changed task {id!r} {TRIES} times; try again")

    def _standing(self, record: TaskRecord) -> TaskRecord | None:
        store, user = self._context.store, self._context.user
        return store.task(user, record.name) or store.task_by_key(user, record.key)

    def get(self, id: str) -> Task:
        """A task by its id."""
        return self._view(self._found(id))

    def find(
        self,
        *,
        state: str | None = None,
        newest_first: bool = False,
        limit: int = 50,
        after: str | None = None,
    ) -> Page[Task]:
        """A page of tasks, in the order they were added, or the newest first. `after` is the `next`
        of the page before, also if the tasks of that page are gone by now."""
        if state is not None and state not in states.STATES:
            raise Misuse(f"a state is one of {', '.join(states.STATES)}, not {state!r}")
        _check_limit(limit)
        listing = f"tasks {self._context.user!r} {newest_first}"
        query = TaskQuery(
            limit + 1, after=_place(after, listing), state=state, newest_first=newest_first
        )
        rows = self._context.store.tasks(self._context.user, query)
        more = cursor_of(listing, rows[limit - 1].place) if len(rows) > limit else None
        return Page([self._view(row) for row in rows[:limit]], more)

    def history(self, id: str) -> list[TaskEvent]:
        """All that happened to a task, in order: every attempt, with its error and traceback."""
        self._found(id)
        found: list[TaskEvent] = []
        after = 0
        while rows := self._context.store.entries(self._context.user, id, after, PAGE):
            found += [happening(row, self._context.codec) for row in rows]
            after = rows[-1].number
        return found

    def happened(self, after: int = 0, *, limit: int = PAGE) -> list[TaskEvent]:
        """What happened to all tasks and to the ledger as a whole, in order, in whichever process:
        the first so many after that of number `after`."""
        rows = self._context.store.happened(self._context.user, after, limit)
        return [happening(row, self._context.codec) for row in rows]

    def bookmark(self, reader: str, number: int | None = None) -> int:
        """How far a reader has come with `happened`, kept in the ledger under the reader's name; 0
        at first. With a number, from now on that."""
        kind = f"bookmark {reader}"
        if number is not None:
            is_round = number // KEPT != self.bookmark(reader) // KEPT
            work = Work(keep_itself=KEPT) if is_round else Work()
            self._context.commit(self._context.entry(kind, None, {"number": number}), work)
            return number
        found = self._latest(kind)
        return 0 if found is None else int(found.about["number"])

    def stats(self) -> TaskStats:
        """How many tasks are in which state."""
        counts = self._context.store.task_counts(self._context.user)
        begun = self._latest("session_started")
        session = None if begun is None else begun.about["session"]
        return counted(counts, self.iterations, session)

    # Changing

    def retry(
        self,
        id: str,
        *,
        unknown: UnknownPolicy | None = None,
        force: bool = False,
        key: str | None = None,
    ) -> Task:
        """Put a failed or rolled back task back to work; it gets one more attempt if it has
        none left. A rolled back one starts over, with an empty journal, and so does one that is
        completed, with `force=True`.

        `unknown` says what to do about steps that were begun and not ended: `retry` or `skip`. For
        the `key` see `cancel`.
        """
        if unknown not in (None, "retry", "skip"):
            raise Misuse(f"unknown steps are settled by 'retry' or 'skip', not {unknown!r}")
        request = requests.request(self._context, key, "retry task", id, unknown, force)
        return self._acted(
            id, request, lambda: acts.retry(self._context, id, unknown, request, force=force)
        )

    def cancel(self, id: str, *, key: str | None = None) -> Task:
        """Let it not run, or not any further: an attempt under way cannot write any more.

        A `key` names a request that may be made twice: the second time nothing is done, however the
        task has gone on since, and it comes back as it stands. `Conflict` if the key was that of
        another request.
        """
        request = requests.request(self._context, key, "cancel task", id)
        return self._acted(id, request, lambda: acts.cancel(self._context, id, request))

    def roll_back(self, id: str) -> Task:
        """Mark that what it did was taken back. Nothing outside is undone by this."""
        return self._view(acts.roll_back(self._context, id))

    def answer(
        self, id: str, answer: Any, *, question: str | None = None, key: str | None = None
    ) -> Task:
        """Answer what a task has asked; it goes on with that. A step whose end is not known is
        answered with 'retry', 'skip' or 'fail'.

        `question` is what was read: `Conflict` if that was answered already, and the task
        asks something else by now. For the `key` see `cancel`.
        """
        said = None if key is None else self._context.codec.encode(answer, "answer")
        request = requests.request(self._context, key, "answer task", id, said, question)
        return self._acted(
            id, request, lambda: acts.answer(self._context, id, answer, question, request)
        )

    def _acted(self, id: str, request: Request, act: Callable[[], TaskRecord]) -> Task:
        """A task after an act; after one that was made before under its key, as it stands."""
        done, _ = requests.once(self._context, request, act, lambda _: self._found(id))
        return self._view(done)

    def forget(self, *, keep_completed: int | None = None) -> int:
        """Remove completed tasks but for the newest, by when they ended; how many went. By
        default 100 stay, or as many as the project's settings say.

        They go with their whole history, and cannot be brought back: one that is added again is
        new, and runs.
        """
        if keep_completed is None:
            keep_completed = self._settings.keep_completed
        if keep_completed < 0:
            raise Misuse(f"keep_completed is not negative: {keep_completed}")
        ended = sorted(
            (row.ended_at or 0, Fence(row.name, row.epoch))
            for row in every(
                self._context.store, self._context.user, TaskQuery(PAGE, state="completed")
            )
        )
        gone = [fence for _, fence in ended[: max(0, len(ended) - keep_completed)]]
        return sum(self._forgotten(gone[at : at + PAGE]) for at in range(0, len(gone), PAGE))

    def _forgotten(self, gone: Sequence[Fence]) -> int:
        """Those that still stand as they were seen: one that was begun anew stays."""
        for _ in range(TRIES):
            if not gone:
                return 0
            event = self._context.entry("forgotten", None, {"count": len(gone)})
            with contextlib.suppress(LeaseLost):
                self._context.commit(event, Work(fences=gone, forget=[task for task, _ in gone]))
                return len(gone)
            gone = [fence for fence in gone if self._is_at(fence)]
        raise Conflict(f"others changed tasks {TRIES} times while they were forgotten; try again")

    def _is_at(self, fence: Fence) -> bool:
        found = self._context.store.task(self._context.user, fence.task)
        return found is not None and found.epoch == fence.epoch

    # Iterations

    @property
    def iterations(self) -> int:
        """How often `iterate` was called, in all sessions."""
        return iterations.so_far(self._context)

    def iterate(self) -> int:
        """Count one more round of a server's loop; how many that makes.

        Every 10 rounds, or as `cleanup_every` in the project's settings says, old completed tasks
        are forgotten; 0 means never. In any case the store is kept up once a day, which may
        take a while.
        """
        with self._mutex:
            count = iterations.one_more(self._context)
        rounds = self._settings.cleanup_every
        if rounds and count % rounds == 0:
            self.forget()
        if count % _UPKEEP_ROUNDS == 0:
            self._keep_up()
        return count

    def _keep_up(self) -> None:
        try:
            self._upkeep()
        except HardsaveError:  # no caller has asked for it
            log(__name__).warning("the store could not be kept up", exc_info=True)

    # Running

    @contextlib.contextmanager
    def attempt(
        self,
        id: str,
        *,
        force: bool = False,
        unknown: UnknownPolicy = "retry",
        retry: Retry = DEFAULT,
    ) -> Iterator[Attempt]:
        """An attempt at one task: completed at the end of the block, failed by an exception.

        `Conflict` if it is not due, or a process is at work on it. `force=True` begins also what
        is not due yet, or is over; what is completed or rolled back then starts over with an empty
        journal.
        """
        held = self.claim(id, force=force, unknown=unknown, retry=retry)
        try:
            with held as attempt:
                yield attempt
        except Exception:
            raise
        except BaseException as error:  # Ctrl-C may strike on the way into the block, and out of it
            held.__exit__(type(error), error, error.__traceback__)
            raise

    def claim(
        self,
        id: str,
        *,
        force: bool = False,
        unknown: UnknownPolicy = "retry",
        retry: Retry = DEFAULT,
    ) -> Attempt:
        """The same without a block: the caller has to end it."""
        attempts.check_policy(unknown)
        with self._mutex:
            if self._own is None:
                self._own = Lease(self._context, "attempts")
            lease = self._own
        return self._claim(lease, id, force=force, unknown=unknown, retry=retry)

    def _claim(
        self, lease: Lease, id: str, *, force: bool, unknown: UnknownPolicy, retry: Retry
    ) -> Attempt:
        record = self._found(id)
        if record.state == "in_progress":
            record = self._freed(record)
        if not force and record.attempts >= record.max_attempts and record.state == "pending":
            raise Conflict(f"task {id!r} has no attempt left; tasks.retry() gives it one")
        return claiming.begin(
            self._context, lease, record, force=force, unknown=unknown, retry=retry
        )

    def _freed(self, task: TaskRecord) -> TaskRecord:
        """A task as it stands once the processes that have died were found."""
        try:
            found = recover_by_itself(self)
        except Unavailable:
            return self._unheld(task)  # it is used from another machine, which cannot be asked
        for each in found.outlived:
            if each.task.id == task.name:
                raise Conflict(str(each))
        if not found.put_back and any(each.id == task.name for each in found.interrupted):
            raise Conflict(
                f"task {task.name!r} was interrupted, and 'recovery' is 'manual': 'hardsave tasks "
                "recover' puts it back to work"
            )
        return self._unheld(self._found(task.name))

    def _unheld(self, task: TaskRecord) -> TaskRecord:
        if task.state == "in_progress":
            by = recovery.holder(task, self._context.store.owners(self._context.user))
            raise Conflict(f"task {task.name!r} is in_progress: {by} is at work on it")
        return task

    def runner(
        self,
        session: str,
        *,
        lease_seconds: float = LEASE_SECONDS,
        take_over: bool = False,
        recovery: Recovery | None = None,
    ) -> "Runner":
        """Runs tasks, in this process. On entering it finds out which processes have died, and puts
        their tasks back to work: see `runner.report`.

        `take_over=True` takes sessions on other machines for dead: a local store has one host.
        `recovery="manual"` puts nothing back by itself: the report tells what was interrupted, and
        `recover()` puts it back. None: as the settings say, which is `auto` by default.
        """
        from hardsave.tasks.executor import Runner  # most who look at tasks run none

        names.check("the name of a session", session)
        return Runner(
            self._context,
            session,
            claim=self._claim,
            counts=self.stats,
            lease_seconds=lease_seconds,
            take_over=take_over,
            recovery=self._settings.recovery if recovery is None else checked_recovery(recovery),
        )

    def recover(self, *, take_over: bool = False, dry_run: bool = False) -> "RecoveryReport":
        """Put back to work what dead processes have left, without running anything, and tell
        about it; with `dry_run` only tell. Runners do this by themselves."""
        from hardsave.tasks import reclaim

        found = (
            reclaim.dead_owners(self._context, take_over=take_over)
            if dry_run
            else reclaim.reclaim_from_dead(self._context, "recover", take_over=take_over)
        )
        is_manual = self._settings.recovery == "manual"
        return reclaim.report(
            self._context, found, self.stats(), dry_run=dry_run, is_manual=is_manual
        )

    def close(self) -> None:
        """Give back what this process holds. A second call does nothing."""
        with self._mutex:
            own, self._own = self._own, None
        if own is not None:
            own.close()

    # Reading and writing

    def _found(self, id: str) -> TaskRecord:
        return acts.found(self._context, id)

    def _latest(self, kind: str) -> TaskEvent | None:
        found = self._context.store.latest_entry(self._context.user, kind)
        return None if found is None else happening(found, self._context.codec)

    def _view(self, record: TaskRecord, *, is_new: bool = False) -> Task:
        return view(record, self._context.codec, is_new=is_new)


def desk_of(tasks: Tasks) -> LedgerContext:
    """What a ledger works with, for code that joins its acts to others."""
    return tasks._context


def recover_by_itself(tasks: Tasks) -> "RecoveryReport":
    """Find out which processes have died, without an order to put their tasks back to work: that
    is done as far as the settings let it be done."""
    from hardsave.tasks import reclaim

    holds = tasks._settings.recovery == "manual"
    found = reclaim.reclaim_from_dead(tasks._context, "recover", take_over=False, holds=holds)
    return reclaim.report(tasks._context, found, tasks.stats())


def foresee(tasks: Tasks) -> "Foreseen":
    """The same, and nothing is written: how tasks of dead processes would stand."""
    from hardsave.tasks import reclaim

    return reclaim.foreseen(tasks._context, holds=tasks._settings.recovery == "manual")


def newest(tasks: Tasks, state: str | None, after: int) -> Iterator[tuple[int, Task]]:
    """Tasks with their places, the newest first: those behind a place, 0 before the first."""
    query = TaskQuery(PAGE, after=after, state=state, newest_first=True)
    for row in every(tasks._context.store, tasks._context.user, query):
        yield row.place, tasks._view(row)


def beside(tasks: Tasks, id: str) -> Iterator[Task]:
    """Tasks in progress on the host that works on this one, and those whose host is not known."""
    store, user = tasks._context.store, tasks._context.user
    hosts: dict[Id | None, str] = {owner.id: owner.host for owner in store.owners(user)}
    own = store.task(user, id)
    here = None if own is None else hosts.get(own.owner)
    for row in every(store, user, TaskQuery(PAGE, state="in_progress")):
        if here is None or hosts.get(row.owner, here) == here:
            yield tasks._view(row)


def value_of(tasks: Tasks, kind: str) -> Any:
    """What the ledger as a whole holds under a name; None if that was never set."""
    return ledger_values.read(tasks._context, kind)


def change_value(tasks: Tasks, kind: str, how: Callable[[Any], Any]) -> Any:
    """Put `how(value)` in its place, also if other processes change it at the same time."""
    return ledger_values.change(tasks._context, kind, how)


def _check_limit(limit: Any) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit < 1 << 62:
        raise Misuse(f"limit is at least 1, and no astronomical number, not {limit!r}")


def _place(after: Any, listing: str) -> int:
    """Where a page ended; 0 before the first."""
    if after is None:
        return 0
    place = place_of(listing, after)
    if place is None or not (place.isascii() and place.isdecimal() and len(place) <= 18):
        raise Misuse(
            f"after is the `next` of an earlier page of this listing, not {after!r}; begin "
            "without it"
        )
    return int(place)
