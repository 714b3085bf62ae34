"""Reads files for a snapshot: each of them consistent in itself.

A file that changes while it is read is read again, and one that keeps changing is listed as not
captured, with its earlier content if that is known. Files are opened by name in their directory,
which is opened once for all of them: to look up a whole path for each takes twice as long.
"""

import errno
import os
import stat
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hardsave.objects.hashing import Hash
from hardsave.progress import Meter
from hardsave.tuples import NamedTuple
from hardsave.workspace.entries import NotCaptured, joined
from hardsave.workspace.filesystem.exhaustion import refuse_if_exhausted
from hardsave.workspace.filesystem.lock_safe_open import closed, opened
from hardsave.workspace.filesystem.safe_open import RootDirectory
from hardsave.workspace.filesystem.stamps import may_change_unseen
from hardsave.workspace.scan.cache import NO_HASH, CachedDirectory
from hardsave.workspace.scan.result import FileStamp, fields_of, unpacked
from hardsave.workspace.snapshot import content
from hardsave.workspace.snapshot.content import Put

_ATTEMPTS = 4


class Read(NamedTuple):
    """A file or a symlink as it was read, and the stamp that goes with it."""

    stamp: FileStamp
    hash: Hash = NO_HASH  # of the content; a symlink has none
    target: bytes = b""  # of a symlink


class FileReader:
    """Reads the files of one snapshot; `put` gets the objects of their contents."""

    def __init__(
        self,
        root_dir: RootDirectory,
        put: Put,
        *,
        start_ns: int,
        clock: Callable[[], int],
        meter: Meter,
    ) -> None:
        self._root_dir = root_dir
        self._put = put
        self._meter = meter
        self._devices = {root_dir.device}
        self._start_ns = start_ns
        self._clock = clock
        self._path = b""  # of the directory that is read in
        self._directory: int | None = None
        self._is_again = False  # a file is read that was not as it had been seen
        self.not_captured: list[NotCaptured] = []
        self.count = 0  # of those that were read

    @contextmanager
    def inside(self, path: bytes) -> Iterator[None]:
        """Read in this directory. If it cannot be opened, each of its files fails."""
        self._path = path
        try:
            yield
        finally:
            if self._directory is not None:
                os.close(self._directory)
                self._directory = None

    def _opened(self) -> int:
        if self._directory is None:
            self._directory = self._root_dir.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        return self._directory

    def read_link(self, name: bytes, stamp: FileStamp) -> Read | None:
        """A symlink that looked like `stamp` before; None if it cannot be captured."""
        try:
            target = os.readlink(name, dir_fd=self._opened())
        except OSError as error:
            self._not_readable(name, error)
            return None
        return Read(self._proven(stamp), target=target)

    def read(self, name: bytes, last: Read | None) -> Read | None:
        """Read a file until it holds still; else what it `last` held, listed as not captured. None
        if it cannot be captured."""
        self.count += 1
        previous: Hash | None = None
        for attempt in range(_ATTEMPTS):
            self._is_again = attempt > 0
            try:
                read, previous = self._attempt(name, last, previous)
            except OSError as error:
                self._not_readable(name, error)
                return None
            if read is not None:
                is_counted = read.stamp.size > content.PART_BYTES  # part by part
                self._meter.add(1, 0 if is_counted else read.stamp.size)
                return read
        reason = "kept changing while it was read"
        if last is not None:
            reason += "; an earlier content is kept"
        self.not_captured.append(NotCaptured(joined(self._path, name), reason))
        return None if last is None else last._replace(stamp=last.stamp.unproven())

    def _attempt(
        self, name: bytes, last: Read | None, previous: Hash | None
    ) -> tuple[Read | None, Hash | None]:
        """Read once. A stamp that is younger than a tick of the clock proves nothing: then the
        content has to be the same as in the attempt before, too."""
        now = self._clock()  # before its stamps: what is written later has others
        descriptor, before = opened(name, self._opened())
        try:
            self._refuse_what_is_no_file(name, before)
            expected = None if last is None else last.hash
            address, size = self._content(descriptor, before.st_size, expected)
            after = fields_of(os.fstat(descriptor))
        finally:
            closed(descriptor, before)
        if after != fields_of(before) or size != after[0]:
            return None, None
        stamp = FileStamp._make(after)
        if not may_change_unseen(stamp.mtime_ns, stamp.ctime_ns, min(now, self._start_ns)):
            return Read(stamp, address), address  # older than both: nearly always
        if may_change_unseen(stamp.mtime_ns, stamp.ctime_ns, now) and address != previous:
            return None, address
        return Read(self._proven(stamp), address), address

    def _refuse_what_is_no_file(self, name: bytes, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EAGAIN, "not a file any more")
        if status.st_dev not in self._devices:
            if self._root_dir.is_mounted(joined(self._path, name)):
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            self._devices.add(status.st_dev)  # one that only the layer of an overlay has

    def _proven(self, stamp: FileStamp) -> FileStamp:
        """The stamp for the cache: one that is too young to prove anything matches nothing."""
        unseen = may_change_unseen(stamp.mtime_ns, stamp.ctime_ns, self._start_ns)
        return stamp.unproven() if unseen else stamp

    def _content(self, descriptor: int, size: int, expected: Hash | None) -> tuple[Hash, int]:
        """Put the content's objects, except a small one that is stored already."""
        if size > content.PART_BYTES:
            return content.of_parts(self._counted(content.parts(descriptor, size)), self._put)
        data = os.read(descriptor, size + 1)
        address, sealed = content.of_bytes(data)
        if address != expected:
            self._put(address, sealed)
        return address, len(data)

    def _counted(self, parts: Iterator[bytes]) -> Iterator[bytes]:
        """Each part once, however often it is read."""
        for part in parts:
            yield part
            if not self._is_again:
                self._meter.add(bytes=len(part))

    def _not_readable(self, name: bytes, error: OSError) -> None:
        refuse_if_exhausted(error)
        if error.errno != errno.ENOENT:  # a file that is gone is simply not there
            reason = f"cannot be read: {error.strerror}"
            self.not_captured.append(NotCaptured(joined(self._path, name), reason))


def read_before(known: CachedDirectory, name: bytes) -> Read | None:
    """A file as the last snapshot had it; None if it did not, or if it was a symlink."""
    at = bisect_left(known.files, name)
    if known.files[at : at + 1] != (name,) or known.file_hash(at) == NO_HASH:
        return None
    return Read(unpacked(known.file_stamp(at)), known.file_hash(at))
