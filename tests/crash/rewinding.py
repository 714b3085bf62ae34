"""A rewind with its files, or its undo, that is struck: the store is a real one here.

Counted are the calls that change the workspace, the journal or the store's files, SQLite's
own among them, from the moment on that the rewind begins.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import hardsave
from hardsave.errors import HardsaveError
from hardsave.vault.restore.plan import FileChanges
from tests.crash import injector, restoring, scenarios
from tests.crash.events import Event, Kind
from tests.crash.injector import WatchedVfs
from tests.crash.restoring import Watch
from tests.unit.workspace.room import picture

T = TypeVar("T")
TARGET, PRESENT, TASK = "main:1", 2, "edit"


def prepare(folder: str, action: str) -> dict[str, str]:
    """A store with two checkpoints of a workspace, and work that nobody has saved; for an undo,
    after the rewind that it takes back."""
    scenarios.prepare()
    work = Path(folder, "work")
    work.mkdir(parents=True)
    with opened(folder) as vault:
        line = vault.timeline("main")
        restoring.first(work)
        line.save({"turn": 1}, workspace=work)
        target = seen(work)
        vault.tasks.add(TASK)
        with vault.tasks.attempt(TASK):
            restoring.second(work)
            line.save({"turn": 2}, workspace=work)
        (work / "edited").write_text("edited once more, and not saved")
        (work / "unsaved").write_text("not saved")
        present = seen(work)
        if action == "undo":
            line.rewind(TARGET, tasks=True)
    return {"target": target, "present": present}


def opened(folder: str) -> hardsave.Vault:
    return hardsave.open(f"sqlite:///{folder}/disk/store.db")


def seen(work: Path) -> str:
    return repr(sorted(picture(work).items()))


def run(folder: str, action: str, at: int | None = None, how: str = "before") -> dict[str, Any]:
    """Rewind or undo; struck at one call."""
    scenarios.prepare()
    watch = Watch(at, how)
    layer = Store(Path(folder, "disk"), watch)
    injector._registered.append(WatchedVfs(layer))
    vault = opened(folder)
    line = vault.timeline("main")
    line.load()
    layer.is_watching = True
    watch.start()
    error = ""
    try:
        _act(line, action)
    except HardsaveError as failure:
        error = f"{type(failure).__name__}: {failure}"
    return {"calls": watch.calls, "error": error}


def _act(line: hardsave.Timeline, action: str) -> list[str]:
    """What was kept, which should be nothing."""
    if action == "rewind":
        files = line.rewind(TARGET, tasks=True).files
        return [str(each) for each in files.kept] if isinstance(files, FileChanges) else []
    getattr(line, action)()
    return []


def settle(folder: str, action: str) -> dict[str, Any]:
    """What a store that is opened again finds, and whether the other side can be reached."""
    scenarios.prepare()
    work = Path(folder, "work")
    with opened(folder) as vault:
        line = vault.timeline("main")
        found: dict[str, Any] = {"state": _state(vault), "files": seen(work)}
        is_done = (found["state"]["turn"] != PRESENT) == (action == "rewind")
        other = {"rewind": "undo", "undo": "redo"}[action]
        kept = _act(line, other if is_done else action)
        found["then"] = [_state(vault), seen(work), kept]
        if not is_done:
            _act(line, other)
            found["then"] += [_state(vault), seen(work)]
        found["faults"] = list(vault.store.verify().faults)
    found["journals"] = [name for name in os.listdir(Path(folder, "disk")) if "journal" in name]
    return found


def _state(vault: hardsave.Vault) -> dict[str, Any]:
    """Where the head is, and the task that was done after the target."""
    return {**vault.timeline("main").load(), "task": vault.tasks.get(TASK).state}


# Several at once


def begin(folder: str, names: list[str]) -> None:
    """Each has saved once: whoever has not is not known to be there."""
    work = Path(folder, "work")
    work.mkdir(parents=True)
    with opened(folder) as vault:
        for name in names:
            (work / name).mkdir()
            (work / name / "file").write_text("first")
            vault.timeline(name).save({"turn": 0}, workspace=work)


def save_often(folder: str, name: str, count: int) -> list[str]:
    """Change a file of one's own and save the workspace, again and again; what went wrong."""
    work = Path(folder, "work")
    found: list[str] = []
    with opened(folder) as vault:
        line = vault.timeline(name)
        for turn in range(1, count + 1):
            (work / name / "file").write_text(f"{name} {turn}")
            saved = line.save({"turn": turn}, workspace=work)
            files = saved.files
            assert files is not None
            if files.read(f"{name}/file") != f"{name} {turn}".encode():
                found.append(f"{name} {turn} was saved otherwise")
            if (work / name / "file").read_text() != f"{name} {turn}":
                found.append(f"{name} {turn} was changed by somebody else")
    return found


def rewind_often(folder: str, name: str, count: int) -> list[str]:
    """Save, take back what is one's own, and take that back, again and again."""
    work = Path(folder, "work")
    file = work / name / "file"
    found: list[str] = []
    with opened(folder) as vault:
        line = vault.timeline(name)
        for turn in range(1, count + 1):
            file.write_text(f"turn {turn}")
            line.save({"turn": turn}, workspace=work)
            files = line.rewind(f"{name}:1", scope="mine").files
            assert files is not None
            # Somebody else may have been the first to save it: then it is kept, and told.
            is_back = file.read_text() == "first"
            is_told = f"{name}/file" in [each.path for each in files.kept]
            found += [] if is_back or is_told else [f"turn {turn} was not taken back"]
            line.undo()
            found += [] if file.read_text() == f"turn {turn}" else [f"turn {turn} is lost"]
            found += [] if line.load() == {"turn": turn} else [f"state {turn} is lost"]
    return found


def summary(folder: str) -> dict[str, Any]:
    with opened(folder) as vault:
        counts = {line.name: len(line) for line in vault.timelines()}
        faults = list(vault.store.verify().faults)
    left = [name for name in os.listdir(Path(folder, "disk")) if "journal" in name]
    return {"counts": counts, "faults": faults, "journals": left}


class Store(injector.Layer):
    """The calls of SQLite, counted and struck like all others."""

    def __init__(self, folder: Path, watch: Watch) -> None:
        super().__init__(folder, None, None)
        self._watch = watch
        self.is_watching = False

    def call(
        self,
        event: Event,
        do: Callable[[], T],
        fault: Callable[[Kind, str], Exception],
        half: Callable[[bytes], object] | None = None,
    ) -> T:
        if not self.is_watching or not self._watch.strikes(event.kind):
            return do()
        how = self._watch.how
        if how in ("ENOSPC", "EIO"):
            raise fault(event.kind, how)
        if how == "middle" and half is not None:
            half(event.data[: len(event.data) // 2])
        elif how != "before":
            do()
        restoring.die()
        return do()
