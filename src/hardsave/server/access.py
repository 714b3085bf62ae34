"""Who calls: by the token or the cookie that came with a request; wrong tokens are counted."""

import hmac
import time
from collections.abc import Callable
from datetime import UTC, datetime
from http.cookies import CookieError, SimpleCookie

from hardsave.defaults import MAX_WRONG_TOKENS
from hardsave.server.caller import Caller
from hardsave.server.door import Seen, is_loopback, takes_cookie
from hardsave.server.errors import Refused
from hardsave.server.logins import Logins
from hardsave.server.projects import Catalogue
from hardsave.server.table import Found
from hardsave.server.tokens import LiveTokens, hashed, matching

_WINDOW_SECONDS = 60
_MOST_PEERS = 1_000


class Access:
    """Knows callers. `own` is the token of this process, which its first line has printed."""

    def __init__(
        self,
        tokens: LiveTokens,
        catalogue: Catalogue,
        *,
        own: str,
        open_loopback: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tokens = tokens
        self._catalogue = catalogue
        self._own = hashed(own)
        self._open_loopback = open_loopback
        self._wrong = WrongTokens(clock)
        self.logins = Logins(self._of_token)

    def caller(self, seen: Seen, found: Found) -> Caller | None:
        """The caller; None if nothing says who it is. A wrong token is refused, and never taken for
        none."""
        given = seen.header("authorization")
        if given is not None:
            return self._bearer(seen, given)
        cookie = self._cookie(seen) if takes_cookie(found) else None
        if cookie is not None and (caller := self._of_session(cookie)) is not None:
            return caller
        return self._of_loopback(seen, found)

    def _bearer(self, seen: Seen, header: str) -> Caller:
        scheme, _, token = header.partition(" ")
        caller = self._of_token(token.strip()) if scheme.lower() == "bearer" else None
        if caller is None:
            raise self.wrong(seen.peer, _wrong_token())
        return caller

    def wrong(self, peer: str, refused: Refused) -> Refused:
        """What a wrong token is answered with. Right ones are answered at any time: a program with
        an old token must not lock out all others of its machine."""
        wait = self._wrong.add(peer)
        if not wait:
            return refused
        later = (("Retry-After", str(wait)),)
        return Refused(
            429, "rate", "too many wrong tokens; wait, and look up the right one", headers=later
        )

    def _of_token(self, token: str) -> Caller | None:
        if hmac.compare_digest(hashed(token), self._own):
            return Caller("serve", None, "admin")
        found = matching(self._tokens.now(), token, datetime.now(UTC))
        seen = frozenset() if found is None else self._catalogue.seen_with(found)
        if found is None or seen == frozenset():
            return None  # also of a store that is not served here
        return Caller(found.name, found.user, found.scope, projects=seen)

    def _cookie(self, seen: Seen) -> str | None:
        try:
            jar = SimpleCookie("; ".join(seen.headers.get("cookie", ())))
        except CookieError:
            return None
        found = jar.get(self.logins.cookie)
        return None if found is None else found.value

    def _of_session(self, cookie: str) -> Caller | None:
        session = self.logins.session(cookie)
        if session is None or not self._counts(session.token_hash):
            return None
        return session.caller

    def _counts(self, token_hash: str | None) -> bool:
        """Whether the token counts that a session has begun with."""
        if token_hash is None or token_hash == self._own:
            return True
        now = datetime.now(UTC)
        return any(
            each.hash == token_hash and not each.is_expired(now) for each in self._tokens.now()
        )

    def _of_loopback(self, seen: Seen, found: Found) -> Caller | None:
        # A path or a method that is wrong is told as such: no token would help.
        is_open = found.route is None or found.route.documented
        if self._open_loopback and is_open and is_loopback(seen.peer):
            return Caller("loopback", None, "act")
        return None


def _wrong_token() -> Refused:
    return Refused(
        401,
        "token",
        "this token is wrong, revoked or expired; 'hardsave token list' lists those that count",
        headers=(("WWW-Authenticate", 'Bearer realm="hardsave", error="invalid_token"'),),
    )


class WrongTokens:
    """How many wrong tokens an address has sent of late. Remembers so many addresses at most."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: dict[str, tuple[float, int]] = {}

    def add(self, peer: str) -> int:
        """Count one; for how many seconds the address has to wait, 0 if it need not."""
        now = self._clock()
        began, count = self._since.pop(peer, (now, 0))
        if now - began >= _WINDOW_SECONDS:
            began, count = now, 0
        while len(self._since) >= _MOST_PEERS:
            self._since.pop(next(iter(self._since)))
        self._since[peer] = began, count + 1
        return 0 if count < MAX_WRONG_TOKENS else max(1, int(began + _WINDOW_SECONDS - now))
