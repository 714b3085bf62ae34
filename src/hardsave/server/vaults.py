"""The stores of the projects that are called, and in them the vaults of the users that call: each
is opened with the first call, and they are bounded in number."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hardsave import Vault
from hardsave.defaults import MAX_OPEN_PROJECTS
from hardsave.errors import NotFound, Unavailable
from hardsave.server.projects import Project
from hardsave.stores import registry
from hardsave.stores.on_disk import Gone
from hardsave.vault.opening import open_project
from hardsave.vault.workspaces import projects as records

_MOST = 100  # open vaults: each keeps up to SERVER_CACHE_BYTES of objects that it has read
_NOTHING = Project("", "", "", "memory://", is_here=False)


def open_existing(project: Project) -> Vault:
    """The store of a project, with that project's settings. `NotFound` if it is not there: a look
    never makes one."""
    url = project.store_url
    if registry.is_file(url) and not records.is_there(Path(registry.file_path(url))):
        raise NotFound(f"project {project.id!r} has no store any more: {url} is not there")
    return open_project(project.directory, url, moves=project.moves)


class _User:
    """A vault of one user. None: it is not open yet, or could not be opened."""

    def __init__(self) -> None:
        self.vault: Vault | None = None
        self.uses = 0


class _Store:
    """A project's store, and the vaults of its users, which share it."""

    def __init__(self) -> None:
        self.opening = threading.Lock()
        self.vault: Vault | None = None
        self.users: dict[str | None, _User] = {}  # the one used longest ago comes first
        self.is_dropped = False

    @property
    def is_used(self) -> bool:
        return any(each.uses for each in self.users.values())

    def close(self) -> None:
        if self.vault is not None:
            self.vault.close()  # and with it the vaults of its users


class Vaults:
    """One vault for each user of a project. Threads share it; what a call uses is not closed."""

    def __init__(
        self,
        open_store: Callable[[Project], Vault] = open_existing,
        *,
        most: int = _MOST,
        most_projects: int = MAX_OPEN_PROJECTS,
    ) -> None:
        self._open_store = open_store
        self._most = most
        self._most_projects = most_projects
        self._mutex = threading.Lock()
        self._stores: dict[str, _Store] = {}  # by their URLs; the one used longest ago comes first

    @contextmanager
    def of(self, project: Project | None, user: str | None) -> Iterator[Vault]:
        """The vault of a user; of no project it is an empty one, in memory."""
        project = _NOTHING if project is None else project
        store, taken = self._taken(project.store_url, user)
        try:
            yield self._opened(project, user, store, taken)
        except Gone:
            self._drop(project.store_url, store)
            raise
        finally:
            self._give_back(store, taken)

    def _taken(self, url: str, user: str | None) -> tuple[_Store, _User]:
        with self._mutex:
            ended = [self._room_for_user(url, user), self._room_for_store(url)]
            store = self._stores.pop(url, None) or _Store()
            self._stores[url] = store
            taken = store.users.pop(user, None) or _User()
            store.users[user] = taken
            taken.uses += 1
        for each in ended:
            if each is not None:
                each.close()
        return store, taken

    def _opened(self, project: Project, user: str | None, store: _Store, taken: _User) -> Vault:
        """A store that is slow to open keeps the callers of its own project waiting, no others."""
        with store.opening:
            if store.vault is None:
                store.vault = self._open_store(project)
            if taken.vault is None:
                taken.vault = store.vault.as_user(user, create=True)
            return taken.vault

    def _drop(self, url: str, store: _Store) -> None:
        """The files of a store were replaced: the next call opens those that are there now."""
        with self._mutex:
            store.is_dropped = True
            if self._stores.get(url) is store:
                del self._stores[url]

    def _give_back(self, store: _Store, taken: _User) -> None:
        with self._mutex:
            taken.uses -= 1
            is_over = store.is_dropped and not store.is_used
        if is_over:
            store.close()

    def _room_for_store(self, url: str) -> _Store | None:
        """What is to be closed so that there is room for one more."""
        if url in self._stores or len(self._stores) < self._most_projects:
            return None
        for other, store in self._stores.items():
            if not store.is_used:
                del self._stores[other]
                return store
        raise Unavailable("too many projects are called at once; repeat this in a moment")

    def _room_for_user(self, url: str, user: str | None) -> Vault | None:
        known = self._stores.get(url)
        is_known = known is not None and user in known.users
        if is_known or sum(len(store.users) for store in self._stores.values()) < self._most:
            return None
        for store in self._stores.values():
            for other, unused in store.users.items():
                if not unused.uses:
                    del store.users[other]
                    return unused.vault
        raise Unavailable("too many users call at once; repeat this in a moment")

    def close(self) -> None:
        with self._mutex:
            for store in self._stores.values():
                store.close()
            self._stores.clear()
