"""What a stored value is made of: when it is split, into what, and what is read of it.

A value whose encoding is short stands inside its parent. A longer one is an object of its own, and
a container longer than `SPLIT_BYTES` is split: each of its items again stands inside or is an
object, and `Levels` joins them. So the same state always has the same address, and two states
share all that they have in common. `builder` makes trees, `reader` reads them.
"""

import enum
from collections.abc import Callable, Collection, Mapping
from typing import Any

from hardsave.objects import slow
from hardsave.objects.hashing import Hash
from hardsave.tuples import NamedTuple

INLINE_BYTES = 128
SPLIT_BYTES = 2048
MAX_TREE_DEPTH = 32  # containers nested deeper than this are no longer split

Fetch = Callable[[Collection[Hash]], Mapping[Hash, bytes]]
"""Objects by hash, each checked against it. A missing one is `Corrupt`."""


class Shape(enum.IntEnum):
    """What a split container was. Part of the format."""

    LIST = 0
    TUPLE = 1
    SET = 2
    FROZENSET = 3
    MAP = 4
    OBJECT = 5

    @property
    def stride(self) -> int:
        return 2 if self in (Shape.MAP, Shape.OBJECT) else 1


class Columns(NamedTuple):
    """A container taken apart: `keys` only where it has any."""

    shape: Shape
    name: str | None
    keys: list[Any] | None
    values: list[Any]

    def step(self, at: int) -> str:
        """How item `at` reads inside a path."""
        return f"[{at}]" if self.keys is None else slow.key_step(self.keys[at])


class Ref(bytes):
    """The address of a value that is an object of its own, not read yet.

    A kind of bytes, because a long list has thousands of them, and these cost the least.
    """

    __slots__ = ()


class Stored(NamedTuple):
    """The root of a split container as it lies in its object."""

    shape: Shape
    name: str | None
    length: int
    items: list[Any]  # the open items, flat; Ref where a value is an object
    edge: Hash | None
