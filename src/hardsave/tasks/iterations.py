"""How often a server's loop has gone round, in all sessions and processes together."""

from typing import Any

from hardsave.tasks import latest_entry
from hardsave.tasks.desk import KEPT, Desk

_KIND = "iterated"


def so_far(desk: Desk) -> int:
    return _count(latest_entry.read(desk, _KIND))


def one_more(desk: Desk) -> int:
    """Count one on top of the latest count, whichever process has written that; the new one."""
    become = latest_entry.change(
        desk,
        _KIND,
        lambda value: {"count": _count(value) + 1},
        trims=lambda value: _count(value) % KEPT == 0,
    )
    return _count(become)


def _count(value: Any) -> int:
    return 0 if value is None else int(value["count"])
