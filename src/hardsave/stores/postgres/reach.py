"""Whether the server of a store answers, asked in little time: for callers that must not wait."""

from typing import Any

import psycopg

from hardsave.errors import Unavailable
from hardsave.stores.postgres.address import address_of
from hardsave.stores.postgres.translation import raise_ours

_LEAST_SECONDS = 2  # libpq waits no shorter than that for a connection


def check_reachable(url: str) -> None:
    """`Unavailable` if the server gives no connection within two seconds, or takes no writes now.
    A new connection is asked for: one that is open may lead to a host that is gone."""
    address = address_of(url)
    patience: Any = {
        "connect_timeout": _LEAST_SECONDS,
        "tcp_user_timeout": _LEAST_SECONDS * 1000,
        "application_name": "hardsave",
        "autocommit": True,
    }
    try:
        with psycopg.connect(address.conninfo, **patience) as connection:
            found = connection.execute("SELECT pg_is_in_recovery()").fetchone()
    except psycopg.Error as error:
        raise_ours(error, address.shown)
    if found != (False,):
        raise Unavailable(f"{address.shown} is a replica, which takes no writes; name its primary")
