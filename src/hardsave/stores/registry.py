"""From a URL to a store. The one place that knows which stores there are.

sqlite:///relative.db     sqlite:////absolute/path.db     memory://
"""

from urllib.parse import unquote, urlsplit

from hardsave.errors import Misuse
from hardsave.stores.base import Durability, Store
from hardsave.stores.memory import MemoryStore


def open_store(url: str, *, durability: Durability = "power") -> Store:
    """The store at `url`, created if it does not exist."""
    if durability not in ("power", "process"):
        raise Misuse(f"durability is 'power' or 'process', not {durability!r}")
    parts = urlsplit(url)
    if parts.scheme == "memory":
        if parts.netloc or parts.path:
            raise Misuse(f"a store in memory has no name: write memory:// instead of {url!r}")
        return MemoryStore()
    if parts.scheme == "sqlite":
        return _sqlite(url, durability)
    raise Misuse(f"{url!r} names no store; write sqlite:///path or memory://")


def sqlite_path(url: str) -> str:
    """The path in an sqlite URL: three slashes for a relative one, four for an absolute one."""
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.netloc or len(path) < 2 or parts.query or parts.fragment:
        raise Misuse(f"{url!r} names no file; write sqlite:///path (three slashes)")
    return path[1:]


def _sqlite(url: str, durability: Durability) -> Store:
    from hardsave.stores.sqlite import SqliteStore  # apsw is loaded only where it is used

    return SqliteStore(sqlite_path(url), durability=durability)
