"""`hardsave init`: agents that save by themselves, through their own hooks."""

import os
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hardsave import wording
from hardsave.agents import install, registry
from hardsave.agents.install import Change
from hardsave.cli.command import YES, command
from hardsave.cli.errors import Exit
from hardsave.cli.session import Session
from hardsave.errors import HardsaveError, Misuse, NotFound
from hardsave.vault import findings

if TYPE_CHECKING:
    from rich.text import Text

_SHOWN = 200  # characters of a line that is longer
_PROJECT_FILES = ", ".join(filter(None, (each.project_settings_file for each in registry.every())))


@command(
    "init",
    examples="""
        hardsave init
        hardsave init --skill
        hardsave init --project --yes
        hardsave init --undo
    """,
    takes=("--json", "-C"),
)
@click.option("--undo", is_flag=True, help="Remove our hooks, command and skill, and nothing else.")
@click.option("--skill", is_flag=True, help="Also a skill: when and how an agent saves by itself.")
@click.option("--project", is_flag=True, help=f"Only for this project: {_PROJECT_FILES}")
@YES
def init(session: Session, undo: bool, skill: bool, project: bool, yes: bool) -> Exit | None:
    """Let Claude Code, Codex and Qwen Code save by themselves, by hooks.

    Names the files that would change, shows each line of them if you type d, asks, and writes it;
    hooks of others are left alone.
    A command inside of them rewinds: /hardsave-rewind in Claude Code, $hardsave-rewind in Codex.
    From then on files and conversation are saved at every prompt, after every tool and after every
    answer, each session on a timeline of its own. Agents that were never here are left out.
    With --skill they also learn to save before a risky step, to look, and to take files back.
    """
    if skill and (project or undo):
        beside = "--project" if project else "--undo, which removes it anyway"
        raise Misuse(f"--skill means nothing beside {beside}; leave one of them out")
    changes = _changes(session.directory if project else None, skill=skill, undo=undo)
    wanted = [change for change in changes if change]
    if wanted and not _is_agreed(session, wanted, undo=undo, yes=yes):
        session.out.say("nothing was done")
        return Exit.FAILED
    for at, change in enumerate(wanted):
        try:
            install.apply(change)
        except (OSError, HardsaveError):
            session.out.say(*_outcomes(wanted[:at], undo=undo))  # that stays
            session.out.say(f"{change.agent.title}: {change.path} was left as it is")
            raise
    session.out.result(lambda: _data(changes), lambda: _outcomes(changes, undo=undo))
    hooks = [each for each in changes if each.part == "hooks"]
    session.out.say(*_hooks_of_others(hooks))
    if not undo:
        session.out.say(*_switched_off(hooks, session.workspace_root), *_next(hooks))
    return None


def _changes(project: Path | None, *, skill: bool, undo: bool) -> list[Change]:
    every = registry.every()
    files = [(agent, install.settings_file(agent, os.environ, project)) for agent in every]
    changes = [install.plan(agent, path, undo=undo) for agent, path in files if path is not None]
    if not changes:
        raise NotFound(_missing(project))
    if project:
        return changes
    commands = [install.plan_command(each, os.environ, undo=undo) for each in every]
    skills = [
        each
        for agent in every
        for each in install.plan_skill(agent, os.environ, wanted=skill, undo=undo)
    ]
    return [*changes, *(each for each in commands if each is not None), *skills]


def _missing(project: Path | None) -> str:
    every = registry.every()
    able = [agent for agent in every if project is None or agent.project_settings_file]
    names = " or ".join(agent.title for agent in able)
    folders = " and no ".join(repr(str(agent.home(os.environ))) for agent in able)
    variables = " or ".join(agent.folder_variable for agent in able)
    return (
        f"{names} was not found: there is no {folders}; start it once, or set {variables}; "
        "any other agent can be run with 'hardsave run -- CMD'"
    )


def _data(changes: Sequence[Change]) -> list[dict[str, object]]:
    return [
        {
            "agent": change.agent.title,
            "part": change.part,
            "path": str(change.path),
            "changed": bool(change),
            "diff": change.diff(),
            "not_trusted": _untrusted(change) if change.part == "hooks" else [],
        }
        for change in changes
    ]


def _untrusted(change: Change) -> list[str]:
    """The events that its user has to trust first: all, where it cannot be read which are trusted.
    The agent itself complains about that, and the hooks are there by now."""
    try:
        return change.agent.untrusted_hooks(change.path)
    except Misuse:
        return install.installed(change.agent, change.path)


# For people


def _is_agreed(session: Session, wanted: Sequence[Change], *, undo: bool, yes: bool) -> bool:
    """A terminal shows the end of hundreds of lines: there the files are named, and their lines are
    shown to a user who asks for them."""
    out = session.out
    is_asked = out.can_ask and not yes
    out.say(*(_files(wanted) if is_asked else _lines(wanted)))
    if not undo:
        out.say(*_in_a_cache(Path(sys.prefix)))
    answer = "y" if yes else ""
    while answer not in ("y", "n"):
        if answer == "d":
            out.say(*_lines(wanted))
        answer = out.ask("write this?", {"y": "yes", "d": "diff", "n": "no"}, what="init")
    return answer == "y"


