"""Hardsave: checkpoints, recovery and time travel for AI agents.

    with hardsave.open() as vault:
        line = vault.timeline("session-1")
        line.save({"messages": [], "turn": 0})
        line.append({"messages": [{"role": "user", "content": "hello"}], "turn": 1})
        line.load()

A save that has returned is there after `kill -9` and after a power loss.
"""

TYPE_CHECKING = False  # typing itself takes longer to import than all of this
if TYPE_CHECKING:
    import hardsave.aio as aio
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
    from hardsave.objects.types import register
    from hardsave.page import Page
    from hardsave.stores.base import Collected, Report, Stats
    from hardsave.tasks.attempt import Attempt
    from hardsave.tasks.retry import Retry
    from hardsave.tasks.task import Task
    from hardsave.timeline.policy import Policy, Thin
    from hardsave.vault.checkpoint import Checkpoint
    from hardsave.vault.files import Files
    from hardsave.vault.line import Timeline
    from hardsave.vault.opening import open_vault as open
    from hardsave.vault.opening import repair_store as repair
    from hardsave.vault.rewind import Rewind
    from hardsave.vault.saving import ANY_HEAD
    from hardsave.vault.store import Retention, VaultStore
    from hardsave.vault.undo import Operation
    from hardsave.vault.vault import Vault
    from hardsave.vault.verify import Verification
    from hardsave.vault.workspace import Workspace

    __version__: str

# Where each name is at home. It is loaded by whoever asks first: a hook that hands its work to a
# resident needs none of them, and asyncio takes a while even for those who need much.
_HOMES = {
    "hardsave.errors": (
        "Conflict",
        "Corrupt",
        "HardsaveError",
        "LeaseLost",
        "Misuse",
        "NotFound",
        "StepUnknown",
        "StepsChanged",
        "Unavailable",
        "Unstorable",
    ),
    "hardsave.objects.redaction": ("Redaction", "Rule"),
    "hardsave.objects.types": ("register",),
    "hardsave.page": ("Page",),
    "hardsave.stores.base": ("Collected", "Report", "Stats"),
    "hardsave.tasks.attempt": ("Attempt",),
    "hardsave.tasks.retry": ("Retry",),
    "hardsave.tasks.task": ("Task",),
    "hardsave.timeline.policy": ("Policy", "Thin"),
    "hardsave.vault.checkpoint": ("Checkpoint",),
    "hardsave.vault.files": ("Files",),
    "hardsave.vault.line": ("Timeline",),
    "hardsave.vault.opening": ("open_vault", "repair_store"),
    "hardsave.vault.rewind": ("Rewind",),
    "hardsave.vault.saving": ("ANY_HEAD",),
    "hardsave.vault.store": ("Retention", "VaultStore"),
    "hardsave.vault.undo": ("Operation",),
    "hardsave.vault.vault": ("Vault",),
    "hardsave.vault.verify": ("Verification",),
    "hardsave.vault.workspace": ("Workspace",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_CALLED = {"open": "open_vault", "repair": "repair_store"}  # there, where `open` is Python's own

__all__ = [
    "ANY_HEAD",
    "Attempt",
    "Checkpoint",
    "Collected",
    "Conflict",
    "Corrupt",
    "Files",
    "HardsaveError",
    "LeaseLost",
    "Misuse",
    "NotFound",
    "Operation",
    "Page",
    "Policy",
    "Redaction",
    "Report",
    "Retention",
    "Retry",
    "Rewind",
    "Rule",
    "Stats",
    "StepUnknown",
    "StepsChanged",
    "Task",
    "Thin",
    "Timeline",
    "Unavailable",
    "Unstorable",
    "Vault",
    "VaultStore",
    "Verification",
    "Workspace",
    "aio",
    "open",
    "register",
    "repair",
]


if not TYPE_CHECKING:  # to whom every name would be one that is there

    def __getattr__(name: str) -> object:
        """What was not asked for before. The next time it is here."""
        import importlib

        if name == "aio":
            return importlib.import_module("hardsave.aio")
        if name == "__version__":
            from importlib.metadata import version

            return version("hardsave")
        there = _CALLED.get(name, name)
        if name not in __all__ or there not in _HOME_OF:
            raise AttributeError(f"module 'hardsave' has no attribute {name!r}")
        found = getattr(importlib.import_module(_HOME_OF[there]), there)
        globals()[name] = found
        return found
