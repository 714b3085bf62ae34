"""`hardsave jobs watch`: how a job goes on, line by line, until it is over."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from hardsave import wording
from hardsave.cli.arguments import JOB
from hardsave.cli.command import ALSO_REMOTE, command
from hardsave.cli.errors import Exit
from hardsave.cli.render import job_lines
from hardsave.cli.session import Session
from hardsave.errors import NotFound
from hardsave.values import messages
from hardsave.vault.jobs import spec as specs
from hardsave.vault.jobs import state as states

if TYPE_CHECKING:
    from hardsave import Job
    from hardsave.client import RemoteMessage, RemoteVault

LOOK_SECONDS = 0.2
LOOK_THERE_SECONDS = 1.0  # at a server
SWEEP_SECONDS = 2.0
"""A worker that dies writes nothing: so often the job is looked at in any case."""


@command(
    "watch",
    examples="""
        hardsave jobs watch fix-1
        hardsave jobs watch fix-1 --json
    """,
    takes=ALSO_REMOTE,
)
@click.argument("job", type=JOB)
def watch(session: Session, job: str) -> Exit | None:
    """Show how a job goes on, until it is over.

    One line for each change. The exit code is 0 if it has succeeded. Ctrl-C ends the watching,
    and leaves the job alone.
    """
    last: Job | None = None
    for last, said in _changes(session, job):
        session.out.event(
            lambda now=last, said=said: {**job_lines.as_data(now), "last_message": said},  # type: ignore[misc] # bound now
            lambda now=last, said=said: job_lines.watched(now, said),  # type: ignore[misc] # bound now
        )
        _say_what_it_waits_for(session, last)
    assert last is not None
    if not _is_over(last):
        session.out.say(f"{wording.shown(last.id)} is gone: what was saved of it was deleted")
    return None if last.state == "succeeded" else Exit.FAILED


def _changes(session: Session, id: str) -> "Iterator[tuple[Job, str | None]]":
    """The job and what was said last in it, now and after each change, until it is over."""
    job = session.jobs.get(id)
    said = _last_message(session, job)
    yield job, said
    for _ in _looks(session, job):
        before = job, said
        try:
            job = session.jobs.get(job.lineage)
        except NotFound:
            return  # deleted meanwhile
        said = _last_message(session, job)
        if _shown(job, said) != _shown(*before):
            yield job, said
        if _is_over(job):
            return


def _is_over(job: "Job") -> bool:
    """Whether nothing more is to come. A job without a task may be run by a program of its own; it
    counts as over when that has not saved for an hour."""
    is_run_elsewhere = job.state == "forgotten" and not states.is_stale(job, datetime.now(UTC))
    return job.is_over and not is_run_elsewhere


def _looks(session: Session, job: "Job") -> Iterator[None]:
    """When to look again: something happened to the job, or it may have lost its worker."""
    if _is_over(job):
        return
    remote = session.remote
    following = session.vault.follow() if remote is None else remote.follow()
    due = 0.0  # something may have happened before it followed
    while True:
        happened = following.read()
        if time.monotonic() >= due or any(_is_about(event, job) for event in happened):
            due = time.monotonic() + SWEEP_SECONDS
            yield
        time.sleep(LOOK_SECONDS if remote is None else LOOK_THERE_SECONDS)


def _is_about(event: Any, job: "Job") -> bool:
    return job.lineage in (event.timeline, event.task and specs.parse(event.task).lineage)


def _shown(job: "Job", said: str | None) -> tuple[Any, ...]:
    """What a line is about: another one is printed when this is another."""
    waits = job.is_unserved or job.question
    return job.id, job.state, job.turns, job.messages, waits, job.attempts, job.error, said


def _last_message(session: Session, job: "Job") -> str | None:
    """What was said last: a text, or the tools that were called."""
    read = _newest_there(session.remote, job) if session.remote else _newest(session, job)
    if read is None:
        return None
    called = ", ".join(call.tool for call in read.calls)
    return read.text or (f"calls {called}" if called else None) or "\n".join(read.results) or None


def _newest(session: Session, job: "Job") -> messages.Message | None:
    head = session.vault.timeline(job.lineage).head
    found = None if head is None else messages.of(head.state)
    return messages.read(found[1][-1]) if found is not None and len(found[1]) else None


def _newest_there(remote: "RemoteVault", job: "Job") -> "RemoteMessage | None":
    head = remote.timeline(job.lineage).head
    found = () if head is None else head.messages(-1, 1)
    return found[0] if found else None


def _say_what_it_waits_for(session: Session, job: "Job") -> None:
    name = wording.shown(job.id)
    if job.state == "waiting":
        session.out.say(f"it asks: {wording.line(job.question or '', 300)}")
        session.out.hint("answer it with", "jobs", "approve", job.id)
    elif job.is_unserved:
        session.out.say(f"{name}: {wording.in_our_words(job.why_not or '')}")
        session.hint_here("start one with", "worker", "--agents", "agents.py:AGENTS")
    elif job.state == "queued" and job.spec.agent == specs.OWN_PROGRAM:
        session.out.say(f"{name}: {wording.in_our_words(job.why_not or '')}")
    elif not _is_over(job) and job.is_over:
        session.out.say("no task is about it: shown is what a program of its own saves")
    elif job.can_resume:
        session.out.hint("it can go on with", "jobs", "resume", job.id)


COMMANDS = {"watch": watch}
