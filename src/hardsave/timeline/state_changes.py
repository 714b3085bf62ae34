"""What changed in a conversation and in the rest of a state, as people read it: messages in their
order, and values by their paths. Pure."""

from collections.abc import Container, Iterable, Sequence
from itertools import takewhile

from hardsave.objects.diff import StatePath
from hardsave.timeline.diff import Diff
from hardsave.tuples import NamedTuple
from hardsave.values import messages
from hardsave.values.messages import Message

SHOWN_BEFORE = 20  # characters of what two texts have in common, before they part


class MessageChange(NamedTuple):
    """A message that one side does not have, or has differently."""

    sign: str  # `+`, `~` or `-`
    old: int | None  # its number in the old conversation
    new: int | None


class ValueChange(NamedTuple):
    """Anything else in a state."""

    sign: str
    path: StatePath

    def old_path(self, moved: Container[StatePath]) -> StatePath | None:
        """Where it was in the old state; None if it was not there, or if items of a list on the way
        have other numbers since."""
        is_moved = any(self.path[:depth] in moved for depth in range(len(self.path)))
        if self.sign == "-":
            return self.path
        return None if self.sign == "+" or is_moved else self.path


class StateChanges(NamedTuple):
    """All that differs between two states."""

    key: str  # of the list of messages; '' if none of them differs
    messages: tuple[MessageChange, ...]
    values: tuple[ValueChange, ...]

    def counts(self) -> dict[str, int]:
        """How many messages were added, changed, removed."""
        signs = [each.sign for each in self.messages]
        return {sign: signs.count(sign) for sign in "+~-"}

    def moved(self) -> set[StatePath]:
        """The lists, but for that of the messages, in which items came or went."""
        return {
            StatePath(each.path[:-1])
            for each in self.values
            if each.sign != "~" and each.path and isinstance(each.path[-1], int)
        }


def of(found: Diff, *, hidden: Iterable[object] = ()) -> StateChanges:
    """The changes of a state, without those of some of its keys."""
    without = {*hidden}
    sides = {"-": found.removed, "~": found.changed, "+": found.added}
    paths = [
        ValueChange(sign, path)
        for sign, some in sides.items()
        for path in some
        if not path or path[0] not in without
    ]
    key = next((each.path[0] for each in paths if _is_of_message(each.path)), "")
    told = [each for each in paths if key and _is_of_message(each.path) and each.path[0] == key]
    known = {*told}
    values = tuple(each for each in paths if each not in known)
    return StateChanges(key, tuple(in_order(told)), values)


def _is_of_message(path: StatePath) -> bool:
    return len(path) > 1 and path[0] in messages.KEYS and isinstance(path[1], int)


def in_order(changes: Sequence[ValueChange]) -> list[MessageChange]:
    """One for each message, as a conversation is read: at a place where both were, what has gone
    comes before what has come.

    The paths of what was removed have numbers of the old conversation, all others of the new one.
    Messages that are neither added nor removed are in both, in the same order, so the number of
    those that stand before a change says where it belongs.
    """
    whole = [each for each in changes if len(each.path) == 2]
    gone = sorted(each.path[1] for each in whole if each.sign == "-")
    came = sorted(each.path[1] for each in whole if each.sign == "+")
    new = {each.path[1] for each in changes if each.sign != "-"}
    inner_gone = {each.path[1] for each in changes if each.sign == "-" and len(each.path) > 2}
    kept = sorted((new | inner_gone) - {*came})  # of a message that stays, a part may have gone
    placed = [
        *((number - at, 0, MessageChange("-", number, None)) for at, number in enumerate(gone)),
        *((number - at, 1, MessageChange("+", None, number)) for at, number in enumerate(came)),
    ]
    for number in kept:
        before = number - sum(each < number for each in came)
        placed.append((before, 2, MessageChange("~", _shifted(before, gone), number)))
    return [change for _, _, change in sorted(placed, key=lambda each: each[:2])]


def _shifted(before: int, gone: Sequence[int]) -> int:
    """The number in the old conversation of a message with so many before it that stay."""
    for number in gone:
        if number > before:
            break
        before += 1
    return before


def parted(old: Message, new: Message) -> tuple[Message, Message]:
    """The same two messages, begun shortly before the place where their texts part: what is cut at
    the end of a line would look the same."""
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(old.text, new.text, strict=False))
    common = sum(1 for _ in alike)
    if common <= 2 * SHOWN_BEFORE or old.text == new.text:
        return old, new
    start = common - SHOWN_BEFORE
    before, after = (each._replace(text="…" + each.text[start:]) for each in (old, new))
    return before, after
