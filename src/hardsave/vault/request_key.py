"""The keys of operations: `stores.requests`, for what is in the log and is fenced.

A request that finds nothing to do leaves an entry too, which undo passes by: its repetition would
act on newer work.
"""

from collections.abc import Callable
from typing import TypeVar

from hardsave.stores import requests
from hardsave.stores.base import Batch
from hardsave.stores.requests import MadeMeanwhile, Request, repeats, request
from hardsave.vault import fencing, operations
from hardsave.vault.context import Context
from hardsave.vault.operations import Entry

__all__ = ["MadeMeanwhile", "Request", "check_not_done", "commit", "once", "repeats", "request"]

T = TypeVar("T")


def once(
    context: Context, request: Request, do: Callable[[], T], answer: Callable[[Entry], T]
) -> tuple[T, bool]:
    """Do an operation, or answer from its entry: see `requests.once`."""
    return requests.once(context, request, do, lambda made: answer(operations.read(made)))


def check_not_done(context: Context, request: Request | None) -> None:
    """`MadeMeanwhile` if the same request came through while this one waited for a lock."""
    if request is not None and request.has_key and requests.found(context, request):
        raise MadeMeanwhile("this request was made meanwhile under the same key")


def commit(context: Context, batch: Batch, request: Request) -> int:
    """Commit what was asked for; `MadeMeanwhile` if another caller was quicker under its key."""
    number = fencing.commit(context, batch)
    requests.check_own(context, batch, request)
    return number
