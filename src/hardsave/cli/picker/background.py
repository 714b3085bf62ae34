"""What is read while the user looks and types: a thread that does the latest thing asked of it, and
one that reads page after page."""

import threading
from collections.abc import Callable, Hashable, Iterator
from contextvars import copy_context
from functools import partial
from typing import Generic, TypeVar

REST_SECONDS = 0.08  # for which nothing else is asked: the cursor rests

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Worker:
    """A thread that wakes the screen when it has something to show. An error in it is raised where
    its results are taken. A daemon: the process may end while it works."""

    def __init__(self, name: str) -> None:
        self._changed = threading.Condition()
        self._error: Exception | None = None
        self._wake: Callable[[], None] = _no_screen
        run = partial(copy_context().run, self._run)  # short names are known to this context
        self._thread = threading.Thread(target=run, name=name, daemon=True)

    def begin(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._thread.start()

    def end(self) -> None:
        """Begin nothing more; after this, the screen is not woken again."""
        with self._changed:
            self._wake = _no_screen
            self._changed.notify_all()

    @property
    def _is_over(self) -> bool:
        return self._wake is _no_screen

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:  # noqa: BLE001 # raised in the thread that takes the results
            with self._changed:
                self._error = error
                self._wake()

    def _work(self) -> None:
        raise NotImplementedError

    def _raise_its_error(self) -> None:
        if self._error is not None:
            raise self._error


class Latest(_Worker, Generic[K, V]):
    """Computes what was asked for last. What was asked before that and is not begun is dropped;
    what is done is kept.

    `end` does not wait: a comparison with a large directory may take longer than a user who leaves
    wants to wait.
    """

    def __init__(self, compute: Callable[[K], V], *, rest_seconds: float = REST_SECONDS) -> None:
        super().__init__("hardsave-preview")
        self._compute = compute
        self._rest_seconds = rest_seconds
        self._done: dict[K, V] = {}
        self._asked: K | None = None

    def ask(self, key: K) -> V | None:
        """What is known of it; None: it will be computed, unless something else is asked for."""
        with self._changed:
            self._raise_its_error()
            if key in self._done:
                return self._done[key]
            if self._asked != key:
                self._asked = key
                self._changed.notify_all()
            return None

    def _work(self) -> None:
        while (key := self._next()) is not None:
            value = self._compute(key)
            with self._changed:
                self._done[key] = value
                self._wake()

    def _next(self) -> K | None:
        """The key that is asked for, once no other has been for a moment; None: it is over."""
        with self._changed:
            while not self._is_over:
                key = self._asked
                if key is None or key in self._done:
                    self._changed.wait()
                elif self._rests(key):
                    return key
        return None

    def _rests(self, key: K) -> bool:
        """Whether nothing else is asked for during a moment."""
        return not self._changed.wait_for(
            lambda: self._asked != key or self._is_over, self._rest_seconds
        )


class Pages(_Worker, Generic[V]):
    """Reads what an iterator gives, one after the other while more is wanted."""

    def __init__(self, pages: Iterator[V]) -> None:
        super().__init__("hardsave-moments")
        self._pages = pages
        self._newest: V | None = None
        self._is_wanted = False

    def end(self) -> None:
        super().end()
        self._thread.join()  # a page is read in a moment

    def take(self, *, more: bool) -> V | None:
        """The newest page, once; None if there is none since. `more`: whether to go on reading."""
        with self._changed:
            self._raise_its_error()
            if more != self._is_wanted:
                self._is_wanted = more
                self._changed.notify_all()
            taken, self._newest = self._newest, None
            return taken

    def _work(self) -> None:
        while self._waits_until_wanted():
            page = next(self._pages, None)
            if page is None:
                return
            with self._changed:
                self._newest, self._is_wanted = page, False
                self._wake()

    def _waits_until_wanted(self) -> bool:
        """False: it is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_wanted or self._is_over)
            return not self._is_over


def _no_screen() -> None:
    """Instead of waking one."""
