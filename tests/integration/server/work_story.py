"""What the screens beside that of a session show: sessions of several agents, jobs and tasks."""

from pathlib import Path
from typing import Any

import hardsave
from hardsave.runtime.jobs.worker import Worker
from tests.unit.cli.jobs_project import agent
from tests.unit.tasks import unknown_step

AGENTS = {"breaks": agent(breaks=True), "asks": agent(careful=True), "done": agent()}
ASKS = 'may it call note({"text": "hello"})?'


def work(vault: hardsave.Vault) -> None:
    """Run what is queued, as far as it goes."""
    Worker(vault, AGENTS).run(until_idle=True)


def add_jobs(vault: hardsave.Vault, **jobs: str) -> None:
    """Jobs by their ids, each with the agent that it is for, and worked at."""
    for id, name in jobs.items():
        vault.jobs.add(id.replace("_", "-"), f"Do {id}", agent=name, max_turns=10)
    work(vault)


def ask(vault: hardsave.Vault, id: str, question: str) -> None:
    """A task that waits for an answer."""
    vault.tasks.add(id, f"Text of {id}")
    with vault.tasks.attempt(id) as attempt:
        attempt.ask(question)


def break_task(vault: hardsave.Vault, id: str) -> None:
    vault.tasks.add(id, f"Text of {id}", max_attempts=1)
    vault.tasks.claim(id).fail(OSError("the disk is full"))


def leave_step(store: str, id: str, *, asks: bool) -> None:
    """A task with a step whose end is not known."""
    unknown_step.leave(store, id)
    if asks:
        with hardsave.open(store) as vault:
            unknown_step.ask(vault, id)


def session(
    vault: hardsave.Vault, name: str, title: str, folder: Path | None = None, **how: Any
) -> None:
    """A save, with a file if there is a folder for it."""
    if folder is not None:
        (folder / f"{name}.txt").write_text(title)
    said = {"role": "user", "content": title}
    vault.timeline(name).append({"messages": [said]}, workspace=folder, title=title, **how)


def fill(vault: hardsave.Vault, store: str, folder: Path) -> None:
    """Something of everything."""
    session(vault, "claude-1", "Fix the parser", folder, metadata={"cost": 1.5})
    session(vault, "claude-2", "Write the docs", status="completed")
    session(vault, "codex-1", "Build is slow", status="failed")
    add_jobs(vault, broken="breaks", careful="asks", well="done")
    vault.jobs.add("queued", "Do queued", agent="nobody")
    ask(vault, "deploy", "Deploy to production now?")
    break_task(vault, "mail")
    leave_step(store, "push", asks=True)
