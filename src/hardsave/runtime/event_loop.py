"""The event loop of this process for agents that are run by plain functions: `run_sync`, workers.

The clients of models keep connections, and those belong to the loop that opened them: on a second
loop the client of an agent fails, because its connections wait for a loop that is closed. So there
is one loop, in a thread of its own, from the first call until the process ends.

Contract. Any thread may hand in coroutines; each runs with the context variables of its caller. A
call that is interrupted cancels its coroutine and waits for the end of it. What still runs when the
process ends is cancelled then. A forked child gets a loop of its own when it needs one.
"""

import asyncio
import atexit
import concurrent.futures
import contextvars
import os
import threading
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_MOST_THREADS = 1000
"""Made when they are needed. A tool may hold one for minutes, and saves must not wait for it."""
_END_SECONDS = 5.0
"""What refuses to be cancelled does not keep a process from ending."""


class Submitted(Generic[T]):
    """A coroutine that was handed in."""

    def __init__(self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> None:
        self._loop = loop
        self._coroutine = coroutine
        self._context = contextvars.copy_context()
        self._task: asyncio.Task[T] | None = None
        self._end: concurrent.futures.Future[T] = concurrent.futures.Future()

    def begin(self) -> None:
        self._loop.call_soon_threadsafe(self._begin)

    @property
    def is_over(self) -> bool:
        return self._end.done()

    def result(self, timeout_seconds: float | None = None) -> T:
        """What it gives or raises; `TimeoutError` if it goes on for longer than that."""
        return self._end.result(timeout_seconds)

    def cancel(self) -> None:
        """Ask it to end. It is over when it has."""
        self._loop.call_soon_threadsafe(self._cancel)

    def wait(self) -> None:
        """Until it is over, in any way."""
        concurrent.futures.wait([self._end])

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._coroutine, context=self._context)
        self._task.add_done_callback(self._ended)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
        else:  # interrupted before it was begun
            self._coroutine.close()
            self._end_cancelled()

    def _end_cancelled(self) -> None:
        self._end.cancel()
        self._end.set_running_or_notify_cancel()  # wakes the threads that wait for it

    def _ended(self, task: "asyncio.Task[T]") -> None:
        if task.cancelled():
            self._end_cancelled()
        elif (error := task.exception()) is not None:
            self._end.set_exception(error)
        else:
            self._end.set_result(task.result())


def submit(coroutine: Coroutine[Any, Any, T]) -> Submitted[T]:
    """Let a coroutine run; any thread may wait for it."""
    submitted = Submitted(_host.running(), coroutine)
    submitted.begin()
    return submitted


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine gives, as `asyncio.run` would."""
    submitted = Submitted(_host.running(), coroutine)
    try:
        submitted.begin()  # inside: Ctrl-C may come right after it
        return submitted.result()
    except concurrent.futures.CancelledError:
        raise asyncio.CancelledError from None
    except BaseException:
        if not submitted.is_over:  # the caller was interrupted, by Ctrl-C above all
            submitted.cancel()
            submitted.wait()
        raise


class _Host:
    """The loop and its thread, made when they are first needed."""

    _mutex: threading.Lock
    _loop: asyncio.AbstractEventLoop | None
    _thread: threading.Thread | None

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """In a forked child the thread is the parent's, and another thread may hold the lock."""
        self._mutex = threading.Lock()
        self._loop = self._thread = None

    def running(self) -> asyncio.AbstractEventLoop:
        with self._mutex:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                pool = concurrent.futures.ThreadPoolExecutor(_MOST_THREADS, "hardsave-agents")
                self._loop.set_default_executor(pool)
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="hardsave-agents", daemon=True
                )
                self._thread.start()
            return self._loop

    def end(self) -> None:
        """With the process. What still runs is cancelled, not destroyed while it waits."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        settled = asyncio.run_coroutine_threadsafe(_settled(), loop)
        concurrent.futures.wait([settled], 2 * _END_SECONDS)
        if settled.done():  # else a coroutine blocks the thread, which ends with the process
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


async def _settled() -> None:
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=_END_SECONDS)
    await asyncio.get_running_loop().shutdown_asyncgens()


_host = _Host()
os.register_at_fork(after_in_child=_host.forget)
atexit.register(_host.end)
