"""Which projects a server has, and which one a request is about.

A server has one store, or all projects of the user that runs it. Those are looked for anew with
each call: projects come and go while the server runs. Nothing here opens a store.
"""

import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from blake3 import blake3

from hardsave import config
from hardsave.errors import Misuse, NotFound
from hardsave.logs import log
from hardsave.server.caller import Caller
from hardsave.server.tokens import Token, canonical
from hardsave.stores import registry, store_files
from hardsave.stores.store_files import Stamp
from hardsave.tuples import NamedTuple
from hardsave.vault.workspaces import projects as records

PROJECT = "project"  # the parameter of every query that says which one it is about
_LONGEST_ID = 255  # bytes, of a folder's name
_Stat = tuple[int, int, int]


class Project(NamedTuple):
    """A project with a store of its own."""

    id: str  # the name of its folder among the user's data, such as `shop-1a2b3c4d5e6f7081`
    name: str
    directory: str  # where it is, or was when it was last used
    store_url: str
    is_here: bool  # the server was started in it
    moves: records.Moves = ()


class Catalogue:
    """The projects of a server; this one has none. Threads share it."""

    is_all = False  # whether it has all projects of this user

    @staticmethod
    def one(url: str, directory: Path) -> "Catalogue":
        """A single store, of a server that was started in `directory`."""
        return _One(url, directory)

    @staticmethod
    def all(environment: Mapping[str, str], here: Path) -> "Catalogue":
        """All projects of this user, and the store that is used in `here`, if it is no
        project's own."""
        return _All(environment, here)

    def projects(self) -> tuple[Project, ...]:
        """In the order of their ids."""
        return ()

    def get(self, id: str) -> Project | None:
        return None

    def of_store(self, store: str) -> Project | None:
        """The project whose store this is, by its canonical URL."""
        return None

    @property
    def default(self) -> Project | None:
        """The project of a request that names none; None: it has to name one."""
        return None

    def seen_with(self, token: Token) -> frozenset[str] | None:
        """The ids of the projects that a token is for; None: all of them."""
        if token.is_for_all:
            return None
        found = self.of_store(token.store)
        return frozenset() if found is None else frozenset({found.id})

    def stamps(self) -> dict[str, Stamp | None]:
        """By the id of each project: another stamp whenever its store was written."""
        return {each.id: stamp(each) for each in self.projects()}


def stamp(project: Project) -> Stamp | None:
    """Of a store that is in no file, or not there any more: None."""
    if not registry.is_file(project.store_url):
        return None
    return store_files.stamp(registry.file_path(project.store_url))


def updated_at(project: Project) -> datetime | None:
    """When its store was last written."""
    found = stamp(project)
    return None if found is None else datetime.fromtimestamp(found.written_at / 1e9, UTC)


def chosen(catalogue: Catalogue, caller: Caller, query: Mapping[str, str]) -> Project:
    """The project that a request is about. One that its caller may not see is not there."""
    id = query.get(PROJECT)
    if id is None:
        found = unnamed(catalogue, caller)
        if found is None:
            raise Misuse("name a project with ?project=…; GET /api/v1/projects lists them")
        return found
    found = catalogue.get(id) if caller.sees(id) else None
    if found is None:
        raise NotFound(f"there is no project {id!r}; GET /api/v1/projects lists them")
    return found


def unnamed(catalogue: Catalogue, caller: Caller) -> Project | None:
    """The project of a request that names none; None: it has to name one."""
    found = catalogue.default
    if caller.projects is not None and len(caller.projects) == 1:
        found = catalogue.get(next(iter(caller.projects)))
    return found if found is not None and caller.sees(found.id) else None


class _One(Catalogue):
    def __init__(self, url: str, directory: Path) -> None:
        self._url = url
        self._directory = directory

    def projects(self) -> tuple[Project, ...]:
        return (self.default,)

    def get(self, id: str) -> Project | None:
        found = self.default
        return found if id == found.id else None

    def of_store(self, store: str) -> Project | None:
        return self.default if store == canonical(self._url) else None

    @property
    def default(self) -> Project:
        return _of_url(self._url, self._directory)


