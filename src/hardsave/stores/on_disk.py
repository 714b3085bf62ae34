"""What only a store can do whose data lie in files of this host, and what other stores do instead.

A store that is kept by a server has no file to repair, no second copy that it reads by itself, and
nothing to sync. Callers ask here, so that such a store need not pretend.
"""

from collections.abc import Callable, Collection
from typing import Protocol, runtime_checkable

from hardsave.errors import Unavailable
from hardsave.objects.hashing import Hash
from hardsave.stores import claims
from hardsave.stores.base import Store
from hardsave.stores.results import Report


class Gone(Unavailable):
    """A file that is open is not where it belongs. A process that opens the store again finds
    another, or what there is to make one from."""


@runtime_checkable
class OnDisk(Protocol):
    """Files of this host. All else that belongs to the store lies beside its main file, under
    names that begin with that file's and a dash."""

    @property
    def path(self) -> str:
        """Its main file."""

    def rescue(self, user: str | None, hashes: Collection[Hash]) -> dict[Hash, bytes]:
        """Those of the objects that a second copy holds, if this store keeps one."""

    def compact(self, refs: Callable[[bytes], Collection[Hash]]) -> None:
        """Rewrite what is scattered so that it is small, and a timeline is quick to read. `refs`
        tells what an object refers to."""

    def sync(self) -> None:
        """Every commit that has returned survives a power loss from now on, also if the store was
        opened with less: before something is destroyed whose only copy they hold."""

    def repair(self) -> Report:
        """Save what can be read, set the rest aside, and go on. No other process has it open."""


@runtime_checkable
class OnServer(Protocol):
    """Kept by a server."""

    url: str
    """Where it is, without a password."""


def url_of(store: Store) -> str:
    """What tells a store from others, where it is in no file."""
    return store.url if isinstance(store, OnServer) else "memory://"


def path_of(store: Store) -> str | None:
    """The main file of a store; None if it has none."""
    return store.path if isinstance(store, OnDisk) else None


def rescued(store: Store, user: str | None, hashes: Collection[Hash]) -> dict[Hash, bytes]:
    """Objects that only a second copy still holds."""
    return store.rescue(user, hashes) if isinstance(store, OnDisk) else {}


def compact(store: Store, refs: Callable[[bytes], Collection[Hash]]) -> None:
    claims.check(store.claims, "compact")
    if isinstance(store, OnDisk):
        store.compact(refs)


def sync(store: Store) -> None:
    """A store that is not on this disk has no lesser durability to make up for: what it has is what
    it answers when asked for `durability`."""
    if isinstance(store, OnDisk):
        store.sync()


def repair(store: Store, user: str | None) -> Report:
    """A store without files has nothing to repair: its checkpoints are counted."""
    claims.check(store.claims, "backup")
    if isinstance(store, OnDisk):
        return store.repair()
    return Report(store.stats(user).checkpoints, 0, (), None)
