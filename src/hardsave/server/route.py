"""What the parts of the server share: a route, a call that was let in, and its answer. Pure."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hardsave.defaults import MAX_REQUEST_BYTES
from hardsave.server.caller import Caller, Scope
from hardsave.server.fields import Field, Schema
from hardsave.server.live.asked import Asked
from hardsave.server.logins import Logins
from hardsave.server.projects import Catalogue, Project
from hardsave.server.public import Public
from hardsave.tuples import NamedTuple

if TYPE_CHECKING:
    from hardsave import Vault

Lane = Literal["loop", "quick", "live", "slow", "search", "write", "upkeep"]

JSON = "application/json"
HTML = "text/html; charset=utf-8"


class Allowed(NamedTuple):
    """The agents and directories that a caller may name, as `hardsave serve` was told."""

    agents: tuple[str, ...] = ()
    workspaces: tuple[Path, ...] = ()  # real paths


class Call(NamedTuple):
    """A request that was let in."""

    vault: "Vault"  # of the caller's user in the project; without a project an empty one
    path: Mapping[str, str]  # parameters of the path, decoded
    query: Mapping[str, str]
    body: dict[str, Any] | None  # parsed JSON, or the fields of a form; None: there was none
    caller: Caller
    request_id: str
    allowed: Allowed
    logins: Logins
    headers: Mapping[str, str] = {}  # by their names in lower case  # never changed
    asked: Mapping[str, Any] = {}  # of `/api/v1`: what query and body say, checked
    project: Project | None = None  # that it is about
    catalogue: Catalogue = Catalogue()
    public: Public = Public()

    @property
    def key(self) -> str | None:
        """What names this request, if it may come twice."""
        return self.headers.get("idempotency-key")


class Answer(NamedTuple):
    """What a handler answers. A body that is no text and no bytes becomes JSON. What is `live` is
    told in the place of a body, for as long as the caller stays."""

    status: int = 200
    body: Any = None
    media_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    live: Asked | None = None
    packed: bytes | None = None  # the body gzipped, where that was done before


Handler = Callable[[Call], Answer]


class Spec(NamedTuple):
    """What a route of `/api/v1` takes and gives: checked before its handler is called, and shown by
    the OpenAPI document."""

    summary: str
    answer: Schema
    query: tuple[Field, ...] = ()
    body: tuple[Field, ...] | None = None  # None: it takes none
    status: int = 200
    media_type: str = JSON
    headers: tuple[str, ...] = ()  # of the request, that mean something to it
    most_bytes: int = MAX_REQUEST_BYTES  # of a body


class Route(NamedTuple):
    """One row of the table. The handler is a plain function, and runs in a thread.

    `scope=None` opens the route to every caller that reaches the server: it must tell nothing.
    `documented` routes answer errors as `{error, message}`, and `--open-loopback` opens them.
    `needs_project=False`: it may be called without one, where there are several.
    A `page` is for browsers: it takes the cookie of a login and forms, and its errors are HTML.
    One with a `spec` is of `/api/v1`: for programs, and for scripts of our own pages.
    """

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str  # `/checkpoints/{id}/resume`: a parameter is one whole segment
    handler: Handler
    scope: Scope | None
    documented: bool = False
    page: bool = False
    lane: Lane | None = None  # None: `quick` to read, `write` for all else
    spec: Spec | None = None
    needs_project: bool = True

    @property
    def runs_in(self) -> Lane:
        return self.lane or ("quick" if self.method == "GET" else "write")
