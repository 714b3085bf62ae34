"""Calls in threads that need not be joined: one that hangs fails its test and no other."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

PATIENCE_SECONDS = 60.0

Result = TypeVar("Result")


def start(call: Callable[[], Result]) -> Future[Result]:
    """The call, under way in a thread of its own."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 # raised where the answer is read
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
