"""`hardsave rewind`: shows what would happen, asks, does it, and says how to take it back."""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from hardsave import Checkpoint, Rewind
from hardsave.cli import changes, data, messages, moments, words
from hardsave.cli.arguments import REF
from hardsave.cli.command import YES, command
from hardsave.cli.errors import Exit
from hardsave.cli.session import Session
from hardsave.errors import Misuse
from hardsave.workspace import reading

if TYPE_CHECKING:
    from rich.text import Text

What = Literal["all", "state", "files"]


@command(
    "rewind",
    examples="""
        hardsave rewind                        choose from a list
        hardsave rewind @~2 --dry-run
        hardsave rewind plan-ready
        hardsave rewind main:7 --files --path src --yes
        hardsave rewind --status passed --before 2h
    """,
)
@click.argument("ref", type=REF, required=False)
@click.option("--state", "what", flag_value="state", help="Only the state.")
@click.option("--files", "what", flag_value="files", help="Only the files; the head stays.")
@click.option(
    "--path", "paths", multiple=True, metavar="P", help="Only this file or directory; repeatable."
)
@click.option("--mine", "scope", flag_value="mine", help="Only what this timeline has changed.")
@click.option("--everyone", "scope", flag_value="everyone", help="What other timelines did, too.")
@click.option("--git", is_flag=True, help="Bring HEAD, branch and index back too.")
@click.option("--status", metavar="S", help="To the latest checkpoint with this status.")
@click.option("--before", metavar="T", help="To the latest from before: 2h, 3d, 2026-01-31T14:00.")
@click.option("--dry-run", is_flag=True, help="Show what would happen, and stop.")
@YES
def rewind(
    session: Session,
    ref: str | None,
    what: What | None,
    paths: tuple[str, ...],
    scope: Literal["mine", "everyone"] | None,
    status: str | None,
    before: str | None,
    git: bool,
    dry_run: bool,
    yes: bool,
) -> Exit | None:
    """Take state, files or both back to a checkpoint.

    Removes nothing: what is there is saved first, and 'hardsave undo' brings it back. Without REF
    it opens a list to choose from. With --path only these files come back, and the head stays.
    """
    how: dict[str, Any] = {"what": what or "all", "scope": scope, "git": git}
    if paths:
        how["paths"] = [_inside(session.directory, path) for path in paths]
    if ref is None and status is None and before is None:
        chosen = _picked(session, how["what"])
        if chosen is None:
            session.out.say("nothing was done")
            return Exit.FAILED
        ref, how["what"] = chosen
    target = _target(session, ref, status, before)
    plan = session.line.rewind(target.id, **how, dry_run=True)
    if dry_run:
        _answer(session, plan, how, dry_run=True)
        return None
    if not _does_something(plan, how):
        _answer(session, plan, how, dry_run=True)
        session.out.say("nothing to do: it is all there already")
        return None
    if not yes and not _is_agreed(session, plan, how):
        session.out.say("nothing was done")
        return Exit.FAILED
    with session.out.busy("rewinding"):
        done = session.line.rewind(target.id, **how)
    _answer(session, done, how, dry_run=False)
    session.out.say(f"take it back with: {undo_command(session.line.name)}")
    return None


def undo_command(timeline: str) -> str:
    """What to type to take an operation on a timeline back."""
    return f"hardsave undo --timeline {shlex.quote(timeline)}"


def _target(
    session: Session, ref: str | None, status: str | None, before: str | None
) -> Checkpoint:
    """The checkpoint to go back to."""
    if ref is not None:
        if status is not None or before is not None:
            raise Misuse("give a REF, or --status and --before, not both")
        return session.find(ref)
    moment = None if before is None else moments.moment(before, session.now)
    found = session.line.rewind(status=status, before=moment, what="state", dry_run=True)
    return found.target


def _picked(session: Session, what: What) -> tuple[str, What] | None:
    """What somebody chose from a list; None if nothing."""
    if not session.out.can_ask or session.out.messages.is_dumb_terminal:
        raise Misuse("say where to: a REF such as @~1, or --status, or --before")
    from hardsave.cli.choosing import choose  # with all that a screen needs

    return choose(session, what)


