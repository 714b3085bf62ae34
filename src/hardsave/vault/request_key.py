"""Requests that may be made twice, by a caller that does not know whether the first came through.

The key that the caller gives becomes the id of the operation's entry in the log, and the entry
keeps a digest of what was asked for, as it was said: `@~1` is the same request also once it means
another checkpoint. So both are written in the same commit as what was done, and a repeated request
finds them there: it is answered from the entry, and nothing is done again. A request that finds
nothing to do leaves an entry too, which undo passes by. It is known for as long as the log keeps
the entry.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar

from hardsave.errors import Conflict, Misuse, NotFound
from hardsave.objects.hashing import digest
from hardsave.objects.records import Id, named_id
from hardsave.stores.base import Batch
from hardsave.tuples import NamedTuple
from hardsave.vault import fencing, operations
from hardsave.vault.context import Context
from hardsave.vault.operations import Entry

T = TypeVar("T")

_LONGEST = 1_000  # characters
_DIGEST = 16  # bytes


class MadeMeanwhile(Conflict):
    """The log has an entry under the key of a request, which another caller has made: `once`
    answers from that."""


class Request(NamedTuple):
    """The id of an operation's entry in the log; of one that has a key, what was asked for, too."""

    id: Id
    asked: bytes = b""

    @property
    def has_key(self) -> bool:
        return self.asked != b""


def request(context: Context, key: Any, kind: str, *asked: object) -> Request:
    """What a caller asks for, under its key if it gives one."""
    if key is None:
        return Request(context.new_id())
    if not isinstance(key, str) or not 0 < len(key) <= _LONGEST:
        raise Misuse(f"key is a text of 1 to {_LONGEST} characters that names one request")
    try:
        id = named_id("request", repr(context.user), key)
    except UnicodeEncodeError as error:
        raise Misuse(f"key cannot be stored: {error}") from error
    said = repr((kind, *asked)).encode("utf-8", "surrogatepass")
    return Request(id, digest(said)[:_DIGEST])


repeats: ContextVar[list[Id] | None] = ContextVar("hardsave_repeats", default=None)
"""A list that gets the ids of requests that were answered from the log, for a caller in another
thread."""


def once(
    context: Context, request: Request, do: Callable[[], T], answer: Callable[[Entry], T]
) -> tuple[T, bool]:
    """Do what was asked for, and whether it was done now: if it was done before under its key, it
    is answered from its entry. `Conflict` if the key was that of another request."""
    noted = repeats.get()
    if noted is not None:
        repeats.set(None)  # it is for this request alone, and not for those of a handler
    if not request.has_key:
        return do(), True
    entry = _found(context, request)
    if entry is None:
        try:
            return do(), True
        except (Conflict, NotFound):  # perhaps because the same request came through meanwhile
            entry = _found(context, request)
            if entry is None:
                raise
    if noted is not None:
        noted.append(request.id)
    return answer(entry), False


def check_not_done(context: Context, request: Request | None) -> None:
    """`MadeMeanwhile` if the same request came through while this one waited for a lock."""
    if request is not None and request.has_key and _found(context, request):
        raise MadeMeanwhile("this request was made meanwhile under the same key")


def commit(context: Context, batch: Batch, request: Request) -> int:
    """Commit what was asked for. The store recognises an id that comes twice: then another caller
    was quicker under the same key, and nothing of this batch was written."""
    number = fencing.commit(context, batch)
    if request.has_key:
        found = context.store.log_entry(context.user, request.id)
        if found is not None and found[1:] != batch.event[1:]:
            raise MadeMeanwhile("this request was made meanwhile under the same key")
    return number


def _found(context: Context, request: Request) -> Entry | None:
    """The entry that a request has made already; None if it has not."""
    record = context.store.log_entry(context.user, request.id)
    entry = None if record is None else operations.read(record)
    if entry is not None and entry.effects.asked != request.asked:
        where = f" of {entry.timeline!r}" if entry.timeline else ""
        what = "one" if entry.kind == operations.NOTHING else f"a {entry.kind}"
        raise Conflict(
            f"this key is that of another request, {what}{where}; give each request its own"
        )
    return entry
