"""The first net: an `apsw.VFS` beneath the checksums, and patches of the calls beside it.

SQLite's writes, syncs, truncations, openings and deletions of the main file, the journal
and the WAL pass through the VFS; the lock file, the mark and the folders pass through
`os.open`, `os.pwrite`, `os.fsync`, `os.mkdir`, `os.rename`, `os.unlink` and `fcntl.flock`.
Every such call has a number, and at one number a process can be struck:

before, after, middle   it kills itself with SIGKILL; in the middle of a write, half of
                        the bytes are down
ENOSPC, EIO             the call fails, once, or from then on until `heal()`; a disk that
                        is full has taken half of the bytes

What stays outside: shared memory (-shm), which SQLite maps itself; the second net sees it.
"""

import errno
import fcntl
import os
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar
from unittest import mock

import apsw

from tests.crash.events import Event, Journal, Kind

T = TypeVar("T")

How = Literal["before", "after", "middle", "ENOSPC", "EIO"]

# Calls that a full disk can refuse: those that need a block or a name.
_NEED_SPACE = {"create", "write", "mkdir"}
# SQLite's own words for a failed call, as its unix VFS says them.
_SQLITE_FAULTS: dict[Kind, tuple[type[apsw.Error], int]] = {
    "open": (apsw.CantOpenError, apsw.SQLITE_CANTOPEN),
    "create": (apsw.CantOpenError, apsw.SQLITE_CANTOPEN),
    "write": (apsw.IOError, apsw.SQLITE_IOERR_WRITE),
    "truncate": (apsw.IOError, apsw.SQLITE_IOERR_TRUNCATE),
    "sync": (apsw.IOError, apsw.SQLITE_IOERR_FSYNC),
    "delete": (apsw.IOError, apsw.SQLITE_IOERR_DELETE),
}


@dataclass(frozen=True, slots=True)
class Strike:
    """What goes wrong, and at which call."""

    at: int
    how: How
    lasting: bool = False  # the error stays until it is healed

    def hits(self, event: Event) -> bool:
        reached = event.call >= self.at if self.lasting else event.call == self.at
        return reached and self.fits(event)

    def fits(self, event: Event) -> bool:
        """Whether such a call can go wrong in this way."""
        if self.how == "middle":
            return event.kind == "write" and len(event.data) > 1
        if self.how == "ENOSPC":
            return event.kind in _NEED_SPACE
        return self.how != "EIO" or event.kind != "lock"  # flock does no I/O


