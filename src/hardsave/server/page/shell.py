"""The page at `/`, and what it loads: files of the package, each with a hash of it as ETag.

All that a browser shows is made by the scripts in `assets`, from `/api/v1`. What they load tells
nothing of any store, so it is open to every caller. Their addresses have a hash of all files in
them, so that a browser asks for each only once.
"""

from functools import cache
from html import escape
from importlib.resources import files

from hardsave.errors import NotFound
from hardsave.objects.hashing import digest
from hardsave.server.page import shortening
from hardsave.server.route import HTML, Answer, Call, Route
from hardsave.server.sending import gzipped
from hardsave.tuples import NamedTuple

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_KEPT = "private, no-cache"
_KEPT_FOR_GOOD = "private, max-age=31536000, immutable"
_BEST = 9  # of zlib: once, for all callers
_SHORTENED = {".css": shortening.stylesheet, ".js": shortening.script}


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
        ending = each.name[each.name.rfind(".") :]
        kind = _TYPES.get(ending)
        if kind is not None:
            content = _SHORTENED.get(ending, str)(each.read_text("utf-8")).encode()
            tag = f'"{digest(content).hex()[:20]}"'
            found[each.name] = Asset(kind, content, gzipped(content, _BEST), tag)
    return found


@cache
def version() -> str:
    """A hash of all files of the page: scripts refer to each other, and go together."""
    tags = (asset.tag for _, asset in sorted(assets().items()))
    return digest("".join(tags).encode()).hex()[:20]


def show(call: Call) -> Answer:
    page = (files("hardsave.server.page") / "assets" / "index.html").read_text("utf-8")
    page = page.replace("BASE", escape(f"{call.public.prefix}/")).replace("VERSION", version())
    return Answer(200, page, HTML)


def asset(call: Call) -> Answer:
    found = assets().get(call.path["name"])
    if found is None:
        raise NotFound("there is no such file of the page; load the page again")
    is_for_good = call.path.get("version") == version()
    headers = (("ETag", found.tag), ("Cache-Control", _KEPT_FOR_GOOD if is_for_good else _KEPT))
    if call.headers.get("if-none-match") == found.tag:
        return Answer(304, b"", headers=headers)
    return Answer(200, found.content, found.media_type, headers, packed=found.packed)


ROUTES = (
    Route("GET", "/", show, scope="read", page=True, needs_project=False),
    Route("GET", "/assets/{name}", asset, scope=None, page=True, needs_project=False),
    Route("GET", "/assets/{version}/{name}", asset, scope=None, page=True, needs_project=False),
)
