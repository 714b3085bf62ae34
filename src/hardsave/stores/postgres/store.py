"""The contract of `stores.base` on a PostgreSQL server."""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from hardsave.errors import HardsaveError, Misuse, Unavailable
from hardsave.logs import log
from hardsave.objects.hashing import Hash
from hardsave.objects.records import Id, Note, OwnerRecord
from hardsave.stores import packs
from hardsave.stores.base import Batch, CheckpointGone, Durability, Survives, Turn
from hardsave.stores.claims import EVERYTHING
from hardsave.stores.dispatch import Hints
from hardsave.stores.group_commit import REPEATS, GroupCommit, Ticket
from hardsave.stores.host.cache_folder import cache_folder
from hardsave.stores.ledger import Moment
from hardsave.stores.postgres import documents, schema, server_settings, soundness
from hardsave.stores.postgres.address import address_of
from hardsave.stores.postgres.collection import Collector
from hardsave.stores.postgres.connections import Connection, Connections, Row, called
from hardsave.stores.postgres.news import News
from hardsave.stores.postgres.objects import ObjectReader
from hardsave.stores.postgres.queries import PostgresQueries
from hardsave.stores.postgres.refusals import Answer, number_in
from hardsave.stores.postgres.translation import is_passing
from hardsave.stores.postgres.turns import server_turn
from hardsave.stores.results import Collected, Stats
from hardsave.tuples import NamedTuple
from hardsave.wording import without_password

T = TypeVar("T")

_GROUPS = 4  # that commit side by side; the callers of one user are always in the same
_UNKNOWN = -1  # the number of a user that has never written
_MICROSECONDS = 1_000_000

# As they are: in texts, which the driver makes of lists by itself, bytes are twice as long.
_OBJECTS = "%b::bytea[], %b::bytea[], %b::bigint[], %b::bytea[], %b::bigint[], %b::bigint[]"
_COMMIT = f"commit_1(%s::jsonb, %b::bytea[], {_OBJECTS})"
_PUT = f"put_1(%s, %s, %s, {_OBJECTS})"
_PUT_NOTES = "put_notes_1(%s, %s, %s::jsonb, %s)"
_HOLD = """
    INSERT INTO owners (
        "user", id, session, host, boot, space, pid, pid_started, since, until, clock)
    SELECT head."user", %s, %s, %s, %s, %s, %s, %s, %s, %s, %s FROM lock_user_1(%s) AS head
    ON CONFLICT ("user", id) DO UPDATE SET until = excluded.until, clock = excluded.clock
    RETURNING true
"""
_RENEW = """
    UPDATE owners SET until = %(until)s, clock = %(clock)s
    WHERE "user" = %(user)s AND id = %(id)s RETURNING true
"""
_LET_GO = 'DELETE FROM owners WHERE "user" = %(user)s AND id = %(id)s RETURNING true'
_UNPIN = 'DELETE FROM pins WHERE "user" = %(user)s AND pin = %(pin)s RETURNING true'
_STATS = """
    SELECT (SELECT count(*) FROM timelines WHERE "user" = %(user)s AND NOT is_deleted),
           (SELECT coalesce(sum(saved), 0)::bigint FROM timelines WHERE "user" = %(user)s),
           coalesce(h.objects, 0), coalesce(h.object_bytes, 0), coalesce(h.pack_bytes, 0),
           (SELECT coalesce(sum(pack_bytes), 0)::bigint FROM heads),
           (SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
            WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r')
    FROM (SELECT) AS one LEFT JOIN heads AS h ON h."user" = %(user)s
"""


