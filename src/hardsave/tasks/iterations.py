"""How often a server's loop has gone round, in all sessions and processes together."""

from typing import Any

from hardsave.tasks import ledger_values
from hardsave.tasks.context import KEPT, LedgerContext

_KIND = "iterated"


def so_far(context: LedgerContext) -> int:
    return _count(ledger_values.read(context, _KIND))


def one_more(context: LedgerContext) -> int:
    """Count one on top of the latest count, whichever process has written that; the new one."""
    become = ledger_values.change(
        context,
        _KIND,
        lambda value: {"count": _count(value) + 1},
        trims=lambda value: _count(value) % KEPT == 0,
    )
    return _count(become)


def _count(value: Any) -> int:
    return 0 if value is None else int(value["count"])
