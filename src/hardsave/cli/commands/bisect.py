"""`hardsave bisect`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from hardsave import wording
from hardsave.cli.arguments import PROGRAM, REF
from hardsave.cli.command import ON_A_TIMELINE, command
from hardsave.cli.render import checkpoint_page
from hardsave.cli.render.output import stdout_is_stderr
from hardsave.cli.session import Session
from hardsave.values.spelling import to_json
from hardsave.vault import json_data

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hardsave.vault.history.bisect import Bisected, BisectTry

MESSAGES = 4


@command(
    "bisect",
    examples="""
        hardsave bisect @~20 @ -- pytest -q
        hardsave bisect plan-ready main:40 -- make test
    """,
    takes=ON_A_TIMELINE,
)
@click.argument("good", type=REF)
@click.argument("bad", type=REF)
@click.argument("program", metavar="-- CMD…", nargs=-1, required=True, type=PROGRAM)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="A run that takes longer is bad.",
)
def bisect(
    session: Session, good: str, bad: str, program: tuple[str, ...], timeout: float | None
) -> None:
    """Find the checkpoint that broke something.

    Runs a command over the files of checkpoints from GOOD to BAD, in a directory of its own,
    and halves the distance each time. Its exit code 0 means good, 125 cannot be told, others bad.
    Files that are ignored are not there: let the command make what it needs. What it prints goes
    to stderr.
    """
    low, high = session.find_all(good, bad)
    with stdout_is_stderr():
        found = session.vault.timeline(high.timeline).bisect(
            low.id, high.id, program, timeout=timeout, told=lambda one: _tell(session, one)
        )
    session.out.result(lambda: _data(found), lambda: _lines(found))
    session.out.hint("see what it did", "diff", found.last_good.id, found.first_bad.id)


def _tell(session: Session, one: "BisectTry") -> None:
    from hardsave.cli.render import draw

    styles = {"good": "added", "bad": "removed", "skip": "changed"}
    session.out.say(draw.line(draw.ref(one.checkpoint), "  ", (one.verdict, styles[one.verdict])))


def _data(found: "Bisected") -> dict[str, Any]:
    return {
        "first_bad": json_data.checkpoint(found.first_bad),
        "last_good": json_data.checkpoint(found.last_good),
        "skipped": [json_data.checkpoint(each) for each in found.skipped],
        "tries": [
            {"checkpoint": each.checkpoint.id, "verdict": each.verdict, "code": each.code}
            for each in found.tries
        ],
        "messages": to_json(checkpoint_page.last_messages(found.first_bad, MESSAGES)[1]),
        "files": json_data.files(found.files),
    }


def _lines(found: "Bisected") -> "Iterator[RenderableType]":
    from rich.text import Text

    from hardsave.cli.render import draw

    name = (f" {wording.shown(found.first_bad.name)}", "name") if found.first_bad.name else ""
    yield draw.line(draw.ref(found.first_bad), name, " is the first that fails")
    for each in found.skipped:
        yield draw.line(("  or ", "quiet"), draw.ref(each), (", which could not be told", "quiet"))
    yield from checkpoint_page.messages_of(found.first_bad, MESSAGES)
    yield Text()
    yield from checkpoint_page.files_of(found.first_bad, found.last_good.files)


COMMANDS = {"bisect": bisect}
