"""The resident as `hardsave run` starts it: one that knows what hooks of agents ask for, and
where agents write down what is said.

`python -m hardsave.daemon.run_main TASK`
"""

import os
import sys
from pathlib import Path

import hardsave
from hardsave.daemon import missing, overhearing, resident
from hardsave.daemon.desk import HookDesk
from hardsave.daemon.resident import Misses, Talk, Task


def _desk(vault: hardsave.Vault, task: Task) -> HookDesk:
    return HookDesk(vault, task.store, task.workspace, task.socket)


def _misses(task: Task) -> Misses:
    return missing.of_a_run(os.environ, Path(task.workspace), task.timeline, task.agent)


def _talk(task: Task) -> Talk:
    return overhearing.of_a_run(os.environ, task.command, Path(task.workspace), task.agent)


if __name__ == "__main__":
    sys.exit(resident.main(sys.argv[1:], _desk, _misses, _talk))
