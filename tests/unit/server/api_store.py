"""A store with something of everything that `/api/v1` tells of, and what each act may be done to.

Each act has things of its own, so that it can be done whatever was done before. All texts begin
with the same word: where an answer has it, the answer tells of this store.
"""

import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import hardsave
from hardsave.runtime.jobs.worker import Worker
from hardsave.tasks.steps import unknown_question
from tests.unit.cli.jobs_project import agent

ALICES = "alices"
BYTES_NAME = os.fsdecode(b"caf\xe9.txt")  # no UTF-8
FAR = datetime(2100, 1, 1, tzinfo=UTC)
_GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, **os.environ}


class Things(NamedTuple):
    """Names and ids of what is there. Those of `lost()` are of the same kind, and are not there."""

    word: str
    folder: str
    ids: dict[str, str]  # of checkpoints, by their names here
    questions: dict[str, str]

    def __call__(self, name: str) -> str:
        """The name of a timeline, a job, a task, a text."""
        return f"{self.word}-{name}"

    def lost(self) -> "Things":
        ids = {name: id[:-6] + "ffffff" for name, id in self.ids.items()}
        return Things("nosuch", f"{self.folder}-nosuch", ids, self.questions)


def populate(vault: hardsave.Vault, folder: Path) -> Things:
    """Fill a store; `folder` becomes a workspace, with a repository."""
    _repository(folder)
    ids: dict[str, str] = {}
    things = Things(ALICES, str(folder), ids, {})
    _conversation(vault, things, folder)
    _timelines(vault, things, folder)
    _tasks(vault, things)
    _jobs(vault, things)
    _changed(folder)
    return things


def _changed(folder: Path) -> None:
    """The present differs from what was saved: a new file, another branch, a directory with an
    ignored file where a file was."""
    (folder / "new.txt").write_text("alices-new\n")
    (folder / "old.txt").mkdir()
    (folder / "old.txt" / ".env").write_text("KEY=alices-key\n")
    subprocess.run(["git", "checkout", "-q", "-b", "other"], cwd=folder, env=_GIT, check=True)


def _repository(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for command in (
        ["git", "init", "-q", "-b", "trunk"],
        [
            *("git", "-c", "user.name=x", "-c", "user.email=x@example.org"),
            *("commit", "-q", "--allow-empty", "-m", "begin"),
        ],
    ):
        subprocess.run(command, cwd=folder, env=_GIT, check=True)
    (folder / ".gitignore").write_text(".env\n")
    (folder / ".env").write_text("KEY=alices-key\n")


def _conversation(vault: hardsave.Vault, things: Things, folder: Path) -> None:
    """`main`: messages, calls, files, labels, notes; a second one of other files."""
    line = vault.timeline(things("main"))
    (folder / "src").mkdir()
    (folder / "src" / "app.py").write_text("print('alices-app')\n")
    (folder / "src" / BYTES_NAME).write_text("alices-bytes\n")
    (folder / "link").symlink_to("src/app.py")
    (folder / "old.txt").write_text("alices-old\n")
    os.mkfifo(folder / "pipe")  # is not captured
    asked = {"role": "user", "content": "alices-prompt " + "x" * 5_000}
    call = {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "alices-said"},
            {"type": "tool_use", "id": "c1", "name": "edit", "input": {"path": "src/app.py"}},
        ],
    }
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "alices-result"}
    told: dict[str, Any] = {
        "metadata": {"model": "m", "raw": b"\xff"},
        "labels": {"issue": things("7")},
        "notes": {"n": {"set": {1, 2}}},
    }
    first = line.save(
        {"messages": [asked], "plan": (1, 2), "draft": {"a": 1}},
        name=things("first"),
        workspace=folder,
        title=things("title"),
        **told,
    )
    (folder / "src" / "app.py").write_text("print('alices-changed')\n")
    (folder / "old.txt").unlink()
    (folder / "more").mkdir()
    (folder / "more" / "b.txt").write_text("alices-b\n" * 100)
    second = line.save(
        {"messages": [asked, call, {"role": "user", "content": [result]}], "plan": 7},
        workspace=folder,
        status="waiting",
        description=things("description"),
        metadata={"cost": 1.5},
        step=hardsave.StepSummary(
            said=things("said"), call="Bash(git push)", phase="after", outside=("git push",)
        ),
    )
    things.ids.update(first=first.id, second=second.id)


