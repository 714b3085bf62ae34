"""One attempt at a task: what its handler holds while it works.

Every write names the epoch of the attempt. If another process has taken the task meanwhile, the
write is refused with `LeaseLost`, and so is everything after it: the attempt is over, though
its body may still run.
"""

import os
import threading
from collections.abc import Callable, Sequence
from types import CoroutineType, TracebackType
from typing import Any, TypeVar

from hardsave.errors import Conflict, HardsaveError, LeaseLost, Misuse
from hardsave.logs import log
from hardsave.objects.records import EntryRecord, Id, TaskRecord, named_id
from hardsave.stores.base import Store
from hardsave.stores.ledger import Fence, TaskMove, Work, lost_message
from hardsave.stores.lent import is_same
from hardsave.tasks import current, error_text, names, retry, states
from hardsave.tasks.child_lock import ChildLock, child_lock
from hardsave.tasks.context import LedgerContext
from hardsave.tasks.lease import Lease, Listener
from hardsave.tasks.retry import Retry
from hardsave.tasks.step_calls import (
    MOST_SAID,
    MOST_TRACED,
    Call,
    Calls,
    Paused,
    bounded,
    check_policy,
    said,
)
from hardsave.tasks.steps import Given, Journal, UnknownPolicy
from hardsave.tasks.task import Task, view

__all__ = ["Attempt", "Paused", "check_policy"]

T = TypeVar("T")


