"""A file among a user's own data that holds entries of one kind: tokens, secrets.

It is for its user alone, and replaced whole under a lock: a process that reads sees all of a change
or nothing of it, and of two that write at once both are heard.
"""

import fcntl
import json
import os
import shlex
import stat
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from hardsave.config.places import make_folder
from hardsave.errors import Unavailable

Entry = TypeVar("Entry")

WRITABLE = stat.S_IWGRP | stat.S_IWOTH
READABLE = stat.S_IRGRP | stat.S_IROTH

_VERSION = 1


class PrivateFile(ABC, Generic[Entry]):
    """The entries of this user. Processes may use it at once."""

    ENTRIES: ClassVar[str]
    """What the file calls them."""
    REFUSED_MODE: ClassVar[int] = WRITABLE
    """What other users must not be allowed to do with it."""
    IF_OPEN: ClassVar[str]
    """What they may do if they are allowed to, and what to do then."""
    IF_BROKEN: ClassVar[str]
    """What to do if it cannot be read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def _parsed(self, data: dict[str, Any]) -> Entry:
        """An entry of the file; `ValueError`, `KeyError` or `TypeError` if it is none."""

    @abstractmethod
    def _plain(self, entry: Entry) -> dict[str, Any]:
        """The same as it is written."""

    def stamp(self) -> tuple[int, int, int] | None:
        """Another one after every change: each puts a new file in place of the old one."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    @contextmanager
    def _changing(self) -> Iterator[list[Entry]]:
        """The entries, to be changed in place: they are written at the end of the block."""
        make_folder(self.path.parent)
        with open(self.path.with_suffix(".lock"), "a", opener=_for_its_user) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            entries = self._read()
            yield entries
            self._write(entries)

    def _read(self) -> list[Entry]:
        try:
            data = json.loads(self._bytes())
            if data["version"] != _VERSION:
                raise ValueError(f"version {data['version']}")
            return [self._parsed(each) for each in data[self.ENTRIES]]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise Unavailable(f"{self.path} cannot be read ({error}); {self.IF_BROKEN}") from error

    def _bytes(self) -> bytes:
        with open(self.path, "rb") as file:
            if os.fstat(file.fileno()).st_mode & self.REFUSED_MODE:
                raise Unavailable(
                    f"other users of this machine may {self.IF_OPEN.format(path=self.path)}, "
                    f"then type: chmod 600 {shlex.quote(str(self.path))}"
                )
            return file.read()

    def _write(self, entries: list[Entry]) -> None:
        data = {"version": _VERSION, self.ENTRIES: [self._plain(each) for each in entries]}
        with tempfile.NamedTemporaryFile("w", dir=self.path.parent, delete=False) as draft:
            try:
                json.dump(data, draft, indent=1)
                draft.flush()
                os.fsync(draft.fileno())
                os.replace(draft.name, self.path)
            except BaseException:
                os.unlink(draft.name)
                raise


def zoned(text: str) -> datetime:
    """A moment of such a file; `ValueError` if it does not say in which time zone."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return found


def _for_its_user(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
