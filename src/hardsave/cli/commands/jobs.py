"""`hardsave jobs …`: the jobs of agents, from a terminal."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hardsave import Checkpoint, wording
from hardsave.cli.arguments import JOB, REF, one_of
from hardsave.cli.command import ALSO_REMOTE, command
from hardsave.cli.render import job_lines
from hardsave.cli.session import Session
from hardsave.errors import HardsaveError
from hardsave.values import messages
from hardsave.values.spelling import to_json
from hardsave.vault.jobs import spec as specs
from hardsave.vault.workspaces import projects

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hardsave import Job


@command(
    "list",
    examples="""
        hardsave jobs list
        hardsave jobs list --all --json
        hardsave jobs list --health
        hardsave jobs list --server http://localhost:8765
    """,
    takes=ALSO_REMOTE,
)
@click.option("--all", "every", is_flag=True, help="Also jobs that are over for good.")
@click.option("--health", "in_numbers", is_flag=True, help="How many, how stale, how near a limit.")
def list_(session: Session, every: bool, in_numbers: bool) -> None:
    """List the jobs that are not over, or can be resumed; --all lists every job."""
    one_of(all=every, health=in_numbers)
    if in_numbers:
        health = session.jobs.health().as_dict()
        session.out.result(
            lambda: health, lambda: [f"{name}: {number}" for name, number in health.items()]
        )
        return
    found = [job for job in session.jobs.every() if every or job.can_go_on]
    session.out.result(
        lambda: [job_lines.as_data(job) for job in found],
        lambda: job_lines.rows(found, session.now),
    )
    if not found:
        none = "no job is queued, under way or to be resumed; --all shows every job"
        session.out.say("there are no jobs" if every else none)


@command(
    "submit",
    examples="""
        hardsave jobs submit fix-1 --prompt "Fix the failing test"
        hardsave jobs submit fix-1 --prompt "Fix it" --agent coder --max-turns 80 --retries 2
    """,
    takes=ALSO_REMOTE,
)
@click.argument("job")
@click.option("--prompt", required=True, help="What its agent is asked to do.")
@click.option("--agent", default="default", show_default=True, help="Its name with the worker.")
@click.option("--max-turns", type=click.IntRange(1), default=50, show_default=True)
@click.option(
    "--retries",
    type=click.IntRange(0, 99),
    default=0,
    show_default=True,
    help="How often it goes on by itself after it failed, or after its worker died; on a store "
    "that machines share it also survives three deaths of workers.",
)
@click.option("--callback", metavar="URL", help="Told when it is over.")
def submit(
    session: Session, job: str, prompt: str, agent: str, max_turns: int, retries: int, callback: str
) -> None:
    """Queue a job for an agent, in this workspace.

    A worker takes it up: 'hardsave worker', or one of your own. One that is queued already is
    left as it is.
    """
    session.may_create_store = True
    added = session.jobs.add(
        job,
        prompt,
        agent=agent,
        workspace=_workspace(session),
        max_turns=max_turns,
        retries=retries,
        callback=callback,
    )
    session.out.result(
        lambda: job_lines.as_data(added), lambda: [f"{wording.shown(added.id)}: {added.state}"]
    )
    _say_who_runs_it(session, added)


def _workspace(session: Session) -> Path:
    """Where the job works; for a server, a directory of its machine that has the same path."""
    return session.directory if session.remote is None else projects.root(os.environ, Path.cwd())


def _say_who_runs_it(session: Session, job: "Job") -> None:
    if job.is_unserved:
        what = f"no worker has agent {job.spec.agent!r} now; start one with"
        session.hint_here(what, "worker", "--agents", "agents.py:AGENTS")
    elif job.spec.agent == specs.OWN_PROGRAM:
        session.out.say(f"{wording.shown(job.id)}: {job.why_not}")


@command(
    "show",
    examples="""
        hardsave jobs show fix-1
        hardsave jobs show fix-1 --verbose
    """,
    takes=ALSO_REMOTE,
)
@click.argument("job", type=JOB)
@click.option("--verbose", "-v", is_flag=True, help="The messages, too.")
def show(session: Session, job: str, verbose: bool) -> None:
    """Show one job: how far it is, what was said, which tools it called."""
    found = session.jobs.get(job)
    vault = session.vault if session.remote is None else session.remote
    head = vault.timeline(found.lineage).head
    said = None if head is None else messages.of(head.state)
    items = [] if said is None else list(said[1])
    session.out.result(
        lambda: _inspected(found, items, verbose=verbose),
        lambda: _lines(session, found, items, verbose=verbose),
        paged=True,
    )
    if found.is_over and isinstance(head, Checkpoint) and head.files is not None:
        _say_where_files_are(session, found, session.where(head.files))


def _say_where_files_are(session: Session, job: "Job", where: str) -> None:
    """Where hosts share a store, a job works in a directory of its own."""
    if where != str(session.directory):
        session.out.hint("bring its files here with", "rewind", job.lineage, "--into", ".")


def _inspected(job: "Job", items: list[Any], *, verbose: bool) -> dict[str, Any]:
    roles, tools = messages.counted(items)
    counts = {"message_counts": dict(roles), "tool_counts": dict(tools)}
    return {
        **job_lines.as_data(job),
        **counts,
        **({"conversation": to_json(items)} if verbose else {}),
    }


def _lines(
    session: Session, job: "Job", items: list[Any], *, verbose: bool
) -> "Iterator[RenderableType]":
    from rich.text import Text

    from hardsave.cli.render import draw

    yield from job_lines.page(job, session.now)
    roles, tools = messages.counted(items)
    yield Text()
    yield draw.line((wording.count(len(items), "message"), "name"), f"  {_tally(roles)}")
    if tools:
        called = wording.count(tools.total(), "tool call")
        yield draw.line((called, "name"), f"  {_tally(tools)}")
    for item in items if verbose else ():
        yield from draw.message(messages.read(item), full=True)


def _tally(counts: Any) -> str:
    return ", ".join(f"{number} {wording.shown(name)}" for name, number in counts.most_common())


@command(
    "resume",
    examples="""
        hardsave jobs resume fix-1
        hardsave jobs resume fix-1 --from @~4
        hardsave jobs resume fix-1 --max-turns 100
        hardsave jobs resume fix-1 --callback https://example.org/told
    """,
    takes=ALSO_REMOTE,
)
@click.argument("job", type=JOB)
@click.option("--from", "ref", type=REF, metavar="REF", help="From an earlier checkpoint of it.")
@click.option("--max-turns", type=click.IntRange(1), help="How many turns it has from now on.")
@click.option("--callback", metavar="URL", help="Told when it is over, instead of its own.")
@click.option("--keep-files", is_flag=True, help="Go on with the files as they lie there now.")
def resume(
    session: Session,
    job: str,
    ref: str | None,
    max_turns: int | None,
    callback: str | None,
    keep_files: bool,
) -> None:
    """Queue a job again that failed or was killed; it goes on where it was.

    Its directory gets the files of its last save; what lies there is saved before. A worker
    takes it up: 'hardsave worker', or one of your own.
    """
    jobs = session.jobs
    before = jobs.get(job)
    if before.can_resume and not keep_files and session.remote is None:
        _say_which_files_change(session, before, ref)
    resumed = jobs.resume(
        job, from_ref=ref, max_turns=max_turns, callback=callback, keep_files=keep_files
    )
    ids = f"{wording.shown(before.id)} goes on as {wording.shown(resumed.id)}"
    session.out.result(
        lambda: {"from": before.id, "turn": resumed.turns, **job_lines.as_data(resumed)},
        lambda: [f"{ids}, from turn {resumed.turns} of {resumed.max_turns}"],
    )
    _say_who_runs_it(session, resumed)


def _say_which_files_change(session: Session, job: "Job", ref: str | None) -> None:
    """A user may have mended a file by hand: the worker will put that aside."""
    from hardsave.runtime.jobs.files import differing

    try:
        with session.out.busy("looking at its files"):
            found = differing(session.vault, job, ref)
    except HardsaveError as error:  # its worker looks again, and says so
        session.out.say(f"its files cannot be looked at: {wording.in_our_words(str(error))}")
        return
    if found:
        session.out.say(
            f"{wording.shown(found.workspace)} is not as its last save left it: its worker saves "
            f"what is there, then restores its own files ({found})",
            "to go on with the files as they are, resume it with --keep-files",
        )


@command(
    "approve",
    examples="""
        hardsave jobs approve fix-1
    """,
    takes=ALSO_REMOTE,
)
@click.argument("job", type=JOB)
def approve(session: Session, job: str) -> None:
    """Let a job make the call that it has asked about."""
    jobs = session.jobs
    question = jobs.get(job).question
    _answered(session, jobs.approve(job), question, "approved")


@command(
    "deny",
    examples="""
        hardsave jobs deny fix-1
        hardsave jobs deny fix-1 --because too-dear
    """,
    takes=ALSO_REMOTE,
)
@click.argument("job", type=JOB)
@click.option("--because", metavar="REASON", default="", help="Told the agent.")
def deny(session: Session, job: str, because: str) -> None:
    """Let a job go on without the call that it has asked about."""
    jobs = session.jobs
    question = jobs.get(job).question
    _answered(session, jobs.deny(job, because), question, "denied")


def _answered(session: Session, job: "Job", question: str | None, what: str) -> None:
    session.out.result(
        lambda: {"answer": what, "question": question, **job_lines.as_data(job)},
        lambda: [f"{what}: {wording.line(question or '', 300)}"],
    )
    session.out.say(f"{wording.shown(job.id)} goes on when a worker takes it up")


@command(
    "delete",
    examples="""
        hardsave jobs delete fix-1
    """,
    takes=ALSO_REMOTE,
)
@click.argument("job", type=JOB)
def delete(session: Session, job: str) -> None:
    """Delete a job: it is taken out of the queue, and cannot be resumed.

    What was saved of it is hidden, and undo brings it back. A job that a worker is at work on is
    stopped by 'hardsave tasks cancel'.
    """
    gone = session.jobs.delete(job)
    what = "deleted" if gone.is_over else "deleted, and taken out of the queue"
    session.out.result(
        lambda: {"deleted": job_lines.as_data(gone)},
        lambda: [f"{wording.shown(gone.id)}: {what}"],
    )
    if gone.checkpoint is not None:
        session.hint_undo(gone.lineage)
    else:
        session.hint_here("put it back with", "tasks", "retry", gone.id)


COMMANDS = {
    "list": list_,
    "submit": submit,
    "show": show,
    "resume": resume,
    "approve": approve,
    "deny": deny,
    "delete": delete,
}
