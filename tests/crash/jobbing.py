"""A worker that is killed in the middle of a job, and what is left of that job."""

import os
import signal
from dataclasses import asdict
from pathlib import Path
from typing import Any

import hardsave
from hardsave.runtime.jobs.worker import Worker
from hardsave.workspace.restore import execution
from tests.crash import looping
from tests.crash.talking import PROMPT

AT_ONCE = hardsave.Retry(first_seconds=0, max_seconds=0)


def _vault(folder: str) -> hardsave.Vault:
    return hardsave.open(f"sqlite:///{folder}/store/store.db")


def add(folder: str, **options: Any) -> None:
    with _vault(folder) as vault:
        vault.jobs.add("fix", PROMPT, workspace=Path(folder, "files"), **options)


RESTORING = {"saved": "begin", "staged": "prepared", "replaced": "finish"}
"""Where a restore is when this is about to be called: what lay there is saved; the contents are to
be written; all files are replaced."""


def work(folder: str, url: str, moment: str = "never", careful: bool = False) -> None:
    """One worker, until nothing is left to do. It may be killed while files are brought back."""
    place, when = Path(folder), looping.Moment(moment)
    if moment in RESTORING:
        setattr(execution, RESTORING[moment], _die)
    agent = looping.agent(looping.model("openai", url), place, when, careful=careful)
    with _vault(folder) as vault:
        vault.on("checkpoint_saved", when.saved)
        vault.on("task_completed", when.over)
        Worker(vault, {"default": agent}).run(until_idle=True, retry=AT_ONCE)


def _die(*given: object, **options: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def spoil(folder: str, by_a_job: bool) -> None:
    """Another run in the same directory: it changes a file, removes one and leaves one."""
    files = Path(folder, "files")
    (files / "a").write_text("changed")
    (files / "b").unlink()
    (files / "left").write_text("over")
    if by_a_job:
        with _vault(folder) as vault:
            vault.timeline("other").save({"by": "another job"}, workspace=files)


def undone(folder: str) -> dict[str, str]:
    """The files after the restore was taken back."""
    with _vault(folder) as vault:
        vault.timeline("fix").undo()
    return {path.name: path.read_text() for path in Path(folder, "files").iterdir()}


def look(folder: str) -> dict[str, Any]:
    """The job as somebody sees it who comes by; and what its conversation holds."""
    with _vault(folder) as vault:
        jobs = vault.jobs
        job = jobs.get("fix")
        state = vault.timeline("fix").load() if job.checkpoint else {"calls": {}, "messages": []}
        return {
            **{
                name: getattr(job, name)
                for name in ("id", "state", "turns", "percent", "can_resume", "question", "output")
            },
            "attempts": job.attempts,
            "calls": state["calls"],
            "messages": len(state["messages"]),
            "health": jobs.health().as_dict(),
            "spec": {**asdict(job.spec)},
        }


def left(folder: str) -> dict[str, Any]:
    """What is there of a job that was to be purged."""
    with _vault(folder) as vault:
        purges = [task for task in vault.tasks.find(state="completed") if task.id == "fix/purge"]
        saved = len(vault.timeline("fix"))
        return {"saved": saved, "purges": [task.result for task in purges]}


def resume(folder: str) -> str:
    with _vault(folder) as vault:
        return vault.jobs.resume("fix").id


def answer(folder: str, allowed: bool) -> None:
    with _vault(folder) as vault:
        jobs = vault.jobs
        if allowed:
            jobs.approve("fix")
        else:
            jobs.deny("fix", "too dear")
