"""The contract of `stores.base` on a Redis or Valkey server, for what need not be kept for ever.

All of a user lies in four keys of one slot: the log of changes, the rows that it begins with,
objects, and pins. They expire together, a while after the last save. What such a store does not
claim is refused by name; see `stores.claims`.
"""

import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import ormsgpack
from redis import ResponseError

from hardsave.errors import Misuse, NotFound, Unavailable
from hardsave.logs import log
from hardsave.objects.hashing import Hash
from hardsave.objects.records import Id, Note, OwnerRecord
from hardsave.stores import packs
from hardsave.stores.base import Batch, CheckpointGone, Durability, Survives, Turn
from hardsave.stores.claims import Claims
from hardsave.stores.host.cache_folder import cache_folder
from hardsave.stores.ledger import Moment
from hardsave.stores.memory.queries import MemoryQueries
from hardsave.stores.memory.tenant import Tenant
from hardsave.stores.redis import objects as stored
from hardsave.stores.redis import server_settings, soundness
from hardsave.stores.redis.address import address_of
from hardsave.stores.redis.changes import Hold, LetGo, PutNotes
from hardsave.stores.redis.collection import Collector, Swept
from hardsave.stores.redis.replica import NOWHERE, Decide, Replica
from hardsave.stores.redis.server import Client, Server, command, key_of, user_tag
from hardsave.stores.redis.turns import server_turn
from hardsave.stores.results import Collected, Stats
from hardsave.wording import without_password

_ID_BYTES = 16
_MICROSECONDS = 1_000_000
_SAMPLES = 2_000  # objects that are measured; the others are taken to be like them
_KEYS = ("log", "meta", "objects", "pins")  # in the order of the scripts
_LAST = "for what must last use SQLite or PostgreSQL; 'hardsave store export' writes what is here"
_CLAIMS = Claims(
    search=f"it keeps no index, and expires; {_LAST} into a file",
    compact="its server does that by itself; 'hardsave store gc' removes what is not needed",
    backup=f"it expires, and has no second copy; {_LAST} into a file",
)
_NO_OBJECTS: Mapping[Hash, bytes] = {}


