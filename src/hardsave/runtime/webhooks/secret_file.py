"""The secrets that callbacks are signed with: in one file among the user's own data, never in a
store. Each belongs to one store, and to one receiver or to all.

Unlike tokens they are kept as they are, because a signature is made with the secret itself. So the
file must not even be read by other users.
"""

import os
import secrets
import sys
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from hardsave.config import data_directory
from hardsave.config.private_file import READABLE, WRITABLE, PrivateFile, zoned
from hardsave.errors import Conflict, Misuse, NotFound, Unavailable
from hardsave.runtime.webhooks.signature import key_of
from hardsave.tuples import NamedTuple
from hardsave.vault.jobs.spec import check_url

FILE = "webhook-secrets.json"

_PORTS = {"http": 80, "https": 443}


class Secret(NamedTuple):
    """A secret, and what is signed with it."""

    id: str
    store: str
    receiver: str | None  # None: all
    secret: str
    created_at: datetime
    expires_at: datetime | None

    def __repr__(self) -> str:
        """Without the secret: logs and tracebacks have this."""
        return f"Secret(id={self.id!r}, store={self.store!r}, receiver={self.receiver!r})"

    def is_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now

    def is_for(self, url: str) -> bool:
        """Whether callbacks to this address are signed with it."""
        return self.receiver in (None, receiver_of(url))


def receiver_of(url: str) -> str:
    """The receiver behind an address, in one spelling: `https://host`, `http://host:8080`."""
    check_url(url)
    parts = urlsplit(url)
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _PORTS[parts.scheme]) else f":{parts.port}"
    return f"{parts.scheme}://{shown}{port}"


def live(known: Iterable[Secret], url: str, now: datetime) -> list[Secret]:
    """Those that a callback to an address is signed with now. Pure."""
    return [each for each in known if each.is_for(url) and not each.is_expired(now)]


def secret_file() -> "SecretFile":
    """The file of this user."""
    return SecretFile(data_directory(os.environ, sys.platform) / FILE)


def keys_for(store: str, url: str, now: datetime) -> list[bytes]:
    """What a callback to an address is signed with now: each is read anew, so that one that was
    added or removed counts at once."""
    try:
        file = secret_file()
    except Unavailable:  # a user without a home keeps none
        return []
    return [key_of(each.secret) for each in live(file.of(store), url, now)]


class SecretFile(PrivateFile[Secret]):
    """The secrets for all stores of this user. Processes may use it at once."""

    ENTRIES = "secrets"
    REFUSED_MODE = READABLE | WRITABLE
    IF_OPEN = "read or change {path}, and so sign callbacks; see what is in it"
    IF_BROKEN = "remove it, and make new secrets with 'hardsave webhook add'"

    def of(self, store: str) -> list[Secret]:
        """Those for a store, expired ones too, in the order in which they were added."""
        return [each for each in self._read() if each.store == store]

    def add(
        self,
        secret: str,
        *,
        store: str,
        receiver: str | None,
        now: datetime,
        expires_at: datetime | None = None,
        others_expire_at: datetime | None = None,
    ) -> Secret:
        """Sign with one more secret. The others for the same receiver stay, or expire by a given
        time; those that have expired go."""
        key_of(secret)
        made = Secret(secrets.token_hex(4), store, receiver, secret, now, expires_at)
        with self._changing() as entries:
            same = [each for each in entries if (each.store, each.receiver) == (store, receiver)]
            if any(each.secret == secret and not each.is_expired(now) for each in same):
                raise Conflict("this secret is there already; 'hardsave webhook list' lists all")
            kept = [each for each in entries if each not in same or not each.is_expired(now)]
            entries[:] = [_until(each, others_expire_at) if each in same else each for each in kept]
            entries.append(made)
        return made

    def remove(self, id: str, *, store: str) -> Secret:
        """Sign with it no longer, from now on."""
        with self._changing() as entries:
            found = [each for each in entries if (each.store, each.id) == (store, id)]
            if not found:
                raise NotFound(
                    f"there is no secret {id!r} for this store; 'hardsave webhook list' lists them"
                )
            entries.remove(found[0])
        return found[0]

    def _parsed(self, data: dict[str, Any]) -> Secret:
        return _secret(data)

    def _plain(self, entry: Secret) -> dict[str, Any]:
        return _as_data(entry)


def _until(secret: Secret, end: datetime | None) -> Secret:
    """One that expires by `end`, if not before; None: when it would."""
    if end is None or (secret.expires_at is not None and secret.expires_at <= end):
        return secret
    return secret._replace(expires_at=end)


def _as_data(secret: Secret) -> dict[str, Any]:
    expires = secret.expires_at
    return {
        **secret._asdict(),
        "created_at": secret.created_at.isoformat(),
        "expires_at": None if expires is None else expires.isoformat(),
    }


def _secret(data: dict[str, Any]) -> Secret:
    for name in ("id", "store"):
        if not isinstance(data[name], str):
            raise TypeError(f"{name} {data[name]!r}")
    if not isinstance(data["receiver"], str | None):
        raise TypeError(f"receiver {data['receiver']!r}")
    try:
        key_of(data["secret"])
        if data["receiver"] is not None and receiver_of(data["receiver"]) != data["receiver"]:
            raise ValueError(f"receiver {data['receiver']!r}")
    except Misuse as error:
        raise ValueError(str(error)) from error
    expires = data["expires_at"]
    return Secret(
        **{
            **data,
            "created_at": zoned(data["created_at"]),
            "expires_at": None if expires is None else zoned(expires),
        }
    )
