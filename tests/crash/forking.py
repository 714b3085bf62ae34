"""A fork into a directory that is struck: timeline and directory are there, or neither is."""

import os
from pathlib import Path
from typing import Any

from hardsave.errors import HardsaveError
from tests.crash import injector, restoring, rewinding, scenarios
from tests.crash.injector import WatchedVfs
from tests.crash.restoring import Watch

NAME, BELOW = "try", "new/deep"


def prepare(folder: str) -> str:
    """A workspace that was saved once; how it looks."""
    scenarios.prepare()
    work = Path(folder, "work")
    work.mkdir(parents=True)
    with rewinding.opened(folder) as vault:
        restoring.first(work)
        vault.timeline("main").save({"turn": 1}, workspace=work)
    return rewinding.seen(work)


def run(folder: str, at: int | None = None, how: str = "before") -> dict[str, Any]:
    """Fork into a directory that is made with those above it; struck at one call."""
    scenarios.prepare()
    watch = Watch(at, how)
    layer = rewinding.Store(Path(folder, "disk"), watch)
    injector._registered.append(WatchedVfs(layer))
    vault = rewinding.opened(folder)
    workspace = vault.workspace(Path(folder, "work"))
    layer.is_watching = True
    watch.start()
    error = ""
    try:
        workspace.fork("@", Path(folder, BELOW, NAME))
    except HardsaveError as failure:
        error = f"{type(failure).__name__}: {failure}"
    return {"calls": watch.calls, "error": error}


def settle(folder: str) -> dict[str, Any]:
    """What a store that is opened again finds, and whether the fork can be made then."""
    scenarios.prepare()
    work, made = Path(folder, "work"), Path(folder, BELOW, NAME)
    with rewinding.opened(folder) as vault:
        is_forked = NAME in [line.name for line in vault.timelines()]
        found: dict[str, Any] = {
            "is_forked": is_forked,
            "is_there": os.path.lexists(Path(folder, BELOW.split("/")[0])),
        }
        if not is_forked:
            vault.workspace(work).fork("@", made)
        found["files"] = rewinding.seen(made)
        found["faults"] = list(vault.store.verify().faults)
    found["journals"] = [name for name in os.listdir(Path(folder, "disk")) if "journal" in name]
    return found
