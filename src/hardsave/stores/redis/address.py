"""Where a store lies: a URL of a Redis or Valkey server, and the options that are ours.

    redis://ada:secret@cache.example:6379/0?prefix=team_a&ttl_seconds=86400

`rediss://` is the same with TLS, `redis+socket:///path?db=0` a Unix socket. Options of ours are
`prefix` (another store in the same database), `ttl_seconds`, `max_workspace_bytes`, and
`durability=process`, which accepts what the server may lose; the others are the client's own. A
password is part of no message: what people see is `shown`.
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

from redis import connection

from hardsave.defaults import REDIS_TTL_SECONDS, REDIS_WORKSPACE_BYTES
from hardsave.errors import Misuse
from hardsave.tuples import NamedTuple

_PREFIX = "hardsave"
_PLAIN = re.compile(r"[A-Za-z0-9_.:-]{1,100}")
_NUMBERS = {"ttl_seconds": REDIS_TTL_SECONDS, "max_workspace_bytes": REDIS_WORKSPACE_BYTES}
_OURS = {"prefix", "durability", *_NUMBERS}


_parse: Any = connection.parse_url  # the client has no types for it


class Address(NamedTuple):
    """Where a store lies, and how long it keeps what nothing renews."""

    client: Mapping[str, Any]  # what the client is made with
    prefix: str
    ttl_seconds: int
    max_workspace_bytes: int
    accepts_loss: bool  # `durability=process`
    shown: str  # for people, without what is secret

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"


def address_of(url: str) -> Address:
    """What a URL says. `Misuse` if the client cannot read it, or an option is none."""
    base, _, after = url.partition("?")
    given = parse_qsl(after, keep_blank_values=True)
    ours = {key: value for key, value in given if key in _OURS}
    rest = [pair for pair in given if pair[0] not in _OURS]
    try:
        plain = base.replace("redis+socket://", "unix://", 1)
        client = dict(_parse(f"{plain}?{urlencode(rest)}" if rest else plain))
    except (ValueError, TypeError):  # its message may have the URL in it, and the password
        raise Misuse(
            "this is no URL of a Redis server; write redis://user@host:6379/0, special "
            "characters in a password as %.."
        ) from None
    prefix = ours.get("prefix", _PREFIX)
    if not _PLAIN.fullmatch(prefix):
        raise Misuse(f"prefix={prefix!r}: write letters, digits and _ . : - only")
    if ours.get("durability", "process") not in ("power", "process"):
        raise Misuse(f"durability={ours['durability']!r}: write process, or leave it out")
    numbers = {name: _number(name, ours) for name in _NUMBERS}
    accepts = ours.get("durability") == "process"
    return Address(client, prefix, **numbers, accepts_loss=accepts, shown=_shown(client, ours))


def _number(name: str, given: Mapping[str, str]) -> int:
    said = given.get(name)
    if said is None:
        return _NUMBERS[name]
    if not said.isdecimal() or int(said) == 0:
        raise Misuse(f"{name}={said!r}: write a number above 0")
    return int(said)


def _shown(client: Mapping[str, Any], ours: Mapping[str, str]) -> str:
    query = dict(ours)
    if "path" in client:
        query = {"db": str(client.get("db", 0)), **query}
        where = f"redis+socket://{client['path']}"
    else:
        scheme = "rediss" if "connection_class" in client else "redis"
        user = f"{client['username']}@" if client.get("username") else ""
        place = f"{client.get('host', 'localhost')}:{client.get('port', 6379)}"
        where = f"{scheme}://{user}{place}/{client.get('db', 0)}"
    return where + (f"?{urlencode(query)}" if query else "")
