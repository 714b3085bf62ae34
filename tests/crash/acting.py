"""Acts on jobs and tasks with a key, in a process that is struck, and the same request once more.

Counted are the calls that change the store's files, SQLite's own among them, from the moment on
that the act begins.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import hardsave
from hardsave.vault.jobs import spec as specs
from tests.crash import injector, scenarios
from tests.crash.injector import WatchedVfs
from tests.crash.restoring import Watch
from tests.crash.rewinding import Store, opened

JOB, QUESTION, KEY = "fix", "may it pay?", "request 7f3a"

ACTS: dict[str, Callable[[hardsave.Vault], object]] = {
    "cancel": lambda vault: vault.tasks.cancel(JOB, key=KEY),
    "approve": lambda vault: vault.jobs.approve(JOB, key=KEY),
    "resume": lambda vault: vault.jobs.resume(JOB, key=KEY),
    "delete": lambda vault: vault.jobs.delete(JOB, key=KEY),
}
LATER: dict[str, Callable[[hardsave.Vault], object]] = {
    "cancel": lambda vault: vault.tasks.retry(JOB),
    "approve": lambda vault: _ask(vault, QUESTION, "may it pay more?"),
    "resume": lambda vault: (vault.tasks.cancel(f"{JOB}~2"), vault.jobs.resume(JOB)),
    "delete": lambda vault: (vault.undo(), vault.jobs.resume(JOB)),
}
"""What others do after an act, which its repetition must leave as it is."""


def prepare(folder: str, act: str) -> None:
    """A store with a job of which something is saved, ready for the act."""
    scenarios.prepare()
    Path(folder, "disk").mkdir(parents=True)
    with opened(folder) as vault:
        job = vault.jobs.add(JOB, "Fix it")
        vault.timeline(JOB).save(_conversation(job))
        if act in ("approve", "delete"):
            _ask(vault, QUESTION)
        if act == "resume":
            vault.tasks.cancel(JOB)


def _conversation(job: hardsave.Job) -> dict[str, Any]:
    data = {"content": {specs.KEY: specs.to_plain(job.spec, specs.parse(job.id))}}
    return {
        "messages": [],
        "data": data,
        "turn": 1,
        "status": "running",
        "model": None,
        "error": None,
        "output": {"content": None},
    }


def _ask(vault: hardsave.Vault, *questions: str) -> None:
    with vault.tasks.attempt(JOB) as attempt:
        for question in questions:
            attempt.ask(question)


def run(folder: str, act: str, at: int | None = None, how: str = "before") -> int:
    """Act; struck at one call. How many there were."""
    scenarios.prepare()
    watch = Watch(at, how)
    layer = Store(Path(folder, "disk"), watch)
    injector._registered.append(WatchedVfs(layer))
    vault = opened(folder)
    vault.jobs.get(JOB)
    layer.is_watching = True
    watch.start()
    ACTS[act](vault)
    return watch.calls


def repeat(folder: str, act: str) -> list[dict[str, Any]]:
    """What another process finds; what is there after the same request, after what others do then,
    and after the same request once more."""
    scenarios.prepare()
    with opened(folder) as vault:
        found = [_seen(vault)]
        for step in (ACTS, LATER, ACTS):
            step[act](vault)
            found.append(_seen(vault))
        assert vault.store.verify().ok
    return found


def _seen(vault: hardsave.Vault) -> dict[str, Any]:
    return {
        "tasks": {task.id: task.state for task in vault.tasks.find()},
        "happened": [[each.kind, each.task] for each in vault.tasks.happened()],
        "operations": [each.kind for each in vault.operations()],
        "job": vault.jobs.get(JOB).state,
    }
