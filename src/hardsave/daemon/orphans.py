"""Whether somebody buries a child that its hook has not waited for.

That is for process 1 to do, and in some containers it never does: then each would stay a zombie,
one for each tool. So a child that lets its hook go leaves its number, and the next one looks
whether it still lies there. Once there are as many as of residents (`daemon.leaving`), hooks
wait for the end of their children.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from hardsave import config
from hardsave.errors import Unavailable
from hardsave.stores import processes

MOST = 32  # one after the other that nobody has buried
_NAME = "last-orphan"
_LARGEST = 64


def may_be_one(environment: Mapping[str, str]) -> bool:
    """Whether this process may become one. If so, it is the last from now on."""
    try:
        path = config.data_directory(environment, sys.platform) / _NAME
        count = _unburied(path)
        if count >= MOST:
            return False
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb") as file:
            began = processes.started(os.getpid()) or 0
            file.write(b"%10d %20d %10d" % (os.getpid(), began, count))
    except (OSError, Unavailable):
        return False  # what cannot be noted cannot be looked for either
    return True


def _unburied(path: Path) -> int:
    """How many there were, one after the other, up to the last; none if that one is buried. One
    that lives says nothing: it may stay as a resident."""
    try:
        with path.open("rb") as file:
            pid, began, before = map(int, file.read(_LARGEST).split())
    except (FileNotFoundError, ValueError):
        return 0
    if processes.is_unburied(pid, began):
        return before + 1
    return before if processes.started(pid) == began else 0
