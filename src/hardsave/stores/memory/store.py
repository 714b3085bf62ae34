"""A store in memory: gone with its process, and the measure of what every store must do."""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from hardsave.errors import Misuse
from hardsave.objects.hashing import Hash
from hardsave.objects.records import (
    Id,
    Note,
    OwnerRecord,
)
from hardsave.stores.base import (
    NESTED,
    Batch,
    CheckpointGone,
    Survives,
    Turn,
)
from hardsave.stores.claims import EVERYTHING
from hardsave.stores.host.boot import awake, boot_id
from hardsave.stores.ledger import Moment
from hardsave.stores.memory.queries import MemoryQueries
from hardsave.stores.memory.tenant import Tenant
from hardsave.stores.memory.turns import MemoryTurns
from hardsave.stores.results import Collected, Stats
from hardsave.tuples import NamedTuple

_SCANNED_AT_ONCE = 1_000  # objects


class MemoryStore(MemoryQueries):
    """See `stores.base` for the contract."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may read, too
        self._is_committing = False
        self._tenants: dict[str | None, Tenant] = {}
        self._decided: _Decided | None = None
        self._turns = MemoryTurns()
        self._closed = False

    is_shared = False
    claims = EVERYTHING

    def durability(self) -> Survives:
        return "nothing"

    def failover(self) -> str:
        return ""

    def commit(self, batch: Batch) -> int:
        with self._lock:
            if self._is_committing:
                raise Misuse(NESTED)
            tenant = self._tenant(batch.user)
            try:
                self._is_committing = True
                return self._commit(tenant, batch)
            finally:
                self._is_committing = False

    def _commit(self, tenant: Tenant, batch: Batch) -> int:
        done = tenant.number_of(batch)
        if done is not None:
            return done
        tenant.check(batch)
        self._decided = _Decided(tenant, batch, tenant.number)
        return self._finish(self._decided)

    def _settle(self) -> None:
        """Finish what was interrupted; not what is under way, and reads in a signal's handler."""
        with self._lock:
            decided = self._decided
            if decided is not None and not self._is_committing:
                self._finish(decided)

    def _finish(self, decided: "_Decided") -> int:
        """Do what was decided. A signal may end this anywhere: the next call does all of it
        again, which leads to the same."""
        number = decided.tenant.apply(decided.batch, decided.number)
        decided.tenant.number = number
        self._decided = None
        return number

    def generation(self) -> bytes:
        return b""

    def users(self) -> list[str | None]:
        with self._lock:
            return list(self._tenants)

    def read(self, user: str | None, hashes: Collection[Hash]) -> dict[Hash, bytes]:
        with self._lock:
            objects = self._tenant(user).objects
            return {address: objects[address] for address in hashes if address in objects}

    def missing(self, user: str | None, hashes: Collection[Hash]) -> set[Hash]:
        with self._lock:
            return set(hashes) - self._tenant(user).objects.keys()

    def scan(self, user: str | None) -> Iterator[Mapping[Hash, bytes]]:
        with self._lock:
            hashes = list(self._tenant(user).objects)
        for start in range(0, len(hashes), _SCANNED_AT_ONCE):
            yield self.read(user, hashes[start : start + _SCANNED_AT_ONCE])

    def put_notes(
        self, user: str | None, id: Id, notes: Sequence[Note], *, replace: bool = True
    ) -> None:
        with self._lock:
            tenant = self._tenant(user)
            if id not in tenant.checkpoints:
                raise CheckpointGone(f"there is no checkpoint {id.hex()} to put notes on")
            tenant.put_notes(id, notes, replace=replace)

    # The ledger

    def moment(self) -> Moment:
        return Moment(boot_id(), awake())

    def hold(self, user: str | None, owner: OwnerRecord, *, is_new: bool = False) -> bool:
        with self._lock:
            owners = self._tenant(user).ledger.owners
            if owner.id not in owners and not is_new:
                return False
            owners[owner.id] = owner
            return True

    def let_go(self, user: str | None, owner: Id) -> None:
        with self._lock:
            self._tenant(user).ledger.owners.pop(owner, None)

    # Objects ahead of their batch, and those that no checkpoint needs

    def put(
        self, user: str | None, objects: Mapping[Hash, bytes], *, pin: bytes, seconds: float
    ) -> None:
        with self._lock:
            tenant = self._tenant(user)
            tenant.pins[pin] = time.monotonic() + seconds
            for address, data in objects.items():
                tenant.objects.setdefault(address, data)

    def unpin(
        self,
        user: str | None,
        pin: bytes,
        *,
        given_up: Callable[[bytes], Collection[Hash]] | None = None,
    ) -> None:
        with self._lock:
            self._tenant(user).pins.pop(pin, None)

    def collect(
        self, refs: Callable[[bytes], Collection[Hash]], *, exact: bool = False
    ) -> Collected:
        with self._lock:
            self._tenant(None)
            now = time.monotonic()
            left = [
                user
                for user, tenant in self._tenants.items()
                if any(until > now for until in tenant.pins.values())
            ]
            gone = [
                data
                for user, tenant in self._tenants.items()
                if user not in left
                for data in tenant.collect(refs)
            ]
        size = sum(map(len, gone))
        return Collected(len(gone), size, size, tuple(left))

    def latest_number(self, user: str | None) -> int:
        with self._lock:
            return self._tenant(user).number

    def last_purge(self, user: str | None) -> int:
        with self._lock:
            return self._tenant(user).last_purge

    def local(self, what: str) -> str | None:
        return None

    def once(self, name: str) -> AbstractContextManager[Turn | None]:
        self._tenant(None)
        return self._turns.take(name)

    def stats(self, user: str | None) -> Stats:
        with self._lock:
            tenant = self._tenant(user)
            every = [other.objects for other in self._tenants.values()]
            return Stats(
                timelines=sum(not line.is_deleted for line in tenant.timelines.values()),
                checkpoints=sum(not record.is_hidden for record in tenant.checkpoints.values()),
                objects=len(tenant.objects),
                disk_bytes=sum(len(data) for objects in every for data in objects.values()),
                own_bytes=sum(map(len, tenant.objects.values())),
                object_bytes=sum(map(len, tenant.objects.values())),
            )

    def forget(self) -> None:
        self._tenant(None)

    def check_usable(self) -> None:
        self._tenant(None)

    def verify(self) -> list[str]:
        self._tenant(None)
        return []

    def close(self) -> None:
        self._closed = True

    @contextmanager
    def _reading(self, user: str | None) -> Iterator[Tenant]:
        with self._lock:
            yield self._tenant(user)

    def _tenant(self, user: str | None) -> Tenant:
        """What is stored for a user. The caller holds the lock."""
        if self._closed:
            raise Misuse("this store is closed; open it again")
        if self._decided is not None:
            self._settle()
        return self._tenants.setdefault(user, Tenant())


class _Decided(NamedTuple):
    """A batch that is as good as written, and the number of its user's commit before it."""

    tenant: Tenant
    batch: Batch
    number: int
