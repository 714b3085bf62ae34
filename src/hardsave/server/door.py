"""Which requests are let in: by the names in their headers, what they ask for, and who asks. Pure.

In this order: the address that was called, the site that a browser sends it from, the caller, the
row of the table, the caller's scope, the form of the body. What comes earlier decides over what
comes later, so a caller that is not let in never learns which paths there are.
"""

import hmac
from collections.abc import Iterable, Mapping
from ipaddress import ip_address

from hardsave.defaults import MAX_REQUEST_BYTES
from hardsave.server.body import read_form
from hardsave.server.caller import Caller
from hardsave.server.errors import Refused
from hardsave.server.public import Public
from hardsave.server.route import JSON
from hardsave.server.table import Found
from hardsave.tuples import NamedTuple

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
FORM = "application/x-www-form-urlencoded"
FORM_TOKEN = "form_token"  # noqa: S105 # the name of a field
FORM_HEADER = "x-hardsave-form"  # which has the same for scripts of our pages

_ONCE = (
    "host",
    "origin",
    "authorization",
    "content-type",
    "content-length",
    "idempotency-key",
    "if-match",
    "sec-fetch-site",
    FORM_HEADER,
)
_OWN_SITE = ("same-origin", "none")  # `none`: typed, or opened from a bookmark


class Seen(NamedTuple):
    """A request as the door sees it: without its body."""

    method: str
    raw_path: str  # as it came, still percent-encoded, but without the prefix of a proxy
    headers: Mapping[str, tuple[str, ...]]  # by their names in lower case
    peer: str  # the address that it comes from
    local: str  # the address that it came to
    public: Public = Public()

    def header(self, name: str) -> str | None:
        found = self.headers.get(name)
        return found[0] if found else None

    def is_own(self, origin: str | None) -> bool:
        """Whether pages of this server come from there, as the browser that sends this knows it.
        A proxy may put another Host in the place of its own."""
        if origin and origin == self.public.origin:
            return True
        host = self.header("host") or ""
        is_direct = _host(host) != self.public.host  # else it is called by its scheme and port
        return is_direct and origin == f"http://{host}"


