"""The one table of all routes, and how a path finds its row. Pure."""

from urllib.parse import unquote_to_bytes

from hardsave.server import checkpoints, health, login, metrics, webhook
from hardsave.server.api import table as api
from hardsave.server.page import shell
from hardsave.server.route import Route
from hardsave.tuples import NamedTuple

ROUTES: tuple[Route, ...] = (
    *health.ROUTES,
    *login.ROUTES,
    *checkpoints.ROUTES,
    *webhook.ROUTES,
    *metrics.ROUTES,
    *api.ROUTES,
    *shell.ROUTES,
)


class Found(NamedTuple):
    """What the table has for a path: the row for the method, and the methods of all its rows."""

    route: Route | None
    path: dict[str, str]
    methods: tuple[str, ...]

    @property
    def is_page(self) -> bool:
        return self.route is not None and self.route.page


def find(method: str, raw_path: str, routes: tuple[Route, ...] = ROUTES) -> Found:
    """The row for a path as it came, still percent-encoded. HEAD is answered like GET.

    Each segment is decoded by itself: an id may hold `/`, `?` and `..`, and an encoded one never
    becomes another path.
    """
    wanted = "GET" if method == "HEAD" else method
    rows = [(row, path) for row in routes if (path := _matched(row.path, raw_path)) is not None]
    methods = tuple(row.method for row, _ in rows)
    for row, path in rows:
        if row.method == wanted:
            return Found(row, path, methods)
    return Found(None, {}, methods)


def _matched(template: str, raw_path: str) -> dict[str, str] | None:
    if "{" not in template:
        return {} if template == raw_path else None
    wanted, given = template.split("/"), raw_path.split("/")
    if len(wanted) != len(given):
        return None
    found = {}
    for name, segment in zip(wanted, given, strict=True):
        if name.startswith("{"):
            try:
                found[name[1:-1]] = unquote_to_bytes(segment).decode()
            except UnicodeDecodeError:
                return None
            if not segment:
                return None
        elif name != segment:
            return None
    return found
