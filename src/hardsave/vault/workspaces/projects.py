"""Which store is a project's own, and what to say when the project seems to have moved.

A project's store lies outside of it and is found by its path alone. Beside it lies what else is
known of the project: its directory, and the commit that its history began with. So a project
without a store can be compared with the stores whose projects are gone from where they were.

A directory that was forked from a project's checkpoint goes on with that project's store: its
record names it.

The same directory is an error that says what to type: to begin anew without a word would look
like a loss, and to take the other store would be a guess. The same history in another
directory (a copy, a second clone) is a warning: people delete clones and make new ones.
"""

import contextlib
import fcntl
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from hardsave import config
from hardsave.errors import NotFound, Unavailable
from hardsave.logs import log
from hardsave.tuples import NamedTuple

RECORD = "project.json"
_LARGEST_RECORD = 64 * 1024
_GENERATION = 0x80087601  # FS_IOC_GETVERSION: another one if the number of an inode is used again


class Project(NamedTuple):
    """What is known of a project, apart from its store."""

    root: str
    device: int
    inode: int
    born: int | None  # tells two directories apart that had one inode; None or 0: it does not
    first_commit: str | None  # None: none yet; empty: it cannot be told
    store: str | None = None  # the URL of another project's, which it was forked from
    formerly: tuple[str, ...] = ()  # where it was before it was moved, oldest first


Moves = Sequence[tuple[str, str]]
"""From where to where a project was moved, each time."""


class OwnFolder(NamedTuple):
    """Where a project's own store lies, or would, and what is to be noted beside it."""

    folder: Path
    project: Project | None  # None: what is noted there is still right
    moves: Moves = ()

    @property
    def url(self) -> str:
        return config.file_url(self.folder / config.STORE_FILE)


Likeness = Literal["same directory", "same history"]


def store_url(environment: Mapping[str, str], directory: Path) -> str:
    """The store to use when none was named."""
    there = _elsewhere(environment, directory)
    if there is not None:
        return there
    folder = config.store_folder(environment, directory, sys.platform)
    return config.file_url(folder / config.STORE_FILE)


def own_store(environment: Mapping[str, str], directory: Path) -> tuple[str, OwnFolder | None]:
    """The same, and its folder, if it is a project's own.

    `NotFound` if the project has none, and has been somewhere else before.
    """
    there = _elsewhere(environment, directory)
    if there is not None:
        return there, None
    folder = config.store_folder(environment, directory, sys.platform)
    known = read(folder)
    project = moved(described(config.project_root(directory), known), known)
    if not folder.exists():
        _ask(project, folder, list(others(folder.parent)))
    moves = tuple((old, project.root) for old in project.formerly)
    own = OwnFolder(folder, project if project != known else None, moves)
    return own.url, own


def _elsewhere(environment: Mapping[str, str], directory: Path) -> str | None:
    """The store that a variable names, or that of the project which this was forked from.

    `NotFound` if that is gone.
    """
    named = config.named_store(environment, directory)
    fork = None if named is not None else _fork_around(environment, directory)
    if fork is None or fork.store is None:
        return named
    from hardsave.stores.registry import file_path, is_on_server

    if not is_on_server(fork.store) and not is_there(Path(file_path(fork.store))):
        record = config.folder_of(environment, Path(fork.root), sys.platform) / RECORD
        raise NotFound(
            f"{fork.root} was forked from a project whose store was {fork.store}, and that is not "
            f"there any more. If it lies elsewhere, name it with {config.STORE_VARIABLE}; to "
            f"begin anew, type: rm {quoted(record)}"
        )
    return fork.store


def root(environment: Mapping[str, str], directory: Path) -> Path:
    """A project's root. A fork has no repository at first, and has all that lies in it."""
    try:
        fork = _fork_around(environment, directory)
    except Unavailable:  # who has no home has named a store, and no forks are noted for them
        fork = None
    return config.project_root(directory) if fork is None else Path(fork.root)


def _fork_around(environment: Mapping[str, str], directory: Path) -> Project | None:
    """The fork that a directory is, or lies in; None if it is in no fork."""
    real = directory.resolve()
    for folder in (real, *real.parents):
        known = read(config.folder_of(environment, folder, sys.platform))
        if known is not None and known.store is not None and is_still_there(known):
            return known
        if config.has_repository(folder):
            break
    return None


