"""Callbacks as work that survives: in whichever process a job ends, its receiver is told.

Contract. That a job is over is in the ledger. A worker reads what happened since a bookmark that
all workers share, and adds a task for each end, the *notice*, with what is to be said: its id is
made from the end, so it is added once however often the end is read. A notice is delivered like
any other task: by one worker at a time, again after a while if there is no answer, until its
tries are used. A worker that dies over it leaves it to the next. So a receiver may hear the same
twice, and knows it by its `Idempotency-Key`; it is never forgotten. Each try is signed with the
secrets that are live then; a receiver that answers 410 Gone is told nothing more until it is
enabled again. What is to be purged with the end of a job is carried out by the same hands: see
`closing`.
"""

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from hardsave.defaults import CALLBACK_TRIES
from hardsave.errors import Conflict, HardsaveError
from hardsave.logs import log
from hardsave.objects.hashing import digest
from hardsave.runtime.jobs import callback, closing
from hardsave.runtime.webhooks import disabled, secret_file, signature
from hardsave.stores.ledger import Fence
from hardsave.tasks import acts, adding
from hardsave.tasks.attempt import Attempt, check_standing, working
from hardsave.tasks.ledger import desk_of
from hardsave.tasks.retry import Retry
from hardsave.tasks.stats import TaskEvent
from hardsave.tasks.task import Task, view
from hardsave.tasks.worker_loop import Outcome, Terms, WorkerLoop
from hardsave.vault.jobs import spec as specs
from hardsave.vault.jobs import state as states
from hardsave.vault.opening import url_of
from hardsave.vault.vault import Vault
from hardsave.vault.workspaces.local_data import drop_if_purged

RETRY = Retry(first_seconds=10.0, max_seconds=3600.0)
LOOK_SECONDS = 1.0
DROP_SECONDS = 60.0  # between two looks whether another host has purged

_READER = "callbacks"
_PAGE = 500
_URGENT = 2**62  # before any job: it takes seconds, and a receiver waits
_ENDS = frozenset({"completed", "failed", "interrupted", "cancelled", "answered"})


def is_notice(task: Task) -> bool:
    found = task.metadata.get(specs.KEY)
    return isinstance(found, Mapping) and "notice_of" in found


def terms(retry: Retry) -> Terms:
    """How they are delivered: one after the other, and what is to be purged after them."""
    retry = replace(retry, never=(*retry.never, callback.CallbackRefused))
    return Terms(1, "retry", retry, _is_ours, come_first=True)


def _is_ours(task: Task) -> bool:
    return is_notice(task) or closing.is_closing(task)


