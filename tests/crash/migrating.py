"""A store of an earlier version that is opened, and struck while it is brought up to date."""

import hashlib
import os
from pathlib import Path
from typing import Any

from hardsave.errors import HardsaveError
from hardsave.stores.base import TimelineQuery
from hardsave.stores.sqlite import SqliteStore, connection
from tests.crash import scenarios
from tests.crash.injector import Strike, watch

USERS = (None, "kim")
ALL = 100_000


def run(folder: str, at: int | None = None, how: Any = "before") -> dict[str, Any]:
    """Open it, which migrates it, and close it; struck at one call."""
    scenarios.prepare()
    strike = None if at is None else Strike(at, how)
    layer = watch(Path(folder), strike, None)
    error = ""
    try:
        SqliteStore(Path(folder, "store.db")).close()
    except HardsaveError as failure:
        error = f"{type(failure).__name__}: {failure}"
    return {"calls": layer._calls, "error": error}


def settle(folder: str) -> dict[str, Any]:
    """Which version was left, with which backup; and what a store that is opened then holds."""
    scenarios.prepare()
    path = Path(folder, "store.db")
    found: dict[str, Any] = {
        "version": connection.look(str(path))[1],
        "backup": hashlib.sha256(Path(folder, "store.db-backup").read_bytes()).hexdigest(),
    }
    store = SqliteStore(path)
    found["faults"] = list(store.verify())
    found["rows"] = hashlib.sha256(repr(_rows(store)).encode()).hexdigest()
    store.close()
    found["left"] = sorted(name for name in os.listdir(folder) if "takeover" in name)
    return found


def _rows(store: SqliteStore) -> list[object]:
    return [
        row
        for user in USERS
        for rows in (
            store.saved(user, 0, ALL),
            store.recent_timelines(user, TimelineQuery(ALL, deleted=True)),
            store.log(user, 0, ALL),
            store.happened(user, 0, ALL),
            [store.stats(user).objects, store.stats(user).object_bytes],
        )
        for row in rows
    ]