def is_there(store: Path) -> bool:
    """Whether a store lies there, or what is left of one: it has a backup, and a mark."""
    try:
        names = os.listdir(store.parent)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise Unavailable(
            f"whether there is a store {str(store)!r} cannot be told: {error}; see to it and repeat"
        ) from error
    return any(name.startswith(store.name) for name in names)


def adopt(environment: Mapping[str, str], directory: Path, store: str) -> bool:
    """Let a directory that was forked go on with the store of its project; False if it has one
    of its own already, which would be hidden, or if that cannot be noted."""
    root = directory.resolve()
    try:
        folder = config.folder_of(environment, root, sys.platform)
        if is_there(folder / config.STORE_FILE):
            return False
        config.make_folder(folder)
    except (OSError, Unavailable):
        return False
    remember(OwnFolder(folder, described(root, None)._replace(store=store)))
    known = read(folder)
    return known is not None and known.store == store


def remember(own: OwnFolder) -> None:
    """Note what is known of a project beside its store, once that is there."""
    if own.project is None:
        return
    path = own.folder / RECORD
    new = path.with_name(f"{RECORD}.{os.urandom(4).hex()}")
    try:
        new.write_text(json.dumps(own.project._asdict()), encoding="ascii")
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
    from hardsave.workspace.git.first_commit import first_commit  # asked for until it is known

    return found._replace(first_commit=first_commit(root))


def moved(project: Project, known: Project | None) -> Project:
    """A project whose store comes to the place of another's was moved."""
    if known is None:
        return project
    here = (project.root,) if known.root == project.root else (known.root, project.root)
    formerly = dict.fromkeys((*known.formerly, *here))
    return project._replace(formerly=tuple(each for each in formerly if each != project.root))


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
            known = {name: fields[name] for name in Project._fields[:5]}
            formerly = tuple(map(str, fields.get("formerly", ())))
            return Project(**known, store=fields.get("store"), formerly=formerly)
    except (OSError, ValueError, LookupError, TypeError):
        pass  # written by a program that we do not know
    return None


def _ask(project: Project, folder: Path, others: Iterable[tuple[Path, Project]]) -> None:
    """Say what may be this project's store, if something may be."""
    for there, other in others:
        like = likeness(project, other)
        if like is None or is_still_there(other):
            continue
        store = there / config.STORE_FILE
        if like == "same directory":
            raise NotFound(
                f"{project.root} has no store, but was {other.root} before, which has one. To go "
                f"on with it, type: hardsave move {quoted(Path(other.root))} "
                f"{quoted(Path(project.root))}; to begin anew: mkdir {quoted(folder)}"
            )
        log(__name__).warning(
            "%s begins with a new store. %s had the same history, and is gone; its store is still "
            "there. If it is this project, type: export %s=%s",
            project.root,
            other.root,
            config.STORE_VARIABLE,
            quoted(store),
        )


def others(
    every: Path, read: Callable[[Path], Project | None] = read
) -> Iterator[tuple[Path, Project]]:
    """The folders of all projects that have a store, or go on with another's, and their records."""
    try:
        found = sorted(every.iterdir())
    except OSError:
        return
    for there in found:
        other = read(there)
        if other is None:
            continue
        if other.store is not None or (there / config.STORE_FILE).exists():
            yield there, other


def is_still_there(project: Project) -> bool:
    """Whether a project is where its record says; if it cannot be told, it is."""
    try:
        status = os.stat(project.root)
        if os.path.realpath(project.root) != project.root:
            return False  # a link was left where it had been
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    if status.st_ino != project.inode:
        return False
    born = _born(Path(project.root), status)
    return born == project.born if born and project.born else status.st_dev == project.device


def _is_same_directory(one: Project, other: Project) -> bool:
    """Devices get other numbers when a machine starts: they count where nothing else tells."""
    if one.born and other.born:
        return (one.inode, one.born) == (other.inode, other.born)
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


def quoted(path: Path) -> str:
    import shlex  # for messages alone

    return shlex.quote(str(path))
