"""How the states of two checkpoints differ, drawn: which messages, and which values beside them."""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from rich.text import Text

from hardsave import Checkpoint, wording
from hardsave.agents.state import records
from hardsave.cli.render import draw
from hardsave.objects.diff import StatePath
from hardsave.timeline import state_changes
from hardsave.timeline.diff import Diff
from hardsave.timeline.state_changes import MessageChange, StateChanges, ValueChange
from hardsave.values import messages
from hardsave.values.text import readable

if TYPE_CHECKING:
    from rich.console import RenderableType

VALUE = 60  # characters of a value that has changed
FIRST, LAST = 4, 8  # of many changes, unless all are asked for

Change = TypeVar("Change", MessageChange, ValueChange)


def lines(
    before: Checkpoint, after: Checkpoint, found: Diff, *, full: bool, stat: bool
) -> "Iterator[RenderableType]":
    """Each change on one line, the first and the last of many; `full`: all, with what was said;
    `stat`: how many."""
    changes = state_changes.of(found, hidden=records(before.state, after.state))
    if found.old_status != found.new_status:
        status = wording.shown(f"{found.old_status} → {found.new_status}")
        yield draw.line(("~ ", "changed"), f"status: {status}")
    if changes.messages:
        yield _counted(before, after, changes)
    if stat:
        yield from _keys(changes.values)
        return

    def message(each: MessageChange) -> "Iterable[RenderableType]":
        return _message(before, after, changes.key, each, full=full)

    yield from _bounded(changes.messages, message, "messages", full=full)
    moved = changes.moved()

    def value(each: ValueChange) -> "Iterable[RenderableType]":
        return [_value_line(before, after, each, moved)]

    yield from _bounded(changes.values, value, "values", full=full)


def _bounded(
    changes: Sequence[Change],
    drawn: "Callable[[Change], Iterable[RenderableType]]",
    what: str,
    *,
    full: bool,
) -> "Iterator[RenderableType]":
    left_out = 0 if full else max(0, len(changes) - FIRST - LAST)
    for number, each in enumerate(changes):
        if number == FIRST and left_out:
            yield Text(f"  … {left_out:,} more {what}; --state shows all", style="quiet")
        if not FIRST <= number < FIRST + left_out:
            yield from drawn(each)


def _counted(before: Checkpoint, after: Checkpoint, changes: StateChanges) -> Text:
    """`messages 12 → 47  +35`."""
    old, new = (_length(one, changes.key) for one in (before, after))
    return draw.line((f"messages {old:,} → {new:,}  ", "quiet"), draw.tally(changes.counts()))


def _length(one: Checkpoint, key: str) -> int:
    found = messages.of(one.state)
    return len(found[1]) if found is not None and found[0] == key else 0


def _message(
    before: Checkpoint, after: Checkpoint, key: str, change: MessageChange, *, full: bool
) -> "Iterator[RenderableType]":
    old = None if change.old is None else messages.read(before.read(key, change.old))
    new = None if change.new is None else messages.read(after.read(key, change.new))
    shown = draw.message if full else draw.message_lines
    if old is None or new is None:
        one = old or new
        assert one is not None
        yield from shown(one, sign=change.sign)
    elif old == new:  # what differs is nothing that is read
        yield from draw.message_lines(new, sign="~")
    else:
        was, became = state_changes.parted(old, new)
        yield from shown(was, sign="-")
        yield from shown(became, sign="+")


def _keys(values: Sequence[ValueChange]) -> Iterator[Text]:
    """Which parts of a state differ, without what is in them."""
    found: dict[str, str] = {}
    for each in values:
        is_whole = len(each.path) < 2
        found[str(StatePath(each.path[:1]))] = each.sign if is_whole else "~"
    if found:
        names = [f"{sign}{wording.shown(name)}" for name, sign in found.items()]
        yield draw.line(("state ", "quiet"), ", ".join(names), cut=True)


def _value_line(
    before: Checkpoint, after: Checkpoint, change: ValueChange, moved: Container[StatePath]
) -> Text:
    path, sign = change.path, change.sign
    then = change.old_path(moved)
    old = None if then is None else _value(before, then)
    new = None if sign == "-" else _value(after, path)
    values = " → ".join(each for each in (old, new) if each is not None)
    return draw.line((f"{sign} ", draw.SIGNS[sign]), f"{wording.shown(str(path))}: {values}")


def _value(side: Checkpoint, path: StatePath) -> str:
    return wording.line(readable(side.read(*path)), VALUE)
