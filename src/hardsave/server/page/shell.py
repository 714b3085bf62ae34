"""The page at `/`, and what it loads: files of the package, each with a hash of it as ETag.

All that a browser shows is made by the scripts in `assets`, from `/api/v1`. What they load tells
nothing of any store, so it is open to every caller.
"""

from functools import cache
from html import escape
from importlib.resources import files

from hardsave.errors import NotFound
from hardsave.objects.hashing import digest
from hardsave.server.route import HTML, Answer, Call, Route

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_KEPT = "private, no-cache"


@cache
def assets() -> dict[str, tuple[str, bytes, str]]:
    """The media type, content and ETag of each file, by its name."""
    found = {}
    for each in (files("hardsave.server.page") / "assets").iterdir():
        kind = _TYPES.get(each.name[each.name.rfind(".") :])
        if kind is not None:
            content = each.read_bytes()
            found[each.name] = kind, content, f'"{digest(content).hex()[:20]}"'
    return found


def show(call: Call) -> Answer:
    page = (files("hardsave.server.page") / "assets" / "index.html").read_text("utf-8")
    return Answer(200, page.replace("BASE", escape(f"{call.public.prefix}/")), HTML)


def asset(call: Call) -> Answer:
    found = assets().get(call.path["name"])
    if found is None:
        raise NotFound("there is no such file of the page; load the page again")
    kind, content, tag = found
    headers = (("ETag", tag), ("Cache-Control", _KEPT))
    if call.headers.get("if-none-match") == tag:
        return Answer(304, b"", headers=headers)
    return Answer(200, content, kind, headers)


ROUTES = (
    Route("GET", "/", show, scope="read", page=True, needs_project=False),
    Route("GET", "/assets/{name}", asset, scope=None, page=True, needs_project=False),
)
