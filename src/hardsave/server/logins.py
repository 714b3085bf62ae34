"""Which browsers are logged in: keys of one-time links, and sessions. In memory, and bounded."""

import threading
import time
from collections.abc import Callable

from hardsave.defaults import LINK_SECONDS, SESSION_SECONDS
from hardsave.server.caller import Caller
from hardsave.server.tokens import hashed, new_secret
from hardsave.tuples import NamedTuple

LINK_NAME = "link"
_MOST_SESSIONS = 64
_MOST_KEYS = 64


class Session(NamedTuple):
    """A browser that has logged in. One that did so with a token ends with that token."""

    caller: Caller
    token_hash: str | None
    ends: float


class Logins:
    """Keys of links and sessions of browsers, in memory: they end with the process. Threads share
    it. `who` knows the caller that a token stands for; None if it stands for none."""

    def __init__(
        self, who: Callable[[str], Caller | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._who = who
        self._clock = clock
        self._mutex = threading.Lock()
        self._keys: dict[str, float] = {}  # by their hashes; when they end
        self._sessions: dict[str, Session] = {}
        self.cookie = "hardsave"

    def new_key(self) -> str:
        """A key that logs one browser in, once, within minutes."""
        key, now = new_secret(), self._clock()
        with self._mutex:
            kept = {key: ends for key, ends in self._keys.items() if now < ends}
            self._keys = dict([*kept.items()][1 - _MOST_KEYS :])
            self._keys[hashed(key)] = now + LINK_SECONDS
        return key

    def enter(self, *, key: str = "", token: str = "") -> str | None:
        """The id of a new session; None if neither the key nor the token lets it in."""
        if key:
            return self._begun(Caller(LINK_NAME, None, "admin"), None) if self._used(key) else None
        caller = self._who(token) if token else None
        return None if caller is None else self._begun(caller, token)

    def _used(self, key: str) -> bool:
        with self._mutex:
            ends = self._keys.pop(hashed(key), None)
        return ends is not None and self._clock() < ends

    def _begun(self, caller: Caller, token: str | None) -> str:
        id, form_token = new_secret(), new_secret()
        ends = self._clock() + SESSION_SECONDS
        with self._mutex:
            while len(self._sessions) >= _MOST_SESSIONS:
                self._sessions.pop(next(iter(self._sessions)))
            self._sessions[hashed(id)] = Session(
                caller._replace(form_token=form_token),
                None if token is None else hashed(token),
                ends,
            )
        return id

    def session(self, id: str) -> Session | None:
        """The session of a cookie, if it has not ended."""
        with self._mutex:
            found = self._sessions.get(hashed(id))
        return found if found is not None and self._clock() < found.ends else None
