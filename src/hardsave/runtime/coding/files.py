"""Files beneath a directory, as an agent may have them: no path and no link leads out of it.

Every file is opened by `RootDirectory`, which the kernel keeps inside; a directory that is swapped
for a link at the worst moment is refused. Writing replaces a file as a whole, so that a process
that is killed leaves the old one or the new one; edits come one after the other, so that none is
lost to another.
"""

import os
import posixpath
import stat
import threading
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from hardsave.runtime.coding.text import MAX_SHOWN, Refused, matches, replaced, window
from hardsave.workspace.entries import parent
from hardsave.workspace.file_names import TEMPORARY_PREFIX, is_gits_own
from hardsave.workspace.filesystem.safe_open import RootDirectory

MAX_FILE = 2 * 1024 * 1024
MAX_ENTRIES = 500
MAX_MATCHES = 200

_WRITING = threading.Lock()
"""Models ask for several edits of one file at once, and tools run beside each other: a tool that
reads a file to write it again does so alone, of all agents of this process in all directories."""


class Files:
    """The files of one directory. Paths are relative to it, or absolute and inside."""

    def __init__(self, root: "str | os.PathLike[str]") -> None:
        self._root = Path(os.path.realpath(root))
        self._names = (self._root, Path(os.path.abspath(root)))  # a model may use either

    def read(self, path: str, start: int = 1, lines: int = 2000) -> str:
        with self._root_directory() as root:
            data = self._data(root, self._inside(path))
        return window(data.decode(errors="replace"), start, lines)

    def write(self, path: str, content: str) -> str:
        name, data = self._writable(path), _encoded(content)
        with _WRITING, self._root_directory() as root:
            _make_directories(root, parent(name))
            _replace(root, name, data)
        return f"wrote {len(data)} bytes to {path}"

    def edit(self, path: str, old: str, new: str) -> str:
        name, before, after = self._writable(path), _encoded(old), _encoded(new)
        with _WRITING, self._root_directory() as root:
            _replace(root, name, replaced(self._data(root, name), before, after))
        return f"edited {path}"

    def list(self, path: str = ".") -> str:
        inside = self._inside(path)
        with self._root_directory() as root, _Reporting(path), root.directory(inside) as directory:
            names = sorted(_shown(entry) for entry in os.scandir(directory))
        more = f"\n[{len(names) - MAX_ENTRIES} more]" if len(names) > MAX_ENTRIES else ""
        return "\n".join(names[:MAX_ENTRIES]) + more or "[empty]"

    def search(self, text: str, path: str = ".", files: str = "*") -> str:
        """Lines that hold a text, in files whose name matches a pattern."""
        if not text:
            raise Refused("say what to look for")
        shown: list[str] = []
        for name, content in self._contents(path, files):
            shown += [f"{name}:{line}" for line in matches(content, text)]
            if len(shown) > MAX_MATCHES:
                return "\n".join(shown[:MAX_MATCHES])[:MAX_SHOWN] + "\n[and more]"
        return "\n".join(shown)[:MAX_SHOWN] or "[nothing found]"

    def _contents(self, path: str, pattern: str) -> Iterator[tuple[str, str]]:
        start = self._inside(path)
        with self._root_directory() as root, _Reporting(path), root.directory(start) as directory:
            for below, folders, names, _ in os.fwalk(".", dir_fd=directory, follow_symlinks=False):
                folders[:] = sorted(name for name in folders if name != ".git")
                for name in sorted(names):
                    relative = posixpath.normpath(posixpath.join(os.fsdecode(start), below, name))
                    if fnmatch(name, pattern):
                        yield from self._searchable(root, relative)

    def _searchable(self, root: RootDirectory, path: str) -> Iterator[tuple[str, str]]:
        name = os.fsencode(path)
        try:
            yield _text(name), self._data(root, name).decode(errors="replace")
        except Refused:
            return  # binary, large, a link, gone: nothing to search

    def _root_directory(self) -> RootDirectory:
        try:
            return RootDirectory(os.fsencode(self._root))
        except OSError as error:
            raise Refused(f"the workspace cannot be opened: {error.strerror}") from error

    def _inside(self, path: str) -> bytes:
        """A path relative to the root; empty for the root itself."""
        if "\x00" in path:
            raise Refused("a path cannot hold a NUL character")
        name = posixpath.normpath(path or ".")
        if posixpath.isabs(path):
            ways = [posixpath.relpath(path, root) for root in self._names]
            name = next((way for way in ways if not _leads_out(way)), "..")
        if _leads_out(name):
            raise Refused(f"{path} is outside of the workspace")
        try:
            return b"" if name == "." else os.fsencode(name)
        except UnicodeEncodeError as error:
            raise Refused(f"that is no path: {error.reason}") from error

    def _writable(self, path: str) -> bytes:
        name = self._inside(path)
        if not name or path.endswith("/"):
            raise Refused(f"{path or '.'} is a directory")
        if any(map(is_gits_own, name.split(b"/"))):
            raise Refused("what is git's own is not written: its hooks and settings are run")
        return name

    def _data(self, root: RootDirectory, name: bytes) -> bytes:
        with _Reporting(os.fsdecode(name)):
            descriptor = root.open(name, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would wait
            with open(descriptor, "rb") as file:
                found = os.fstat(descriptor)
                if not stat.S_ISREG(found.st_mode):
                    raise Refused(f"{os.fsdecode(name) or '.'} is not a file")
                data = file.read(MAX_FILE + 1)
        if len(data) > MAX_FILE:
            raise Refused(f"{os.fsdecode(name)} has more than {MAX_FILE} bytes")
        if b"\x00" in data:
            raise Refused(f"{os.fsdecode(name)} is not a text")
        return data


class _Reporting:
    """Errors of the system as what a model can understand."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise Refused(f"{self._path}: {error.strerror}") from error


def _leads_out(name: str) -> bool:
    return name == ".." or name.startswith("../")


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise Refused(f"that is not a text: {error.reason}") from error


def _text(name: bytes) -> str:
    """A name that no model can be told as it is stands there with marks in the place of bytes."""
    return name.decode(errors="replace")


def _shown(entry: "os.DirEntry[str]") -> str:
    name = _text(os.fsencode(entry.name))
    if entry.is_symlink():
        return f"{name}@"
    return f"{name}/" if entry.is_dir(follow_symlinks=False) else name


def _make_directories(root: RootDirectory, path: bytes) -> None:
    made = b""
    for name in path.split(b"/") if path else ():
        above, made = made, made + b"/" + name if made else name
        with _Reporting(os.fsdecode(made)), root.directory(above) as directory:
            try:
                os.mkdir(name, dir_fd=directory)
            except FileExistsError:
                continue  # the next open finds out what it is


def _replace(root: RootDirectory, path: bytes, data: bytes) -> None:
    """A new file under the old one's name, with its mode, all at once."""
    name = path.rpartition(b"/")[2]
    with _Reporting(os.fsdecode(path)), root.directory(parent(path)) as directory:
        mode = _mode(name, directory)
        draft = TEMPORARY_PREFIX + os.urandom(8).hex().encode()  # if we are killed, not captured
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(draft, flags, 0o666, dir_fd=directory)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                if mode is not None:
                    os.fchmod(descriptor, mode)
            os.rename(draft, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            os.unlink(draft, dir_fd=directory)
            raise


def _mode(name: bytes, directory: int) -> int | None:
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise Refused(f"{os.fsdecode(name)} is there, and not a file")
    return stat.S_IMODE(found.st_mode)
