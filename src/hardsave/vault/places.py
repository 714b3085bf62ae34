"""The workspaces of a vault. What they need is loaded when the first one is opened."""

import os
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from blake3 import blake3

from hardsave.errors import Misuse
from hardsave.stores import on_disk
from hardsave.stores.base import Store
from hardsave.vault.arguments import encoded

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

    from hardsave.vault.place import Place


class Places:
    """The workspaces of one vault."""

    def __init__(
        self,
        store: Store,
        user: str | None,
        included: Callable[[bytes], tuple[str, ...]] = lambda _: (),
    ) -> None:
        self._store = store
        self._user = user
        self._included = included  # what settings say is to be captured, by directory
        self._places: dict[bytes, Place] = {}
        self._lock = threading.Lock()
        self._temporary: TemporaryDirectory[str] | None = None
        self.last_purge: int | None = None  # of which this process knows: see `vault.local_data`

    def at(self, directory: "str | bytes | os.PathLike[str]") -> "Place":
        """The place of a directory, which must be there."""
        root = os.path.realpath(encoded(directory, "the workspace"))
        if not os.path.isdir(root):
            raise Misuse(f"the workspace {os.fsdecode(root)!r} is no directory; name one that is")
        return self.of(root)

    def of(self, root: bytes) -> "Place":
        """The place of a real path, whether a directory is there or not."""
        from hardsave.vault.place import Place

        with self._lock:
            place = self._places.get(root)
            if place is None:
                included = partial(self._included, root)
                own = self._own(root)
                place = self._places[root] = Place(root, self._prefix(root), own, included)
            return place

    def still_at(self, root: bytes, otherwise: str) -> "Place":
        """The place of a workspace that the store speaks of, which must be where it was:
        whatever has become a link to elsewhere since was never saved, and is not written to."""
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

    def known(self) -> "list[Place]":
        with self._lock:
            return list(self._places.values())

    def is_known(self, root: bytes) -> bool:
        """Whether this user has captured or restored there, or has said to."""
        with self._lock:
            return root in self._places or os.path.exists(self._prefix(root) + "-lock")

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
        for place in self.known():
            place.drop_cache()
        for path in self._files("-cache"):
            os.unlink(path)

    def forget_caches(self) -> None:
        """What this process has of them in memory."""
        for place in self.known():
            place.forget()

    def _files(self, ending: str) -> list[str]:
        local = self._store.local("files-")
        if local is None:
            return []
        folder, start = os.path.split(local)
        found = [name for name in os.listdir(folder) if name.startswith(start)]
        return [os.path.join(folder, name) for name in found if name.endswith(ending)]

    def close(self) -> None:
        for place in self.known():
            place.write_cache()
        if self._temporary is not None:
            self._temporary.cleanup()

    def _prefix(self, root: bytes) -> str:
        """What the names of a workspace's own files begin with."""
        name = files_of(root, self._user)
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
        return (name + b"\0", name + b"-", name + b".damaged-")


def files_of(root: bytes, user: str | None = None) -> str:
    """What the names of a workspace's own files have in common, after that of the store."""
    whose = b"" if user is None else b"\0" + user.encode()
    return f"files-{blake3(root + whose).hexdigest(10)}"
