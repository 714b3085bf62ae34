"""Turns that one process of this host has at a time: a file that its holder has locked (`flock`).

The kernel gives the lock back with the process. The file holds the note of the last holder.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from hardsave.errors import Misuse, Unavailable
from hardsave.stores.base import MAX_NOTE, Turn


class FileTurn:
    """One that this process has."""

    def __init__(self, path: str, file: int) -> None:
        self._path = path
        self._file = file

    def read(self) -> bytes:
        with _told(self._path):
            return os.pread(self._file, MAX_NOTE, 0)

    def write(self, note: bytes) -> None:
        checked(note)
        with _told(self._path):
            os.pwrite(self._file, note, 0)
            os.ftruncate(self._file, len(note))


def checked(note: bytes) -> bytes:
    """A note that is short enough."""
    if len(note) > MAX_NOTE:
        raise Misuse(f"the note of a turn has up to {MAX_NOTE} bytes, not {len(note)}")
    return note


@contextmanager
def file_turn(path: str) -> Iterator[Turn | None]:
    """The turn at a path; None if another process, or another caller in this one, has it."""
    with _told(path):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield FileTurn(path, file) if _is_taken(path, file) else None
    finally:
        os.close(file)


def _is_taken(path: str, file: int) -> bool:
    with _told(path):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextmanager
def _told(path: str) -> Iterator[None]:
    """A disk that is full, or a file system without locks, in an error of ours."""
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be used: {error.strerror}; see to the disk, then repeat"
        ) from error
