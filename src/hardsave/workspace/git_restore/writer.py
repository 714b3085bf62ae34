"""Writes into a git directory: whole files by one rename, after all of them lie on the disk.

New contents wait in a directory of ours beside `refs`, because a temporary file among refs would
be taken for one. Nothing here follows a link.
"""

import os
from contextlib import suppress

from hardsave.workspace.filesystem.bounded_read import open_beneath, open_directory
from hardsave.workspace.filesystem.durable_write import write_whole
from hardsave.workspace.git.git_directory import GitDirectory
from hardsave.workspace.git.unfinished import OPERATION_DIRECTORIES
from hardsave.workspace.git_restore.locks import making_parents

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOG = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_TAIL = 4096
_LONG_AGO_NS = 1_000_000_000


class GitFiles:
    """The files of one restore; `name` is that of its directory, the same after a crash."""

    def __init__(self, directory: GitDirectory, name: bytes) -> None:
        self._directory = directory
        self._name = name
        self._mode = os.stat(b"HEAD", dir_fd=directory.own, follow_symlinks=False).st_mode & 0o666
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=directory.common)
        self.staging = open_directory(name, parent=directory.common)
        self._touched: dict[tuple[int, bytes], None] = {}
        self._count = 0
        self._empty()

    def __enter__(self) -> "GitFiles":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._empty()
            os.rmdir(self._name, dir_fd=self._directory.common)
        finally:
            os.close(self.staging)

    def _empty(self) -> None:
        """Remove what a restore that was interrupted has staged."""
        for name in os.listdir(self.staging):
            os.unlink(name, dir_fd=self.staging)

    def stage(self, data: bytes, *, name: bytes = b"", mode: int | None = None) -> bytes:
        """Write a content and sync it. Returns its temporary name."""
        self._count += 1
        name = name or b"%d" % self._count
        file = os.open(name, _NEW, 0o600, dir_fd=self.staging)
        try:
            write_whole(file, data)
            os.fchmod(file, self._mode if mode is None else mode)
            os.fsync(file)
        finally:
            os.close(file)
        return name

    def backdate(self, name: bytes) -> None:
        """Let a staged index look older than every file that it knows.

        Git trusts the stat data of an index for files that were last changed before the index was
        written. Ours is written late; with an old time, git compares contents once.
        """
        os.utime(name, ns=(_LONG_AGO_NS, _LONG_AGO_NS), dir_fd=self.staging, follow_symlinks=False)

    def put(self, base: int, path: bytes, staged: bytes) -> None:
        """Give a staged file its place, also over a file that is there."""
        with making_parents(base, path) as (parent, name):
            _remove_empty(parent, name)
            os.rename(staged, name, src_dir_fd=self.staging, dst_dir_fd=parent)
        self._touch(base, path)

    def add(self, base: int, path: bytes, staged: bytes) -> None:
        """The same, but never over anything: FileExistsError."""
        with making_parents(base, path) as (parent, name):
            os.link(
                *(staged, name),
                src_dir_fd=self.staging,
                dst_dir_fd=parent,
                follow_symlinks=False,
            )
        self._touch(base, path)

    def remove(self, base: int, path: bytes) -> None:
        with suppress(FileNotFoundError, NotADirectoryError):
            parent = open_beneath(base, path.split(b"/")[:-1])
            try:
                os.unlink(path.rpartition(b"/")[2], dir_fd=parent)
            finally:
                os.close(parent)
            self._touch(base, path)

    def remove_empty(self, base: int, path: bytes) -> None:
        """Remove a directory that holds nothing any more."""
        with making_parents(base, path) as (parent, name):
            _remove_empty(parent, name)
        self._touch(base, path)

    def remove_operations(self, kept: set[str]) -> None:
        """Directories of unfinished work that hold nothing any more: git goes by their names."""
        for path in OPERATION_DIRECTORIES:
            if not any(each.startswith(path.decode() + "/") for each in kept):
                _remove_empty(self._directory.own, path)
        self._touched[self._directory.own, b""] = None

    # Reflogs

    def append(self, base: int, path: bytes, lines: bytes, *, is_new: bool) -> None:
        """Add lines, unless they are the last already. With `is_new`, the file is made."""
        with making_parents(base, path) as (parent, name):
            _remove_empty(parent, name)
            try:
                file = os.open(name, _LOG | (os.O_CREAT if is_new else 0), 0o600, dir_fd=parent)
            except FileNotFoundError:
                return
            try:
                self._append(file, lines)
            finally:
                os.close(file)
        self._touch(base, path)

    def _append(self, file: int, lines: bytes) -> None:
        size = os.fstat(file).st_size
        if not size:
            os.fchmod(file, self._mode)
        tail = os.pread(file, _TAIL, max(0, size - _TAIL))
        write_whole(file, lines[_overlap(b"\n" + tail, lines) :])
        os.fsync(file)

    # Making it last

    def _touch(self, base: int, path: bytes) -> None:
        while path:
            path = path.rpartition(b"/")[0]
            self._touched[base, path] = None

    def sync(self) -> None:
        for base, path in self._touched:
            with suppress(FileNotFoundError, NotADirectoryError):
                opened = open_beneath(base, path.split(b"/") if path else [])
                try:
                    os.fsync(opened)
                finally:
                    os.close(opened)
        self._touched.clear()


def _overlap(tail: bytes, lines: bytes) -> int:
    """How much of these lines stands at the end already: a write may have been cut off."""
    for length in range(len(lines), 0, -1):
        if tail.endswith(b"\n" + lines[:length]):
            return length
    return 0


def _remove_empty(parent: int, name: bytes) -> None:
    """Remove a directory that holds nothing but such directories. What is in use stays."""
    try:
        opened = open_directory(name, parent=parent)
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        for below in os.listdir(opened):
            _remove_empty(opened, os.fsencode(below))
    finally:
        os.close(opened)
    with suppress(OSError):  # it is not empty: the call that needs the name will fail
        os.rmdir(name, dir_fd=parent)