class PostgresStore(PostgresQueries):
    """See `stores.base` for the contract. Threads share one instance; processes open their own."""

    is_shared = True
    claims = EVERYTHING

    def __init__(
        self,
        url: str,
        *,
        durability: Durability = "power",
        compress: Callable[[], bool] = packs.always,
        read_only: bool = False,
    ) -> None:
        """With `read_only` nothing is made or written, and a missing store is `NotFound`."""
        self._address = address_of(url)
        self.url = without_password(url)
        self._compress = compress
        self._read_only = read_only
        self._connections = Connections(
            self._address, read_only=read_only, survives_process_only=durability == "process"
        )
        self._id = schema.prepare(self._connections, self._address.schema, read_only=read_only)
        self._connections.start(self._id)
        self._news = News(self._connections, self._id)
        self._objects = ObjectReader(self._connections)
        # They keep their numbers, but in a server that has lost the last commits.
        self._users: dict[tuple[bytes, str | None], int] = {}
        self._groups = [GroupCommit[_Write, int](self._write) for _ in range(_GROUPS)]
        self._latest = 0  # the last moment that this process has seen
        if not read_only:
            self._check(durability)

    def __repr__(self) -> str:
        return f"PostgresStore({self._address.shown!r})"

    # Writing

    def commit(self, batch: Batch) -> int:
        self._connections.check()
        made = documents.arrays(batch.objects, self._compress)
        write = _Write(batch, (documents.document(batch), list(batch.requires), *made))
        group = self._groups[hash(batch.user) % _GROUPS]
        for _ in range(REPEATS):
            number = group.submit(write)
            if number is not None:
                return number
        raise Unavailable(
            f"a save on {self._address.shown} failed {REPEATS} times under other callers, and may "
            "be written; repeat it"
        )

    def _write(self, tickets: Sequence[Ticket["_Write", int]]) -> None:
        """Commit a group in one transaction. Two processes lock users in the same order."""
        ordered = sorted(tickets, key=lambda ticket: ticket.item.batch.user or "")
        try:
            found = self._connections.run(lambda connection: _committed(connection, ordered))
        except HardsaveError as error:
            if len(ordered) > 1 and not is_passing(error.__cause__ or error):
                # One of them cannot be written, or the deadline of the one that leads has passed.
                # That one goes alone; the others repeat theirs, by their own deadlines.
                self._write(tickets[:1])
                return
            for ticket in ordered:
                ticket.error = error
            return
        self._news.tell()
        for ticket, answer in zip(ordered, found, strict=True):
            try:
                ticket.result = number_in(ticket.item.batch, answer)
            except HardsaveError as error:
                ticket.error = error

    def put_notes(
        self, user: str | None, id: Id, notes: Sequence[Note], *, replace: bool = True
    ) -> None:
        values = (user, id, documents.written(documents.rows(notes)), replace)
        if self._connections.run(lambda one: called(one, [_PUT_NOTES], values)) != (True,):
            raise CheckpointGone(f"there is no checkpoint {id.hex()} to put notes on")

    def put(
        self, user: str | None, objects: Mapping[Hash, bytes], *, pin: bytes, seconds: float
    ) -> None:
        made = documents.arrays(objects, self._compress)
        values = (user, pin, int(seconds * _MICROSECONDS), *made)
        self._connections.run(lambda one: called(one, [_PUT], values))

    def unpin(
        self,
        user: str | None,
        pin: bytes,
        *,
        given_up: Callable[[bytes], Collection[Hash]] | None = None,
    ) -> None:
        """What was given up is left to the next collection."""
        self._rows(_UNPIN, user, pin=pin)

    def collect(
        self, refs: Callable[[bytes], Collection[Hash]], *, exact: bool = False
    ) -> Collected:
        self._connections.check()
        collector = Collector(self._connections, self._objects, refs, self._compress)
        clock = int.from_bytes(self._id[:8], "big", signed=True)
        return collector.run(clock, exact=exact)

    # The ledger

    def moment(self) -> Moment:
        """The server's time. Should its clock be set back, it stands still here until that time
        has come again."""
        ((at,),) = self._connections.ask("SELECT moment_1()")
        self._latest = max(self._latest, at)
        return Moment(self._id, self._latest)

    def hold(self, user: str | None, owner: OwnerRecord, *, is_new: bool = False) -> bool:
        if is_new:
            return self._connections.ask(_HOLD, (*owner, user)) == [(True,)]
        values = {"id": owner.id, "until": owner.until, "clock": owner.clock}
        return self._rows(_RENEW, user, **values) == [(True,)]

    def let_go(self, user: str | None, owner: Id) -> None:
        self._rows(_LET_GO, user, id=owner)

    def dispatch(self, user: str | None, hints: Hints) -> AbstractContextManager[None] | None:
        try:
            from hardsave.stores.postgres import queue  # procrastinate, where tasks are run
        except ImportError as error:
            log(__name__).warning(
                "this process asks the ledger all the time what is due, because it lacks %s; "
                "install it with: pip install 'hardsave[postgres]'",
                error.name,
            )
            return None
        ((id,),) = self._connections.ask('SELECT "user" FROM lock_user_1(%s)', (user,))
        return queue.telling(self._connections, self._address, id, hints)

    # Reading

    def _rows(self, sql: str, user: str | None, **values: Any) -> list[Row]:
        return self._of(user, lambda number: self._connections.ask(sql, {**values, "user": number}))

    def _of(self, user: str | None, ask: Callable[[int], T]) -> T:
        """What is asked about a user's number. If another server has taken over meanwhile, that may
        be the number of another user there: the answer is not used, and it is asked anew."""
        while True:
            generation = self._connections.generation
            found = ask(self._user(generation, user))
            if self._connections.generation == generation:
                return found
            self._objects.forget()

    def _user(self, generation: bytes, user: str | None) -> int:
        if user is None:
            return 0
        known = self._users.get((generation, user))
        if known is None:
            rows = self._connections.ask("SELECT id FROM users WHERE name = %s", (user,))
            if not rows:
                return _UNKNOWN
            known = self._users[generation, user] = int(rows[0][0])
        return known

    def users(self) -> list[str | None]:
        return [row[0] for row in self._connections.ask("SELECT name FROM users ORDER BY id")]

    def read(self, user: str | None, hashes: Collection[Hash]) -> dict[Hash, bytes]:
        self._connections.check()
        return self._of(user, lambda number: self._objects.read(number, hashes))

    def missing(self, user: str | None, hashes: Collection[Hash]) -> set[Hash]:
        self._connections.check()
        return self._of(user, lambda number: self._objects.missing(number, hashes))

    def scan(self, user: str | None) -> Iterator[Mapping[Hash, bytes]]:
        generation = self._connections.generation
        for part in self._objects.scan(self._of(user, lambda number: number)):
            if self._connections.generation != generation:
                raise Unavailable(f"another server took over {self._address.shown}; repeat it")
            yield part.objects

    def latest_number(self, user: str | None) -> int:
        row = self._row('SELECT number FROM heads WHERE "user" = %(user)s', user)
        return 0 if row is None else int(row[0])

    def last_purge(self, user: str | None) -> int:
        row = self._row('SELECT purged FROM heads WHERE "user" = %(user)s', user)
        return 0 if row is None else int(row[0])

    def listen(self, wake: threading.Event) -> None:
        """See `stores.news`."""
        self._connections.check()
        self._news.listen(wake)

    def generation(self) -> bytes:
        return self._connections.generation

    # The store itself

    def durability(self) -> Survives:
        return server_settings.survives(self._settings())

    def failover(self) -> str:
        """What is lost when a replica takes over."""
        return server_settings.failover(self._settings())

    def _settings(self) -> server_settings.ServerSettings:
        (row,) = self._connections.ask(server_settings.ASK)
        return server_settings.ServerSettings._make(row)

    def _check(self, asked: Durability) -> None:
        refused = server_settings.refusal(asked, self._settings())
        if refused is not None:
            self.close()
            raise Misuse(f"{self._address.shown}: {refused}")

    def local(self, what: str) -> str | None:
        folder = None if self._read_only else cache_folder()
        return None if folder is None else f"{folder}/{self._id.hex()}-{what}"

    def once(self, name: str) -> AbstractContextManager[Turn | None]:
        self._connections.check()
        return server_turn(self._connections, self._id, name)

    def stats(self, user: str | None) -> Stats:
        (row,) = self._rows(_STATS, user)
        timelines, checkpoints, objects, object_bytes, own, every, size = row
        return Stats(
            *(timelines, checkpoints, objects, size),
            own_bytes=size * own // every if every else 0,
            object_bytes=object_bytes,
        )

    def forget(self) -> None:
        self._connections.check()
        self._objects.forget()

    def check_usable(self) -> None:
        found = self._connections.ask("SELECT id FROM store")
        if found != [(self._id,)]:
            raise Unavailable(
                f"{self._address.shown} was replaced by another store while it was open; open it "
                "again"
            )

    def verify(self) -> list[str]:
        return soundness.faults(self._connections)

    def close(self) -> None:
        self._news.close()
        self._connections.close()


class _Write(NamedTuple):
    """A batch, and what is sent of it, made before other writers have to wait."""

    batch: Batch
    values: tuple[Any, ...]


def _committed(connection: Connection, tickets: Sequence[Ticket[_Write, int]]) -> list[Answer]:
    """What the server answers to each."""
    values = [value for ticket in tickets for value in ticket.item.values]
    return list(called(connection, [_COMMIT] * len(tickets), values))