class _All(Catalogue):
    is_all = True

    def __init__(self, environment: Mapping[str, str], here: Path) -> None:
        self._every = config.folder_of(environment, here, sys.platform).parent
        self._known: dict[Path, tuple[_Stat, records.Project | None]] = {}
        self._reported: set[Path] = set()
        url = _url_of(environment, here)
        self._own_here = None if url is None else _folder_of(url, self._every)
        self._outside = None if url is None or self._own_here else _of_url(url, here)

    def projects(self) -> tuple[Project, ...]:
        found = records.others(self._every, self._read)
        own = [self._own(folder, known) for folder, known in found]
        outside = [] if self._outside is None else [self.default]
        return tuple(sorted(each for each in (*own, *outside) if each is not None))

    def get(self, id: str) -> Project | None:
        is_outside = self._outside is not None and id == self._outside.id
        return self.default if is_outside else self._in_folder(id)

    def of_store(self, store: str) -> Project | None:
        folder = _folder_of(store, self._every)
        found = self.default if folder is None else self._in_folder(folder)
        return found if found is not None and canonical(found.store_url) == store else None

    @property
    def default(self) -> Project | None:
        if self._outside is not None:
            return self._outside if _is_there(self._outside.store_url) else None
        return None if self._own_here is None else self._in_folder(self._own_here)

    def _in_folder(self, id: str) -> Project | None:
        is_name = id == os.path.basename(id) and id not in ("", ".", "..") and "\0" not in id
        if not is_name or len(os.fsencode(id)) > _LONGEST_ID:
            return None
        folder = self._every / id
        known = self._read(folder)
        if known is None or not os.path.exists(folder / config.STORE_FILE):
            return None
        return self._own(folder, known)

    def _own(self, folder: Path, known: records.Project) -> Project | None:
        """None for a fork that goes on with another project's store: that is listed as it is."""
        if known.store is not None:
            return None
        url = config.file_url(folder / config.STORE_FILE)
        return _recorded(folder.name, known, url, is_here=folder.name == self._own_here)

    def _read(self, folder: Path) -> records.Project | None:
        """The record of a folder, read again only if it was written since."""
        try:
            found = os.stat(folder / records.RECORD)
        except (FileNotFoundError, NotADirectoryError):
            if os.path.exists(folder / config.STORE_FILE):
                self._report(folder)
            return None
        except OSError:
            self._report(folder)
            return None
        stamp = found.st_ino, found.st_mtime_ns, found.st_size
        known = self._known.get(folder)
        if known is None or known[0] != stamp:
            known = self._known[folder] = stamp, records.read(folder)
        if known[1] is None:
            self._report(folder)
        return known[1]

    def _report(self, folder: Path) -> None:
        if folder not in self._reported:
            self._reported.add(folder)
            log(__name__).warning(
                "%s is left out: it does not say which project it belongs to; a command of "
                "hardsave in that project's directory writes its %s anew",
                folder,
                records.RECORD,
            )


def _url_of(environment: Mapping[str, str], here: Path) -> str | None:
    """The store that is used in a directory; None if it was forked from a project that is gone."""
    try:
        return records.store_url(environment, here)
    except NotFound as error:
        log(__name__).warning("no project is the default: %s", error)
        return None


def _folder_of(url: str, every: Path) -> str | None:
    """The name of the folder that a store is in, if that is a project's among `every`."""
    path = registry.file_path(url) if registry.is_file(url) else ""
    folder, name = os.path.split(path)
    is_own = name == config.STORE_FILE and os.path.realpath(os.path.dirname(folder)) == (
        os.path.realpath(every)
    )
    return os.path.basename(folder) if is_own else None


def _of_url(url: str, directory: Path) -> Project:
    """The project of a store, as its record says; or else after the store's file, or after the
    directory if the store is on a server."""
    name = directory.name or "root"
    if registry.is_file(url):
        path = Path(registry.file_path(url))
        known = records.read(path.parent) if path.name == config.STORE_FILE else None
        if known is not None and known.store is None:
            return _recorded(path.parent.name, known, url, is_here=True)
        name = path.stem
    digest = blake3(os.fsencode(canonical(url))).hexdigest(8)
    return Project(f"{name}-{digest}", name, str(directory), url, is_here=True)


def _recorded(id: str, known: records.Project, url: str, *, is_here: bool) -> Project:
    moves = tuple((old, known.root) for old in known.formerly)
    return Project(id, Path(known.root).name or known.root, known.root, url, is_here, moves)


def _is_there(url: str) -> bool:
    return not registry.is_file(url) or os.path.exists(registry.file_path(url))
