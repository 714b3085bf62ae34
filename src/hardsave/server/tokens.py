"""The tokens of a user: in one file among the user's own data, hashed, each for one store, or for
all that this user serves.

A token is 256 random bits, so a plain SHA-256 of it tells nothing, and no slow hash is needed.
"""

import hashlib
import hmac
import os
import re
import secrets
import sys
from datetime import datetime
from typing import Any

from hardsave.config import canonical as canonical
from hardsave.config import data_directory
from hardsave.config.private_file import PrivateFile, zoned
from hardsave.errors import Conflict, Misuse, NotFound
from hardsave.server.caller import SCOPES, Scope
from hardsave.tuples import NamedTuple

FILE = "tokens.json"
EVERY_STORE = "*"  # no URL is spelt like that
_PREFIX = "hs_"  # so that a scanner of secrets can know one
_HASH = re.compile("[0-9a-f]{64}")


class Token(NamedTuple):
    """A token as it is kept: it itself is shown once, and kept nowhere."""

    id: str
    name: str
    store: str
    user: str | None
    scope: Scope
    hash: str
    created_at: datetime
    expires_at: datetime | None

    @property
    def is_for_all(self) -> bool:
        return self.store == EVERY_STORE

    def is_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now


def new_secret() -> str:
    return _PREFIX + secrets.token_urlsafe(32)


def hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def matching(tokens: tuple[Token, ...], secret: str, now: datetime) -> Token | None:
    """The token that a caller has sent, unless it has expired. Pure.

    All are compared, each in constant time: how long it takes tells nothing about any.
    """
    given = hashed(secret)
    found = [each for each in tokens if hmac.compare_digest(each.hash, given)]
    return next((each for each in found if not each.is_expired(now)), None)


def token_file() -> "TokenFile":
    """The file of this user."""
    return TokenFile(data_directory(os.environ, sys.platform) / FILE)


class TokenFile(PrivateFile[Token]):
    """The tokens of all stores of this user. Processes may use it at once."""

    ENTRIES = "tokens"
    IF_OPEN = "write to {path}, and so make tokens; see what is in it"
    IF_BROKEN = "remove it, and make new tokens with 'hardsave token add'"

    def every(self) -> tuple[Token, ...]:
        """Expired ones too, in the order in which they were made."""
        return tuple(self._read())

    def of(self, store: str) -> tuple[Token, ...]:
        """Those that count for a store."""
        return tuple(each for each in self._read() if each.store in (store, EVERY_STORE))

    def add(
        self,
        name: str,
        *,
        store: str,
        user: str | None,
        scope: Scope,
        now: datetime,
        expires_at: datetime | None,
    ) -> tuple[Token, str]:
        """A new token, and what its caller has to send. An expired one of that name goes."""
        secret = new_secret()
        made = Token(
            secrets.token_hex(4), name, store, user, scope, hashed(secret), now, expires_at
        )
        with self._changing() as tokens:
            same = [each for each in tokens if (each.store, each.name) == (store, name)]
            if any(not each.is_expired(now) for each in same):
                raise Conflict(
                    f"there is a token {name!r} already; 'hardsave token revoke {name}' ends it"
                )
            tokens[:] = [*(each for each in tokens if each not in same), made]
        return made, secret

    def revoke(self, name: str, *, store: str) -> Token:
        """Remove the token of that name or id which counts for a store; it counts no longer from
        now on."""
        with self._changing() as tokens:
            counting = [each for each in tokens if each.store in (store, EVERY_STORE)]
            found = [each for each in counting if each.name == name]
            found = found or [each for each in counting if each.id == name]
            if not found:
                raise NotFound(
                    f"there is no token {name!r} for this store; 'hardsave token list' lists them"
                )
            if len(found) > 1:
                own, others = sorted(found, key=lambda each: each.is_for_all)
                raise Misuse(
                    f"two tokens are called {name!r}: type 'hardsave token revoke {own.id}' for "
                    f"that of this store, or {others.id} for that of all projects"
                )
            tokens.remove(found[0])
        return found[0]

    def _parsed(self, data: dict[str, Any]) -> Token:
        return _token(data)

    def _plain(self, entry: Token) -> dict[str, Any]:
        return _as_data(entry)


class LiveTokens:
    """All tokens, as the file has them now: one that is revoked ends at once."""

    def __init__(self, file: TokenFile) -> None:
        self._file = file
        self._known: tuple[object, tuple[Token, ...]] | None = None

    def now(self) -> tuple[Token, ...]:
        stamp = self._file.stamp()  # before it is read: a change in between is seen next time
        if self._known is None or self._known[0] != stamp:
            self._known = stamp, self._file.every()
        return self._known[1]


def _as_data(token: Token) -> dict[str, Any]:
    expires = token.expires_at
    return {
        **token._asdict(),
        "created_at": token.created_at.isoformat(),
        "expires_at": None if expires is None else expires.isoformat(),
    }


def _token(data: dict[str, Any]) -> Token:
    if data["scope"] not in SCOPES:
        raise ValueError(f"scope {data['scope']!r}")
    for name in ("id", "name", "store", "hash"):
        if not isinstance(data[name], str):
            raise TypeError(f"{name} {data[name]!r}")
    if not isinstance(data["user"], str | None):
        raise TypeError(f"user {data['user']!r}")
    if _HASH.fullmatch(data["hash"]) is None:
        raise ValueError(f"hash {data['hash']!r}")
    expires = data["expires_at"]
    return Token(
        **{
            **data,
            "created_at": zoned(data["created_at"]),
            "expires_at": None if expires is None else zoned(expires),
        }
    )
