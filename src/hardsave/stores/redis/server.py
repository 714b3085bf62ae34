"""The connection to a server: patience with one that comes back, deadlines, scripts.

A call that loses its connection is repeated on another: the server may have restarted, and no
caller has to know. All that is asked here may be repeated.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from typing import Any, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from hardsave.defaults import SERVER_CONNECTIONS, SERVER_SECONDS
from hardsave.errors import Misuse, Unavailable
from hardsave.objects.hashing import digest
from hardsave.progress import check_deadline, within_deadline
from hardsave.stores.redis.address import Address
from hardsave.stores.redis.translation import is_passing, raise_ours

T = TypeVar("T")
Client = redis.Redis
Word = bytes | str | int

CLOSED = "this store is closed; open it again"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5  # seconds between two attempts
_ALONE = ("take_turn", "note_turn", "leave_turn")  # scripts that are about no user


class Server:
    """One that a store is on, for one process. Threads share it."""

    def __init__(self, address: Address, *, read_only: bool) -> None:
        self._address = address
        self._read_only = read_only
        self._is_closed = False
        self._client = self.connect()

    @property
    def shown(self) -> str:
        return self._address.shown

    def connect(self, *, is_single: bool = False) -> Client:
        """A client of its own: with a pool of connections, or with a single one."""
        options: dict[str, Any] = dict(self._address.client)
        pool = redis.ConnectionPool if is_single else redis.BlockingConnectionPool
        connections = pool(
            **{
                "socket_timeout": SERVER_SECONDS,
                "socket_connect_timeout": SERVER_SECONDS,
                "max_connections": SERVER_CONNECTIONS,
                "retry": Retry(NoBackoff(), 0),  # we repeat what is lost
                "client_name": "hardsave",
                **options,
            }
        )
        return redis.Redis(connection_pool=connections, single_connection_client=is_single)

    def ask(self, *words: Word) -> Any:
        """What the server answers to a command."""
        return self.run(lambda client: command(client, *words))

    def ask_all(self, asked: Sequence[Sequence[Word]]) -> list[Any]:
        """What it answers to several, in one round trip."""

        def answers(client: Client) -> list[Any]:
            with client.pipeline(transaction=False) as pipeline:
                for words in asked:
                    command(pipeline, *words)
                found: list[Any] = pipeline.execute()
            return found

        return self.run(answers)

    def script(self, name: str, keys: Sequence[str], *values: Word) -> Any:
        """What a script of ours answers: it runs as a whole, beside no other."""
        return self.run(lambda client: run_script(client, name, keys, *values))

    def run(self, work: Callable[[Client], T]) -> T:
        """What `work` makes of a client. It is called again if the connection is lost, for as long
        as the caller may be kept waiting."""
        until = time.monotonic() + within_deadline(SERVER_SECONDS)
        pause = _FIRST_PAUSE
        while True:
            self.check()
            check_deadline()
            try:
                return work(self._client)
            except redis.RedisError as error:
                if not is_passing(error) or time.monotonic() >= until:
                    raise_ours(error, self.shown)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def check(self) -> None:
        """`Misuse` if it was closed."""
        if self._is_closed:
            raise Misuse(CLOSED)

    def check_writes(self) -> None:
        self.check()
        if self._read_only:
            raise Unavailable(
                f"{self.shown} was opened for reading alone; open it without read_only=True"
            )

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._client.close()
            self._client.connection_pool.disconnect()


def command(client: Client, *words: Word) -> Any:
    """What a server answers; the client has no types for it."""
    untyped: Any = client
    return untyped.execute_command(*words)


def run_script(client: Client, name: str, keys: Sequence[str], *values: Word) -> Any:
    """By its digest; the server is told its text when it does not know it."""
    text, known = _script(name)
    try:
        return command(client, "EVALSHA", known, len(keys), *keys, *values)
    except redis.exceptions.NoScriptError:
        return command(client, "EVAL", text, len(keys), *keys, *values)


@cache
def _script(name: str) -> tuple[str, str]:
    """Its text, and the digest that a server knows it by."""
    folder = resources.files(__package__).joinpath("lua")
    before = "" if name in _ALONE else folder.joinpath("since.lua").read_text()
    text = before + folder.joinpath(f"{name}.lua").read_text()
    return text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def key_of(prefix: str, tag: str, what: str) -> str:
    """A key; all that have one tag lie in one slot of a cluster."""
    return f"{prefix}:{{{tag}}}:{what}"


def user_tag(user: str | None) -> str:
    """Names may hold any character."""
    return "none" if user is None else digest(b"user " + user.encode()).hex()
