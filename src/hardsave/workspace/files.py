"""Files as they are read for a snapshot: each of them consistent in itself.

A file that changes while it is read is read again, and one that does not hold still is
listed, with what it last held if that is known.
"""

import errno
import os
import stat
from collections.abc import Callable
from typing import NamedTuple

from hardsave.objects.hashing import Hash
from hardsave.workspace import content, policy
from hardsave.workspace.beneath import Beneath
from hardsave.workspace.cache import Folder
from hardsave.workspace.content import Put
from hardsave.workspace.entries import FILE, SYMLINK, Entry, NotCaptured, kept_mode
from hardsave.workspace.found import Key, taken_apart

_ATTEMPTS = 4


class Read(NamedTuple):
    """A file as it was read: what its entry says, and the stamp that goes with it."""

    entry: Entry
    key: Key


class Files:
    """Reads the files of one snapshot; `put` gets the objects of their contents."""

    def __init__(
        self, beneath: Beneath, put: Put, *, start_ns: int, clock: Callable[[], int]
    ) -> None:
        self._beneath = beneath
        self._put = put
        self._start_ns = start_ns
        self._clock = clock
        self.not_captured: list[NotCaptured] = []
        self.count = 0  # of those that were read

    def read(self, path: bytes, key: Key, last: Read | None) -> Read | None:
        """A file or a symlink that looks like `key`; None if it cannot be captured."""
        if stat.S_ISLNK(key.mode):
            return self._symlink(path, key)
        self.count += 1
        return self._file(path, last)

    def _symlink(self, path: bytes, key: Key) -> Read | None:
        try:
            target = self._beneath.read_link(path)
        except OSError as error:
            self._not_readable(path, error)
            return None
        return Read(Entry(SYMLINK, 0, len(target), None, target), self._proven(key))

    def _file(self, path: bytes, last: Read | None) -> Read | None:
        """A file that holds still; else what it last held, and a word about it."""
        previous: Hash | None = None
        for _ in range(_ATTEMPTS):
            try:
                read, previous = self._attempt(path, last, previous)
            except OSError as error:
                self._not_readable(path, error)
                return None
            if read is not None:
                return read
        reason = "kept changing while it was read"
        if last is None:
            self.not_captured.append(NotCaptured(path, reason))
            return None
        self.not_captured.append(NotCaptured(path, reason + "; an earlier content is kept"))
        return Read(last.entry, last.key.unproven())

    def _attempt(
        self, path: bytes, last: Read | None, previous: Hash | None
    ) -> tuple[Read | None, Hash | None]:
        """Read once. Stamps as young as the clock is coarse prove nothing: then the content
        has to be the `previous` one, too."""
        descriptor = self._beneath.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            now = self._clock()
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                raise OSError(errno.EAGAIN, "not a file any more")
            expected = last.entry.hash if last is not None else None
            address, size = self._content(descriptor, before.st_size, expected)
            key = Key.of(os.fstat(descriptor))
        finally:
            os.close(descriptor)
        if key != Key.of(before) or size != key.size:
            return None, None
        if policy.may_change_unseen(key.mtime_ns, key.ctime_ns, now) and address != previous:
            return None, address
        return Read(Entry(FILE, kept_mode(key.mode), size, address), self._proven(key)), address

    def _proven(self, key: Key) -> Key:
        """Stamps as they are remembered: those that are too young to tell match nothing."""
        unseen = policy.may_change_unseen(key.mtime_ns, key.ctime_ns, self._start_ns)
        return key.unproven() if unseen else key

    def _content(self, descriptor: int, size: int, expected: Hash | None) -> tuple[Hash, int]:
        """Hand out the content's objects, except a small one that is stored already."""
        if size > content.PART_BYTES:
            return content.of_parts(content.parts(descriptor), self._put)
        data = os.read(descriptor, size + 1)
        address, sealed = content.of_bytes(data)
        if address != expected:
            self._put(address, sealed)
        return address, len(data)

    def _not_readable(self, path: bytes, error: OSError) -> None:
        if error.errno != errno.ENOENT:  # a file that is gone is simply not there
            reason = f"cannot be read: {error.strerror}"
            self.not_captured.append(NotCaptured(path, reason))


def read_before(known: Folder, at: int) -> Read | None:
    """A file as the last snapshot had it; of a symlink it does not know enough."""
    key = taken_apart(known.file_key(at))
    if stat.S_ISLNK(key.mode):
        return None
    return Read(Entry(FILE, kept_mode(key.mode), key.size, known.file_hash(at)), key)