def _inside(workspace: Path, path: str) -> str:
    """A path as it was typed, seen from the workspace."""
    inner = os.path.relpath(os.path.abspath(path), workspace)
    if inner == ".." or inner.startswith("../"):
        raise Misuse(f"{path!r} is not in the workspace {str(workspace)!r}")
    if inner == ".":
        raise Misuse("the whole workspace needs no --path; write --files")
    return inner


def _moves_head(plan: Rewind, how: dict[str, Any]) -> bool:
    may = how["what"] != "files" and "paths" not in how
    return may and plan.before != plan.target


def _does_something(plan: Rewind, how: dict[str, Any]) -> bool:
    return _moves_head(plan, how) or bool(plan.files)


def _is_agreed(session: Session, plan: Rewind, how: dict[str, Any]) -> bool:
    out = session.out
    if out.can_ask:
        out.say(*_plan_lines(session, plan, how))
    answers = {"y": "yes", "d": "diff", "n": "no"} if plan.files else {"y": "yes", "n": "no"}
    while True:
        answer = out.ask("rewind?", answers, what="rewind")
        if answer != "d":
            return answer == "y"
        out.say(*_patches(plan))


def _answer(session: Session, done: Rewind, how: dict[str, Any], *, dry_run: bool) -> None:
    session.out.result(
        lambda: data.rewind(done, dry_run=dry_run),
        lambda: _plan_lines(session, done, how) if dry_run else _done_lines(session, done, how),
    )


# For people


def _plan_lines(session: Session, plan: Rewind, how: dict[str, Any]) -> "Iterator[Text]":
    from hardsave.cli import draw

    name = (f" {words.shown(plan.target.name)}", "name") if plan.target.name else ""
    age = (f"  {moments.ago(plan.target.created_at, session.now)}", "quiet")
    yield draw.line(
        "rewind ", (words.shown(plan.timeline), "name"), " to ", draw.ref(plan.target), name, age
    )
    if _moves_head(plan, how):
        yield draw.line(("  state  ", "quiet"), _state(plan))
    if plan.files is not None:
        counts = str(plan.files) if plan.files or plan.files.kept else "as they are"
        yield draw.line(("  files  ", "quiet"), counts, (f"  in {plan.files.workspace}", "quiet"))
        yield from draw.file_changes(plan.files)


def _state(plan: Rewind) -> "Text":
    from hardsave.cli import draw

    counts = [
        None if one is None or (found := messages.of(one.state)) is None else len(found[1])
        for one in (plan.before, plan.target)
    ]
    said = ""
    if None not in counts:
        said = f"  {counts[0]} → {words.count(counts[1] or 0, 'message')}"
    start = draw.ref(plan.before) if plan.before is not None else "nothing"
    return draw.line(start, " → ", draw.ref(plan.target), said)


def _done_lines(session: Session, done: Rewind, how: dict[str, Any]) -> "Iterator[Text]":
    from hardsave.cli import draw

    where = draw.ref(done.target)
    if _moves_head(done, how):
        yield draw.line("rewound ", (words.shown(done.timeline), "name"), " to ", where)
    if done.files is not None and (done.files or done.files.kept):
        yield draw.line("files as of ", where, f": {done.files}")
        yield from draw.file_changes(done.files, limit=10)


def _patches(plan: Rewind) -> "Iterator[Text]":
    """What each file would lose and gain: from what lies there now to the checkpoint."""
    from hardsave.cli import draw

    assert plan.files is not None
    folder = reading.open_directory(Path(plan.files.workspace))
    try:
        for path in (*plan.files.created, *plan.files.changed, *plan.files.removed):
            yield from draw.patch(_patch(folder, plan.target, path))
    finally:
        os.close(folder)


def _patch(folder: int, target: Checkpoint, path: str) -> str:
    now = reading.read_beneath(folder, os.fsencode(path), limit=changes.MAX_BYTES)
    if now.problem:
        return f"{path}: {now.problem}\n"
    files = target.snapshot
    assert files is not None
    kinds = [each.kind for each in files.files(path)] if path in files else []
    then = files.read(path) if kinds == ["file"] else b""
    return changes.patch(now.data or b"", then, path)


COMMANDS = {"rewind": rewind}
