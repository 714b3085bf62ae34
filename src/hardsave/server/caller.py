"""Who calls, and what a caller may do. Pure."""

from typing import Literal

from hardsave.tuples import NamedTuple

Scope = Literal["read", "act", "admin"]
SCOPES: tuple[Scope, ...] = ("read", "act", "admin")  # each allows what stands before it, too


class Caller(NamedTuple):
    """The program or the browser that calls, as the door knows it."""

    name: str  # of its token; `link` or `loopback` where it has none
    user: str | None  # whose vault it sees
    scope: Scope
    form_token: str = ""  # of a browser's session: every form has to send it along
    projects: frozenset[str] | None = None  # the ids of those that it sees; None: all

    def sees(self, project: str) -> bool:
        return self.projects is None or project in self.projects

    def may(self, scope: Scope) -> bool:
        return SCOPES.index(scope) <= SCOPES.index(self.scope)
