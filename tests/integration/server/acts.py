"""Acts that a client asks for twice, because it did not get the answer: each with things of its
own, and how often it was done."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import hardsave
from hardsave.runtime.jobs.worker import Worker
from tests.integration.server.site import AGENT
from tests.unit.cli.jobs_project import agent
from tests.unit.server.api_samples import ROUTE, Sample


class Asked(NamedTuple):
    """A request, and another one that must not have the same key."""

    sample: Sample
    other: Sample


Prepare = Callable[[hardsave.Vault, str, Path], Asked]
Count = Callable[[hardsave.Vault, str], int]


class Act(NamedTuple):
    """`prepare` begins things under a name, and gives the request; `times` says how often it was
    done to them. What an answer has under `same`, every further one has."""

    prepare: Prepare
    times: Count
    same: tuple[str, ...]


def _post(path: str, body: dict[str, Any], other: dict[str, Any], **headers: str) -> Asked:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    sample = Sample(ROUTE["POST", path], {}, body, sent)
    return Asked(sample, sample._replace(body={**body, **other}))


def _delete(path: str, query: dict[str, str], other: dict[str, str]) -> Asked:
    sample = Sample(ROUTE["DELETE", path], query, None, {})
    return Asked(sample, sample._replace(query={**query, **other}))


def _line(vault: hardsave.Vault, name: str, workspace: Path | None = None) -> hardsave.Timeline:
    """A timeline with four checkpoints, of other files each."""
    line = vault.timeline(name)
    if workspace is not None:
        workspace.mkdir()
    for number in range(4):
        if workspace is not None:
            (workspace / "a.txt").write_text(f"{name} {number}")
        line.append({"messages": [f"{name} {number}"]}, workspace=workspace)
    return line


def _seq(vault: hardsave.Vault, name: str) -> int:
    head = vault.timeline(name).head
    return 0 if head is None else head.seq


# Saving


def _save(vault: hardsave.Vault, name: str, folder: Path) -> Asked:
    head = _line(vault, name).head
    assert head is not None
    body = {"timeline": name, "state": {"messages": ["new"]}, "labels": {"a": "b"}}
    return _post("/checkpoints", body, {"state": 7}, if_match=f'"{head.id}"')


def _append(vault: hardsave.Vault, name: str, folder: Path) -> Asked:
    _line(vault, name)
    body = {"timeline": name, "delta": {"messages": ["new"]}, "notes": {"n": {"$tuple": [1]}}}
    return _post("/checkpoints", body, {"delta": {"messages": ["other"]}})


def _save_files(vault: hardsave.Vault, name: str, folder: Path) -> Asked:
    _line(vault, name, folder / name)
    return _post(
        "/checkpoints", {"timeline": name, "workspace": str(folder / name)}, {"name": "other"}
    )


def _saved(vault: hardsave.Vault, name: str) -> int:
    return len(vault.timeline(name).checkpoints()) - 4


# Going back


def _operations(kind: str) -> Count:
    def count(vault: hardsave.Vault, name: str) -> int:
        found = vault.operations(name, limit=1_000)
        return len([each for each in found if each.kind == kind])

    return count


def _rewind(vault: hardsave.Vault, name: str, folder: Path) -> Asked:
    _line(vault, name)
    body = {"timeline": name, "ref": "@~1"}
    return _post("/rewind", body, {"ref": "@~2"}, if_match="*")


def _rewind_to_the_root(vault: hardsave.Vault, name: str, folder: Path) -> Asked:
    """After which the same words name nothing."""
    head = _line(vault, name).head
    assert head is not None
    body = {"timeline": name, "ref": "@~3"}
    return _post("/rewind", body, {"what": "state"}, if_match=f'"{head.id}"')


def _rewind_files(vault: hardsave.Vault, name: str, folder: Path) -> Asked:
    _line(vault, name, folder / name)
    body = {"timeline": name, "ref": "@~1", "what": "all"}
    return _post("/rewind", body, {"ref": "@~2"}, if_match="*")


def _undo(vault: hardsave.Vault, name: str, folder: Path) -> Asked:
    line = _line(vault, name)
    line.rewind("@~1")
    line.rewind("@~1")
    return _post("/undo", {"timeline": name}, {"timeline": f"{name}-other"})


def _redo(vault: hardsave.Vault, name: str, folder: Path) -> Asked:
    asked = _undo(vault, name, folder)
    for _ in range(2):
        vault.timeline(name).undo()
    sample, other = (each._replace(route=ROUTE["POST", "/redo"]) for each in asked)
    return Asked(sample, other)


def _fork(vault: hardsave.Vault, name: str, folder: Path) -> Asked:
    _line(vault, name)
    body = {"timeline": name, "ref": "@~1", "name": f"{name}-fork"}
    return _post("/fork", body, {"ref": "@"})


def _forked(vault: hardsave.Vault, name: str) -> int:
    return _operations("fork")(vault, f"{name}-fork")


def _fork_directory(vault: hardsave.Vault, name: str, folder: Path) -> Asked:
    _line(vault, name, folder / name)
    fork = f"{name}-fork"
    body = {"timeline": name, "ref": "@~1", "name": fork, "directory": fork}
    return _post("/fork", body, {"ref": "@"})


# Letting go


def _delete_head(vault: hardsave.Vault, name: str, folder: Path) -> Asked:
    _line(vault, name)
    return _delete("/checkpoint", {"timeline": name, "ref": "@"}, {"ref": ":1"})


def _delete_one(vault: hardsave.Vault, name: str, folder: Path) -> Asked:
    ref = _line(vault, name).get(":2").id
    return _delete("/checkpoint", {"ref": ref}, {"ref": f"{name}:1"})


def _deleted(vault: hardsave.Vault, name: str) -> int:
    return 4 - len(vault.timeline(name).checkpoints())


def _delete_line(vault: hardsave.Vault, name: str, folder: Path) -> Asked:
    _line(vault, name)
    return _delete("/timeline", {"timeline": name}, {"timeline": f"{name}-other"})


def _clear(vault: hardsave.Vault, name: str, folder: Path) -> Asked:
    _line(vault, name)
    return _post("/timeline/clear", {"timeline": name}, {"timeline": f"{name}-other"})


# Jobs


def _add_job(vault: hardsave.Vault, name: str, folder: Path) -> Asked:
    body = {"prompt": f"do {name}", "agent": AGENT, "workspace": str(folder)}
    return _post("/jobs", body, {"prompt": "do something else"})


def _added(vault: hardsave.Vault, name: str) -> int:
    return len([each for each in vault.jobs.find(limit=1_000) if each.text == f"do {name}"])


def _ran(vault: hardsave.Vault, name: str, *, breaks: bool = False, careful: bool = False) -> None:
    """A job that has failed, or that asks."""
    vault.jobs.add(name, f"do {name}", agent=name, max_turns=10)
    logging.disable(logging.ERROR)
    Worker(vault, {name: agent(breaks=breaks, careful=careful)}).run(until_idle=True)
    logging.disable(logging.NOTSET)


def _resume(vault: hardsave.Vault, name: str, folder: Path) -> Asked:
    _ran(vault, name, breaks=True)
    return _post("/jobs/resume", {"id": name, "max_turns": 20}, {"max_turns": 30})


def _resumed(vault: hardsave.Vault, name: str) -> int:
    return len([each for each in vault.tasks.find(limit=1_000) if each.id.startswith(f"{name}~")])


def _delete_job(vault: hardsave.Vault, name: str, folder: Path) -> Asked:
    _ran(vault, name, breaks=True)
    return _delete("/job", {"id": name}, {"id": f"{name}-other"})


def _approve(vault: hardsave.Vault, name: str, folder: Path) -> Asked:
    _ran(vault, name, careful=True)
    return _post("/jobs/approve", {"id": name}, {"question": "another?"})


def _deny(vault: hardsave.Vault, name: str, folder: Path) -> Asked:
    _ran(vault, name, careful=True)
    return _post("/jobs/deny", {"id": name, "reason": "no"}, {"reason": "not yet"})


# Tasks


def _happened(kind: str) -> Count:
    def count(vault: hardsave.Vault, name: str) -> int:
        return len([each for each in vault.tasks.history(name) if each.kind == kind])

    return count


def _cancel(vault: hardsave.Vault, name: str, folder: Path) -> Asked:
    vault.tasks.add(name)
    return _post("/tasks/cancel", {"id": name}, {"id": f"{name}-other"})


def _retry(vault: hardsave.Vault, name: str, folder: Path) -> Asked:
    vault.tasks.add(name)
    vault.tasks.cancel(name)
    return _post("/tasks/retry", {"id": name}, {"force": True})


def _answer(vault: hardsave.Vault, name: str, folder: Path) -> Asked:
    vault.tasks.add(name)
    with vault.tasks.attempt(name) as attempt:
        attempt.ask("which colour?")
    return _post("/tasks/answer", {"id": name, "answer": {"$tuple": ["red"]}}, {"answer": "blue"})


ACTS = {
    "save": Act(_save, _saved, ("id", "seq")),
    "append": Act(_append, _saved, ("id", "seq")),
    "save files": Act(_save_files, _saved, ("id", "seq", "files_id")),
    "fork": Act(_fork, _forked, ("directory",)),
    "fork into a directory": Act(_fork_directory, _forked, ("directory",)),
    "rewind": Act(_rewind, _operations("rewind"), ("timeline", "moved")),
    "rewind to the root": Act(_rewind_to_the_root, _operations("rewind"), ("timeline", "moved")),
    "rewind with files": Act(_rewind_files, _operations("rewind"), ("timeline", "moved")),
    "undo": Act(_undo, _operations("undo"), ("id", "number")),
    "redo": Act(_redo, _operations("redo"), ("id", "number")),
    "delete the head": Act(_delete_head, _deleted, ()),
    "delete a checkpoint": Act(_delete_one, _deleted, ()),
    "delete a timeline": Act(_delete_line, _operations("delete"), ("deleted",)),
    "clear a timeline": Act(_clear, _operations("clear"), ("cleared",)),
    "add a job": Act(_add_job, _added, ("id", "lineage")),
    "resume a job": Act(_resume, _resumed, ("id", "lineage")),
    "delete a job": Act(_delete_job, _operations("delete"), ()),
    "approve a call": Act(_approve, _happened("answered"), ("id", "lineage")),
    "deny a call": Act(_deny, _happened("answered"), ("id", "lineage")),
    "cancel a task": Act(_cancel, _happened("cancelled"), ("id", "generation")),
    "retry a task": Act(_retry, _happened("retried"), ("id", "generation")),
    "answer a task": Act(_answer, _happened("answered"), ("id", "generation")),
}
