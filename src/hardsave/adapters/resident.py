"""The resident as `hardsave run` starts it: one that knows what hooks of agents ask for.

`python -m hardsave.adapters.resident TASK`
"""

import os
import sys
from pathlib import Path

import hardsave
from hardsave.adapters.desk import HookDesk
from hardsave.adapters.missing import of_a_run
from hardsave.runtime import resident
from hardsave.runtime.resident import Misses, Task


def _desk(vault: hardsave.Vault, task: Task) -> HookDesk:
    return HookDesk(vault, task.store, task.workspace, task.socket)


def _misses(task: Task) -> Misses:
    return of_a_run(os.environ, Path(task.workspace), task.timeline, task.agent)


if __name__ == "__main__":
    sys.exit(resident.main(sys.argv[1:], _desk, _misses))
