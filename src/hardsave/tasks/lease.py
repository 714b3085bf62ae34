"""The lease of this process: taken when it first claims a task, renewed by a thread.

One lease covers all tasks that a process runs, so a heartbeat is one small write however many
they are. The thread is a daemon of the process: it dies with it, and with a fork it stays with
the parent. While the process is stopped so is its thread; what it then finds, once it goes
on, is that others have reclaimed its tasks: every attempt of this lease is told, and none can
write.
"""

import os
import threading
import time
import weakref
from collections.abc import Callable

from hardsave.defaults import LEASE_HEARTBEATS, LEASE_SECONDS
from hardsave.errors import HardsaveError, LeaseLost, Misuse
from hardsave.logs import log
from hardsave.objects.records import Id, OwnerRecord
from hardsave.stores.host import location
from hardsave.tasks import threads
from hardsave.tasks.context import LedgerContext
from hardsave.tasks.recovery import MAX_LEASE

_log = log(__name__)
_ours: "weakref.WeakSet[Lease]" = weakref.WeakSet()
_taken: set[Id] = set()


def held_here() -> set[Id]:
    """The owners that are this very process. They are not dead, even if their leases have passed:
    a machine that has slept, or a disk that is full, has kept them from being renewed, and a thread
    of the same process may ask before the heartbeat comes."""
    return {id for lease in list(_ours) if (id := lease.held()) is not None}


def taken_here() -> set[Id]:
    """All that this program has taken and not given back, be it that it lost sight of them. What
    else has the number of this process is from before it began another program (`exec`)."""
    return set(_taken)


class Lease(threads.Shared):
    """One process's right to run tasks. Threads may share it."""

    def __init__(
        self, context: LedgerContext, session: str, *, seconds: float = LEASE_SECONDS
    ) -> None:
        super().__init__()
        if not 0 < seconds * 1_000_000 <= MAX_LEASE:
            raise Misuse(f"a lease lasts up to an hour, not {seconds} s")
        self.session = session
        self.seconds = seconds
        self._context = context
        self._owner: OwnerRecord | None = None
        self._pid = 0
        self._passes = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._listeners: weakref.WeakSet[Listener] = weakref.WeakSet()  # of the one that it has

    def _begin_in_child(self) -> None:
        super()._begin_in_child()
        self._stop = threading.Event()

    def held(self) -> Id | None:
        """The id that it has, if it has one, and is this process's."""
        owner = self._owner
        return owner.id if owner is not None and self._pid == os.getpid() else None

    def is_overdue(self) -> bool:
        """Whether its time has passed, as far as this process knows: it was stopped, most likely,
        and its heartbeat has not come to it yet. Others may have its tasks."""
        return time.monotonic() >= self._passes

    def take(self) -> Id:
        """The id to claim tasks with. Takes the lease, if this process does not have one."""
        with self._mutex:
            if self._owner is None or self._pid != os.getpid():
                self._begin()
            assert self._owner is not None
            return self._owner.id

    def _begin(self) -> None:
        stop = threading.Event()
        every = self.seconds / LEASE_HEARTBEATS
        thread = threading.Thread(target=_beat, args=(weakref.ref(self), stop, every), daemon=True)
        thread.name = "hardsave-heartbeat"
        threads.start(thread)  # before it is taken: one that is not renewed is soon lost
        try:
            passes = self._passing()
            owner = self._renewed(self._new())
            self._hold(owner)
        except BaseException:
            stop.set()
            raise
        self._stop = stop
        self._thread = thread
        self._owner = owner
        self._passes = passes
        self._pid = os.getpid()
        _ours.add(self)

    def _hold(self, owner: OwnerRecord) -> None:
        _taken.add(owner.id)  # before another thread can see it
        try:
            self._context.store.hold(self._context.user, owner, is_new=True)
        except BaseException:
            _taken.discard(owner.id)
            raise

    def _new(self) -> OwnerRecord:
        here = location.here()
        return OwnerRecord(
            self._context.new_id(),
            self.session,
            *here.numbering,
            here.pid,
            here.pid_started,
            self._context.clock(),
            0,
            b"",
        )

    def _renewed(self, owner: OwnerRecord) -> OwnerRecord:
        clock, now = self._context.store.moment()
        return owner._replace(until=now + int(self.seconds * 1_000_000), clock=clock)

    def _passing(self) -> float:
        """When a lease of now passes, by the clock of this process; never late."""
        return time.monotonic() + self.seconds

    def beat(self) -> bool:
        """Renew it; False if there is nothing to renew any more."""
        with self._mutex:
            owner = self._owner
            if owner is None or self._pid != os.getpid():
                return False
            passes, renewed = self._passing(), self._renewed(owner)
            if self._context.store.hold(self._context.user, renewed):
                self._owner, self._passes = renewed, passes
                return True
            self._reclaim()
        return False

    def listen(self, listener: "Listener", id: Id) -> None:
        """Tell `listener` when the lease is lost that it relies on; at once if it is."""
        with self._mutex:
            if self._owner is not None and self._owner.id == id:
                self._listeners.add(listener)
                return
        listener.lost()

    def lose(self, id: Id) -> None:
        """A write has found it reclaimed: the next claim takes a new one."""
        with self._mutex:
            if self._owner is not None and self._owner.id == id:
                self._reclaim()
                self._stop.set()

    def forsake(self) -> None:
        """It cannot be renewed any more, nor given back: its store was closed. It ends with its
        time, and is not this process's any more: else the tasks that it covers would stay with
        this process for as long as it lives."""
        with self._mutex:
            self._end()

    def _reclaim(self) -> None:
        _log.error("session %r was taken for dead; others have its tasks now", self.session)
        self._end()

    def _end(self) -> None:
        """Attempts that rely on it are told, and none that relies on the next one. Under the mutex:
        a claim with another lease must not come between."""
        self._owner = None
        told, self._listeners = list(self._listeners), weakref.WeakSet()
        for listener in told:
            listener.lost()

    def close(self) -> None:
        """Give it back. A second call does nothing; the next `take` begins a new one."""
        with self._mutex:
            owner, self._owner = self._owner, None
            self._stop.set()
            thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        if owner is not None and self._pid == os.getpid():
            self._context.store.let_go(self._context.user, owner.id)
            _taken.discard(owner.id)


class Listener:
    """Something that wants to know when the lease is lost."""

    def lost(self) -> None:
        raise NotImplementedError


def _beat(lease: Callable[[], Lease | None], stop: threading.Event, interval: float) -> None:
    """The thread. It keeps nothing alive: a lease that is forgotten ends it."""
    while not stop.wait(interval):
        ours = lease()
        if ours is None:
            return
        try:
            if not ours.beat():
                return
        except LeaseLost:
            return
        except Misuse:
            ours.forsake()
            return
        except HardsaveError:
            _log.exception("the lease of session %r could not be renewed", ours.session)
        del ours
