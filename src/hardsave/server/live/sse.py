"""Messages of a stream as bytes (server-sent events). Pure.

All data are JSON in ASCII: a line break in them would end the message.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from hardsave.values.text import dumps

MEDIA_TYPE = "text/event-stream"
HEADERS = (("X-Accel-Buffering", "no"),)  # or nginx would keep messages back

Reason = Literal["far_behind", "slow", "unknown_id", "store_changed"]


def message(event: str, data: Mapping[str, Any], *, id: str = "") -> bytes:
    return _spelt(event, dumps(data).encode("ascii"), id)


def items(event: str, items: Iterable[bytes], *, id: str = "") -> bytes:
    """A message with items that are JSON already."""
    return _spelt(event, b'{"items":[' + b",".join(items) + b"]}", id)


def reload(reason: Reason, *, id: str) -> bytes:
    """The client has missed something, and goes on from this id."""
    return message("reload", {"reason": reason}, id=id)


def heartbeat(*, id: str = "") -> bytes:
    """A comment. With an `id`, the client goes on from there when it connects again, and is told
    nothing: a message without data is none."""
    return b": .\n" + _field("id", id) + b"\n"


def _spelt(event: str, data: bytes, id: str) -> bytes:
    return _field("id", id) + _field("event", event) + b"data: " + data + b"\n\n"


def _field(name: str, value: str) -> bytes:
    return f"{name}: {value}\n".encode("ascii") if value else b""


BYE = message("bye", {})
