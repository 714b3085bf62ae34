"""Whether the server of a store answers, asked in little time: for callers that must not wait."""

from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from hardsave.stores.redis.address import address_of
from hardsave.stores.redis.translation import raise_ours

_SECONDS = 2.0


def check_reachable(url: str) -> None:
    """`Unavailable` if the server gives no answer within two seconds."""
    address = address_of(url)
    patience: dict[str, Any] = {
        "socket_timeout": _SECONDS,
        "socket_connect_timeout": _SECONDS,
        "retry": Retry(NoBackoff(), 0),
        "client_name": "hardsave",
    }
    pool = redis.ConnectionPool(**{**patience, **address.client})
    try:
        redis.Redis(connection_pool=pool).ping()
    except redis.RedisError as error:
        raise_ours(error, address.shown)
    finally:
        pool.disconnect()
