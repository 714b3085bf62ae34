"""The page at `/`, and what it loads: files of the package, each with a hash of it as ETag.

All that a browser shows is made by the scripts in `assets`, from `/api/v1`. What they load tells
nothing of any store, so it is open to every caller. Comments and indentation are for readers of the
source, and are left out of what is sent.
"""

import re
from functools import cache
from html import escape
from importlib.resources import files

from hardsave.errors import NotFound
from hardsave.objects.hashing import digest
from hardsave.server.route import HTML, Answer, Call, Route
from hardsave.server.sending import gzipped
from hardsave.tuples import NamedTuple

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_KEPT = "private, no-cache"
_BEST = 9  # of zlib: once, for all callers
_COMMENTS = re.compile(r"^[ ]*(/\*.*?\*/[ ]*|//[^\n]*)\n", re.MULTILINE | re.DOTALL)
_INDENTATION = re.compile(r"^[ ]+", re.MULTILINE)


class Asset(NamedTuple):
    """A file of the page, as it is sent."""

    media_type: str
    content: bytes
    packed: bytes  # gzipped
    tag: str


@cache
def assets() -> dict[str, Asset]:
    """All files of the page, by their names."""
    found = {}
    for each in (files("hardsave.server.page") / "assets").iterdir():
        kind = _TYPES.get(each.name[each.name.rfind(".") :])
        if kind is not None:
            content = shortened(each.read_text("utf-8")).encode()
            tag = f'"{digest(content).hex()[:20]}"'
            found[each.name] = Asset(kind, content, gzipped(content, _BEST), tag)
    return found


def shortened(source: str) -> str:
    """A script or a stylesheet without the lines that are comments, and without indentation. In
    these files no text goes over several lines."""
    return _INDENTATION.sub("", _COMMENTS.sub("", source))


def show(call: Call) -> Answer:
    page = (files("hardsave.server.page") / "assets" / "index.html").read_text("utf-8")
    return Answer(200, page.replace("BASE", escape(f"{call.public.prefix}/")), HTML)


def asset(call: Call) -> Answer:
    found = assets().get(call.path["name"])
    if found is None:
        raise NotFound("there is no such file of the page; load the page again")
    headers = (("ETag", found.tag), ("Cache-Control", _KEPT))
    if call.headers.get("if-none-match") == found.tag:
        return Answer(304, b"", headers=headers)
    return Answer(200, found.content, found.media_type, headers, packed=found.packed)


ROUTES = (
    Route("GET", "/", show, scope="read", page=True, needs_project=False),
    Route("GET", "/assets/{name}", asset, scope=None, page=True, needs_project=False),
)
