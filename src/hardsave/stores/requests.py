"""Requests that may be made twice, by a caller that does not know whether the first came through.

The key that the caller gives becomes the id of an entry in the log, which keeps a digest of what
was asked for, as it was said: `@~1` is the same request also once it means another checkpoint. It
is written in the same commit as what was done, and a repeated request finds it there: it is
answered from what is there, and nothing is done again. One that raises is not remembered.

Of an operation the entry is its own. What is done to a task is told by the entries of the ledger,
which are found by their task alone: such a request adds an entry of kind `request` beside them, so
that a key is one request's among all. It is known for as long as the log keeps the entry.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from hardsave.actor import signed
from hardsave.errors import Conflict, Misuse, NotFound
from hardsave.objects.codec import Codec
from hardsave.objects.hashing import digest
from hardsave.objects.records import EntryRecord, Id, LogRecord, named_id
from hardsave.stores.base import Batch, Store
from hardsave.stores.ledger import Work
from hardsave.tuples import NamedTuple

T = TypeVar("T")

KIND = "request"  # of an entry that says no more than that something was done to a task
NOTHING = "nothing"  # a request found nothing to do: only its key is kept

_LONGEST = 1_000  # characters
_DIGEST = 16  # bytes
_codec = Codec()  # entries are plain data


class Asker(Protocol):
    """On whose behalf a request is made: a store as one user sees it."""

    @property
    def store(self) -> Store: ...
    @property
    def user(self) -> str | None: ...
    @property
    def new_id(self) -> Callable[[], Id]: ...


class MadeMeanwhile(Conflict):
    """The log has an entry under the key of a request, which another caller has made: `once`
    answers from that."""


class OtherRequest(Conflict):
    """The key of a request, or the id that a save was given, is that of another one."""


class Request(NamedTuple):
    """The id of an entry in the log; of a request that has a key, what was asked for, too."""

    id: Id
    asked: bytes = b""

    @property
    def has_key(self) -> bool:
        return self.asked != b""


def request(asker: Asker, key: Any, kind: str, *asked: object) -> Request:
    """What a caller asks for, under its key if it gives one."""
    if key is None:
        return Request(asker.new_id())
    if not isinstance(key, str) or not 0 < len(key) <= _LONGEST:
        raise Misuse(f"key is a text of 1 to {_LONGEST} characters that names one request")
    try:
        id = named_id("request", repr(asker.user), key)
    except UnicodeEncodeError as error:
        raise Misuse(f"key cannot be stored: {error}") from error
    said = repr((kind, *asked)).encode("utf-8", "surrogatepass")
    return Request(id, digest(said)[:_DIGEST])


repeats: ContextVar[list[Id] | None] = ContextVar("hardsave_repeats", default=None)
"""A list that gets the ids of requests that were answered from the log, for a caller in another
thread."""


def once(
    asker: Asker, request: Request, do: Callable[[], T], answer: Callable[[LogRecord], T]
) -> tuple[T, bool]:
    """Do what was asked for, and whether it was done now: if it was done before under its key, it
    is answered from its entry. `Conflict` if the key was that of another request."""
    noted = repeats.get()
    if noted is not None:
        repeats.set(None)  # it is for this request alone, and not for those of a handler
    if not request.has_key:
        return do(), True
    made = found(asker, request)
    if made is None:
        try:
            return do(), True
        except (Conflict, NotFound):  # perhaps because the same request came through meanwhile
            made = found(asker, request)
            if made is None:
                raise
    if noted is not None:
        noted.append(request.id)
    return answer(made), False


def found(asker: Asker, request: Request) -> LogRecord | None:
    """The entry that a request has made already; None if it has not."""
    made = asker.store.log_entry(asker.user, request.id)
    if made is not None and told(made).get("asked") != request.asked:
        raise OtherRequest(
            f"this key is that of another request, {_named(made)}; give each request its own"
        )
    return made


def check_unused(asker: Asker, key: str) -> None:
    """For what is known by another id than the key's, such as a save: `OtherRequest` if something
    else was asked for under the key."""
    found(asker, request(asker, key, "none of these"))


def told(made: LogRecord) -> Mapping[str, Any]:
    """What an entry says."""
    data = _codec.decode(made.data)
    return data if isinstance(data, Mapping) else {}


def _named(made: LogRecord) -> str:
    if made.kind == KIND:
        return f"about task {told(made)['task']!r}"
    where = f" of {made.timeline!r}" if made.timeline else ""
    return f"{'one' if made.kind == NOTHING else f'a {made.kind}'}{where}"


def check_own(asker: Asker, batch: Batch, request: Request) -> None:
    """After a commit: the store recognises an id that comes twice. Then another caller was quicker
    under the same key, and nothing of this batch was written: `MadeMeanwhile`."""
    if request.has_key:
        made = asker.store.log_entry(asker.user, request.id)
        if made is not None and made[1:] != batch.event[1:]:
            raise MadeMeanwhile("this request was made meanwhile under the same key")


def of_task(asker: Asker, request: Request, event: EntryRecord, work: Work) -> Batch:
    """What is done to a task, as a batch that a repeated request is recognised by."""
    data = {"asked": request.asked, "task": event.task, "what": event.kind, "event": event.id}
    encoded = _codec.encode(signed(data))
    made = LogRecord(0, request.id, None, KIND, event.created_at, encoded)
    return Batch(asker.user, made, work=work._replace(entries=(*work.entries, event)))
