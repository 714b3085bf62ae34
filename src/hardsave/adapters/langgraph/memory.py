"""Messages of a channel that were made plain before, and have not changed since.

A conversation is put again and again with few new messages. A run of messages is recognised by the
bytes of all their fields: neither `==` (1 == True) nor identity would do, because messages are
changed in place.
"""

from collections.abc import Sequence
from typing import Any

import ormsgpack
from langchain_core.messages import BaseMessage

from hardsave.adapters.langgraph.values import Values
from hardsave.tuples import NamedTuple

_RUN = 32  # messages that are compared at once
# What would look like something else goes to a hook, and there is none: such a run is not kept.
_EXACTLY = (
    ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_UUID
)


class _Run(NamedTuple):
    """How messages looked, and what was made of them."""

    kinds: list[type]
    fields: bytes
    plain: list[Any]


class Memory:
    """The runs of a channel as it was put last."""

    def __init__(self) -> None:
        self._runs: dict[int, _Run] = {}

    def plain(self, items: Sequence[Any], values: Values) -> list[Any]:
        before, self._runs = self._runs, {}
        made: list[Any] = []
        for at in range(0, len(items), _RUN):
            some = items[at : at + _RUN]
            kinds = list(map(type, some))
            fields = _fields(some, kinds)
            known = before.get(at)
            if known is not None and known.fields == fields and known.kinds == kinds:
                self._runs[at] = known
                made += known.plain
                continue
            plain = list(map(values.plain, some))
            if fields is not None and fields == _fields(some, kinds):  # no thread changed them
                self._runs[at] = _Run(kinds, fields, plain)
            made += plain
        return made


def _fields(items: Sequence[Any], kinds: Sequence[type]) -> bytes | None:
    """The bytes of all fields of messages; None of anything else, or if bytes do not tell."""
    if not all(issubclass(each, BaseMessage) for each in set(kinds)):
        return None
    fields = [each.__dict__ for each in items]
    extra = [each.__pydantic_extra__ or None for each in items]
    try:
        data: bytes = ormsgpack.packb([fields, extra], None, _EXACTLY)
    except TypeError:
        return None
    return data
