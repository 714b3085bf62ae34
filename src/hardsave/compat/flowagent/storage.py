"""Where agents' checkpoints are kept: in memory, in a SQLite file, or where you like.

A storage of your own derives from `CheckpointStorage` and has three methods; to let a
manager clear it as well, and list an agent's checkpoints of all users, add the others.
"""

import asyncio
from abc import ABC, abstractmethod
from datetime import datetime
from pathlib import Path

import hardsave
from hardsave.compat import foreign
from hardsave.compat.flowagent.records import Checkpoint
from hardsave.compat.flowagent.shelf import Of, Owners, Shelf, check_page, read, short, taken
from hardsave.compat.names import STAND_IN, fitting
from hardsave.config import file_url
from hardsave.errors import Misuse
from hardsave.stores.base import Store
from hardsave.stores.registry import open_store
from hardsave.timeline import names
from hardsave.workspace.git.exclude_file import exclude

_PAGE = 1_000
_OWNERS = STAND_IN + "flowagent"  # a user that no user's id is turned into


class CheckpointStorage(ABC):
    """The contract. What was saved is a copy: nothing that comes back is shared."""

    @abstractmethod
    async def save(self, checkpoint: Checkpoint) -> str:
        """Keep it, in the place of one with its id. Its id."""

    @abstractmethod
    async def load(self, checkpoint_id: str) -> Checkpoint | None:
        """One by its id, whosever it is; None if there is none."""

    @abstractmethod
    async def list_by_user(self, user_id: str, limit: int, offset: int) -> list[Checkpoint]:
        """A user's checkpoints, newest first."""

    async def list_light(self, user_id: str, limit: int, offset: int) -> list[Checkpoint]:
        """The same without what a listing does not need."""
        return [found.light() for found in await self.list_by_user(user_id, limit, offset)]

    async def list_by_agent(
        self, agent_id: str, limit: int, offset: int, *, user_id: str | None, full: bool
    ) -> list[Checkpoint]:
        """An agent's checkpoints, newest first; with a user only those that are this user's."""
        if user_id is None:
            raise Misuse(
                f"{type(self).__name__} lists an agent's checkpoints of one user: name a user_id, "
                "or give it a method list_by_agent"
            )
        lists = self.list_by_user if full else self.list_light
        seen, found = 0, []
        while page := await lists(user_id, _PAGE, seen):
            seen += len(page)
            found += [one for one in page if one.agent_id == agent_id]
        return found[offset : offset + limit]

    async def clear_user(self, user_id: str) -> int:
        """Delete a user's checkpoints. How many there were."""
        raise Misuse(f"{type(self).__name__} cannot delete; give it a method clear_user")

    async def clear_agent(self, agent_id: str, *, user_id: str | None) -> int:
        """Delete an agent's checkpoints, with a user only those that are this user's. How many."""
        raise Misuse(f"{type(self).__name__} cannot delete; give it a method clear_agent")

    async def clear_before(self, moment: datetime) -> int:
        """Delete what is older than a moment, whosever it is. How many there were."""
        raise Misuse(f"{type(self).__name__} cannot delete; give it a method clear_before")


class _OnShelves(CheckpointStorage):
    """What both storages of ours do: they differ in how many shelves they have."""

    @abstractmethod
    def _shelves(self, of: Of) -> list[Shelf]:
        """Where the checkpoints of a user, or of an agent, may lie."""

    async def list_by_user(self, user_id: str, limit: int, offset: int) -> list[Checkpoint]:
        return await asyncio.to_thread(self._page, _user(user_id), limit, offset, full=True)

    async def list_light(self, user_id: str, limit: int, offset: int) -> list[Checkpoint]:
        return await asyncio.to_thread(self._page, _user(user_id), limit, offset, full=False)

    async def list_by_agent(
        self, agent_id: str, limit: int, offset: int, *, user_id: str | None, full: bool
    ) -> list[Checkpoint]:
        of = _agent(agent_id, user_id)
        return await asyncio.to_thread(self._page, of, limit, offset, full=full)

    async def clear_user(self, user_id: str) -> int:
        return await asyncio.to_thread(self._clear, _user(user_id))

    async def clear_agent(self, agent_id: str, *, user_id: str | None) -> int:
        return await asyncio.to_thread(self._clear, _agent(agent_id, user_id))

    async def clear_before(self, moment: datetime) -> int:
        return await asyncio.to_thread(self._clear_before, moment)

    def _page(self, of: Of, limit: int, offset: int, *, full: bool) -> list[Checkpoint]:
        check_page(limit, offset)
        found = [one for shelf in self._shelves(of) for one in shelf.find_all(of)]
        return read(found, limit, offset, full=full)

    def _clear(self, of: Of) -> int:
        return sum(shelf.clear(of) for shelf in self._shelves(of))

    def _clear_before(self, moment: datetime) -> int:
        return sum(shelf.clear_before(moment) for shelf in self._shelves(Of()))


