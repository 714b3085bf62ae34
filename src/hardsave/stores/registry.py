"""From a URL to a store. The one place that knows which stores there are.

- `sqlite:///runs.db`, or with four slashes an absolute path. What follows the three slashes
  is the path as it is: nothing in it is quoted or special.
- `postgresql://user@host:5432/database`, as libpq reads it; `?schema=name` for another store in
  the same database. Needs the extra `postgres`.
- `redis://user@host:6379/0`, which expires; see `stores.redis.address` for its options. Needs the
  extra `redis`.
- `memory://`
"""

from collections.abc import Callable
from typing import Any

from hardsave.errors import Misuse
from hardsave.stores.base import Durability, Store
from hardsave.stores.results import Report

_POSTGRES = ("postgresql", "postgres")
_REDIS = ("redis", "rediss", "redis+socket")


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
    if scheme in _POSTGRES:
        return _postgres(url, durability, compress=compress, read_only=read_only)
    if scheme in _REDIS:
        return _redis(url, durability, compress=compress, read_only=read_only)
    raise Misuse(
        f"{shown(url)!r} names no store; write sqlite:///path, postgresql://…, redis://…, "
        "redis+socket:///path or memory://"
    )


def check_reachable(url: str) -> None:
    """`Unavailable` if the server of a store does not answer, or takes no writes, within about two
    seconds. A store without a server is always within reach."""
    scheme = url.partition("://")[0]
    if scheme in _POSTGRES:
        _with_postgres()
        from hardsave.stores.postgres import reach  # it loads psycopg

        reach.check_reachable(url)
    elif scheme in _REDIS:
        _with_redis()
        from hardsave.stores.redis import reach as redis_reach

        redis_reach.check_reachable(url)


def repair_store(url: Any) -> Report:
    """Save what can be read of the store at `url`, which may be too damaged to be opened."""
    if isinstance(url, str) and is_on_server(url):
        look = "redis-check-aof" if url.partition("://")[0] in _REDIS else "pg_amcheck"
        raise Misuse(
            f"{shown(url)!r} is no file that could be repaired, but kept by a server; look with "
            f"{look} what is damaged, and restore a backup of the server"
        )
    if not isinstance(url, str) or not is_file(url):
        raise Misuse(f"{shown(url)!r} is no file that could be repaired; write sqlite:///path")
    from hardsave.stores.sqlite.salvage.repair import repair  # apsw is loaded only where it is used

    return repair(file_path(url))


def shown(url: Any) -> Any:
    """A URL for people: no password in it."""
    if not isinstance(url, str):
        return url
    from hardsave.wording import without_password  # what is told is told rarely

    return without_password(url)


def is_file(url: str) -> bool:
    """Whether a URL names a store that is a file, be it that it names none rightly."""
    return url.startswith("sqlite:")


def is_on_server(url: str) -> bool:
    """Whether a URL names a store that a server keeps: it outlives the programs that open it."""
    return url.partition("://")[0] in (*_POSTGRES, *_REDIS)


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
    _with_postgres()
    from hardsave.stores.postgres import PostgresStore  # psycopg is loaded where it is used

    return PostgresStore(url, durability=durability, compress=compress, read_only=read_only)


def _with_postgres() -> None:
    """`Misuse` if the extra is not installed."""
    try:
        import psycopg_pool  # noqa: F401 # with psycopg, which it loads
    except ImportError as error:
        raise Misuse(
            f"a store on PostgreSQL needs the extra: pip install 'hardsave[postgres]' ({error})"
        ) from error


def _redis(
    url: str, durability: Durability, *, compress: Callable[[], bool], read_only: bool
) -> Store:
    _with_redis()
    from hardsave.stores.redis import RedisStore  # the client is loaded where it is used

    return RedisStore(url, durability=durability, compress=compress, read_only=read_only)


def _with_redis() -> None:
    """`Misuse` if the extra is not installed."""
    try:
        import redis  # noqa: F401 # the client
    except ImportError as error:
        raise Misuse(
            f"a store on Redis needs the extra: pip install 'hardsave[redis]' ({error})"
        ) from error
