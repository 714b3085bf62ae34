"""Others who take snapshots of a workspace, each as its users would have it do so."""

import os
import shutil
from pathlib import Path
from typing import Protocol

from bench.trees import GIT, run


class Rival(Protocol):
    """`snapshot` names what it has taken; `restore` saves what is there first, as ours does."""

    def snapshot(self) -> object: ...


class Shadow:
    """A shadow git repository of a workspace."""

    def __init__(self, place: Path, work: Path) -> None:
        self.path = place
        self._work = work
        self._where = {"GIT_DIR": str(place), "GIT_WORK_TREE": str(work)}
        run(["git", "init", "-q"], work, self._where)

    def snapshot(self) -> str:
        run(["git", "add", "-A"], self._work, self._where)
        tree = run(["git", "write-tree"], self._work, self._where).strip()
        words = ["commit-tree", tree, "-m", "snapshot"]
        return run([*GIT, *words], self._work, self._where).strip()

    def restore(self, commit: str) -> None:
        self.snapshot()  # what is there is saved first, as ours is
        run(["git", "read-tree", commit], self._work, self._where)
        run(["git", "checkout-index", "-a", "-f"], self._work, self._where)


class Stepback:
    """https://github.com/Archerkattri/stepback: git's objects in the workspace's repository."""

    def __init__(self, work: Path) -> None:
        from stepback import Engine

        self._engine = Engine(work, adapters=[])

    def snapshot(self) -> object:
        return self._engine.checkpoint()

    def restore(self, checkpoint: object) -> None:
        self._engine.rewind(checkpoint)


class Restic:
    """https://restic.net, if it is installed."""

    def __init__(self, place: Path, work: Path) -> None:
        self._work = work
        self._where = {"RESTIC_REPOSITORY": str(place), "RESTIC_PASSWORD": "bench"}
        run(["restic", "init", "-q"], work, self._where)

    def snapshot(self) -> str:
        return run(["restic", "backup", "-q", os.fspath(self._work)], self._work, self._where)


def has_restic() -> bool:
    return shutil.which("restic") is not None
