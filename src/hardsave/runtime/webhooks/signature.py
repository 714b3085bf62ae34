"""The signature of a callback, as Standard Webhooks 1.0 has it: made by its sender, verified by its
receiver. Needs nothing but Python, so that a receiver loads nothing else."""

import base64
import binascii
import hashlib
import hmac
import json
import math
import secrets
import time
from collections.abc import Iterable, Sequence
from typing import Any, Protocol
from urllib.parse import quote

from hardsave.defaults import WEBHOOK_TOLERANCE_SECONDS
from hardsave.errors import Misuse

ID = "webhook-id"
TIMESTAMP = "webhook-timestamp"
SIGNATURE = "webhook-signature"

_PREFIX = "whsec_"
_VERSION = "v1,"
_NEW_BYTES = 32
_FEWEST_BYTES, _MOST_BYTES = 24, 64
_MOST_DIGITS = 12  # of a timestamp
_PLAIN = "!\"#$&'()*+,/:;<=>?@[\\]^`{|}"  # what `quote` is to leave, beside letters and digits


class Headers(Protocol):
    """What a web framework hands over: a dict, or anything that lists names and values."""

    def items(self) -> Iterable[tuple[str, str]]: ...


# Secrets


def new_secret() -> str:
    return _PREFIX + base64.b64encode(secrets.token_bytes(_NEW_BYTES)).decode()


def key_of(secret: Any) -> bytes:
    """The bytes that a secret stands for. `Misuse` never shows it."""
    wanted = f"a secret is {_PREFIX} and {_FEWEST_BYTES} to {_MOST_BYTES} bytes in base64"
    if not isinstance(secret, str) or not secret.startswith(_PREFIX):
        raise Misuse(f"{wanted}; this one does not begin so")
    text = secret.removeprefix(_PREFIX).rstrip("=")
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (ValueError, binascii.Error) as error:
        raise Misuse(f"{wanted}; what follows is no base64") from error
    if not _FEWEST_BYTES <= len(key) <= _MOST_BYTES:
        raise Misuse(f"{wanted}; this one has {len(key)}")
    return key


# Signing


def header_text(id: str) -> str:
    """An id as a header can carry it, and as it is signed. A full stop would make it ambiguous
    where it ends in what is signed; anything else stays as it is where it can."""
    return quote(id, safe=_PLAIN, errors="surrogatepass").replace(".", "%2E")


def signed(id: str, at: int, body: bytes, keys: Iterable[bytes]) -> dict[str, str]:
    """The headers of one try, with a signature for each key. Pure. `id` is a `header_text`."""
    made = [_signature(id, str(at), body, key) for key in keys]
    return {ID: id, TIMESTAMP: str(at), SIGNATURE: " ".join(made)}


def _signature(id: str, timestamp: str, body: bytes, key: bytes) -> str:
    content = f"{id}.{timestamp}.".encode("utf-8", "surrogatepass") + body
    made = hmac.new(key, content, hashlib.sha256).digest()
    return _VERSION + base64.b64encode(made).decode()


# Verifying


def verify_webhook(
    secret_or_secrets: str | Iterable[str],
    headers: Headers,
    body: bytes,
    *,
    tolerance_seconds: float = WEBHOOK_TOLERANCE_SECONDS,
) -> dict[str, Any]:
    """What a callback says, if its signature is right: for a receiver. `Misuse` says why it is
    not: a header is missing, it is too old, no signature was made with one of the secrets.

    `body` is what was received, byte for byte. While a secret is replaced, give both. A callback
    may come twice, with the same `webhook-id`.
    """
    return verified(secret_or_secrets, headers, body, time.time(), tolerance_seconds)


def verified(
    secret_or_secrets: str | Iterable[str],
    headers: Headers,
    body: bytes,
    now: float,
    tolerance_seconds: float,
) -> dict[str, Any]:
    """The same at a given time. Pure."""
    keys = _keys(secret_or_secrets)
    if not isinstance(body, bytes):
        raise Misuse("the body is the bytes that were received, before they are parsed")
    given = {name.lower(): value for name, value in headers.items()}
    lacking = [name for name in (ID, TIMESTAMP, SIGNATURE) if not given.get(name)]
    if lacking:
        raise Misuse(f"this request has no header {', '.join(lacking)}: it is not signed")
    _check_time(given[TIMESTAMP], now, tolerance_seconds)
    expected = [_signature(given[ID], given[TIMESTAMP], body, key) for key in keys]
    if not _is_one_of(given[SIGNATURE].split(), expected):
        raise Misuse("no signature of this request was made with this secret over this body")
    return _content(body)


def _keys(secret_or_secrets: str | Iterable[str]) -> list[bytes]:
    given = [secret_or_secrets] if isinstance(secret_or_secrets, str) else secret_or_secrets
    keys = [key_of(each) for each in given]
    if not keys:
        raise Misuse("name at least one secret to verify a callback with")
    return keys


def _check_time(timestamp: str, now: float, tolerance_seconds: float) -> None:
    if not 0 <= tolerance_seconds < math.inf:
        raise Misuse(f"tolerance_seconds is a number of seconds, not {tolerance_seconds!r}")
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= _MOST_DIGITS):
        raise Misuse(f"the header {TIMESTAMP} is no number of seconds since 1970")
    age = now - int(timestamp)
    if abs(age) > tolerance_seconds:
        when = "old" if age > 0 else "far in the future"
        raise Misuse(
            f"this request is too {when}: its time and this machine's are {abs(age):.0f} s apart, "
            f"and {tolerance_seconds:.0f} s are allowed"
        )


def _is_one_of(given: Sequence[str], expected: Sequence[str]) -> bool:
    """All are compared, each in constant time: how long it takes tells nothing about any."""
    found = [
        hmac.compare_digest(each.encode("utf-8", "surrogatepass"), right.encode())
        for each in given
        for right in expected
    ]
    return any(found)


def _content(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Misuse(f"the body is signed, but is no JSON: {error}") from error
    if not isinstance(content, dict):
        raise Misuse("the body is signed, but is no JSON object")
    return content
