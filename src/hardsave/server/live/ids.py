"""Ids of events, as clients have them: opaque texts. Pure.

An id holds the number of an event and a digest of its project, its user and the generation of the
store: the number alone would be taken for one of any other project, or of a store that has given it
again, where events would be skipped or come twice. The digest is no
secret; an id lets no caller in.
"""

import base64
import hashlib
import json

_VERSION = b"\x01"
_DIGEST_BYTES = 4
_HEAD = len(_VERSION) + _DIGEST_BYTES
_NUMBER_BYTES = 8
_END = 1 << 62  # the numbers of a store lie below


def encode(project: str | None, user: str | None, number: int, generation: bytes = b"") -> str:
    """The id of an event, or of the place behind it."""
    raw = _head(project, user, generation) + number.to_bytes(_NUMBER_BYTES, "big")
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(project: str | None, user: str | None, id: str, generation: bytes = b"") -> int | None:
    """The number that an id of this project, user and generation holds; None of any other text."""
    try:
        raw = base64.urlsafe_b64decode(f"{id}==")
    except ValueError:
        return None
    number = int.from_bytes(raw[_HEAD:], "big")
    # There is one text for a number: what was made up, or cut, is none.
    return number if number < _END and encode(project, user, number, generation) == id else None


def _head(project: str | None, user: str | None, generation: bytes) -> bytes:
    about = json.dumps([project, user]).encode() + generation
    return _VERSION + hashlib.blake2b(about, digest_size=_DIGEST_BYTES).digest()
