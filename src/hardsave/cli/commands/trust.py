"""`hardsave trust`: a project's file is shown, and counts from then on."""

import os
import sys
from pathlib import Path

import click

from hardsave import config, wording
from hardsave.cli.command import YES, command
from hardsave.cli.errors import Exit
from hardsave.cli.session import Session
from hardsave.config import trust as trusting
from hardsave.config.trust import ProjectFile
from hardsave.errors import Misuse
from hardsave.values.spelling import to_json


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
    at it. If the file changes, it has to be trusted again. The same holds for the section
    server.checkpoint of a config/config.yaml, which programs with CodeAgent's interface read.
    """
    here = Path.cwd()
    files = _files(session, config.project_root(here), here)
    if not files:
        root = wording.shown(str(config.project_root(here)))
        _answer(session, [], f"there is no {config.PROJECT_FILE} in {root}")
        return None
    if undo:
        was = [trusting.distrust(file, os.environ, sys.platform) for file in files]
        _answer(session, files, "it is trusted no longer" if any(was) else "it was not trusted")
        return None
    risky = [file for file in files if file.risky]
    if not risky:
        _answer(session, files, "nothing in it needs to be trusted: it only switches things off")
        return None
    for said in [each for file in risky for each in file.risky.values()]:
        session.out.say(wording.shown(f"{said.where}: {said.value}"))
    if all(_is_trusted(file) for file in risky):
        _answer(session, files, "it is trusted already, as it is now")
        return None
    if not session.out.confirm("let that count?", yes=yes, what="trust"):
        session.out.say("nothing was done")
        return Exit.FAILED
    for file in risky:
        trusting.trust(file, os.environ, sys.platform)
    _answer(session, files, "it is trusted, as it is now")
    return None


def _files(session: Session, root: Path, here: Path) -> list[ProjectFile]:
    """The project's own file, and CodeAgent's, at the root and in the directory itself. Of the
    latter one that cannot be read is another program's, or will be named by the one that reads
    it."""
    found = {} if (own := trusting.look(root)) is None else {own.path: own}
    for folder in (root, here.resolve()):
        try:
            file = trusting.look_code_agent(folder)
        except Misuse as error:
            session.out.say(wording.shown(str(error)))
            continue
        found |= {} if file is None else {file.path: file}
    return list(found.values())


def _is_trusted(file: ProjectFile) -> bool:
    return trusting.is_trusted(file, os.environ, sys.platform)


def _answer(session: Session, files: list[ProjectFile], said: str) -> None:
    told = [
        {
            "file": str(file.path),
            "trusted": _is_trusted(file),
            "settings": {name: to_json(each.value) for name, each in file.risky.items()},
        }
        for file in files
    ]
    first = told[0] if told else {"file": None, "trusted": False, "settings": {}}
    session.out.result(lambda: {**first, "files": told}, lambda: [said])


COMMANDS = {"trust": trust}