def _timelines(vault: hardsave.Vault, things: Things, folder: Path) -> None:
    """One for each act, and what acts leave behind."""
    for name in ("clear", "delete", "delete-one", "fork", "save", "purge"):
        line = vault.timeline(things(name))
        saved = [line.save({"messages": [things(f"{name} {number}")]}) for number in range(3)]
        things.ids[name] = saved[-1].id
    for name in ("rewind", "rewind-files", "undo", "redo"):
        place = folder.with_name(f"{folder.name}-{name}")
        _rewindable(vault, things, name, place)
    forked = vault.timeline(things("main")).fork(things.ids["first"], name=things("forked"))
    forked.append({"messages": [things("forked")]})
    for name in ("undo", "redo"):
        vault.timeline(things(name)).rewind(":1")
    vault.timeline(things("redo")).undo()
    gone = vault.timeline(things("gone"))
    things.ids["gone"] = gone.save({"messages": [things("gone")]}).id
    gone.delete()
    old = vault.timeline(things("old"))
    things.ids["old"] = old.save({"n": 1}).id
    for number in range(3):
        old.save({"n": number})


def _rewindable(vault: hardsave.Vault, things: Things, name: str, place: Path) -> None:
    """A timeline with files of its own, which have changed since, and an ignored one that is gone;
    and a task that has saved there."""
    place.mkdir()
    (place / ".gitignore").write_text(".env\n")
    (place / ".env").write_text("1")
    for path in ("a.txt", "gone.txt"):
        (place / path).write_text("alices-1")
    line = vault.timeline(things(name))
    things.ids[f"{name}-first"] = line.save({"messages": [things("1")]}, workspace=place).id
    vault.tasks.add(things(f"of-{name}"))
    with vault.tasks.attempt(things(f"of-{name}")) as attempt:
        attempt.step("length", len, "abc")
        (place / "a.txt").write_text("alices-2")
        (place / "b.txt").write_text("alices-2")
        (place / "gone.txt").unlink()
        saved = line.save({"messages": [things("1"), things("2")]}, workspace=place)
    things.ids[name] = saved.id
    (place / ".env").unlink()


def _tasks(vault: hardsave.Vault, things: Things) -> None:
    tasks = vault.tasks
    tasks.add(things("done"), things("text"), metadata={"m": b"\xff"}, priority=3)
    with tasks.attempt(things("done")) as attempt:
        attempt.progress(2, 3)
        attempt.step("sum", sum, (1, 2), unknown="ask")
        attempt.complete({"result": (things("result"), 1 << 70)})
    for name in ("retry", "failed"):
        tasks.add(things(name), max_attempts=1)
        tasks.claim(things(name)).fail(OSError(things("error")))
    for name in ("cancel", "later"):
        tasks.add(things(name), not_before=FAR, after=[things("done")])
    tasks.add(things("waits"), after=[things("later")])
    for name in ("answer", "asks"):
        tasks.add(things(name))
        _ask(vault, things, name, things(f"question-{name}"))
    tasks.add(things("unknown"))
    _ask(vault, things, "unknown", unknown_question(things("step")))


def _ask(vault: hardsave.Vault, things: Things, name: str, question: str) -> None:
    things.questions[name] = question

    def ask(attempt: hardsave.Attempt) -> None:
        attempt.ask(things.questions[name])

    with vault.tasks.runner(things("runner")) as runner:
        runner.run(ask, until_idle=True, wants=_only(things(name)))


def _only(id: str) -> Callable[[hardsave.Task], bool]:
    return lambda task: task.id == id


def _jobs(vault: hardsave.Vault, things: Things) -> None:
    """Jobs that have failed, that ask, that are done, that wait."""
    jobs = vault.jobs
    broken, careful = ("fix", "resume", "delete-job", "resumed"), ("approve", "deny", "ask-job")
    for name in (*broken, *careful, "well"):
        kind = "fix" if name in broken else "asks" if name in careful else "done"
        jobs.add(things(name), things(f"prompt {name}"), agent=kind, max_turns=10)
    agents = {"fix": agent(breaks=True), "asks": agent(careful=True), "done": agent()}
    Worker(vault, agents).run(until_idle=True)
    jobs.resume(things("resumed"))
    jobs.add(things("new"), things("prompt new"), workspace=things.folder, about={"x": b"\xff"})
    things.questions.update({name: jobs.get(things(name)).question or "" for name in careful})
