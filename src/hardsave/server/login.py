"""The pages that let a browser in: by the one-time link of `hardsave serve`, or with a token.

The link leads to a page with a button, and only the button uses the key up. So neither the preview
that a chat makes of a link nor a second tab takes it away. Since the button is on a page of this
server, the browser sends its new SameSite=Strict cookie right away, wherever the link was clicked.
"""

from hardsave.defaults import SESSION_SECONDS
from hardsave.server.errors import Refused
from hardsave.server.page import render
from hardsave.server.route import HTML, Answer, Call, Route
from hardsave.server.running_servers import LINK


def show(call: Call) -> Answer:
    return Answer(200, render.login(call.public.prefix, call.query.get("key", "")), HTML)


def enter(call: Call) -> Answer:
    given = call.body or {}
    id = call.logins.enter(key=given.get("key", ""), token=given.get("token", ""))
    if id is None:
        raise Refused(
            401,
            "login",
            "this link was used, or is too old, or the token is wrong; start 'hardsave serve' "
            "again for another link, or log in with a token from 'hardsave token add'",
        )
    where = f"{call.public.prefix}/"
    return Answer(303, "", HTML, (("Location", where), ("Set-Cookie", _cookie(call, id))))


def another_key(call: Call) -> Answer:
    """A key for one more browser, which may do everything: so may only a caller that may, too."""
    if call.caller.user is not None or call.caller.projects is not None:
        raise Refused(403, "scope", "a link is for everything that is served, and this token not")
    return Answer(body={"key": call.logins.new_key()})


def _cookie(call: Call, id: str) -> str:
    """For the paths of this server alone: another one may have the same name behind the proxy."""
    where = f"Path={call.public.prefix or '/'}"
    secure = ["Secure"] if call.public.is_secure else []
    about = [where, "HttpOnly", "SameSite=Strict", f"Max-Age={SESSION_SECONDS}", *secure]
    return "; ".join([f"{call.logins.cookie}={id}", *about])


ROUTES = (
    Route("GET", "/login", show, scope=None, page=True, needs_project=False),
    Route("POST", "/login", enter, scope=None, page=True, needs_project=False),
    Route("POST", LINK, another_key, scope="admin", needs_project=False),
)
