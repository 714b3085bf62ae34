"""Turns that one process of all hosts has at a time: a key that names a connection of its holder.

The server knows which connections it has. A turn whose holder has none any more is free: the
process has died, or its host has not been heard of. Numbers of connections are never given twice
by one run of a server, and the key names that run, too.
"""

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import redis

from hardsave.errors import Unavailable
from hardsave.stores.base import Turn
from hardsave.stores.local.turns import checked
from hardsave.stores.redis.server import Client, Server, command, key_of, run_script
from hardsave.stores.redis.translation import raise_ours

_A_MOMENT = 0.25  # seconds for the server to learn that a process is dead
_LOOK = 0.02  # seconds between two looks


class RedisTurn:
    """One that this process has. One that has lost its turn writes nothing."""

    def __init__(
        self, client: Client, keys: Sequence[str], mine: bytes, ttl: int, shown: str
    ) -> None:
        self._client = client
        self._keys = keys
        self._mine = mine
        self._ttl = ttl
        self._shown = shown

    def read(self) -> bytes:
        try:
            found = command(self._client, "GET", self._keys[1])
        except redis.RedisError as error:
            raise_ours(error, self._shown)
        return b"" if found is None else bytes(found)

    def write(self, note: bytes) -> None:
        words = (self._mine, checked(note), self._ttl)
        try:
            done = run_script(self._client, "note_turn", self._keys, *words)
        except redis.RedisError as error:
            raise_ours(error, self._shown)
        if not done:
            raise Unavailable(f"{self._shown}: this turn was lost with its connection; repeat it")


@contextmanager
def server_turn(server: Server, prefix: str, name: str, ttl: int) -> Iterator[Turn | None]:
    """The turn of this name; None if another process, or another caller in this one, has it."""
    keys = [key_of(prefix, f"turn {name}", what) for what in ("turn", "note")]
    client = _connected(server)
    try:
        mine = _taken(client, keys, server.shown)
        if mine is None:
            yield None
            return
        try:
            yield RedisTurn(client, keys, mine, ttl, server.shown)
        finally:
            _leave(client, keys, mine)
    finally:
        client.close()
        client.connection_pool.disconnect()


def _connected(server: Server) -> Client:
    try:
        return server.connect(is_single=True)
    except redis.RedisError as error:
        raise_ours(error, server.shown)


def _taken(client: Client, keys: Sequence[str], shown: str) -> bytes | None:
    """What this process is named by, if the turn is its own now."""
    try:
        mine = _name(client)
        return mine if _take(client, keys, mine) else None
    except redis.RedisError as error:
        raise_ours(error, shown)


def _name(client: Client) -> bytes:
    """The run of the server, the connection, and something of our own."""
    number = command(client, "CLIENT", "ID")
    return b"%s %d %s" % (_run(client), number, secrets.token_hex(8).encode())


def _run(client: Client) -> bytes:
    return str(client.info("server")["run_id"]).encode()


def _take(client: Client, keys: Sequence[str], mine: bytes) -> bool:
    until = time.monotonic() + _A_MOMENT
    gone = b""
    while True:
        holder = run_script(client, "take_turn", keys, mine, gone)
        if holder == mine:
            return True
        if _is_gone(client, holder):
            gone = holder
        elif time.monotonic() >= until:
            return False
        else:
            time.sleep(_LOOK)


def _is_gone(client: Client, holder: bytes) -> bool:
    run, number, _ = holder.split(b" ")
    if run != _run(client):
        return True
    found = command(client, "CLIENT LIST", b"ID", number)
    return not found


def _leave(client: Client, keys: Sequence[str], mine: bytes) -> None:
    """Before its connection ends, which the server learns of a moment later."""
    try:
        run_script(client, "leave_turn", keys, mine)
    except redis.RedisError:
        return  # a connection that is lost has given it back