class Attempt(Listener):
    """An attempt under way. As a context manager it is completed at the end of its block, and
    failed by an exception; what interrupts the program hands it back.

    What is saved inside the block, or by the handler that holds it, belongs to it: the checkpoint
    says so, and is refused like any other write if the task was taken away by then.
    """

    def __init__(
        self,
        context: LedgerContext,
        lease: Lease,
        record: TaskRecord,
        journal: Journal,
        *,
        unknown: UnknownPolicy = "retry",
        retry: Retry = retry.DEFAULT,
    ) -> None:
        self._context = context
        self._lease = lease
        self._record = record
        self._calls = Calls(context, record, journal, _Holder(self), unknown)
        self._retry = retry
        self._claimed_at = record.epoch
        self._fenced = Work(fences=(Fence(record.name, record.epoch),))  # what each step relies on
        self._pid = os.getpid()
        self._mutex = threading.Lock()
        self._is_last = False
        self._is_over = False
        self._is_lost = False
        self._loss = threading.Event()  # for who waits
        self._block = working(self)

    # Looking

    @property
    def id(self) -> str:
        """The task's."""
        return self._record.name

    @property
    def task(self) -> Task:
        """The task, as this attempt last wrote it."""
        return view(self._record, self._context.codec)

    @property
    def number(self) -> int:
        """Which attempt this is, from 1."""
        return self._record.attempts

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or was taken away: nothing more can be written."""
        return self._is_over or self._is_lost

    @property
    def is_lost(self) -> bool:
        """Whether the task was taken away. A long computation may look at this."""
        return self._is_lost

    def lost(self) -> None:
        """Know that the task is another attempt's now."""
        self._is_lost = True
        self._loss.set()

    def __repr__(self) -> str:
        return f"<attempt {self.number} at task {self.id!r}>"

    # Working

    def step(
        self,
        name: str,
        fn: Callable[..., T],
        /,
        *args: Any,
        key: str | None = None,
        unknown: UnknownPolicy | None = None,
        retry: Retry | None = None,
        **kwargs: Any,
    ) -> T:
        """What `fn(*args, **kwargs)` gives, called once and returned from the record ever after.

        If the process dies inside, or the result cannot be recorded, whether it happened is unknown
        to the next attempt, and the policy decides: `retry` calls again, `skip` goes on with None,
        `fail` fails the task, `ask` waits for `tasks.answer`. All but `retry` cost a second commit,
        which records the start.

        `key`, `unknown` and `retry` are the step's own, and never reach `fn`. A function with such
        a parameter is wrapped: `attempt.step("sort", functools.partial(sorted, key=len), words)`.
        """
        self._check()
        calls = self._calls
        given = Given(args, kwargs)
        call = calls.begin(
            name, given, enclosing=calls.enclosing, key=key, unknown=unknown, retry=retry
        )
        if call.is_recorded:
            return call.value  # type: ignore[no-any-return] # it was a T when it was stored
        token = call.enter()
        try:
            return call.done(self._run(call, fn, given))  # type: ignore[no-any-return] # as above
        finally:
            call.exit(token)

    def _run(self, call: Call, fn: Callable[..., Any], given: Given) -> Any:
        """What its function gives, in as many tries as it has."""
        while True:
            call.check()
            try:
                return _called(fn, given)
            except Exception as error:
                seconds = call.again(error)
                if seconds is None:
                    raise
            self._loss.wait(seconds)

    def once(self, name: str) -> str:
        """The id of a checkpoint that this task makes once: the same in all its attempts, until it
        starts over. A message that is appended under it is there once, also if the process dies
        before the task has ended:

            chat = vault.timeline("chat")
            chat.append({"messages": ["hello"]}, id=attempt.once("greeting"))
        """
        names.check("the name of a checkpoint", name)
        task = self._record
        made = named_id(task.name, str(task.created_at), str(task.generation), name)
        return f"chk_{made.hex()}"

    def progress(self, done: int, total: int = 0) -> None:
        """So many of so many are done. Kept for the next attempt, if there has to be one."""
        if not _is_so_many(done) or not _is_so_many(total) or (total and done > total):
            raise Misuse(f"progress is so many of so many, not {done!r} of {total!r}")
        self._check_process()
        with self._mutex:
            if (done, total) != (self._record.done, self._record.total):
                self._move("progressed", states.progressed(self._record, done, total))

    def ask(self, question: str, *, key: str | None = None) -> Any:
        """What a person answers. Until then the task waits, for days if need be: this attempt
        ends here, and another one begins when `tasks.answer` was called. Questions with a `key`
        may come in another order the next time."""
        names.check_text("a question", question)
        call = begin_step(self, "ask", Given((question,)), enclosing=self._calls.enclosing, key=key)
        if call.is_recorded:
            return call.value
        call.leave()
        raise self._paused(question, call)

    def _paused(self, question: str, call: Call) -> Paused:
        about = {
            "question": self._context.redacted(question),
            "step": call.asked.path,
            "place": call.place,
            "arguments": call.arguments,
            "is_unknown": call.is_unknown,
        }
        data = self._context.codec.encode(about, "question")
        with self._mutex:
            record = states.asked(self._record, data, self._context.clock())
            around = self._calls.around(call.asked.path)
            asked = {"question": about["question"]}
            self._move("asked", record, asked, entries=around, ends=True)
        return Paused(f"task {self.id!r} asks: {question}")

    def child_lock(self) -> ChildLock:
        """For a program that is started here and may outlive this process: while it lives, or
        anything that it has started, no other process gets the task.

            with attempt.child_lock() as lock:
                program = subprocess.Popen(command, pass_fds=lock.descriptors)
                lock.started(program.pid)
                program.wait()
        """
        return child_lock(self._context.store, self._record, self._check_standing)

    # Ending

    def complete(self, result: Any = None) -> None:
        """It is done, with this result."""
        self._check_process()
        data = self._context.codec.encode(result, "result")
        with self._mutex:
            record = states.completed(self._record, data, self._context.clock())
            self._move("completed", record, ends=True)

    def fail(self, error: BaseException | str) -> None:
        """It has failed. It is tried again if it has attempts left and the error may pass."""
        self._check_process()
        now = self._context.clock()
        again_at = self._again_at(error, now)
        line = bounded(self._context.redacted(said(error)), MOST_SAID)
        about = {"error": line, "again_at": again_at}
        told = None
        if isinstance(error, BaseException):
            told = bounded(self._context.redacted(error_text.brief(error)), MOST_TRACED)
            if not isinstance(error, HardsaveError):
                about["traceback"] = told
        with self._mutex:
            record = states.failed(self._record, line, now, again_at=again_at)
            self._move("failed", record, about, ends=True)
        if isinstance(error, BaseException):  # an error in the program itself would else be silent
            then = "it has failed" if again_at is None else "it is tried again"
            self._report(error, f"{then}\n{told}")

    def _report(self, error: BaseException, told: str) -> None:
        """Log how the attempt ended; for debugging with every frame."""
        about = f"task {self.id!r}, attempt {self.number}"
        logger = log(__name__)
        logger.warning("%s: %s", about, said(told))
        if logger.isEnabledFor(10):  # logging.DEBUG, without what its import takes
            every = bounded(self._context.redacted(error_text.full(error)), MOST_TRACED)
            logger.debug("%s: every frame\n%s", about, said(every))

    def _again_at(self, error: BaseException | str, now: int) -> int | None:
        """When to try again; None if that is not worth it."""
        raised = error if isinstance(error, BaseException) else Exception(error)
        is_worth_it = retry.is_worth_it(self._retry, raised) and not self._is_last
        if self._record.attempts >= self._record.max_attempts or not is_worth_it:
            return None
        seconds = retry.wait_seconds(self._retry, self._record.attempts, self._context.random)
        return now + int(seconds * 1_000_000) if seconds else 0

    def hand_back(self) -> None:
        """Give it up before its end: any runner may take it. The attempt does not count."""
        self._check_process()
        with self._mutex:
            record = states.handed_back(self._record, self._context.clock())
            self._move("handed_back", record, ends=True, loses=True)

    def __enter__(self) -> "Attempt":
        try:
            self._block.__enter__()
            return self
        except BaseException as error:  # Ctrl-C
            self.__exit__(type(error), error, error.__traceback__)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        try:
            self._block.__exit__()
            return end_block(self, error)
        except Exception:
            raise
        except BaseException:  # Ctrl-C: its end may not be on record, and nothing else would end it
            self._block.__exit__()
            _hand_back(self)
            raise

    # Writing

    def _move(
        self,
        what: str,
        record: TaskRecord,
        about: Any = None,
        *,
        entries: Sequence[EntryRecord] = (),
        ends: bool = False,
        loses: bool = False,
    ) -> None:
        """Write where the task stands now. The caller holds the mutex; others look meanwhile, and
        must not see the end of an attempt before they see that its task is another attempt's."""
        move = TaskMove(self._claimed_at, record)
        event = self._context.entry(what, record, about)
        self._commit(event, Work(moves=(move,), entries=entries))
        if loses:
            self.lost()
        self._is_over = ends
        self._record = record

    def _check_process(self) -> None:
        """Before the mutex is taken: in a forked child it may never be given back."""
        if self._pid != os.getpid():
            raise Misuse(f"{self!r} belongs to process {self._pid}; a forked one cannot write it")

    def _check(self) -> None:
        """Only for as long as the task is this attempt's, and in the process that began it."""
        if self._pid != os.getpid():
            self._check_process()
        if self._is_lost:
            raise LeaseLost(f"task {self.id!r} is not this attempt's any more")
        if self._is_over:
            raise Misuse(f"{self!r} is over")

    def _check_standing(self) -> None:
        """The same, and by what the ledger says now."""
        self._check()
        held, standing = self._record, self._context.store.task(self._context.user, self.id)
        if standing is None or standing.epoch != held.epoch:
            self.lost()
            epoch = None if standing is None else standing.epoch
            raise LeaseLost(lost_message(self.id, epoch, held.epoch))

    def _commit(self, event: EntryRecord, work: Work) -> None:
        self._check()
        try:
            self._context.commit(event, work)
        except LeaseLost:
            self.lost()
            raise