class InMemoryCheckpointStorage(_OnShelves):
    """Gone with its process. Past `max_checkpoints` in all, the oldest go."""

    def __init__(self, max_checkpoints: int = 1000) -> None:
        _check_limit("max_checkpoints", max_checkpoints)
        self.max_checkpoints = max_checkpoints
        self._shelf = Shelf(hardsave.open("memory://"), max_checkpoints)

    async def save(self, checkpoint: Checkpoint) -> str:
        await asyncio.to_thread(self._shelf.put, checkpoint)
        return checkpoint.id

    async def load(self, checkpoint_id: str) -> Checkpoint | None:
        return await asyncio.to_thread(self._shelf.find, checkpoint_id)

    def _shelves(self, of: Of) -> list[Shelf]:
        return [self._shelf]


class SQLiteCheckpointStorage(_OnShelves):
    """A store of Hardsave's in a file; each user has a vault of their own in it.

    Past `max_checkpoints_per_user`, a user's oldest go.
    """

    def __init__(self, db_path: str | Path, max_checkpoints_per_user: int = 100) -> None:
        _check_limit("max_checkpoints_per_user", max_checkpoints_per_user)
        self.max_checkpoints_per_user = max_checkpoints_per_user
        self._store = _opened(db_path)
        vault = hardsave.Vault(self._store, user=_OWNERS)
        self._owners = Owners(vault, lambda user_id, name: self._shelf(user_id).has(name))

    async def save(self, checkpoint: Checkpoint) -> str:
        await asyncio.to_thread(self._save, checkpoint)
        return checkpoint.id

    async def load(self, checkpoint_id: str) -> Checkpoint | None:
        return await asyncio.to_thread(self._load, checkpoint_id)

    async def close(self) -> None:
        """Release the file."""
        await asyncio.to_thread(self._store.close)

    def _save(self, checkpoint: Checkpoint) -> None:
        checkpoint.check()  # before it has an owner
        name, shelf = short(checkpoint.id), self._shelf(checkpoint.user_id)
        if not self._owners.claim(name, checkpoint.user_id):
            raise taken(checkpoint.id)
        shelf.put(checkpoint)
        if not self._owners.claim(name, checkpoint.user_id):  # another process was faster
            shelf.remove(name)
            raise taken(checkpoint.id)

    def _load(self, checkpoint_id: str) -> Checkpoint | None:
        owner = self._owners.of(short(checkpoint_id))
        return None if owner is None else self._shelf(owner).find(checkpoint_id)

    def _shelves(self, of: Of) -> list[Shelf]:
        users = self._owners.users() if of.user_id is None else [of.user_id]
        return [self._shelf(user_id) for user_id in users]

    def _shelf(self, user_id: str) -> Shelf:
        user = fitting(user_id, names.check_user)
        return Shelf(hardsave.Vault(self._store, user=user), self.max_checkpoints_per_user)


def _user(user_id: str) -> Of:
    foreign.check(user_id, str, "a user's id")
    return Of(user_id=user_id)


def _agent(agent_id: str, user_id: str | None) -> Of:
    foreign.check(agent_id, str, "an agent's id")
    foreign.check(user_id, str | None, "a user's id")
    return Of(user_id, agent_id)


def _opened(db_path: str | Path) -> Store:
    if str(db_path) == ":memory:":
        return open_store("memory://", durability="power")
    path = Path(db_path)
    store = open_store(file_url(path), durability="power")
    exclude(path.absolute(), ("", "-*"))  # with all that lies beside a store
    return store


def _check_limit(what: str, limit: int) -> None:
    foreign.check(limit, int, what)
    if limit < 1:
        raise Misuse(f"{what} is at least 1, not {limit}")
