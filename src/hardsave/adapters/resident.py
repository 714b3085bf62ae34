"""The resident as `hardsave run` starts it: one that knows what hooks of agents ask for.

`python -m hardsave.adapters.resident TASK`
"""

import sys
from contextlib import nullcontext

import hardsave
from hardsave.adapters import hook
from hardsave.runtime import resident
from hardsave.runtime.reception import Request
from hardsave.runtime.resident import Task
from hardsave.vault import projects


class HookDesk:
    """Does what hooks ask for, on the vault that the resident has open."""

    def __init__(self, vault: hardsave.Vault, task: Task) -> None:
        self._vault = vault
        self._store = task.store

    def objection(self, request: Request) -> str | None:
        """A hook that was told of another store saves there."""
        wanted = projects.store_url(request.environment, request.directory)
        return None if wanted == self._store else f"this is the resident of {self._store}"

    def save(self, request: Request) -> bool:
        return hook.work(
            request.data,
            request.environment,
            hook.agent_of(request.words),
            hook.Called(request.directory, request.at, request.id),
            lambda _: nullcontext(self._vault),
        )


if __name__ == "__main__":
    sys.exit(resident.main(sys.argv[1:], HookDesk))
