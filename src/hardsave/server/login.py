"""The pages that let a browser in: by the one-time link of `hardsave serve`, or with a token.

The link leads to a page with a button, and only the button uses the key up. So neither the preview
that a chat makes of a link nor a second tab takes it away. Since the button is on a page of this
server, the browser sends its new SameSite=Strict cookie right away, wherever the link was clicked.
"""

import html

from hardsave.defaults import SESSION_SECONDS
from hardsave.server.errors import Refused
from hardsave.server.route import HTML, Answer, Call, Route

_PAGE = """<!doctype html>
<html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width">
<title>Hardsave: log in</title>
<h1>Hardsave</h1>
<form method=post action="/login">
{field}
<button autofocus>Log in</button>
</form></html>
"""
_LINKED = '<input type=hidden name=key value="{key}">'
_PASTED = (
    "<p>Open the link that <code>hardsave serve</code> has printed, or paste a token from "
    "<code>hardsave token add</code>:</p>"
    "<p><label>Token <input type=password name=token autocomplete=off></label></p>"
)


def show(call: Call) -> Answer:
    key = call.query.get("key", "")
    field = _LINKED.format(key=html.escape(key)) if key else _PASTED
    return Answer(200, _PAGE.format(field=field), HTML)


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
    Route("GET", "/login", show, scope=None, page=True),
    Route("POST", "/login", enter, scope=None, page=True),
)
