"""What must not be stored is refused before a single byte is encoded: a text, bytes or integer
above the cap, raw msgpack (ormsgpack's `Ext` and `Fragment`), and an object whose own code raises
when it is asked for its items."""

import enum
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hardsave.errors import Unstorable
from hardsave.objects import slow
from hardsave.objects.codec import OPAQUE, refusal
from hardsave.objects.tree import Columns
from hardsave.objects.types import fields_of

_SIZED = (dict, list, tuple, set, frozenset)
_PLAIN = (str, bytes, int)
_PLAIN_DEPTH = 8  # of what is looked through quickly

_Stack = list[tuple[object, list[int], Iterator[object]]]


def check(
    value: object, path: str, limit: int, columns: Callable[[object], Columns | None]
) -> None:
    """`Unstorable` with the path to a value of more than `limit` bytes, or to one that cannot be
    looked into; `columns` takes containers apart, to name it."""
    try:
        if _is_small((value,), limit // 4, _PLAIN_DEPTH):
            return
    except RuntimeError:
        pass  # another thread is changing it: look at copies
    stack: _Stack = [([value], [0], iter([value]))]
    while stack:
        _, place, items = stack[-1]
        for item in items:
            place[0] += 1
            why, inside = _looked_at(item, limit)
            if why is not None:
                raise Unstorable(path + _steps(stack[1:], columns), why)
            if inside is not None:
                stack.append((item, [0], inside))
                break
        else:
            stack.pop()
        if len(stack) > slow.MAX_DEPTH:
            return  # the encoder refuses it, and knows the path


def _looked_at(item: object, limit: int) -> tuple[str | None, Iterator[object] | None]:
    """Why a value is refused, or what it is made of; neither if nothing in it can be long."""
    if type(item) in OPAQUE:
        return refusal(item), None
    if _is_longer(item, limit):
        return f"longer than max_value_bytes ({limit})", None
    try:
        return None, None if type(item) in _PLAIN else _inside(item)
    except Exception as error:  # a class of the caller's own may raise anything
        if type(item) in _SIZED:
            raise  # an alarm that has gone off: none of these raises by itself
        return slow.raised(error), None


def _is_longer(item: Any, limit: int) -> bool:
    kind = type(item)
    if kind is int:
        return bool(item.bit_length() > 8 * limit)
    # A character takes up to four bytes: count exactly only when it matters.
    return kind in _PLAIN and len(item) * 4 > limit and _encoded_size(item) > limit


def _inside(item: object) -> Iterator[object] | None:
    """What a value is made of; None if nothing in it can be long."""
    if isinstance(item, dict):
        own = dict(item)
        return itertools.chain(own.values(), own)
    if isinstance(item, _SIZED):
        return iter(list(item))
    if isinstance(item, str):
        return iter([str.__str__(item)]) if not isinstance(item, enum.Enum) else None
    if isinstance(item, bytes | bytearray | memoryview):
        return iter([bytes(item)])
    fields = fields_of(item)
    return None if fields is None else iter(fields.values())


def _steps(stack: _Stack, columns: Callable[[object], Columns | None]) -> str:
    """The path to the item that the innermost iterator has just given out."""
    steps = []
    for container, (count,), _ in stack:
        parts = columns(container)
        if parts is None:
            continue  # a text that is not plain: it is where it is
        at = count - 1
        steps.append(parts.step(at if at < len(parts.values) else at - len(parts.values)))
    return "".join(steps)


def _is_small(items: Iterable[Any], most: int, depth: int) -> bool:
    """Whether plain data has no text longer than `most` characters; False: look closely."""
    for item in items:
        kind = type(item)
        if kind is str or kind is bytes:
            if len(item) > most:
                return False
        elif kind is list:
            if not depth or not _is_small(item, most, depth - 1):
                return False
        elif kind is dict:
            if not depth or not _is_small((*item, *item.values()), most, depth - 1):
                return False
        elif kind is int:
            if item.bit_length() > 64:
                return False
        elif item is not None and kind is not bool and kind is not float:
            return False
    return True


def _encoded_size(item: str | bytes) -> int:
    if isinstance(item, bytes) or item.isascii():
        return len(item)
    return len(item.encode("utf-8", "surrogatepass"))
