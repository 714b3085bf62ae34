"""What is typed: the options that every command has, and what a shell offers for refs and timelines
when somebody presses Tab."""

import io
import os
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from hardsave.cli.hints import Place
from hardsave.errors import Misuse

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from hardsave import Checkpoint
    from hardsave.cli.session import Session, Settings

    _Text = click.ParamType[str]
else:
    _Text = click.ParamType  # which takes no parameter before click 8.4

EVERYWHERE = ("as_json", "store", "timeline")
_FLAGS = {"as_json": "--json", "store": "--store", "timeline": "--timeline"}
_TIMELINE_VARIABLE = "HARDSAVE_TIMELINE"
_OFFERED = 200
_ACTS = frozenset("$`;&|<>(){}[]*?!#\"'\\\n")  # in a shell


def typed(ctx: click.Context) -> dict[str, Any]:
    """What every command can be told, before its name or behind it: the nearest counts."""
    found: dict[str, Any] = dict.fromkeys(EVERYWHERE)
    at: click.Context | None = ctx
    while at is not None:
        found = {key: value or at.params.get(key) for key, value in found.items()}
        at = at.parent
    return found


def before(ctx: click.Context) -> Iterator[str]:
    """The common options that were typed before the name of a command."""
    told = typed(ctx.parent) if ctx.parent is not None else {}
    yield from (_FLAGS[key] for key, value in told.items() if value)
    if isinstance(ctx.obj, Place) and ctx.obj.directory:
        yield "-C"


def settings(ctx: click.Context) -> "Settings":
    """The same, with the timeline that the environment names."""
    from hardsave.cli.session import Settings

    told = typed(ctx)
    of_run = os.environ.get(_TIMELINE_VARIABLE) or None
    place = ctx.obj if isinstance(ctx.obj, Place) else Place()
    place.store = told["store"]
    return Settings(told["store"], told["timeline"], bool(told["as_json"]), place, of_run)


def one_of(**asked: bool) -> str | None:
    """Which of some options was typed, if any. Of two that exclude each other the last would count,
    and whoever typed both meant something else."""
    found = [name for name, is_asked in asked.items() if is_asked]
    if len(found) > 1:
        raise Misuse(f"give {' or '.join(f'--{name}' for name in found)}, not both")
    return next(iter(found), None)


class Offered(_Text):
    """A text, with what a shell may offer for it."""

    def __init__(
        self, name: str, offers: "Callable[[Session, str], Iterator[tuple[str, str]]]"
    ) -> None:
        self.name = name
        self._offers = offers

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        from hardsave.cli.session import Session
        from hardsave.errors import HardsaveError

        silent = settings(ctx)._replace(as_json=True)
        try:
            with redirect_stderr(io.StringIO()), Session(silent) as session:
                session.only_looks = True
                found = islice(self._offers(session, incomplete), _OFFERED)
                safe = [(value, why) for value, why in found if _is_safe(value)]
                return [CompletionItem(_put(value), help=why) for value, why in safe]
        except (HardsaveError, OSError):
            return []  # whatever is wrong, a message in the middle of a prompt helps nobody


def _is_safe(value: str) -> bool:
    """bash puts an offer on the line as it is, and nobody reads it as carefully as they typed: a
    name that came with an export must not become a command."""
    begins_home = value.startswith("~")  # @~1 does not
    return value.isprintable() and not begins_home and not _ACTS & set(value)


def _put(value: str) -> str:
    """An offer as the shell puts it on the line: bash does nothing about spaces, unless whoever
    types has begun with a quote. Other shells know what to do."""
    if os.environ.get("_HARDSAVE_COMPLETE") != "bash_complete":
        return value
    at, typed = os.environ.get("COMP_CWORD", ""), os.environ.get("COMP_WORDS", "").split("\n")
    begun = typed[int(at)] if at.isdigit() and int(at) < len(typed) else ""
    return value if begun[:1] in ("'", '"') else value.replace(" ", "\\ ")


def _timelines(session: "Session", begun: str) -> Iterator[tuple[str, str]]:
    for line in session.vault.timelines():
        if line.name.startswith(begun):
            yield line.name, ""


def _refs(session: "Session", begun: str) -> Iterator[tuple[str, str]]:
    """Names and numbers of the timeline in question; of another, once its name is begun."""
    from hardsave.cli.render import wording

    if "@".startswith(begun):
        yield "@", "the head"
        yield "@~1", "the one before it"
    for each in _checkpoints(session, begun):
        about = wording.line(each.description or each.status, 60)
        for ref in (each.name, f"{each.timeline}:{each.seq}"):
            if ref is not None and ref.startswith(begun):
                yield ref, about
        if begun.startswith("chk_") and each.id.startswith(begun):
            yield each.id, about


def _checkpoints(session: "Session", begun: str) -> "Iterator[Checkpoint]":
    """The newest, and what has a name at any age."""
    from hardsave.cli.log_query import offered

    yield from offered(session.line, _OFFERED).checkpoints
    for line in session.vault.timelines() if begun else ():
        number = f"{line.name}:"
        if line.name != session.line.name and (
            number.startswith(begun) or begun.startswith(number)
        ):
            yield from line.checkpoints(limit=_OFFERED)


def _jobs(session: "Session", begun: str) -> Iterator[tuple[str, str]]:
    from hardsave.runtime.jobs import Jobs

    for job in Jobs(session.vault).find():
        if job.id.startswith(begun):
            yield job.id, job.state


def _tasks(session: "Session", begun: str) -> Iterator[tuple[str, str]]:
    for task in session.vault.tasks.find(limit=_OFFERED):
        if task.id.startswith(begun):
            yield task.id, task.state


class _Words(click.types.UnprocessedParamType):
    """A command of another program: of what belongs there, files are what a shell can know."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


PROGRAM = _Words()
JOB = Offered("job", _jobs)
TASK = Offered("task", _tasks)
TIMELINE = Offered("timeline", _timelines)
REF = Offered("ref", _refs)
