"""Hardsave: checkpoints, recovery and time travel for AI agents.

    with hardsave.open() as vault:
        line = vault.timeline("session-1")
        line.save({"messages": [], "turn": 0})
        line.append({"messages": [{"role": "user", "content": "hello"}], "turn": 1})
        line.load()

A save that has returned is there after `kill -9` and after a power loss.
"""

from typing import TYPE_CHECKING, Any

from hardsave.errors import (
    Conflict,
    Corrupt,
    HardsaveError,
    LeaseLost,
    Misuse,
    NotFound,
    StepsChanged,
    StepUnknown,
    Unavailable,
    Unstorable,
)
from hardsave.objects.redaction import Redaction, Rule
from hardsave.objects.types import DEFAULT_TYPES
from hardsave.stores.base import Collected, Report, Stats
from hardsave.vault.checkpoint import Checkpoint, Page
from hardsave.vault.line import Timeline
from hardsave.vault.saving import ANY_HEAD
from hardsave.vault.vault import Vault
from hardsave.vault.vault import open_vault as open
from hardsave.vault.vault import repair_store as repair

if TYPE_CHECKING:
    import hardsave.aio as aio
    from hardsave.tasks.attempt import Attempt
    from hardsave.tasks.retry import Retry
    from hardsave.tasks.task import Task
    from hardsave.timeline.policy import Policy, Thin
    from hardsave.vault.files import Snapshot
    from hardsave.vault.rewind import Rewind
    from hardsave.vault.undo import Operation
    from hardsave.vault.verify import Verification
    from hardsave.vault.workspace import Workspace

register = DEFAULT_TYPES.register

_LAZY = {
    "Attempt": "hardsave.tasks.attempt",
    "Operation": "hardsave.vault.undo",
    "Policy": "hardsave.timeline.policy",
    "Retry": "hardsave.tasks.retry",
    "Rewind": "hardsave.vault.rewind",
    "Snapshot": "hardsave.vault.files",
    "Task": "hardsave.tasks.task",
    "Thin": "hardsave.timeline.policy",
    "Verification": "hardsave.vault.verify",
    "Workspace": "hardsave.vault.workspace",
}

__all__ = [
    "ANY_HEAD",
    "Attempt",
    "Checkpoint",
    "Collected",
    "Conflict",
    "Corrupt",
    "HardsaveError",
    "LeaseLost",
    "Misuse",
    "NotFound",
    "Operation",
    "Page",
    "Policy",
    "Redaction",
    "Report",
    "Retry",
    "Rewind",
    "Rule",
    "Snapshot",
    "Stats",
    "StepUnknown",
    "StepsChanged",
    "Task",
    "Thin",
    "Timeline",
    "Unavailable",
    "Unstorable",
    "Vault",
    "Verification",
    "Workspace",
    "aio",
    "open",
    "register",
    "repair",
]


def __getattr__(name: str) -> Any:
    """`hardsave.aio` and the like are loaded by whoever asks: asyncio takes a while."""
    if name == "aio":
        import importlib

        return importlib.import_module("hardsave.aio")
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("hardsave")
    raise AttributeError(f"module 'hardsave' has no attribute {name!r}")
