"""Tasks of a file from before there was a store, each played again until it stands as it did.

May be called again for tasks that were taken in before, whole or by halves.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import hardsave
from hardsave.errors import NotFound
from hardsave.tasks.ledger import Tasks

ONCE = hardsave.Retry(on=())  # a failure is a failure: the program that runs the server tries again


def take_in(tasks: Tasks, found: Sequence[Mapping[str, Any]]) -> None:
    # Of those with the same text, which a file may have, the last is found by it; none is left out.
    by_text = {task["task_text"]: task["task_id"] for task in found}
    for task in found:
        is_last = by_text[task["task_text"]] == task["task_id"]
        _take_in(tasks, task, None if is_last else task["task_id"])


def _take_in(tasks: Tasks, task: Mapping[str, Any], key: str | None) -> None:
    id, state = task["task_id"], task["state"]
    known = _added(tasks, task, key)
    if known.state == state != "pending":
        return
    error = str(task.get("error_message") or "begun before")
    wanted = (task.get("attempts") or 0) - (state == "completed")
    for _ in range(known.attempts, wanted):
        tasks.claim(id, force=True, retry=ONCE).fail(error)
    if state == "failed" and tasks.get(id).state != "failed":  # its last attempt was cut off here
        tasks.claim(id, force=True, retry=ONCE).fail(error)
    if state == "completed":
        tasks.claim(id, force=True).complete(task.get("result"))
    elif state in ("pending", "in_progress") and tasks.get(id).state == "failed":
        tasks.retry(id)
    elif state == "rolled_back":
        tasks.roll_back(id)


def _added(tasks: Tasks, task: Mapping[str, Any], key: str | None) -> hardsave.Task:
    with suppress(NotFound):
        return tasks.get(task["task_id"])
    about = task.get("metadata") or {}
    return tasks.add(task["task_id"], task["task_text"], key=key, metadata=about)