class _Holder:
    """The attempt, as its steps see it."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt

    @property
    def is_over(self) -> bool:
        return self._attempt.is_over

    def check(self) -> None:
        attempt = self._attempt
        if attempt._lease.is_overdue():
            attempt._check_standing()
        else:
            attempt._check()

    def write(self, entry: EntryRecord) -> None:
        attempt = self._attempt
        attempt._commit(entry, attempt._fenced)

    def paused(self, question: str, call: Call) -> Paused:
        return self._attempt._paused(question, call)


class _AtWork:
    """The attempt, as a save sees it."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt

    def is_at(self, store: Store, user: str | None) -> bool:
        context = self._attempt._context
        return context.user == user and (context.store is store or is_same(context.store, store))

    def standing(self) -> current.Standing | None:
        attempt, task = self._attempt, self._attempt._record
        if attempt._is_over and not attempt.is_lost:
            return None
        return current.Standing(task.name, task.generation, task.attempts, attempt._claimed_at)

    def lost(self) -> None:
        self._attempt.lost()

    def look(self, timeline: str) -> None:
        self._attempt._calls.look(timeline)

    def begin_append(self, timeline: str, content: bytes) -> Id | None:
        return self._attempt._calls.begin_append(timeline, content)

    def give_up_append(self, id: Id) -> None:
        self._attempt._calls.give_up_append(id)


