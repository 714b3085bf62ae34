"""`hardsave init`: agents that save by themselves, through their own hooks."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from hardsave.adapters import install
from hardsave.adapters.install import Change
from hardsave.cli.command import YES, command
from hardsave.cli.errors import Exit
from hardsave.cli.session import Session
from hardsave.errors import NotFound

if TYPE_CHECKING:
    from rich.text import Text


@command(
    "init",
    examples="""
        hardsave init
        hardsave init --project --yes
        hardsave init --undo
    """,
)
@click.option("--undo", is_flag=True, help="Remove our hooks, and nothing else.")
@click.option("--project", is_flag=True, help="Only for this project: .claude/settings.local.json")
@YES
def init(session: Session, undo: bool, project: bool, yes: bool) -> Exit | None:
    """Let Claude Code save by itself, through its hooks.

    Shows what would change in its settings, asks, and writes it; hooks of others are left alone.
    From then on files and conversation are saved at every prompt, after every tool and after every
    answer, each session on a timeline of its own.
    """
    change = _change(session, undo=undo, project=project)
    if change:
        session.out.say(*_lines(change))
        if not session.out.confirm("write this?", yes=yes, what="init"):
            session.out.say("nothing was done")
            return Exit.FAILED
        install.apply(change)
    session.out.result(lambda: _data(change), lambda: [_said(change, undo=undo)])
    if change and not undo:
        session.out.say("next: start claude as ever, then see 'hardsave log'")
    return None


def _change(session: Session, *, undo: bool, project: bool) -> Change:
    path = install.claude_settings(os.environ, session.directory if project else None)
    if path is None:
        folder = install.claude_folder(os.environ)
        raise NotFound(
            f"Claude Code was not found: there is no {str(folder)!r}; start it once, or set "
            "CLAUDE_CONFIG_DIR; any other agent can be run with 'hardsave run -- CMD'"
        )
    return install.plan(path, undo=undo)


def _data(change: Change) -> dict[str, object]:
    return {
        "agent": change.agent,
        "path": str(change.path),
        "changed": bool(change),
        "diff": change.diff(),
    }


# For people


def _lines(change: Change) -> "Iterator[Text]":
    from hardsave.cli import draw

    yield from draw.patch(change.diff())


def _said(change: Change, *, undo: bool) -> str:
    if not change:
        state = "no hooks of ours in" if undo else "hooks are there already:"
        return f"{change.agent}: {state} {change.path}"
    return f"{change.agent}: hooks {'removed from' if undo else 'installed in'} {change.path}"


COMMANDS = {"init": init}
