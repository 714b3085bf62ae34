"""What is typed: the common options, and what a shell completes for refs and timelines."""

import io
import os
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from hardsave.cli.hints import Invocation
from hardsave.defaults import LEASE_SECONDS, MAX_LEASE_SECONDS
from hardsave.errors import Misuse

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from hardsave import Checkpoint
    from hardsave.cli.session import Session, Settings

    _Text = click.ParamType[str]
else:
    _Text = click.ParamType  # which takes no parameter before click 8.4

LEASE = click.option(
    "--lease-seconds",
    type=click.FloatRange(1.0, MAX_LEASE_SECONDS),
    default=LEASE_SECONDS,
    show_default=True,
    help="Without a sign of life for so long, others take over what it runs.",
)
COMMON = ("as_json", "store", "timeline", "server")
_FLAGS = {
    "as_json": "--json",
    "store": "--store",
    "timeline": "--timeline",
    "server": "--server",
}
_TIMELINE_VARIABLE = "HARDSAVE_TIMELINE"
_MOST_COMPLETIONS = 200
_ACTS = frozenset("$`;&|<>(){}[]*?!#\"'\\\n")  # in a shell


def typed(ctx: click.Context) -> dict[str, Any]:
    """The common options, typed before the name of a command or behind it: the nearest counts."""
    found: dict[str, Any] = dict.fromkeys(COMMON)
    at: click.Context | None = ctx
    while at is not None:
        found = {key: value or at.params.get(key) for key, value in found.items()}
        at = at.parent
    return found


def before(ctx: click.Context) -> Iterator[str]:
    """The common options that were typed before the name of a command."""
    told = typed(ctx.parent) if ctx.parent is not None else {}
    yield from (_FLAGS[key] for key, value in told.items() if value)
    if isinstance(ctx.obj, Invocation) and ctx.obj.directory:
        yield "-C"


def settings(ctx: click.Context) -> "Settings":
    """The same, with the timeline that the environment names."""
    from hardsave.cli.session import Settings

    told = typed(ctx)
    of_run = os.environ.get(_TIMELINE_VARIABLE) or None
    invocation = ctx.obj if isinstance(ctx.obj, Invocation) else Invocation()
    invocation.store, invocation.server = told["store"], told["server"]
    return Settings(
        store=told["store"],
        timeline=told["timeline"],
        as_json=bool(told["as_json"]),
        invocation=invocation,
        timeline_of_run=of_run,
        server=told["server"],
    )


def one_of(**asked: bool) -> str | None:
    """Which of some options was typed, if any. Two that exclude each other are refused: one of them
    would be ignored."""
    found = [name for name, is_asked in asked.items() if is_asked]
    if len(found) > 1:
        options = (f"--{name.replace('_', '-')}" for name in found)
        raise Misuse(f"give {' or '.join(options)}, not both")
    return next(iter(found), None)


class Completable(_Text):
    """A text, with what a shell may complete it to."""

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
        if silent.server is not None:  # a prompt does not wait for another machine
            return []
        try:
            with redirect_stderr(io.StringIO()), Session(silent) as session:
                session.reads_only = True
                found = islice(self._offers(session, incomplete), _MOST_COMPLETIONS)
                safe = [(value, why) for value, why in found if _is_safe(value)]
                return [CompletionItem(_escaped_for_bash(value), help=why) for value, why in safe]
        except (HardsaveError, OSError):
            return []  # an error message in the middle of a prompt does not help


def _is_safe(value: str) -> bool:
    """bash puts a completion on the line as it is, and users read it less carefully than what they
    type: a name that came with an export must not become a command."""
    begins_home = value.startswith("~")  # @~1 does not
    return value.isprintable() and not begins_home and not _ACTS & set(value)


def _escaped_for_bash(value: str) -> str:
    """A completion as the shell puts it on the line: bash does not escape spaces, unless the word
    begins with a quote. Other shells escape them."""
    if os.environ.get("_HARDSAVE_COMPLETE") != "bash_complete":
        return value
    at, typed = os.environ.get("COMP_CWORD", ""), os.environ.get("COMP_WORDS", "").split("\n")
    begun = typed[int(at)] if at.isdigit() and int(at) < len(typed) else ""
    return value if begun[:1] in ("'", '"') else value.replace(" ", "\\ ")


def _timelines(session: "Session", begun: str) -> Iterator[tuple[str, str]]:
    from hardsave import wording

    titles = {each.name: each.title for each in session.timelines.every}
    for name, short in session.timelines.short_names.items():
        found = short if short.startswith(begun) else name if name.startswith(begun) else ""
        if found:
            yield found, wording.line(titles.get(name, ""), 60)


def _refs(session: "Session", begun: str) -> Iterator[tuple[str, str]]:
    """Names and numbers of the current timeline; of another, once its name is begun."""
    from hardsave import wording

    if "@".startswith(begun):
        yield "@", "the head"
        yield "@~1", "the one before it"
    for each in _checkpoints(session, begun):
        about = wording.line(each.description or each.status, 60)
        short = f"{session.shown_name(each.timeline)}:{each.seq}"
        for ref in dict.fromkeys((each.name, session.ref(each), short)):
            if ref is not None and ref.startswith(begun):
                yield ref, about
        if begun.startswith("chk_") and each.id.startswith(begun):
            yield each.id, about


def _checkpoints(session: "Session", begun: str) -> "Iterator[Checkpoint]":
    """The newest, and what has a name or was saved by hand at any age."""
    from hardsave.timeline.names import KINDS

    found = [*session.line.checkpoints(limit=_MOST_COMPLETIONS)]
    for kind in KINDS:
        if kind != "automatic":
            found += session.line.checkpoints(kind=kind, limit=_MOST_COMPLETIONS)
    yield from dict.fromkeys(found)
    for name, short in session.timelines.short_names.items() if begun else ():
        number = f"{short}:"
        if name != session.line.name and (number.startswith(begun) or begun.startswith(number)):
            yield from session.vault.timeline(name).checkpoints(limit=_MOST_COMPLETIONS)


def _jobs(session: "Session", begun: str) -> Iterator[tuple[str, str]]:
    for job in session.vault.jobs.find(limit=_MOST_COMPLETIONS):
        if job.id.startswith(begun):
            yield job.id, job.state


def _tasks(session: "Session", begun: str) -> Iterator[tuple[str, str]]:
    for task in session.vault.tasks.find(limit=_MOST_COMPLETIONS):
        if task.id.startswith(begun):
            yield task.id, task.state


class _OtherProgram(click.types.UnprocessedParamType):
    """A command of another program: a shell can complete files for it."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


PROGRAM = _OtherProgram()
JOB = Completable("job", _jobs)
TASK = Completable("task", _tasks)
TIMELINE = Completable("timeline", _timelines)
REF = Completable("ref", _refs)