def look(attempt: Attempt) -> None:
    """Let an attempt know if its task was taken away: it may have been cancelled. One that is
    just being written learns it by that, and is not waited for."""
    if not attempt._mutex.acquire(blocking=False):
        return
    try:
        if not attempt.is_over:
            attempt._check_standing()
    except LeaseLost:
        pass  # that is what it knows now
    finally:
        attempt._mutex.release()


def check_standing(attempt: Attempt) -> None:
    """`LeaseLost` unless the ledger says that the task is still this attempt's: right before what
    has no fence, such as a message to another program."""
    attempt._check_standing()


def working(attempt: Attempt) -> current.Working:
    """Inside, what is saved belongs to this attempt."""
    return current.Working(_AtWork(attempt))


def make_last(attempt: Attempt) -> None:
    """Let the task fail if this attempt fails, though it has more left: those are for processes
    that die."""
    attempt._is_last = True


def end_block(attempt: Attempt, error: BaseException | None) -> bool:
    """Record how a block has ended; whether its error is settled by that."""
    if isinstance(error, Paused) and attempt._is_over:
        return True  # else it is a pause of another task, begun in here
    if attempt._is_over or (isinstance(error, LeaseLost) and attempt.is_lost):
        return False  # one that another task has lost, begun in here, is an error like any other
    if error is None:
        attempt.complete()
    elif isinstance(error, Exception):
        attempt.fail(error)
    else:  # Ctrl-C, or the end of the program
        _hand_back(attempt)
    return False


def _hand_back(attempt: Attempt) -> None:
    """Unless it has just ended: a call of a coroutine that was cancelled goes on in its thread."""
    try:
        attempt.hand_back()
    except (Conflict, Misuse):
        if not attempt.is_over:
            raise


def begin_step(
    attempt: Attempt,
    name: str,
    given: Given,
    *,
    enclosing: str,
    key: str | None = None,
    unknown: UnknownPolicy | None = None,
    retry: Retry | None = None,
) -> Call:
    """A step as its parts, for a caller that calls its function by itself: see `Attempt.step`."""
    attempt._check()
    return attempt._calls.begin(
        name, given, enclosing=enclosing, key=key, unknown=unknown, retry=retry
    )


def enclosing_step(attempt: Attempt) -> str:
    """The path of the step that this is called in; empty outside of any."""
    return attempt._calls.enclosing


def _is_so_many(number: Any) -> bool:
    return isinstance(number, int) and 0 <= number < 2**63


def _called(fn: Callable[..., Any], given: Given) -> Any:
    result = fn(*given.args, **given.kwargs)
    if isinstance(result, CoroutineType):
        result.close()
        raise Misuse("a step of the synchronous vault is a plain function; see hardsave.aio")
    return result
