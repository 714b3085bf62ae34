"""Which store is a project's own, and what to say when the project seems to have moved.

A project's store lies outside of it and is found by its path alone. Beside it lies what else is
known of the project: its directory, and the commit that its history began with. So a project
without a store can be compared with the stores whose projects are gone from where they were.

The same directory is an error that says what to type: to begin anew without a word would look
like a loss, and to take the other store would be a guess. The same history in another
directory (a copy, a second clone) is a warning: people delete clones and make new ones.
"""

import contextlib
import fcntl
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hardsave import config
from hardsave.errors import NotFound
from hardsave.logs import log

RECORD = "project.json"
_LARGEST_RECORD = 64 * 1024
_GENERATION = 0x80087601  # FS_IOC_GETVERSION: another one if the number of an inode is used again


class Project(NamedTuple):
    """What is known of a project, apart from its store."""

    root: str
    device: int
    inode: int
    born: int | None  # tells two directories apart that had one inode; None: not known here
    first_commit: str | None  # None: none yet; empty: it cannot be told


class Place(NamedTuple):
    """Where a project's store lies, or would."""

    folder: Path
    project: Project | None  # None: somebody has named the store

    @property
    def url(self) -> str:
        return config.file_url(self.folder / config.STORE_FILE)


Likeness = Literal["same directory", "same history"]


def own_store(environment: Mapping[str, str], directory: Path) -> tuple[str, Place | None]:
    """The URL of the store to use when none was named; and its place, if it is a project's own.

    `NotFound` if the project has none, and has been somewhere else before.
    """
    named = config.named_store(environment, directory)
    if named is not None:
        return named, None
    folder = config.store_folder(environment, directory, sys.platform)
    known = read(folder)
    project = described(config.project_root(directory), known)
    if not folder.exists():
        _ask(project, folder, list(_others(folder)))
    place = Place(folder, project if project != known else None)
    return place.url, place


def remember(place: Place) -> None:
    """Note what is known of a project beside its store, once that is there."""
    if place.project is None:
        return
    path = place.folder / RECORD
    new = path.with_name(f"{RECORD}.{os.urandom(4).hex()}")
    try:
        new.write_text(json.dumps(place.project._asdict()), encoding="ascii")
        new.chmod(0o600)
        os.replace(new, path)
    except OSError:
        log(__name__).warning(
            "%s cannot be written; a moved project is not recognised", path, exc_info=True
        )
        with contextlib.suppress(OSError):
            new.unlink()


def described(root: Path, known: Project | None) -> Project:
    """A project as it is now. Its history has one beginning: it is looked for until it is found."""
    status = os.stat(root)
    born = _born(root, status)
    found = Project(str(root), status.st_dev, status.st_ino, born, None)
    if known is not None and known.first_commit is not None and _is_same_directory(known, found):
        return found._replace(first_commit=known.first_commit)
    from hardsave.workspace.gitroots import first_commit  # asked for until it is known

    return found._replace(first_commit=first_commit(root))


def likeness(project: Project, other: Project) -> Likeness | None:
    """Whether two records may be of one project."""
    if _is_same_directory(project, other) and project.born is not None:
        return "same directory"
    if project.first_commit and project.first_commit == other.first_commit:
        return "same history"
    return None


def read(folder: Path) -> Project | None:
    """What is noted beside a store; None if there is nothing that can be used."""
    try:
        with open(folder / RECORD, "rb") as file:
            fields: Any = json.loads(file.read(_LARGEST_RECORD))
        if isinstance(fields["root"], str) and isinstance(fields["inode"], int):
            return Project(*(fields[name] for name in Project._fields))
    except (OSError, ValueError, LookupError, TypeError):
        pass  # written by nobody we know
    return None


def _ask(project: Project, folder: Path, others: Iterable[tuple[Path, Project]]) -> None:
    """Say what may be this project's store, if something may be."""
    for there, other in others:
        like = likeness(project, other)
        if like is None or _is_still_there(other):
            continue
        store = there / config.STORE_FILE
        if like == "same directory":
            raise NotFound(
                f"{project.root} has no store, but was {other.root} before, which has one. To go "
                f"on with it, type: mv {_quoted(there)} {_quoted(folder)} (nobody may have it "
                f"open); to begin anew: mkdir {_quoted(folder)}"
            )
        log(__name__).warning(
            "%s begins with a new store. %s had the same history, and is gone; its store is still "
            "there. If it is this project, type: export %s=%s",
            project.root,
            other.root,
            config.STORE_VARIABLE,
            _quoted(store),
        )


def _others(folder: Path) -> Iterator[tuple[Path, Project]]:
    try:
        found = sorted(folder.parent.iterdir())
    except OSError:
        return
    for there in found:
        other = read(there) if there != folder else None
        if other is not None and (there / config.STORE_FILE).exists():
            yield there, other


def _is_still_there(project: Project) -> bool:
    """Whether a project is where its record says; if it cannot be told, it is."""
    try:
        status = os.stat(project.root)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return (status.st_dev, status.st_ino) == (project.device, project.inode)


def _is_same_directory(one: Project, other: Project) -> bool:
    return (one.device, one.inode, one.born) == (other.device, other.inode, other.born)


def _born(root: Path, status: os.stat_result) -> int | None:
    birth = getattr(status, "st_birthtime", None)  # macOS and the BSDs
    if birth is not None:
        return int(birth * 1_000_000)
    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return int.from_bytes(fcntl.ioctl(descriptor, _GENERATION, bytes(8))[:4], sys.byteorder)
    except OSError:
        return None  # not on this file system
    finally:
        os.close(descriptor)


def _quoted(path: Path) -> str:
    import shlex  # for messages alone

    return shlex.quote(str(path))
