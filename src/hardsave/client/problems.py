"""What an answer means that is no success: one of our errors, and whether to ask again. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from hardsave.client.transport import Reply
from hardsave.errors import (
    Conflict,
    Corrupt,
    DeadlineExceeded,
    HardsaveError,
    Misuse,
    NotFound,
    Unavailable,
)

_GATEWAY = (502, 504)  # of a proxy that does not reach the server, or not in time
_FIRST_WAIT = 0.1  # seconds; each further one is twice as long
_KINDS: Mapping[int, type[HardsaveError]] = {
    404: NotFound,
    409: Conflict,
    412: Conflict,
    429: Unavailable,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


class RangeEmpty(Misuse):
    """A part of a file was asked for that is behind its end."""


def wait_after_silence(tried: int) -> float:
    """For how many seconds to wait after a try, of so many, that no server has answered."""
    return float(_FIRST_WAIT * 2 ** (tried - 1))


def wait_after(reply: Reply, tried: int) -> float | None:
    """The same after an answer; None: another try does not help. A server that is busy says for how
    long; one that has given up does not."""
    if reply.status in _GATEWAY:
        return wait_after_silence(tried)
    named = reply.headers.get("retry-after", "") if reply.status == 503 else ""
    if not (named.isascii() and named.isdigit()):
        return None
    return max(float(named), wait_after_silence(tried))


def error_of(reply: Reply, url: str) -> HardsaveError:
    """The error that an answer stands for; `url` is that of the server."""
    if reply.status in (301, 302, 303, 307, 308):
        where = reply.headers.get("location", "another address")
        return Misuse(f"{url} leads to {where}; connect to that, a token is not sent along")
    told = _problem(reply)
    if told is None:
        return _strange(reply, url)
    detail = str(told.get("detail") or told.get("title") or f"status {reply.status}")
    kind = _kind(reply.status, told.get("code"))
    if reply.status >= 500 and (id := told.get("request_id")):
        detail = f"{detail} (request {id} of {url})"
    return kind(detail)


def _kind(status: int, code: object) -> type[HardsaveError]:
    if code == "damaged":
        return Corrupt
    if code == "deadline":
        return DeadlineExceeded
    if status == 416:
        return RangeEmpty
    if status >= 500:
        return Unavailable
    return _KINDS.get(status, Misuse)


def _problem(reply: Reply) -> dict[str, Any] | None:
    """What the server says is wrong; None if it is no server of ours that answers."""
    try:
        told = json.loads(reply.body)
    except (ValueError, RecursionError):
        return None
    is_ours = isinstance(told, dict) and "code" in told and "status" in told
    return told if is_ours else None


def _strange(reply: Reply, url: str) -> HardsaveError:
    if reply.status in _KINDS and reply.status != 404:
        return _KINDS[reply.status](f"{url} answers with status {reply.status}; try again later")
    return Misuse(
        f"{url} answers with status {reply.status}, and not as 'hardsave serve' does; is it the "
        "address of a server of this version?"
    )


def untrusted(url: str, why: str) -> Unavailable:
    """A server answers that may be another one."""
    return Unavailable(f"{url} is not trusted: {why}; SSL_CERT_FILE names certificates that are")


def unreachable(url: str, why: str) -> Unavailable:
    """No server answers."""
    return Unavailable(f"no server answers at {url}: {why}; start one with 'hardsave serve'")
