"""Requests that may be made twice, by a caller that does not know whether the first came through.

The key that the caller gives becomes the id of the operation's entry in the log. So it is written
in the same commit as what was asked for, and a repeated request finds it there: it is answered from
the entry, and nothing is done again. It is known for as long as the log keeps the entry.
"""

from typing import Any

from hardsave.errors import Conflict, Misuse
from hardsave.objects.records import Id, named_id
from hardsave.vault import operations
from hardsave.vault.context import Context
from hardsave.vault.operations import Entry

_LONGEST = 1_000  # characters


def id_of(context: Context, key: Any) -> Id | None:
    """The id of the entry that a request with this key makes; None without a key."""
    if key is None:
        return None
    if not isinstance(key, str) or not 0 < len(key) <= _LONGEST:
        raise Misuse(f"key is a text of 1 to {_LONGEST} characters that names one request")
    try:
        return named_id("request", repr(context.user), key)
    except UnicodeEncodeError as error:
        raise Misuse(f"key cannot be stored: {error}") from error


def repeated(context: Context, id: Id | None, timeline: str | None, *kinds: str) -> Entry | None:
    """The operation that a request has made already; None if it has not. `Conflict` if the key was
    that of another request."""
    record = None if id is None else context.store.log_entry(context.user, id)
    entry = None if record is None else operations.decode(record)
    if entry is not None and (entry.kind not in kinds or timeline not in (None, entry.timeline)):
        raise used(entry)
    return entry


def used(entry: Entry) -> Conflict:
    where = f" of {entry.timeline!r}" if entry.timeline else ""
    return Conflict(
        f"this key is that of another request, a {entry.kind}{where}; give each request its own"
    )