def _files(changes: Sequence[Change]) -> Iterator[str]:
    for change in changes:
        sign = "-" if change.after is None else "+" if change.before is None else "~"
        command = change.agent.command_typed
        part = {"hooks": "hooks", "command": command, "skill": "the skill"}[change.part]
        yield f"{sign} {change.agent.title}, {part}: {change.path}"


def _lines(changes: Sequence[Change]) -> "Iterator[Text]":
    from hardsave.cli.render import draw

    for change in changes:
        if change.part == "skill" and None in (change.before, change.after):
            done = "removed" if change.after is None else "new"  # pages, whole: too long to show
            yield draw.line(f"{done}: {change.path}")
            continue
        lines = change.diff().splitlines(True)
        yield from draw.patch("".join([*lines[:2], *_cut(lines[2:])]))  # first two name the file


def _cut(lines: Sequence[str]) -> Iterator[str]:
    """Long lines, as of settings that are a single one, from shortly before the first change."""
    long = [line[1:] for line in lines if len(line) > _SHOWN]
    columns = enumerate(zip(*long, strict=False))
    changed = next((at for at, column in columns if len({*column}) > 1), 0)
    start = max(0, changed - _SHOWN // 4)
    for line in lines:
        shown = line[1 + start :][:_SHOWN]
        before = "…" if start else ""
        is_long = len(line) > _SHOWN
        yield f"{line[0]}{before}{shown}… ({len(line):,} characters in all)\n" if is_long else line


def _in_a_cache(installation: Path) -> Iterator[str]:
    """`uvx` and `pipx run` make an environment in a cache, marked as all of these are. It goes
    after some days, and what the hooks would call goes with it."""
    if any((above / "CACHEDIR.TAG").is_file() for above in installation.parents):
        yield (
            f"this hardsave is in a cache ({installation}); once that is emptied, the hooks call "
            "nothing, and NOTHING IS SAVED; install it to stay, with 'uv tool install' or "
            "'pipx install', and run init from there"
        )


def _outcomes(changes: Sequence[Change], *, undo: bool) -> Iterator[str]:
    """A line for each file, and one for all files of a skill."""
    yield from (_outcome(each, undo=undo) for each in changes if each.part != "skill")
    skills = [each for each in changes if each.part == "skill"]
    for agent, files in groupby(skills, key=lambda each: each.agent):
        yield f"{agent.title}: {_outcome_of_skill([*files], undo=undo)}"


def _outcome_of_skill(files: Sequence[Change], *, undo: bool) -> str:
    main = files[-1]
    if install.is_foreign(main):
        return f"the skill is left as it is, because it is not ours: {main.path}"
    if not any(files):
        return f"the skill is there already: {main.path}"
    return f"the skill is {'removed' if undo else 'installed'}: {main.path}"


def _outcome(change: Change, *, undo: bool) -> str:
    if change.part == "command":
        return f"{change.agent.title}: {_outcome_of_command(change, undo=undo)} {change.path}"
    if not change:
        state = "no hooks of ours in" if undo else "hooks are there already:"
        return f"{change.agent.title}: {state} {change.path}"
    done = "removed from" if undo else "installed in"
    return f"{change.agent.title}: hooks {done} {change.path}"


def _outcome_of_command(change: Change, *, undo: bool) -> str:
    typed = change.agent.command_typed
    if install.is_foreign(change):
        return f"{typed} is left as it is, because it is not ours:"
    if not change:
        return f"no {typed} of ours as" if undo else f"{typed} is there already:"
    return f"{typed} removed:" if undo else f"{typed} installed as"


def _hooks_of_others(changes: Sequence[Change]) -> Iterator[str]:
    """Commands of others that call us, too."""
    for change in changes:
        for theirs in install.longer(change.agent, change.path):
            told = f"left as it is, because not all of it is ours: {wording.shown(theirs)}"
            yield f"{change.agent.title}: {told}"


def _switched_off(changes: Sequence[Change], project: Path) -> Iterator[str]:
    """Agents that run no hooks here, though these stand in their settings."""
    for change in changes:
        if off := install.switched_off(change.agent, os.environ, project):
            told = f"leaves all hooks out, so NOTHING IS SAVED: {wording.shown(off)}"
            yield f"{change.agent.title} {told}; {findings.without_hooks(change.agent.program)}"


def _next(changes: Sequence[Change]) -> Iterator[str]:
    """What is left to do: to trust the hooks, and to start the agent."""
    for agent in (change.agent for change in changes if _untrusted(change)):
        yield (
            f"{agent.title} silently runs no hook that you have not trusted: "
            f"{agent.how_to_trust}; 'hardsave doctor' says whether it is done"
        )
    if any(changes):
        programs = " or ".join(change.agent.program for change in changes)
        yield f"next: start {programs} as ever, then see 'hardsave log'"


COMMANDS = {"init": init}
