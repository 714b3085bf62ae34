"""A state that is too large to be held at once: it comes in parts, and makes one checkpoint."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hardsave.objects.hashing import Hash
from hardsave.objects.levels import Out
from hardsave.tuples import NamedTuple


class Parts(NamedTuple):
    """Takes the place of a state that is saved: each part is appended to those before it. All but
    the last are stored ahead of the checkpoint, so that only one of them is in memory."""

    again: Callable[[], Iterable[Mapping[str, Any]]]
    """All of them, one after the other. Asked again if a save has to begin anew."""
    goes_on: bool
    """Whether the first is appended to what the head has."""

    def grown(
        self,
        append: Callable[[dict[str, Any]], tuple[Hash, Out]],
        put: Callable[[Out], None],
    ) -> tuple[Hash, Out]:
        """The address of the whole, and the objects that may be new and were not put yet."""
        grown: tuple[Hash, Out] | None = None
        for part in self.again():
            if grown is not None:
                put(grown[1])
            grown = append(dict(part))
        return append({}) if grown is None else grown
