"""The locks by which SQLite knows that a store is in use stay where they are.

POSIX takes all locks of a process on a file away when the process closes that file once,
whoever opened it. A store without its lock can be closed by another process as if that were
the last, which removes the WAL. So nobody but SQLite opens the main file while it is in use.
"""

import os
from pathlib import Path

import pytest

import hardsave

LOCKS = Path("/proc/locks")


def is_locked(path: Path) -> bool:
    """Whether this process holds a lock on a file."""
    file = f":{path.stat().st_ino}"
    rows = [line.split() for line in LOCKS.read_text().splitlines()]
    return any(row[-3].endswith(file) and row[-4] == str(os.getpid()) for row in rows)


@pytest.mark.skipif(not LOCKS.exists(), reason="the kernel does not list locks here")
def test_opening_a_store_again_leaves_its_locks_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with hardsave.open(f"sqlite:///{path}") as first:
        first.timeline("main").save({"turn": 1})
        assert is_locked(path)
        with hardsave.open(f"sqlite:///{path}") as second:
            second.timeline("main").load()
            assert is_locked(path)
        first.timeline("main").load()
        assert is_locked(path)
