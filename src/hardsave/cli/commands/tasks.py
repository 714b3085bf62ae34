"""`hardsave tasks …`: durable tasks, from a terminal."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hardsave import wording
from hardsave.cli.arguments import PROGRAM, TASK
from hardsave.cli.command import command
from hardsave.cli.errors import Exit
from hardsave.cli.render import times
from hardsave.cli.session import Session
from hardsave.config import project_root
from hardsave.errors import Misuse
from hardsave.objects import depth
from hardsave.tasks.settings import PROFILES, of_project
from hardsave.tasks.states import STATES
from hardsave.vault import json_data

if TYPE_CHECKING:
    from hardsave import Task

LIMIT = 50
SHOWN = ("max_attempts", "keep_completed", "cleanup_every", "recovery")
ID = click.argument("id", type=TASK)


@command(
    "list",
    examples="""
        hardsave tasks list
        hardsave tasks list --state failed --json
    """,
)
@click.option("--state", type=click.Choice(STATES), help="Only those in this state.")
@click.option("-n", "--limit", type=click.IntRange(1), default=LIMIT, show_default=True)
@click.option("--after", metavar="CURSOR", help="Go on behind a page, as its last line says.")
def list_(session: Session, state: str | None, limit: int, after: str | None) -> None:
    """List tasks, in the order they were added."""
    tasks = session.vault.tasks
    shown, stats = tasks.find(state=state, limit=limit, after=after), tasks.stats()

    def lines() -> Any:
        from hardsave.cli.render import task_lines

        return task_lines.rows(shown, session.now, task_lines.given_up(tasks, shown))

    session.out.result(lambda: [json_data.task(each) for each in shown], lines, paged=True)
    if not session.out.as_json:
        from hardsave.cli.render import task_lines

        session.out.say(task_lines.counted(stats))
        if shown.next is not None:
            session.out.hint("more", *_next_page(shown.next, state, limit))


def _next_page(cursor: str, state: str | None, limit: int) -> list[str]:
    """What to type to see the next page, with the same filters."""
    narrow = [] if state is None else ["--state", state]
    count = [] if limit == LIMIT else ["-n", str(limit)]
    return ["tasks", "list", *narrow, *count, "--after", cursor]


@command(
    "add",
    examples="""
        hardsave tasks add fix-parser "Fix the parser"
        hardsave tasks add deploy --after build --after test --priority 5
        hardsave tasks add nightly --not-before 2026-01-31T02:00 --metadata '{"model": "m"}'
    """,
)
@click.argument("id")
@click.argument("text", default="")
@click.option("--key", metavar="K", help="What makes two tasks the same.  [default: the text]")
@click.option("--max-attempts", type=click.IntRange(1, 100), metavar="N")
@click.option("--priority", type=int, default=0, metavar="N", help="Higher ones come first.")
@click.option("--not-before", metavar="T", help="In 2h, at 14:00, or at 2026-01-31T14:00.")
@click.option("--after", multiple=True, metavar="ID", type=TASK, help="Once this is completed.")
@click.option("--metadata", metavar="JSON", help="A JSON object to keep with it.")
def add(
    session: Session, id: str, text: str, not_before: str | None, metadata: str | None, **given: Any
) -> None:
    """Add a task, unless it is there already.

    By its id, or by its key. One that has failed and has attempts left is put back to work.
    """
    session.may_create_store = True
    moment = None if not_before is None else times.coming(not_before, session.now)
    task = session.vault.tasks.add(
        id, text, not_before=moment, metadata=_metadata(metadata), **given
    )
    said = "added" if task.is_new else "is there already:"
    kept = f"; its text stays: {wording.line(task.text, 60)}" if text not in ("", task.text) else ""
    _answer(
        session, task, f"{said} {wording.shown(task.id)}, {task.state}{kept}", is_new=task.is_new
    )


def _metadata(given: str | None) -> dict[str, Any] | None:
    if given is None:
        return None
    try:
        found = depth.loads(given)
    except ValueError as error:
        raise Misuse(f"--metadata is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise Misuse(f"--metadata is a JSON object, not {wording.line(given, 60)!r}")
    return found


@command(
    "show",
    examples="""
        hardsave tasks show fix-parser
        hardsave tasks show fix-parser --history
    """,
)
@ID
@click.option("--history", is_flag=True, help="All that happened to it, with every error.")
def show(session: Session, id: str, history: bool) -> None:
    """Show one task, and what happened to it."""
    tasks = session.vault.tasks
    task = tasks.get(id)
    past = tasks.history(id) if history else []

    def lines() -> Any:
        from hardsave.cli.render import task_lines

        yield from task_lines.page(task, session.now)
        yield from task_lines.history(past)

    also = {"history": [json_data.happening(each) for each in past]} if history else {}
    session.out.result(lambda: {**json_data.task(task), **also}, lines, paged=True)


@command(
    "start",
    examples="""
        hardsave tasks start fix-parser -- make test
        hardsave tasks start fix-parser --force -- ./agent.sh
        hardsave tasks start fix-parser --force
    """,
)
@ID
@click.argument("program", nargs=-1, type=PROGRAM)
@click.option("--force", is_flag=True, help="Also if it is completed, or not due: from its start.")
def start(session: Session, id: str, program: tuple[str, ...], force: bool) -> Exit | None:
    """Run a command as an attempt at a task.

    The command's end is the attempt's: exit code 0 completes the task, any other fails it. It
    finds the task's id in HARDSAVE_TASK. Without a command, what is over is put back to work, for
    whichever runner is next.
    """
    tasks = session.vault.tasks
    if not program:
        task = tasks.get(id)
        if task.state != "pending":
            task = tasks.retry(id, force=force)
        _answer(session, task, _pending(task, session))
        return None
    from hardsave.cli.child_process import check, run  # with subprocess

    check(program[0])  # before it is an attempt
    with tasks.attempt(id, force=force) as attempt:
        code = run(program, {"HARDSAVE_TASK": id}, attempt.child_lock())
        if code == 0:
            attempt.complete({"exit": 0})
        else:
            attempt.fail(f"{program[0]} ended with exit code {code}")
    task = tasks.get(id)
    why = f": {wording.line(task.error or '')}" if code else ""
    _answer(session, task, f"{wording.shown(id)} is {task.state}{why}")
    return Exit.DONE if code == 0 else Exit.FAILED


@command(
    "retry",
    examples="""
        hardsave tasks retry fix-parser
        hardsave tasks retry fix-parser --unknown skip
    """,
)
@ID
@click.option(
    "--unknown",
    type=click.Choice(["retry", "skip"]),
    help="What to do about steps that were begun and not ended.",
)
@click.option("--force", is_flag=True, help="Also if it is completed: it starts over.")
def retry(session: Session, id: str, unknown: Any, force: bool) -> None:
    """Put a failed or rolled back task back to work.

    It gets one more attempt if it has none left. A rolled back one starts over.
    """
    task = session.vault.tasks.retry(id, unknown=unknown, force=force)
    _answer(session, task, _pending(task, session))


@command(
    "cancel",
    examples="""
        hardsave tasks cancel fix-parser
    """,
)
@ID
def cancel(session: Session, id: str) -> None:
    """Let a task not run, or not any further.

    An attempt under way cannot write any more. 'hardsave tasks retry' puts it back to work.
    """
    task = session.vault.tasks.cancel(id)
    _answer(session, task, f"{wording.shown(id)} is cancelled")


@command(
    "answer",
    examples="""
        hardsave tasks answer deploy yes
        hardsave tasks answer deploy '{"to": "staging"}'
        hardsave tasks answer pay retry
    """,
)
@ID
@click.argument("answer")
def answer(session: Session, id: str, answer: str) -> None:
    """Answer what a task has asked; it goes on with that.

    ANSWER is JSON, or else a text. A step whose end is unknown is answered with retry,
    skip or fail.
    """
    task = session.vault.tasks.answer(id, _value(answer))
    _answer(session, task, f"{wording.shown(id)} is {task.state}")


@command(
    "recover",
    examples="""
        hardsave tasks recover
        hardsave tasks recover --dry-run --json
    """,
)
@click.option("--dry-run", is_flag=True, help="Only tell what was interrupted.")
@click.option("--take-over", is_flag=True, help="Take sessions on other machines for dead.")
def recover(session: Session, dry_run: bool, take_over: bool) -> None:
    """Put tasks of dead processes back to work, and tell what happened.

    Runners do this by themselves, when they start and while they run: it is for looking, and for
    when none is to start.
    """
    found = session.vault.tasks.recover(take_over=take_over, dry_run=dry_run)
    session.out.result(
        lambda: json_data.recovery(found, dry_run=dry_run),
        lambda: wording.passage(str(found)).splitlines(),
    )


@command(
    "settings",
    examples="""
        hardsave tasks settings
        hardsave tasks settings --profile production
    """,
    takes=("--json", "-C"),
)
@click.option("--profile", type=click.Choice([*PROFILES]), help="What this profile would set.")
def settings(session: Session, profile: str | None) -> None:
    """Show the settings that tasks are run with here.

    They come from this project's hardsave.yaml, and from the user's own file, config.yaml in the
    folder hardsave of the user's configuration.
    """
    found = PROFILES[profile] if profile else of_project(project_root(Path.cwd()), os.environ)
    shown = {name: getattr(found, name) for name in SHOWN}
    session.out.result(lambda: shown, lambda: [f"{name}: {value}" for name, value in shown.items()])


def _pending(task: "Task", session: Session) -> str:
    """What has to happen before a runner begins it."""
    from hardsave.cli.render import task_lines

    over = task_lines.given_up(session.vault.tasks, [task])
    waits = task_lines.waits(task, session.now, over) or "the next runner begins it"
    return f"{wording.shown(task.id)} is pending; {waits}"


def _value(given: str) -> Any:
    try:
        return depth.loads(given)
    except ValueError:
        return given


def _answer(session: Session, task: "Task", said: str, **also: Any) -> None:
    session.out.result(lambda: {**json_data.task(task), **also}, lambda: [said])


COMMANDS = {
    "list": list_,
    "add": add,
    "show": show,
    "start": start,
    "retry": retry,
    "cancel": cancel,
    "answer": answer,
    "recover": recover,
    "settings": settings,
}
