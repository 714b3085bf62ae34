"""The pages that let a browser in: by the one-time link of `hardsave serve`, or with a token.

The link leads to a page with a button, and only the button uses the key up. So neither the preview
that a chat makes of a link nor a second tab takes it away. Since the button is on a page of this
server, the browser sends its new SameSite=Strict cookie right away, wherever the link was clicked.
"""

from hardsave.defaults import SESSION_SECONDS
from hardsave.server.errors import Refused
from hardsave.server.page import render
from hardsave.server.route import HTML, Answer, Call, Route


def show(call: Call) -> Answer:
    return Answer(200, render.page("login.html", key=call.query.get("key", "")), HTML)


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
    cookie = (
        f"{call.logins.cookie}={id}; Path=/; HttpOnly; SameSite=Strict; Max-Age={SESSION_SECONDS}"
    )
    return Answer(303, "", HTML, (("Location", "/"), ("Set-Cookie", cookie)))


ROUTES = (
    Route("GET", "/login", show, scope=None, page=True, needs_project=False),
    Route("POST", "/login", enter, scope=None, page=True, needs_project=False),
)
