"""From a URL to a store. The one place that knows which stores there are.

- `sqlite:///runs.db`, or with four slashes an absolute path. What follows the three slashes
  is the path as it is: nothing in it is quoted or special.
- `postgresql://user@host:5432/database`, as libpq reads it; `?schema=name` for another store in
  the same database. Needs the extra `postgres`.
- `memory://`
"""

import re
from collections.abc import Callable
from typing import Any

from hardsave.errors import Misuse
from hardsave.stores.base import Durability, Store
from hardsave.stores.results import Report

_ON_SERVER = ("postgresql", "postgres")


def open_store(
    url: Any,
    *,
    durability: Durability = "power",
    compress: Callable[[], bool] = lambda: True,
    read_only: bool = False,
) -> Store:
    """The store at `url`, created if it does not exist, unless it is opened `read_only`. Whether to
    `compress` what is written to a disk is asked when that is first worth it; what is there is read
    either way."""
    if durability not in ("power", "process"):
        raise Misuse(f"durability is 'power' or 'process', not {durability!r}")
    if not isinstance(url, str):
        raise Misuse(f"a store is named by a URL such as 'sqlite:///runs.db', not {url!r}")
    if read_only and url == "memory://":
        raise Misuse("a store in memory is empty when it is opened; leave read_only=True out")
    if url == "memory://":
        from hardsave.stores.memory.store import (
            MemoryStore,  # each store is loaded where it is used
        )

        return MemoryStore()
    scheme = url.partition("://")[0]
    if scheme == "memory":
        raise Misuse(f"a store in memory has no name: write memory:// instead of {url!r}")
    if scheme == "sqlite":
        return _sqlite(url, durability, compress=compress, read_only=read_only)
    if scheme in _ON_SERVER:
        return _postgres(url, durability, compress=compress, read_only=read_only)
    raise Misuse(
        f"{shown(url)!r} names no store; write sqlite:///path, postgresql://… or memory://"
    )


def repair_store(url: Any) -> Report:
    """Save what can be read of the store at `url`, which may be too damaged to be opened."""
    if isinstance(url, str) and is_on_server(url):
        raise Misuse(
            f"{shown(url)!r} is no file that could be repaired, but kept by a server; look with "
            "pg_amcheck what is damaged, and restore a backup of the server"
        )
    if not isinstance(url, str) or not is_file(url):
        raise Misuse(f"{shown(url)!r} is no file that could be repaired; write sqlite:///path")
    from hardsave.stores.sqlite.salvage.repair import repair  # apsw is loaded only where it is used

    return repair(file_path(url))


def shown(url: Any) -> Any:
    """A URL for people: no password in it."""
    if not isinstance(url, str):
        return url
    without = re.sub(r"(://[^/?#@]*?):[^/?#]*@", r"\1:***@", url)
    return re.sub(r"((?:ssl)?password=)[^&]*", r"\1***", without)


def is_file(url: str) -> bool:
    """Whether a URL names a store that is a file, be it that it names none rightly."""
    return url.startswith("sqlite:")


def is_on_server(url: str) -> bool:
    """Whether a URL names a store that a server keeps: it outlives the programs that open it."""
    return url.partition("://")[0] in _ON_SERVER


def file_path(url: str) -> str:
    """The path of a store's main file: three slashes for a relative one, four for an absolute one.
    `Misuse` if the URL names no file."""
    path = url.removeprefix("sqlite:///")
    if path == url or not path or "\x00" in path:
        raise Misuse(f"{url!r} names no file; write sqlite:///path (three slashes)")
    return path


def _sqlite(
    url: str, durability: Durability, *, compress: Callable[[], bool], read_only: bool
) -> Store:
    from hardsave.stores.sqlite import SqliteStore  # apsw is loaded only where it is used

    path = file_path(url)
    return SqliteStore(path, durability=durability, compress=compress, read_only=read_only)


def _postgres(
    url: str, durability: Durability, *, compress: Callable[[], bool], read_only: bool
) -> Store:
    try:
        from hardsave.stores.postgres import PostgresStore  # psycopg is loaded where it is used
    except ImportError as error:
        raise Misuse(
            f"a store on PostgreSQL needs the extra: pip install 'hardsave[postgres]' ({error})"
        ) from error
    return PostgresStore(url, durability=durability, compress=compress, read_only=read_only)
