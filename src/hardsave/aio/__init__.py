"""The same vault for coroutines: the same names, awaited.

    async with hardsave.aio.open() as vault:
        line = await vault.timeline("session-1")
        await line.append({"messages": [message]})

Every method is one line over the synchronous class, run in a bounded pool of threads that
belongs to the vault. What differs, and why:

- `await line.head` and `async for line in vault.timelines()`: they read the store;
- `await line.count()` stands for `len(line)`, which Python cannot await;
- a checkpoint's state is read with `await checkpoint.read(…)`, never lazily; its files, like
  all that may block, through `checkpoint.sync`;
- handlers may be coroutine functions; they are awaited before the call that caused the
  event returns;
- steps and handlers of tasks may be coroutine functions, awaited on the caller's loop.

A call that is cancelled goes on in its thread: whether a save was written is unknown, and
the next look at the head tells.
"""

from typing import TYPE_CHECKING

from hardsave.aio.checkpoint import Checkpoint
from hardsave.aio.guard import Guard
from hardsave.aio.line import Timeline
from hardsave.aio.opening import Opening, open
from hardsave.aio.pool import THREADS
from hardsave.aio.vault import Vault
from hardsave.aio.workspace import Fork, Workspace
from hardsave.page import Page

if TYPE_CHECKING:
    from hardsave.aio.jobs import Jobs
    from hardsave.aio.store import Retention, VaultStore
    from hardsave.tasks.async_attempt import Attempt
    from hardsave.tasks.async_ledger import Runner, Tasks

_HOME_OF = {
    "Attempt": "hardsave.tasks.async_attempt",
    "Jobs": "hardsave.aio.jobs",
    "Retention": "hardsave.aio.store",
    "Runner": "hardsave.tasks.async_ledger",
    "Tasks": "hardsave.tasks.async_ledger",
    "VaultStore": "hardsave.aio.store",
}

__all__ = [
    "THREADS",
    "Attempt",
    "Checkpoint",
    "Fork",
    "Guard",
    "Jobs",
    "Opening",
    "Page",
    "Retention",
    "Runner",
    "Tasks",
    "Timeline",
    "Vault",
    "VaultStore",
    "Workspace",
    "open",
]


if not TYPE_CHECKING:  # a type checker would take every name for one that is there

    def __getattr__(name: str) -> object:
        """Names that many programs never use, loaded when they are first asked for."""
        import importlib

        if name not in _HOME_OF:
            raise AttributeError(f"module 'hardsave.aio' has no attribute {name!r}")
        found = getattr(importlib.import_module(_HOME_OF[name]), name)
        globals()[name] = found
        return found