class RedisStore(MemoryQueries):
    """See `stores.base` for the contract. Threads share one instance; processes open their own."""

    is_shared = True

    def __init__(
        self,
        url: str,
        *,
        durability: Durability = "power",
        compress: Callable[[], bool] = packs.always,
        read_only: bool = False,
    ) -> None:
        """With `read_only` nothing is written, and a store that nothing was ever saved in is
        `NotFound`. `Misuse` if the server cannot give the durability."""
        self._address = address_of(url)
        self.url = without_password(url)
        self._compress = compress
        self._read_only = read_only
        self._lock = threading.RLock()
        self._server = Server(self._address, read_only=read_only)
        self._replicas: dict[str | None, Replica] = {}
        self._process = os.getpid()
        self._latest = 0  # the last moment that this process has seen
        try:
            self._id = self._opened(durability)
        except BaseException:
            self._server.close()
            raise
        self.claims = _CLAIMS._replace(max_workspace_bytes=self._address.max_workspace_bytes)

    def __repr__(self) -> str:
        return f"RedisStore({self._address.shown!r})"

    def _opened(self, asked: Durability) -> bytes:
        settings = self._settings()
        if asked == "power" and not self._address.accepts_loss:
            if server_settings.survives(settings) != "power":
                raise Misuse(f"{self._address.shown}: {server_settings.refusal(settings)}")
            said = server_settings.eviction(settings)
        else:
            said = server_settings.warning(settings)
        if said is not None:
            log(__name__).warning("%s: %s", self._address.shown, said)
        if not self._read_only:
            self._server.ask("SET", self._store_key, os.urandom(_ID_BYTES), "NX")
        found = self._server.ask("GET", self._store_key)
        if found is None:
            raise NotFound(f"there is no store at {self._address.shown}: nothing was saved there")
        return bytes(found)

    @property
    def _store_key(self) -> str:
        return f"{self._address.prefix}:store"

    @property
    def _users_key(self) -> str:
        return f"{self._address.prefix}:users"

    # Rows

    def users(self) -> list[str | None]:
        return [ormsgpack.unpackb(name) for name in self._server.ask("HVALS", self._users_key)]

    def _keys(self, user: str | None) -> tuple[str, ...]:
        tag = user_tag(user)
        return tuple(key_of(self._address.prefix, tag, what) for what in _KEYS)

    def _replica(self, user: str | None) -> Replica:
        self._server.check()
        with self._lock:
            if self._process != os.getpid():  # a child of a fork: its parent's locks may be held
                self._replicas, self._process = {}, os.getpid()
            found = self._replicas.get(user)
            if found is None:
                made = Replica(self._server, self._keys(user), self._address.ttl_seconds)
                found = self._replicas[user] = made
            return found

    def _reading(self, user: str | None) -> AbstractContextManager[Tenant]:
        return self._replica(user).reading()

    @contextmanager
    def _writing(self, user: str | None) -> Iterator[Replica]:
        self._server.check_writes()
        replica = self._replica(user)
        with replica.writing():
            if replica.at == NOWHERE:
                self._enrol(user)
            yield replica

    def _enrol(self, user: str | None) -> None:
        """So that a collection finds this user."""
        self._server.ask("HSET", self._users_key, user_tag(user), ormsgpack.packb(user))

    def _write(self, user: str | None, decide: Decide) -> None:
        with self._writing(user) as replica:
            replica.write(decide, _NO_OBJECTS)

    # Writing

    def commit(self, batch: Batch) -> int:
        self._server.check_writes()
        objects = stored.packed(batch.objects, self._compress)
        rows = batch._replace(objects=_NO_OBJECTS, requires=())

        def decide(tenant: Tenant) -> Batch | None:
            if tenant.number_of(rows) is not None:
                return None
            tenant.check(rows)
            return rows

        with self._writing(batch.user) as replica:
            replica.write(decide, objects, batch.requires)
            number = replica.tenant.number_of(rows)
        assert number is not None, "it was just added, or was there"
        return number

    def put_notes(
        self, user: str | None, id: Id, notes: Sequence[Note], *, replace: bool = True
    ) -> None:
        def decide(tenant: Tenant) -> PutNotes:
            if id not in tenant.checkpoints:
                raise CheckpointGone(f"there is no checkpoint {id.hex()} to put notes on")
            return PutNotes(id, list(notes), replace)

        self._write(user, decide)

    def put(
        self, user: str | None, objects: Mapping[Hash, bytes], *, pin: bytes, seconds: float
    ) -> None:
        self._server.check_writes()
        self._enrol(user)
        packed = stored.packed(objects, self._compress)
        words = (each for pair in packed.items() for each in pair)
        lasts, ttl = int(seconds * _MICROSECONDS), self._address.ttl_seconds * 1000
        self._server.script("put", self._keys(user), pin, lasts, ttl, *words)

    def unpin(
        self,
        user: str | None,
        pin: bytes,
        *,
        given_up: Callable[[bytes], Collection[Hash]] | None = None,
    ) -> None:
        """What was given up is left to the next collection."""
        self._server.check_writes()
        self._server.ask("HDEL", self._keys(user)[3], pin)

    def collect(
        self, refs: Callable[[bytes], Collection[Hash]], *, exact: bool = False
    ) -> Collected:
        self._server.check_writes()
        swept: dict[str | None, Swept] = {}
        for user in self.users():
            swept[user] = self._collect(user, refs, exact=exact)
        if exact and any(each.objects for each in swept.values()):
            self._rewrite_file()
        return Collected(
            sum(each.objects for each in swept.values()),
            sum(each.object_bytes for each in swept.values()),
            sum(each.stored_bytes for each in swept.values()),
            tuple(user for user, each in swept.items() if each.is_left),
        )

    def _collect(
        self, user: str | None, refs: Callable[[bytes], Collection[Hash]], *, exact: bool
    ) -> Swept:
        replica = self._replica(user)
        swept = Collector(self._server, self._keys(user), replica, refs).run()
        if exact:
            with replica.writing():
                replica.rewrite()
        return swept

    # The ledger

    def moment(self) -> Moment:
        """The server's time. Should its clock be set back, it stands still here until that time
        has come again."""
        seconds, microseconds = self._server.ask("TIME")
        self._latest = max(self._latest, int(seconds) * _MICROSECONDS + int(microseconds))
        return Moment(self._id, self._latest)

    def hold(self, user: str | None, owner: OwnerRecord, *, is_new: bool = False) -> bool:
        def decide(tenant: Tenant) -> Hold | None:
            return Hold(owner) if is_new or owner.id in tenant.ledger.owners else None

        with self._writing(user) as replica:
            replica.write(decide, _NO_OBJECTS)
            return owner.id in replica.tenant.ledger.owners

    def let_go(self, user: str | None, owner: Id) -> None:
        def decide(tenant: Tenant) -> LetGo | None:
            return LetGo(owner) if owner in tenant.ledger.owners else None

        self._write(user, decide)

    # Reading

    def read(self, user: str | None, hashes: Collection[Hash]) -> dict[Hash, bytes]:
        return stored.read(self._server, self._keys(user)[2], hashes)

    def missing(self, user: str | None, hashes: Collection[Hash]) -> set[Hash]:
        return stored.missing(self._server, self._keys(user), hashes)

    def scan(self, user: str | None) -> Iterator[Mapping[Hash, bytes]]:
        return stored.scan(self._server, self._keys(user)[2])

    def latest_number(self, user: str | None) -> int:
        with self._reading(user) as tenant:
            return tenant.number

    def last_purge(self, user: str | None) -> int:
        with self._reading(user) as tenant:
            return tenant.last_purge

    # The store itself

    def durability(self) -> Survives:
        return server_settings.survives(self._settings())

    def generation(self) -> bytes:
        """Numbers that went back are all that tells of a replica which lacked commits."""
        return b""

    def failover(self) -> str:
        """What is lost when a replica takes over."""
        return server_settings.FAILOVER

    def _rewrite_file(self) -> None:
        """What was removed is in the server's file until that is rewritten."""
        try:
            self._server.ask("BGREWRITEAOF")
        except (Unavailable, Misuse) as error:
            log(__name__).warning(
                "the server's append-only file may still have what was removed: have the server "
                "rewrite it (BGREWRITEAOF). %s",
                error,
            )

    def _settings(self) -> server_settings.ServerSettings:
        return server_settings.ServerSettings.of(self._server.run(_settings_told))

    def local(self, what: str) -> str | None:
        folder = None if self._read_only else cache_folder()
        return None if folder is None else f"{folder}/{self._id.hex()}-{what}"

    def once(self, name: str) -> AbstractContextManager[Turn | None]:
        self._server.check_writes()
        return server_turn(
            self._server, self._address.prefix, name, self._address.ttl_seconds * 1000
        )

    def stats(self, user: str | None) -> Stats:
        with self._reading(user) as tenant:
            timelines = sum(not line.is_deleted for line in tenant.timelines.values())
            checkpoints = sum(not record.is_hidden for record in tenant.checkpoints.values())
        keys = self._keys(user)
        asked = [("HLEN", keys[2]), ("HGET", keys[1], "bytes")]
        count, size = self._server.ask_all(asked)
        return Stats(
            timelines=timelines,
            checkpoints=checkpoints,
            objects=count,
            disk_bytes=sum(self._size(each) for each in self.users()),
            own_bytes=self._size(user),
            object_bytes=int(size or 0),
        )

    def _size(self, user: str | None) -> int:
        """What the server needs for a user, in its memory."""
        asked = [("MEMORY USAGE", key, "SAMPLES", _SAMPLES) for key in self._keys(user)]
        sizes = self._server.ask_all(asked)
        return sum(size or 0 for size in sizes)

    def forget(self) -> None:
        """The next read begins with the whole log."""
        self._server.check()
        with self._lock:
            self._replicas = {}

    def check_usable(self) -> None:
        if self._server.ask("GET", self._store_key) != self._id:
            raise Unavailable(
                f"{self._address.shown} was emptied, or replaced by another store, while it was "
                "open; open it again"
            )

    def verify(self) -> list[str]:
        self._server.check()
        return [
            fault
            for user in self.users()
            for fault in soundness.faults(self._server, self._keys(user))
        ]

    def close(self) -> None:
        self._server.close()
        self._replicas = {}


def _settings_told(client: Client) -> dict[str, str]:
    """Those that the server tells: a hosted one may refuse."""
    told: dict[str, str] = {}
    for name in server_settings.ASKED:
        with suppress(ResponseError):
            for key, value in stored.pairs_of(command(client, "CONFIG GET", name)):
                told[_text(key)] = _text(value)
    return told


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
