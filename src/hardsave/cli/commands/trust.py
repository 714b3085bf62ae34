"""`hardsave trust`: a project's file is shown, and counts from then on."""

import os
import sys
from pathlib import Path

import click

from hardsave import config
from hardsave.cli.command import YES, command
from hardsave.cli.errors import Exit
from hardsave.cli.render import json_data, wording
from hardsave.cli.session import Session
from hardsave.config import trust as trusting
from hardsave.config.trust import ProjectFile


@command(
    "trust",
    examples="""
        hardsave trust
        hardsave trust --undo
    """,
    takes=("--json", "-C"),
)
@click.option("--undo", is_flag=True, help="Trust it no longer.")
@YES
def trust(session: Session, undo: bool, yes: bool) -> Exit | None:
    """Let all of this project's hardsave.yaml count, as it is now.

    A project's file may come from a stranger. What leads out of the project, such as another
    store, or decides how long checkpoints and tasks are kept, counts only once you have looked
    at it. If the file changes, it has to be trusted again.
    """
    root = config.project_root(Path.cwd())
    file = trusting.look(root)
    if file is None:
        _answer(session, None, f"there is no {config.PROJECT_FILE} in {wording.shown(str(root))}")
        return None
    if undo:
        was = trusting.distrust(file, os.environ, sys.platform)
        _answer(session, file, "it is trusted no longer" if was else "it was not trusted")
        return None
    if not file.risky:
        _answer(session, file, "nothing in it needs to be trusted: it only switches things off")
        return None
    for said in file.risky.values():
        session.out.say(wording.shown(f"{said.where}: {said.value}"))
    if trusting.is_trusted(file, os.environ, sys.platform):
        _answer(session, file, "it is trusted already, as it is now")
        return None
    if not session.out.confirm("let that count?", yes=yes, what="trust"):
        session.out.say("nothing was done")
        return Exit.FAILED
    trusting.trust(file, os.environ, sys.platform)
    _answer(session, file, "it is trusted, as it is now")
    return None


def _answer(session: Session, file: ProjectFile | None, said: str) -> None:
    risky = {} if file is None else file.risky
    session.out.result(
        lambda: {
            "file": None if file is None else str(file.path),
            "trusted": file is not None and trusting.is_trusted(file, os.environ, sys.platform),
            "settings": {name: json_data.json_ready(each.value) for name, each in risky.items()},
        },
        lambda: [said],
    )


COMMANDS = {"trust": trust}
