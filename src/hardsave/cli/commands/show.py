"""`hardsave show`: one checkpoint in full."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from hardsave import Checkpoint, wording
from hardsave.cli.arguments import REF, one_of
from hardsave.cli.command import ON_A_TIMELINE, command
from hardsave.cli.render import checkpoint_page, phrases, times
from hardsave.cli.render.summary import Summaries
from hardsave.cli.session import Session
from hardsave.errors import Misuse, NotFound
from hardsave.values.spelling import to_json
from hardsave.values.text import dumps, readable
from hardsave.vault import json_data
from hardsave.vault.files import Files, difference
from hardsave.vault.restore import authorship

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

SHOWN = 10


@command(
    "show",
    examples="""
        hardsave show                  the head
        hardsave show main:7 --full
        hardsave show plan-ready --state
        hardsave show @~2 --file src/parser.py > parser-as-it-was.py
    """,
    takes=ON_A_TIMELINE,
)
@click.argument("ref", type=REF, default="@")
@click.option(
    "-n",
    "--messages",
    "count",
    type=click.IntRange(0),
    help="How many of the last messages.  [default: 10]",
)
@click.option("--full", is_flag=True, help="All messages, with tool calls, and all paths.")
@click.option("--state", "whole_state", is_flag=True, help="The state as JSON, and nothing else.")
@click.option(
    "--file",
    "path",
    metavar="PATH",
    type=click.Path(),
    help="The content of one file, and nothing else.",
)
def show(
    session: Session, ref: str, count: int | None, full: bool, whole_state: bool, path: str | None
) -> None:
    """Show one checkpoint: its messages, its files, its state."""
    session.reads_only = True
    one_of(messages=count is not None, full=full, state=whole_state, file=path is not None)
    one = session.find(ref)
    if path is not None:
        _write_file(session, one, path)
    elif whole_state:
        state = to_json(one.state)
        session.out.result(lambda: state, lambda: [dumps(state, indent=2)], paged=True)
    else:
        limit = None if full else SHOWN if count is None else count
        session.out.result(
            lambda: _data(session, one, limit, full=full),
            lambda: _lines(session, one, limit, full=full),
            paged=True,
        )


def _write_file(session: Session, one: Checkpoint, path: str) -> None:
    """Byte for byte."""
    if session.out.as_json:
        raise Misuse("a file is bytes, not JSON; leave out --json")
    files = one.files
    if files is None:
        raise NotFound(
            f"checkpoint {one.id} was saved without files; choose one that has a snapshot"
        )
    sys.stdout.flush()
    sys.stdout.buffer.write(_content(session, files, path))


def _content(session: Session, files: Files, path: str) -> bytes:
    """Of a file that is named as it is seen from here, or else from the root of its workspace."""
    if session.where(files) == str(session.directory):
        with suppress(NotFound, Misuse):
            return files.read(session.inside(path))
    return files.read(path)


def _data(session: Session, one: Checkpoint, limit: int | None, *, full: bool) -> dict[str, Any]:
    summaries = Summaries(session.vault)
    parent = summaries.parent(one)
    total, items = checkpoint_page.last_messages(one, limit)
    before = None if parent is None else parent.files
    found = difference(before, one.files)
    if full and before is None and one.files is not None:
        found = found.replace(added=tuple(checkpoint_page.first_paths(one.files)))
    return {
        **json_data.checkpoint(one),
        "message_count": total,
        "messages": to_json(items),
        "state_of": summaries.state_origin(one).id,
        "files": json_data.files(found),
    }


# For people


def _lines(
    session: Session, one: Checkpoint, limit: int | None, *, full: bool
) -> "Iterator[RenderableType]":
    from rich.text import Text

    from hardsave.cli.render import draw

    summaries = Summaries(session.vault)
    parent = summaries.parent(one)
    title = draw.line(draw.ref(one), "  ", (one.id, "quiet"))
    yield title.append(f"  {wording.shown(one.name)}" if one.name else "", style="name")
    yield from draw.fields(_fields(session, one, parent, summaries.older_state(one)))
    yield from checkpoint_page.messages_of(one, limit, full=full)
    if one.files is not None:
        yield Text()
        yield from checkpoint_page.files_of(
            one, None if parent is None else parent.files, full=full
        )


def _fields(
    session: Session, one: Checkpoint, parent: Checkpoint | None, older_state: Checkpoint | None
) -> "dict[str, Text | str | None]":
    from hardsave.cli.render import draw

    files, git = one.files, one.git
    # What rewinds need to tell changes of several sessions apart says nothing to a reader.
    told = {name: value for name, value in one.metadata.items() if name != authorship.KEY}
    if changed_by := phrases.changed_by(told.get("changed_by")):
        del told["changed_by"]
    return {
        "saved": f"{wording.ago(one.created_at, session.now)} ({times.local(one.created_at)})",
        "after": None if parent is None else draw.ref(parent),
        "messages": None
        if older_state is None
        else draw.line("as in ", draw.ref(older_state), "; the files are newer"),
        "kind": one.kind,
        "status": one.status,
        "about": one.description,
        "metadata": readable(told) if told else None,
        "changed by": changed_by,
        "workspace": None if files is None else files.workspace,
        "git": None if git is None else phrases.git(git),
        "task": None if one.task is None else f"{one.task}, attempt {one.attempt}",
    }


COMMANDS = {"show": show}