def headers_of(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, value in pairs:
        key = name.decode("latin-1").lower()
        found[key] = (*found.get(key, ()), value.decode("latin-1"))
    return found


def is_loopback(host: str) -> bool:
    """Whether an address, or the name of one, leads to this machine and no further."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_address(seen: Seen, names: frozenset[str]) -> None:
    """A page of a stranger may have its own name lead here (DNS rebinding): only known names
    count, and the address itself, which no other site can have."""
    for name in _ONCE:
        if len(seen.headers.get(name, ())) > 1:
            raise Refused(400, "header", f"the header {name} came twice; send it once")
    if {"transfer-encoding", "content-length"} <= seen.headers.keys():
        # Programs in between may believe the other one: each would see another end of the request.
        raise Refused(
            400,
            "header",
            "send Content-Length or Transfer-Encoding, not both",
            headers=(("Connection", "close"),),
        )
    given = seen.header("host")
    if given is None or _host(given) not in names | {_bracketed(seen.local)}:
        raise Refused(
            403, "host", "this server does not answer to that Host; see 'hardsave serve --help'"
        )


def _host(header: str) -> str:
    name, colon, port = header.rpartition(":")
    is_port = colon and port.isascii() and port.isdigit()
    return (name if is_port else header).lower()


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def check_site(seen: Seen, found: Found) -> None:
    """Only programs, pages of this server, and addresses typed by the user may send requests."""
    origin = seen.header("origin")
    if origin is not None and not seen.is_own(origin):
        raise Refused(403, "origin", "requests from pages of other sites are refused")
    site = seen.header("sec-fetch-site")
    if site is not None and site not in _OWN_SITE and not _is_way_in(seen, found):
        raise Refused(
            403, "origin", "this came from a page of another site; type the address instead"
        )


def _is_way_in(seen: Seen, found: Found) -> bool:
    """A link on another site may lead to a page that tells nothing: that of the login."""
    is_open = found.route is not None and found.route.page and found.route.scope is None
    return is_open and seen.method == "GET" and seen.header("sec-fetch-mode") == "navigate"


def takes_cookie(found: Found) -> bool:
    """A cookie comes with every request of a browser, so only pages take it, and what their scripts
    call."""
    return found.route is None or found.is_page or found.route.spec is not None


def check_caller(seen: Seen, found: Found, caller: Caller | None) -> None:
    """The caller is known, what it asks for is there, and it may ask for that."""
    route = found.route
    if route is not None and route.scope is None:
        return
    if caller is None:
        raise Refused(
            401,
            "token",
            "this needs a token: 'Authorization: Bearer …'; 'hardsave token add' makes one, and "
            "'hardsave serve' prints a link for a browser",
            headers=(("WWW-Authenticate", 'Bearer realm="hardsave"'),),
        )
    if route is None:
        raise _nothing_there(seen, found)
    assert route.scope is not None
    if not caller.may(route.scope):
        raise Refused(
            403,
            "scope",
            f"this needs scope {route.scope!r}, and the token has {caller.scope!r}; "
            f"'hardsave token add NAME --scope {route.scope}' makes one",
        )


def _nothing_there(seen: Seen, found: Found) -> Refused:
    if not found.methods:
        return Refused(404, "not_found", "there is nothing at this path")
    allow = (("Allow", ", ".join(methods(found))),)
    return Refused(405, "method", f"{seen.method} is not for this path", headers=allow)


def prefers_html(seen: Seen) -> bool:
    """Whether a person reads the answer: a browser asks for HTML first, and sends no token."""
    accepted = [each.partition(";") for each in ",".join(seen.headers.get("accept", ())).split(",")]
    kinds = [kind.strip().lower() for kind, _, _ in accepted]
    return kinds[0] == "text/html" and "authorization" not in seen.headers


def methods(found: Found) -> list[str]:
    """What may be sent to a path."""
    head = {"HEAD"} if "GET" in found.methods else set()
    return sorted({*found.methods, *head, "OPTIONS"})


def check_body(seen: Seen, found: Found) -> None:
    """Whether its body is of a kind and a size that are taken, as far as its headers say."""
    length = seen.header("content-length")
    if "transfer-encoding" not in seen.headers and (length is None or set(length) <= {"0"}):
        return
    if seen.method in ("GET", "HEAD", "OPTIONS", "DELETE"):
        raise Refused(400, "body", f"a {seen.method} has no body; leave it out")
    most = most_bytes(found)
    if length is not None and (len(length) > 15 or int(length) > most):
        raise too_large(most)
    wanted = FORM if found.is_page else JSON
    if media_type(seen) != wanted or "content-encoding" in seen.headers:
        raise Refused(415, "media_type", f"send a plain body as 'Content-Type: {wanted}'")


def media_type(seen: Seen) -> str:
    kind, _, rest = (seen.header("content-type") or "").partition(";")
    charset = rest.strip().lower().removeprefix("charset=").strip('"')
    return kind.strip().lower() if charset in ("", "utf-8") else ""


def most_bytes(found: Found) -> int:
    """How long a body may be."""
    spec = None if found.route is None else found.route.spec
    return MAX_REQUEST_BYTES if spec is None else spec.most_bytes


def too_large(most: int) -> Refused:
    return Refused(413, "too_large", f"a body has {most:,} bytes at most here")


def check_form(seen: Seen, found: Found, caller: Caller | None, data: bytes) -> None:
    """What a browser sends that changes something comes from a page of this server, in this
    session: its form has the token of the session, or the script of a page sends it as a header."""
    if caller is None or seen.method in ("GET", "HEAD") or not takes_cookie(found):
        return
    if not found.is_page and not caller.form_token:
        return  # a program, by its token
    is_own = seen.is_own(seen.header("origin"))
    is_own = is_own or seen.header("sec-fetch-site") == "same-origin"
    told = read_form(data).get(FORM_TOKEN, "") if found.is_page else seen.header(FORM_HEADER) or ""
    same = hmac.compare_digest(told.encode(), caller.form_token.encode())
    if not (is_own and caller.form_token and same):
        raise Refused(
            403, "form", "this form is of another session; go back, load the page again and repeat"
        )
