"""The vaults of the users that call, each made with the first call and bounded in number."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hardsave import Vault
from hardsave.errors import Unavailable

_MOST = 100  # open vaults: each keeps up to 32 MiB of objects that it has read


class Vaults:
    """One vault a user. Threads share it; a vault that a call uses is not closed."""

    def __init__(self, open_for: Callable[[str | None], Vault], *, most: int = _MOST) -> None:
        self._open_for = open_for
        self._most = most
        self._mutex = threading.Lock()
        self._vaults: dict[str | None, Vault] = {}  # the one used longest ago comes first
        self._uses: dict[str | None, int] = {}

    @contextmanager
    def of(self, user: str | None) -> Iterator[Vault]:
        vault = self._taken(user)
        try:
            yield vault
        finally:
            with self._mutex:
                self._uses[user] -= 1

    def _taken(self, user: str | None) -> Vault:
        with self._mutex:
            vault = self._vaults.pop(user, None)
            if vault is None:
                self._make_room()
                vault = self._open_for(user)
            self._vaults[user] = vault
            self._uses[user] = self._uses.get(user, 0) + 1
            return vault

    def _make_room(self) -> None:
        if len(self._vaults) < self._most:
            return
        for user in self._vaults:
            if not self._uses[user]:
                self._uses.pop(user)
                self._vaults.pop(user).close()
                return
        raise Unavailable("too many users call at once; repeat this in a moment")

    def close(self) -> None:
        with self._mutex:
            for vault in self._vaults.values():
                vault.close()
            self._vaults.clear()
