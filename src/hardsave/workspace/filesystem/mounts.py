"""Which file systems lie under and in a workspace, as the kernel lists them. Linux only.

A watch of a directory gets no event when something is mounted over it, or unmounted; nor when
another machine changes a file on a file system that both share.
"""

import os
import select
from collections.abc import Iterator

from hardsave.tuples import NamedTuple
from hardsave.workspace.entries import lies_in

_LIST = "/proc/self/mountinfo"
_SHARED = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "coda", "gfs2", "lustre"),
        *("ocfs2", "virtiofs", "vboxsf", "prl_fs"),
    }
)


class Mount(NamedTuple):
    """A mounted file system. Each mount has another `id`."""

    id: bytes
    point: bytes
    kind: str


def mounts(listed: bytes) -> Iterator[Mount]:
    """Parse the kernel's list."""
    for line in listed.splitlines():
        left, _, right = line.partition(b" - ")
        fields = left.split(b" ")
        if len(fields) > 4 and right:
            kind = os.fsdecode(right.split(b" ")[0])
            yield Mount(fields[0], _plain(fields[4]), kind)


def _plain(text: bytes) -> bytes:
    """A path without the kernel's escapes for blanks, line ends and backslashes."""
    first, *others = text.split(b"\\")
    return first + b"".join([bytes([int(each[:3], 8)]) + each[3:] for each in others])


def kind_under(root: bytes, listed: bytes) -> str:
    """The kind of file system that a directory lies on; of several mounts, the last one shows."""
    above = [each for each in mounts(listed) if lies_in(root, each.point.rstrip(b"/"))]
    return max(above, key=lambda each: len(each.point), default=Mount(b"", b"", "")).kind


def tells_all(kind: str) -> bool:
    """Whether changes of such a file system happen nowhere but under this kernel."""
    return kind not in _SHARED and kind != "fuse" and not kind.startswith("fuse.")


def inside(root: bytes, listed: bytes) -> frozenset[Mount]:
    return frozenset(each for each in mounts(listed) if lies_in(each.point, root))


class Mounts:
    """What is mounted in a directory, and whether that has changed."""

    def __init__(self, root: bytes) -> None:
        self._root = root
        self._fd = os.open(_LIST, os.O_RDONLY | os.O_CLOEXEC)
        # The kernel reports a change once to each descriptor: a thread that sleeps has its own.
        self.change_fd = os.open(_LIST, os.O_RDONLY | os.O_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLPRI)
        listed = self._read()
        self.kind = kind_under(root, listed)
        self._inside = inside(root, listed)

    def have_changed(self) -> bool:
        """The kernel reports that anything was mounted anywhere: only then the list is read."""
        if not self._poll.poll(0):
            return False
        before, self._inside = self._inside, inside(self._root, self._read())
        return before != self._inside

    def _read(self) -> bytes:
        os.lseek(self._fd, 0, os.SEEK_SET)
        parts = []
        while part := os.read(self._fd, 1 << 16):
            parts.append(part)
        return b"".join(parts)

    def close(self) -> None:
        os.close(self._fd)
        os.close(self.change_fd)
