"""Reading values with nothing revived that only its class could write again.

Containers and texts come as Python has them, so that they can be taken apart, split and built
anew. Objects and enum members are carried under their names, moments with the name of their
zone, also if the class is not registered or the zone is not known. What was read so has
the same encoding as before.
"""

from collections.abc import Callable, Sequence
from typing import Any

from hardsave.objects import wire
from hardsave.objects.codec import Codec
from hardsave.objects.types import Types

MOMENTS = frozenset({wire.DATETIME, wire.TIME})
TEXTS = frozenset({wire.DATE, wire.DECIMAL})  # their content is a text


class Keeping(Codec):
    """A codec that keeps. `rename` may change the names of classes and their members."""

    def __init__(self, rename: Callable[[str], str] = str) -> None:
        super().__init__(_NoClasses(rename))

    def _builder(self, refs: Sequence[Any]) -> Callable[[int, Any], Any]:
        build = super()._builder(refs)

        def kept(code: int, content: Any) -> Any:
            if code in MOMENTS:
                return wire.Kept(code, content)
            return wire.Verbatim(code, content) if code in TEXTS else build(code, content)

        return kept


class _NoClasses(Types):
    """Knows no class, and keeps what was stored of each."""

    def __init__(self, rename: Callable[[str], str]) -> None:
        super().__init__()
        self._rename = rename

    def object_from(self, name: str, fields: dict[str, Any]) -> Any:
        return wire.Kept(wire.OBJECT, [self._rename(name), fields])

    def enum_from(self, name: str, member: str, value: Any) -> Any:
        named = member and self._rename(member)  # of combined flags it may be None
        return wire.Kept(wire.ENUM, [self._rename(name), named, value])
