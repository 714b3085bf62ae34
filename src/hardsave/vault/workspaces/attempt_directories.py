"""Directories of this host in which attempts at jobs work, each in one of its own.

Contract. No two attempts share a directory, so what a process writes that was stopped and has lost
its job reaches no other attempt. While an attempt is under way, its process holds a lock; the
kernel gives it back, however the process ends. A directory whose files are all saved is removed
with its attempt. Others stay for a day, for people to look at, and no more of them than a few.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hardsave.defaults import LEFT_DIRECTORIES, LEFT_DIRECTORY_SECONDS
from hardsave.errors import Unavailable
from hardsave.logs import log
from hardsave.stores.local.turns import file_turn

_LOCK = "lock"
_LEFT = "left"  # its time is when a process first saw that no attempt has the directory
_OWN = "own"
_HIDDEN = "."  # begins the name of one that is made, and empty, until its process has the lock
_MOST_NAME = 100  # bytes: of the name of a job that a path is to have


class AttemptDirectory:
    """One that this process works in."""

    def __init__(self, folder: Path, name: str) -> None:
        self.root = folder / _file_name(name)
        self.own = str(folder / _OWN)
        """How the paths of what belongs to it begin, and is no file of the job."""
        self.is_saved = False
        """Whether all that is in it can be had from the store."""


class AttemptDirectories:
    """Those in one folder. Threads and processes of this host may share it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def new(self, name: str) -> Iterator[AttemptDirectory]:
        """A new, empty directory for the block; its last part is called like the job."""
        self.clean()
        folder = self._folder / os.urandom(8).hex()
        hidden = folder.with_name(_HIDDEN + folder.name)
        made = AttemptDirectory(folder, name)
        with _told(folder):
            (hidden / made.root.name).mkdir(mode=0o700, parents=True)
        with file_turn(str(hidden / _LOCK)) as turn:
            assert turn is not None  # no other process looks at it yet
            with _told(folder):
                hidden.rename(folder)
            try:
                yield made
            finally:
                if made.is_saved:
                    _remove(folder)

    def clean(self) -> None:
        """Remove what no attempt has any more: what is older than a day, and all but the newest."""
        every = ((_left_since(each), each) for each in self._all())
        left = sorted(((since, each) for since, each in every if since is not None), reverse=True)
        too_old = time.time() - LEFT_DIRECTORY_SECONDS
        for place, (since, folder) in enumerate(left):
            if place >= LEFT_DIRECTORIES or since < too_old:
                _remove_if_free(folder)

    def drop(self) -> None:
        """Remove all that no attempt has: it may hold what must be gone."""
        for folder in self._all():
            _remove_if_free(folder)

    def _all(self) -> list[Path]:
        try:
            found = [each for each in self._folder.iterdir() if each.is_dir()]
        except FileNotFoundError:
            return []
        return [each for each in found if not each.name.startswith(_HIDDEN)]


def _left_since(folder: Path) -> float | None:
    """Since when no attempt has a directory, as far as is known here; None: one has it."""
    try:
        with file_turn(str(folder / _LOCK)) as turn:
            if turn is None:
                return None
            mark = folder / _LEFT
            if not mark.exists():
                mark.touch()
            return mark.stat().st_mtime
    except (OSError, Unavailable):
        return None  # another process has just removed it


def _remove_if_free(folder: Path) -> None:
    try:
        with file_turn(str(folder / _LOCK)) as turn:
            if turn is not None:
                _remove(folder)
    except Unavailable:
        pass  # another process has just removed it


def _remove(folder: Path) -> None:
    """What cannot be removed now, as a tool still writes into it, is tried again another time."""
    try:
        shutil.rmtree(folder)
    except OSError:
        _open_up(folder)
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        log(__name__).info("%s of an attempt that is over could not be removed yet", folder)


def _open_up(folder: Path) -> None:
    """Directories that nothing may be removed from, as package managers leave them."""
    for at, below, _ in os.walk(folder):
        for name in below:
            path = os.path.join(at, name)
            if not os.path.islink(path):
                with suppress(OSError):
                    os.chmod(path, 0o700)


def _file_name(name: str) -> str:
    """A job's name as the name of a directory: paths are shown to people and to models."""
    plain = "".join(each if each.isalnum() or each in "-_." else "-" for each in name)
    return os.fsdecode(os.fsencode(plain)[:_MOST_NAME]).strip(".") or "job"


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"{folder} cannot be made for an attempt at a job: {error.strerror}; see to the disk, "
            "then repeat"
        ) from error
