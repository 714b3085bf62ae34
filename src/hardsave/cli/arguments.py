"""Refs and timelines as arguments: what a shell offers when somebody presses Tab."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from hardsave.cli.session import Session

_OFFERED = 200
_ACTS = frozenset("$`;&|<>(){}[]*?!#~\"'\\\n")  # in a shell


class Offered(click.ParamType[str]):
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

        from hardsave.cli.session import Session, Settings
        from hardsave.errors import HardsaveError

        told: dict[str, Any] = {**(ctx.obj or {}), **{k: v for k, v in ctx.params.items() if v}}
        settings = Settings(told.get("store"), told.get("timeline"))
        try:
            with Session(settings) as session:
                found = islice(self._offers(session, incomplete), _OFFERED)
                return [CompletionItem(value, help=why) for value, why in found if _is_safe(value)]
        except (HardsaveError, OSError):
            return []  # whatever is wrong, a message in the middle of a prompt helps nobody


def _is_safe(value: str) -> bool:
    """bash puts an offer on the line as it is, and nobody reads it as carefully as they typed: a
    name that came with an export must not become a command."""
    return value.isprintable() and not _ACTS & set(value)


def _timelines(session: "Session", begun: str) -> Iterator[tuple[str, str]]:
    for line in session.vault.timelines():
        if line.name.startswith(begun):
            yield line.name, ""


def _refs(session: "Session", begun: str) -> Iterator[tuple[str, str]]:
    """Names first, then numbers, of the timeline in question; other timelines by number."""
    from hardsave.cli import words

    if "@".startswith(begun):
        yield "@", "the head"
        yield "@~1", "the one before it"
    for each in session.line.checkpoints(limit=_OFFERED):
        about = each.description or each.status
        for ref in (each.name, f"{each.timeline}:{each.seq}"):
            if ref is not None and ref.startswith(begun):
                yield ref, words.line(about, 60)
        if begun.startswith("chk_") and each.id.startswith(begun):
            yield each.id, words.line(about, 60)


def _tasks(session: "Session", begun: str) -> Iterator[tuple[str, str]]:
    for task in session.vault.tasks.find(limit=_OFFERED):
        if task.id.startswith(begun):
            yield task.id, task.state


TASK = Offered("task", _tasks)
TIMELINE = Offered("timeline", _timelines)
REF = Offered("ref", _refs)