class Layer:
    """All calls of this process on files under `folder`, counted, recorded and struck."""

    def __init__(self, folder: Path, strike: Strike | None, journal: Journal | None) -> None:
        self._folder = os.path.realpath(folder)
        self._strike = strike
        self._journal = journal
        self._calls = 0
        self._lock = threading.Lock()

    def heal(self) -> None:
        """No strike from here on."""
        self._strike = None

    def note(self, text: str) -> None:
        self.record(Event("note", text))

    def record(self, event: Event) -> None:
        if self._journal is not None:
            self._journal.add(event)

    def place(self, path: object) -> str | None:
        """A path relative to the folder; None if it is not ours to watch."""
        if not isinstance(path, str | os.PathLike):
            return None
        real = os.path.abspath(os.fspath(path))
        inside = real == self._folder or real.startswith(self._folder + os.sep)
        return real[len(self._folder) + 1 :] if inside else None

    def call(
        self,
        event: Event,
        do: Callable[[], T],
        fault: Callable[[Kind, str], Exception],
        half: Callable[[bytes], object] | None = None,
    ) -> T:
        """Do it, unless it is struck. `half` writes only the bytes that it is given."""
        with self._lock:
            self._calls += 1
            number = self._calls
        event = Event(event.kind, event.path, number, event.offset, event.data)
        strike = self._strike
        struck = strike.how if strike is not None and strike.hits(event) else None
        if struck == "before":
            _die()
        if struck in ("middle", "ENOSPC") and half is not None:
            part = event.data[: len(event.data) // 2]
            half(part)
            self.record(Event(event.kind, event.path, number, event.offset, part))
        if struck == "middle":
            _die()
        if struck in ("ENOSPC", "EIO"):
            raise fault(event.kind, struck)
        done = do()
        self.record(event)
        if struck == "after":
            _die()
        return done


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    threading.Event().wait()  # the signal may arrive a moment later: do nothing until then


def _sqlite_fault(kind: Kind, how: str) -> apsw.Error:
    if how == "ENOSPC" and kind == "write":
        return apsw.FullError("no space left (injected)")
    name, code = _SQLITE_FAULTS[kind]
    error = name(f"{how} in {kind} (injected)")
    error.extendedresult = code  # type: ignore[attr-defined] # apsw looks for it
    return error


def _system_fault(kind: Kind, how: str) -> OSError:
    number = errno.ENOSPC if how == "ENOSPC" else errno.EIO
    return OSError(number, f"{os.strerror(number)} in {kind} (injected)")


class WatchedFile(apsw.VFSFile):
    """One of SQLite's files."""

    def __init__(self, layer: Layer, place: str, base: str, name: Any, flags: list[int]) -> None:
        self._layer = layer
        self._place = place
        # The unix VFS syncs the folder with the first sync of a journal or WAL that it was
        # allowed to create, whether or not the file was there before.
        named = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL
        self._syncs_folder = bool(flags[0] & named and flags[0] & apsw.SQLITE_OPEN_CREATE)
        super().__init__(base, name, flags)

    def xWrite(self, data: Any, offset: int) -> None:
        event = Event("write", self._place, offset=offset, data=bytes(data))
        self._layer.call(
            event,
            lambda: super(WatchedFile, self).xWrite(data, offset),
            _sqlite_fault,
            lambda part: super(WatchedFile, self).xWrite(part, offset),
        )

    def xTruncate(self, newsize: int) -> None:
        event = Event("truncate", self._place, offset=newsize)
        self._layer.call(event, lambda: super(WatchedFile, self).xTruncate(newsize), _sqlite_fault)

    def xSync(self, flags: int) -> None:
        event = Event("sync", self._place)
        self._layer.call(event, lambda: super(WatchedFile, self).xSync(flags), _sqlite_fault)
        if self._syncs_folder:
            self._syncs_folder = False
            self._layer.record(Event("sync folder", os.path.dirname(self._place)))


class WatchedVfs(apsw.VFS):
    """The default VFS of this process, from now on."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer
        self._base = apsw.vfs_names()[0]
        super().__init__("watched", self._base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        place = self._layer.place(path)
        if place is None:
            return apsw.VFSFile(self._base, name, flags)
        is_new = flags[0] & apsw.SQLITE_OPEN_CREATE and not os.path.exists(path)
        return self._layer.call(
            Event("create" if is_new else "open", place),
            lambda: WatchedFile(self._layer, place, self._base, name, flags),
            _sqlite_fault,
        )

    def xDelete(self, filename: str, syncdir: bool) -> None:
        place = self._layer.place(filename)
        assert place is not None
        self._layer.call(
            Event("delete", place),
            lambda: super(WatchedVfs, self).xDelete(filename, syncdir),
            _sqlite_fault,
        )
        if syncdir:
            self._layer.record(Event("sync folder", os.path.dirname(place)))


class WatchedConnection(apsw.Connection):
    """SQLite does not report what fails in the checkpoint of a last close: the WAL simply
    stays. apsw hands on the exception of a VFS written in Python all the same; with the C
    one there is none, and there shall be none here."""

    def close(self, force: bool = False) -> None:
        try:
            super().close(force)
        except apsw.Error as error:
            if "(injected)" not in str(error):
                raise


class SystemCalls:
    """The calls that the store makes by itself, beside SQLite."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer
        self._places: dict[int, str] = {}
        self._open, self._pwrite, self._fsync = os.open, os.pwrite, os.fsync
        self._mkdir, self._flock, self._close = os.mkdir, fcntl.flock, os.close
        self._rename, self._unlink = os.rename, os.unlink

    def patches(self) -> Iterator[Any]:
        yield mock.patch.object(os, "open", self.open)
        yield mock.patch.object(os, "pwrite", self.pwrite)
        yield mock.patch.object(os, "fsync", self.fsync)
        yield mock.patch.object(os, "mkdir", self.mkdir)
        yield mock.patch.object(os, "close", self.close)
        yield mock.patch.object(os, "rename", self.rename)
        yield mock.patch.object(os, "replace", self.rename)  # the same on POSIX
        yield mock.patch.object(os, "unlink", self.unlink)
        yield mock.patch.object(fcntl, "flock", self.flock)

    def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        place = None if dir_fd is not None else self._layer.place(path)
        if place is None:  # not the store's own; that names its files by whole paths
            return self._open(path, flags, mode, dir_fd=dir_fd)
        is_new = flags & os.O_CREAT and not os.path.exists(path)
        event = Event("create" if is_new else "open", place)
        file = self._layer.call(event, lambda: self._open(path, flags, mode), _system_fault)
        self._places[file] = place
        return file

    def close(self, file: int) -> None:
        self._places.pop(file, None)
        self._close(file)

    def pwrite(self, file: int, data: bytes, offset: int) -> int:
        event = Event("write", self._places[file], offset=offset, data=data)
        return self._layer.call(
            event,
            lambda: self._pwrite(file, data, offset),
            _system_fault,
            lambda part: self._pwrite(file, part, offset),
        )

    def fsync(self, file: int) -> None:
        place = self._places.get(file)
        if place is None:  # a folder above the one that is watched
            self._fsync(file)
            return
        is_folder = stat.S_ISDIR(os.fstat(file).st_mode)
        kind: Kind = "sync folder" if is_folder else "sync"
        self._layer.call(Event(kind, place), lambda: self._fsync(file), _system_fault)

    def mkdir(self, path: Any, mode: int = 0o777) -> None:
        place = self._layer.place(path)
        if place is None or not os.path.isdir(os.path.dirname(path)) or os.path.exists(path):
            self._mkdir(path, mode)
            return
        self._layer.call(Event("mkdir", place), lambda: self._mkdir(path, mode), _system_fault)

    def rename(self, old: Any, new: Any) -> None:
        place = self._layer.place(old)
        if place is None:
            self._rename(old, new)
            return
        event = Event("rename", place, data=os.fsencode(self._layer.place(new) or ""))
        self._layer.call(event, lambda: self._rename(old, new), _system_fault)

    def unlink(self, path: Any) -> None:
        place = self._layer.place(path)
        if place is None or not os.path.exists(path):
            self._unlink(path)
            return
        self._layer.call(Event("delete", place), lambda: self._unlink(path), _system_fault)

    def flock(self, file: int, operation: int) -> None:
        event = Event("lock", self._places[file])
        self._layer.call(event, lambda: self._flock(file, operation), _system_fault)


_registered: list[WatchedVfs] = []  # SQLite keeps a pointer to it: it must not be collected


def watch(folder: Path, strike: Strike | None, journal: Journal | None) -> Layer:
    """Watch this process, for the rest of its life. Before any store is opened."""
    layer = Layer(folder, strike, journal)
    _registered.append(WatchedVfs(layer))
    for patch in SystemCalls(layer).patches():
        patch.start()
    mock.patch.object(apsw, "Connection", WatchedConnection).start()
    return layer
