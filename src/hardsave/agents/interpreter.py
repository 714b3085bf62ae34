"""How programs of ours are started: by this Python, with nothing of a workspace in it.

`PYTHONPATH` often names a project's own folders, and comes before Python's own modules: of what an
agent writes there, a `signal.py` would be run by every hook, and a broken one would end all saving
without a word. So no program that is started behind the user's back obeys it.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import PathFinder

VARIABLE = "PYTHONPATH"
_NEEDED = ("hardsave", "apsw", "blake3", "ormsgpack")


def options(environment: Mapping[str, str], path: Sequence[str] | None = None) -> list[str]:
    """For Python: `-P` leaves out where it is started, `-E` all that the environment says. Where we
    are found by that alone, as some package managers have it, it is obeyed."""
    told = environment.get(VARIABLE)
    named = {os.path.abspath(each) for each in told.split(os.pathsep)} if told else set()
    found = sys.path if path is None else path
    others = [each for each in found if os.path.abspath(each) not in named]
    is_enough = all(PathFinder.find_spec(name, others) is not None for name in _NEEDED)
    return ["-E", "-P"] if is_enough else ["-P"]
