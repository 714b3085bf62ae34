"""The kernel's inotify, by ctypes: watches on directories, events as plain data. Linux only.

Why not a library: those that we know hide that the queue overflowed, or that the limit of
watches was reached, and cannot leave directories out. To miss a change and to say nothing is
the one thing that a watcher must not do.
"""

import errno
import os
import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import Protocol

from hardsave.tuples import NamedTuple

# What can be asked for, and what comes
MODIFY = 0x2
ATTRIB = 0x4
CLOSE_WRITE = 0x8
MOVED_FROM = 0x40
MOVED_TO = 0x80
CREATE = 0x100
DELETE = 0x200
DELETE_SELF = 0x400
MOVE_SELF = 0x800
# What comes unasked
UNMOUNT = 0x2000
Q_OVERFLOW = 0x4000
IGNORED = 0x8000
IS_DIR = 0x4000_0000
# How to watch
ONLY_DIR = 0x0100_0000
DONT_FOLLOW = 0x0200_0000
EXCL_UNLINK = 0x0400_0000  # no events about files that have no name any more

_HEAD = struct.Struct("=iIII")  # watch, mask, cookie, length of the name
_READ_BYTES = 256 * 1024
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC  # the same numbers as IN_NONBLOCK and IN_CLOEXEC


class Event(NamedTuple):
    """Something happened in, or to, a watched directory."""

    watch: int
    mask: int
    name: bytes = b""  # of the entry; none: the directory itself


def events(data: bytes) -> Iterator[Event]:
    """Parse what was read."""
    at = 0
    while at < len(data):
        watch, mask, _, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        yield Event(watch, mask, data[at : at + length].rstrip(b"\0"))
        at += length


class Source(Protocol):
    """Where events come from. `fd` is readable when there are some; reading never waits."""

    fd: int
    is_prompt: bool
    """Whether a change can be read as soon as the call has returned that made it."""

    def add(self, path: bytes, mask: int) -> int:
        """The number of the watch. The same directory has the same number."""

    def remove(self, watch: int) -> None:
        """Remove a watch; one that is gone already is fine."""

    def read(self) -> list[Event]:
        """What has come, or a part of it. Empty: nothing at this moment."""

    def close(self) -> None: ...


class Inotify:
    """An inotify instance. An event is queued before the call returns that made the change."""

    is_prompt = True

    def __init__(self) -> None:
        self.fd = _kernel().init(_FLAGS)

    def add(self, path: bytes, mask: int) -> int:
        return _kernel().add(self.fd, path, mask)

    def remove(self, watch: int) -> None:
        try:
            _kernel().remove(self.fd, watch)
        except OSError as error:
            if error.errno != errno.EINVAL:  # no such watch
                raise

    def read(self) -> list[Event]:
        """Up to a few thousand at a time."""
        try:
            return list(events(os.read(self.fd, _READ_BYTES)))
        except BlockingIOError:
            return []

    def close(self) -> None:
        os.close(self.fd)


class _Kernel(NamedTuple):
    init: Callable[[int], int]
    add: Callable[[int, bytes, int], int]
    remove: Callable[[int, int], int]


@cache
def _kernel() -> _Kernel:
    """Loading ctypes takes milliseconds, and most processes watch nothing."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    library.inotify_init1.argtypes = [ctypes.c_int]
    library.inotify_add_watch.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32]
    library.inotify_rm_watch.argtypes = [ctypes.c_int, ctypes.c_int]

    def checked(function: Callable[..., int]) -> Callable[..., int]:
        def call(*arguments: int | bytes) -> int:
            made = function(*arguments)
            if made < 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))
            return made

        return call

    return _Kernel(
        checked(library.inotify_init1),
        checked(library.inotify_add_watch),
        checked(library.inotify_rm_watch),
    )
