"""The workspaces of a vault: which of them a directory is, and which directory one of them is.

A workspace has an id, which checkpoints name, a host and a path. A directory of this host is the
workspace that has this host and this path; one without a host, which came with an import, is taken
by the first capture at its path. What needs more than that is loaded when the first one is opened.
"""

import os
import threading
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from blake3 import blake3

from hardsave.errors import Misuse, WorkspaceTaken
from hardsave.objects.hashing import digest
from hardsave.objects.records import ID_BYTES, WorkspaceRecord
from hardsave.stores import on_disk
from hardsave.stores.base import Store
from hardsave.stores.host.identity import host_id
from hardsave.stores.workspaces import NO_HOST, WorkspaceMove, taken_message
from hardsave.tuples import NamedTuple
from hardsave.vault.arguments import encoded

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

    from hardsave.vault.workspaces.place import Place


class OtherHost(Misuse):
    """Files are in a directory of another host, which this one cannot reach."""

    def __init__(self, message: str, workspace: WorkspaceRecord) -> None:
        super().__init__(message)
        self.host = workspace.host
        self.path = os.fsdecode(workspace.path)


class Shown(NamedTuple):
    """Where a workspace is, for people."""

    path: bytes
    host: str | None = None  # None: this one; empty: not known


class Places:
    """The workspaces of one vault."""

    def __init__(
        self,
        store: Store,
        user: str | None,
        included: Callable[[bytes], tuple[str, ...]] = lambda _: (),
        host: Callable[[], str] = host_id,
    ) -> None:
        self._store = store
        self._user = user
        self._included = included  # what settings say is to be captured, by directory
        self._host = host
        self._places: dict[bytes, Place] = {}
        self._shown: dict[bytes, Shown] = {}
        self._beside: dict[bytes, str] = {}  # own files that do not lie beside the store, by path
        self._left: set[bytes] = set()
        self._lock = threading.Lock()
        self._temporary: TemporaryDirectory[str] | None = None
        self.made_after: bytes | None = (
            None  # which purge caches were made after: see `vault.local_data`
        )

    def at(self, directory: "str | bytes | os.PathLike[str]") -> "Place":
        """The place of a directory, which must be there."""
        root = os.path.realpath(encoded(directory, "the workspace"))
        if not os.path.isdir(root):
            raise Misuse(f"the workspace {os.fsdecode(root)!r} is no directory; name one that is")
        return self.of(root)

    def of(self, root: bytes) -> "Place":
        """The place of a real path, whether a directory is there or not."""
        from hardsave.vault.workspaces.place import Place

        with self._lock:
            if root in self._left:
                raise WorkspaceTaken(
                    f"the workspace {os.fsdecode(root)!r} was that of an attempt at a job, which "
                    "is over; nothing is saved from there any more"
                )
            place = self._places.get(root)
            if place is None:
                record = self.find(root) or self._new(root)
                included = partial(self._included, root)
                prefix, own = self._beside.get(root) or self._prefix(record.id), self._own(root)
                place = self._places[root] = Place(record, prefix, own, included)
            return place

    def lend(self, directory: "str | os.PathLike[str]", prefix: str) -> None:
        """Have a directory be an attempt's alone, until it is left. The paths of its own files,
        such as its lock, begin with `prefix`: two processes that take over one workspace by turns
        never wait for each other, because one of them may be stopped."""
        self._beside[os.fsencode(os.path.realpath(directory))] = prefix

    def leave(self, directory: "str | os.PathLike[str]") -> None:
        """The attempt is over: a tool of it that still works saves nothing more from there."""
        root = os.fsencode(os.path.realpath(directory))
        with self._lock:
            self._left.add(root)
            self._places.pop(root, None)
            self._beside.pop(root, None)

    @property
    def host(self) -> str:
        """Which host this is."""
        return self._host()

    def find(self, root: bytes) -> WorkspaceRecord | None:
        """The workspace that a real path of this host is; None: nothing was saved there."""
        at = partial(self._store.workspace_at, self._user)
        return at(self.host, root) or at(NO_HOST, root)

    def _new(self, root: bytes) -> WorkspaceRecord:
        """One that the first capture makes. Two processes that begin at once agree on its id; one
        that was moved or taken over has kept the id that this path had. One that begins like a path
        would be taken for a workspace that is older than ids."""
        for attempt in count():
            named = b"\0".join((b"workspace", self.host.encode(), root, b"%d" % attempt))
            id = digest(named)[:ID_BYTES]
            if not id.startswith(b"/") and self._store.workspace(self._user, id) is None:
                return WorkspaceRecord(id, self.host, root)
        raise AssertionError  # it counts for ever

    def known(self, id: bytes) -> WorkspaceRecord:
        """The workspace that a checkpoint or an operation names, as it is now. One that is older
        than ids, and of which no row is left, was a path, of a host that is not known."""
        found = self._store.workspace(self._user, id)
        return WorkspaceRecord(id, NO_HOST, id) if found is None else found

    def shown(self, id: bytes) -> Shown:
        """Where the workspace of a checkpoint is, for people: looked up once."""
        found = self._shown.get(id)
        if found is None:
            record = self.known(id)
            host = None if record.host == self.host else record.host
            found = self._shown[id] = Shown(record.path, host)
        return found

    def begun(self, place: "Place") -> WorkspaceMove:
        """What a capture that begins now is committed with: it is refused if another host or
        attempt takes the workspace over meanwhile. One that has no host becomes this one's."""
        standing = self._store.workspace(self._user, place.id)
        if standing is None:
            self._shown[place.id] = Shown(place.root, None)  # as the commit will make it
            return WorkspaceMove(None, place.record)
        if (standing.host, standing.path) == (NO_HOST, place.root):
            self._shown.pop(place.id, None)
            return WorkspaceMove(standing.epoch, taken_by(standing, self.host, place.root))
        if (standing.host, standing.path) != (self.host, place.root):
            if place.root not in self._beside:
                self.forget([place.id])  # the next capture here is of a workspace of its own
            raise WorkspaceTaken(taken_message(place.record, standing))
        return WorkspaceMove(standing.epoch, standing)

    def still(self, id: bytes, otherwise: str) -> "Place":
        """The place of a workspace that the store speaks of, which must be of this host and where
        it was."""
        record = self.known(id)
        if record.host not in (self.host, NO_HOST):
            raise OtherHost(
                f"the workspace {os.fsdecode(record.path)!r} is of another host, {record.host}; go "
                f"there, {otherwise}",
                record,
            )
        return self.still_at(record.path, otherwise)

    def still_at(self, root: bytes, otherwise: str) -> "Place":
        """The same for a path of this host: a directory that has become a link to elsewhere since
        was never saved, and is not written to."""
        shown = os.fsdecode(root)
        if not os.path.isdir(root):
            raise Misuse(
                f"the workspace {shown!r} is not there; make it, an empty directory, {otherwise}"
            )
        if os.path.realpath(root) != root:
            raise Misuse(
                f"the workspace {shown!r} leads to {os.fsdecode(os.path.realpath(root))!r} by now; "
                f"bring back what was there, {otherwise}"
            )
        return self.at(root)

    def forget(self, ids: Iterable[bytes]) -> None:
        """What is known of these workspaces is not true any more."""
        gone = set(ids)
        with self._lock:
            self._places = {at: one for at, one in self._places.items() if one.id not in gone}
            self._shown = {id: one for id, one in self._shown.items() if id not in gone}

    def opened(self) -> "list[Place]":
        with self._lock:
            return list(self._places.values())

    def interrupted(self) -> list[str]:
        """Journals of this store: restores that have begun, and may not have ended."""
        return self._files("-journal")

    def drop_caches(self) -> None:
        """Of every workspace, whichever process made them. Evictable daemons, which would write
        theirs later, end first."""
        store = on_disk.path_of(self._store)
        if store is not None:
            from hardsave.stores.local import daemon_lock

            daemon_lock.evict(store)
        for place in self.opened():
            place.drop_cache()
        for path in self._files("-cache"):
            os.unlink(path)

    def forget_caches(self) -> None:
        """What this process has of them in memory."""
        for place in self.opened():
            place.forget()

    def _files(self, ending: str) -> list[str]:
        local = self._store.local("files-")
        if local is None:
            return []
        folder, start = os.path.split(local)
        found = [name for name in os.listdir(folder) if name.startswith(start)]
        return [os.path.join(folder, name) for name in found if name.endswith(ending)]

    def close(self) -> None:
        for place in self.opened():
            place.write_cache()
        if self._temporary is not None:
            self._temporary.cleanup()

    def _prefix(self, id: bytes) -> str:
        """What the names of a workspace's own files begin with."""
        name = files_of(id, self._user)
        local = self._store.local(name)
        if local is not None:
            return local
        if self._temporary is None:  # a store in memory has no place on the disk
            from tempfile import TemporaryDirectory

            self._temporary = TemporaryDirectory(prefix="hardsave-")
        return os.path.join(self._temporary.name, name)

    def _own(self, root: bytes) -> tuple[bytes, ...]:
        """The store's files, if they lie in the workspace: how the paths of all of them begin. What
        a project calls `data.csv` is none of a store that is called `data`."""
        path = on_disk.path_of(self._store)
        if path is None:
            return ()
        main = os.fsencode(path)
        inside = root.rstrip(b"/") + b"/"
        if not main.startswith(inside):
            return ()
        name = main[len(inside) :]
        from hardsave.stores import store_files  # few stores lie in a workspace

        return store_files.beginnings(name)


def taken_by(record: WorkspaceRecord, host: str, path: bytes) -> WorkspaceRecord:
    """A workspace in the hands of a host: captures that have begun elsewhere are refused."""
    return WorkspaceRecord(record.id, host, path, record.epoch + 1)


def files_of(id: bytes, user: str | None = None) -> str:
    """What the names of a workspace's own files have in common, after that of the store."""
    whose = b"" if user is None else b"\0" + user.encode()
    return f"files-{blake3(id + whose).hexdigest(10)}"