class Notices:
    """The notices of a vault's jobs, written and delivered."""

    def __init__(self, vault: Vault, *, allow_private: bool) -> None:
        self._context = vault._context
        self._tasks = vault.tasks
        self._desk = desk_of(vault.tasks)
        self._user = vault.user
        self._store = url_of(vault)
        self._closing = closing.Closing(vault)
        self._allow_private = allow_private
        self._through = 0  # what was read up to here needs nothing more

    def write(self) -> None:
        """Add what is to be told of jobs that have ended since the last look."""
        if not self._through:
            self._through = self._tasks.bookmark(_READER)
        while page := self._tasks.happened(self._through, limit=_PAGE):
            known = self._tasks.bookmark(_READER)  # another worker may have been faster
            fresh = [each for each in page if each.number > known]
            new = [self._write_of(id) for id in _ended(fresh)]
            self._through = page[-1].number
            if any(new) or self._through - known >= _PAGE:
                self._tasks.bookmark(_READER, self._through)

    def drop_purged(self) -> None:
        """What another host has purged goes from this one, too, though nothing is done here."""
        drop_if_purged(self._context)

    def catch_up(self) -> None:
        """Try once more what others have given up."""
        self._closing.catch_up()

    def _write_of(self, id: str) -> bool:
        """Whether the job has a receiver, and no notice was written yet."""
        record = self._desk.store.task(self._desk.user, id)
        if record is None:
            return False  # forgotten meanwhile
        task = view(record, self._desk.codec)
        asked = states.queued(task)
        if asked is None or task.state not in ("completed", "failed") or task.ended_at is None:
            return False
        url = asked[0].callback
        fence = Fence(record.name, record.epoch)
        return url is not None and self._write_notice(task, task.ended_at, url, fence)

    def _write_notice(self, task: Task, end: datetime, url: str, fence: Fence) -> bool:
        """If the job stands as it was read: one that was purged since was told of."""
        id = task.id
        job = states.judged(task, None, end, states.TTL)
        said = callback.message(job, end.isoformat(timespec="seconds"))
        notice = adding.new(
            self._desk,
            id=notice_id(id, end),
            text=f"tell {urlsplit(url).hostname} that job {id} is over",
            key=f"{specs.KEY}:{id}:{end.isoformat()}",
            max_attempts=CALLBACK_TRIES,
            priority=_URGENT,
            not_before=None,
            after=(),
            metadata={specs.KEY: {"notice_of": id, "url": url, "message": said}},
        )
        try:
            acts.add(self._desk, notice, fences=[fence])
        except Conflict:  # it was written before, or there is nothing to tell any more
            return False
        return True

    def deliver(self, loop: WorkerLoop) -> None:
        """All that is due, one after the other."""
        while not loop.stop.is_set() and (attempt := loop.next()) is not None:
            loop.end(attempt, self._outcome(attempt))
            if attempt.task.error is not None:
                again = "is" if attempt.task.state == "pending" else "is not"
                log(__name__).warning("%s; it %s tried again", attempt.task.error, again)

    def _outcome(self, attempt: Attempt) -> Outcome:
        try:
            with working(attempt):
                if closing.is_closing(attempt.task):
                    self.write()  # what is to be told of a job is read from what goes now
                    return Outcome(self._closing.carry_out(attempt.task))
                return Outcome(self._sent(attempt))
        except Exception as error:  # noqa: BLE001 # any error is the task's end
            return Outcome(error=error)

    def _sent(self, attempt: Attempt) -> dict[str, int]:
        notice = attempt.task.metadata[specs.KEY]
        url = notice["url"]
        self._check_enabled(url)
        try:
            return {"status": self._posted(url, notice["message"], attempt)}
        except callback.CallbackGone as error:
            raise self._disabled(url, error) from error

    def _check_enabled(self, url: str) -> None:
        known = disabled.found(self._tasks, url)
        if known is not None:
            raise callback.CallbackRefused(
                f"{callback.named(url)} is disabled: it has answered 410 Gone on "
                f"{known.since:%Y-%m-%d}; {disabled.how_to_enable(known.id, self._user)}"
            )

    def _disabled(self, url: str, error: callback.CallbackGone) -> callback.CallbackGone:
        gone = disabled.disable(self._tasks, url, datetime.now(UTC))
        return callback.CallbackGone(
            f"{error} and is disabled from now on, because it wants no more callbacks; "
            f"{disabled.how_to_enable(gone.id, self._user)}"
        )

    def _posted(self, url: str, said: Mapping[str, Any], attempt: Attempt) -> int:
        id = signature.header_text(attempt.id)
        return callback.send(
            url,
            said,
            allow_private=self._allow_private,
            once=id,
            sign=functools.partial(self._signed, url, id),
            check=functools.partial(check_standing, attempt),
        )

    def _signed(self, url: str, id: str, data: bytes) -> dict[str, str]:
        """The headers of a signature; none where there is no secret."""
        now = datetime.now(UTC)
        keys = secret_file.keys_for(self._store, url, now)
        return signature.signed(id, int(now.timestamp()), data, keys) if keys else {}


def _ended(happened: list[TaskEvent]) -> Iterator[str]:
    """The tasks that may be over, once each."""
    names = (each.task for each in happened if each.kind in _ENDS and each.task is not None)
    yield from dict.fromkeys(names)


def notice_id(job: str, ended_at: datetime) -> str:
    """One end, one id."""
    return f"{job}/notice-{digest(ended_at.isoformat().encode())[:4].hex()}"


class Messenger:
    """A thread that tells others, for as long as a worker runs: callbacks what has ended, and all
    who look what this worker offers; and that purges what is to be gone, here and of what this host
    keeps. It stops no worker."""

    def __init__(self, notices: Notices, loop: WorkerLoop, offer: Callable[[], None]) -> None:
        self._notices = notices
        self._offer = offer
        self._loop = loop
        self._wake = threading.Event()
        self._is_over = False
        self._has_caught_up = False
        self._drops_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="hardsave-callbacks", daemon=True)

    def wake(self) -> None:
        """Something has ended: look now."""
        self._wake.set()

    @contextlib.contextmanager
    def at_work(self, grace_seconds: float) -> Iterator[None]:
        """At the end, what has just ended is told, too, if that does not take too long."""
        self._wake.set()  # the offer is to be known at once
        self._thread.start()
        try:
            yield
        finally:
            self._is_over = True
            self._wake.set()
            self._thread.join(min(grace_seconds, threading.TIMEOUT_MAX))
            self._loop.stop.set()
            self._loop.hand_back_all()

    def _run(self) -> None:
        is_last = False
        while not is_last:
            self._wake.wait(LOOK_SECONDS)
            self._wake.clear()
            is_last = self._is_over
            try:
                self._offer()
                self._notices.write()
                self._notices.deliver(self._loop)
                self._catch_up()
                self._drop_purged()
            except HardsaveError:
                log(__name__).exception("callbacks cannot be told for now; it is tried again")

    def _catch_up(self) -> None:
        """Once, after what receivers wait for."""
        if not self._has_caught_up:
            self._notices.catch_up()
            self._has_caught_up = True
            self._notices.deliver(self._loop)

    def _drop_purged(self) -> None:
        if time.monotonic() < self._drops_at:
            return
        self._drops_at = time.monotonic() + DROP_SECONDS
        try:
            self._notices.drop_purged()
        except (HardsaveError, OSError):
            log(__name__).exception("what was purged may still be on this host; it is tried again")
