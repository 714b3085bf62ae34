"""The resident as `hardsave run` starts it: one that knows what hooks of agents ask for.

`python -m hardsave.adapters.resident TASK`
"""

import sys

import hardsave
from hardsave.adapters.desk import HookDesk
from hardsave.runtime import resident
from hardsave.runtime.resident import Task


def _desk(vault: hardsave.Vault, task: Task) -> HookDesk:
    return HookDesk(vault, task.store, task.workspace, task.socket)


if __name__ == "__main__":
    sys.exit(resident.main(sys.argv[1:], _desk))
