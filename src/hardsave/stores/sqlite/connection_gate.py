"""Which threads use a store's connections, and when these may be closed.

Every call goes through the gate: `with gate:`. A thread that closes the connections, for good or
for a fork, waits until no call is inside, and lets none in meanwhile.
"""

import threading
from collections.abc import Callable
from threading import get_ident

from hardsave.defaults import BUSY_SECONDS
from hardsave.errors import Misuse


class ConnectionGate:
    """The gate of one store. `reopen` is called when a call comes to a gate that was shut."""

    def __init__(self, reopen: Callable[[], None]) -> None:
        self._reopen = reopen
        self._lock = threading.RLock()
        self._condition = threading.Condition(self._lock)
        self._inside: set[int] = set()  # threads with a call under way
        self._is_pausing = False  # calls that come now have to wait
        self.is_shut = False  # the next call opens again
        self.is_closed = False  # for good

    @property
    def is_open(self) -> bool:
        return not self.is_closed and not self.is_shut

    def __enter__(self) -> None:
        """A call under way: connections are open, and stay open until it ends.

        Not to be nested: the thread that shuts the store waits for the outer one, and lets no
        inner one begin.
        """
        with self._lock:
            if self._is_pausing:
                self._condition.wait_for(lambda: not self._is_pausing)
            if self.is_closed or self.is_shut:
                self.check()
                self._reopen()
                self.is_shut = False
            self._inside.add(get_ident())

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside.discard(get_ident())
            if self._is_pausing:
                self._condition.notify_all()

    def check(self) -> None:
        if self.is_closed:
            raise Misuse("this store is closed; open it again")

    def shut(self, shut: Callable[[], None]) -> None:
        """Call `shut` with no call inside, if that was not done already. The gate is held."""
        if not self.is_open:
            return
        self._is_pausing = True
        own = {get_ident()}  # left behind by a Ctrl-C: this thread is here
        self._condition.wait_for(lambda: self._inside <= own, BUSY_SECONDS)
        self._is_pausing = False
        self._condition.notify_all()
        shut()
        self.is_shut = True

    def hold(self) -> None:
        self._lock.acquire()

    def let_go(self) -> None:
        self._lock.release()

    def renew(self) -> None:
        """In a forked child: the old one may be owned by a thread that is gone."""
        self._lock = threading.RLock()
        self._condition = threading.Condition(self._lock)
        self._inside = set()
        self._is_pausing = False
