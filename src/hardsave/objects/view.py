"""Stored containers as read-only Python ones that read what is touched, when it is touched.

A container that was small enough to lie in one object comes as plain data; only split ones
come as views. A slice of a view is a plain list.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, overload

from hardsave.objects.conversions import revive_map
from hardsave.objects.hashing import Hash
from hardsave.objects.reader import Reader
from hardsave.objects.tree import Ref, Shape, Stored

_BATCH = 256


def view(reader: Reader, address: Hash) -> Any:
    """The value at `address`: plain if it is small, a view if it was split."""
    return _wrap(reader, reader.open(address))


def _wrap(reader: Reader, value: Any) -> Any:
    if not isinstance(value, Stored):
        return value
    if value.shape in (Shape.MAP, Shape.OBJECT):
        return StateMap(reader, value)
    if value.shape in (Shape.LIST, Shape.TUPLE):
        return StateList(reader, value)
    return reader.assemble(value, reader.resolve(reader.items(value, 0, value.length)))


def _shallow(reader: Reader, item: Any) -> Any:
    return view(reader, item) if type(item) is Ref else item


def plain(value: Any) -> Any:
    """A view's whole content as plain data; anything else as it is."""
    return value.load() if isinstance(value, StateMap | StateList) else value


class StateList(Sequence[Any]):
    """A stored list or tuple that is too large for one object. Smaller ones come as plain data;
    `checkpoint.read(path)` gives plain data of both."""

    def __init__(self, reader: Reader, stored: Stored) -> None:
        self._reader = reader
        self._stored = stored

    def __len__(self) -> int:
        return self._stored.length

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> list[Any]: ...
    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            chosen = range(len(self))[at]
            if not chosen:
                return []
            low, high = min(chosen), max(chosen) + 1
            items = self._reader.items(self._stored, low, high)[chosen.start - low :: chosen.step]
            return self._reader.resolve(items)
        place = range(len(self))[at]
        return _shallow(self._reader, self._reader.items(self._stored, place, place + 1)[0])

    def __iter__(self) -> Iterator[Any]:
        for low in range(0, len(self), _BATCH):
            yield from self[low : low + _BATCH]

    def __eq__(self, other: object) -> bool:
        return bool(self.load() == plain(other))

    __hash__ = None  # type: ignore[assignment] # as for list: equal to something mutable

    def __repr__(self) -> str:
        return f"<stored {self._stored.shape.name.lower()} of {len(self)}>"

    def load(self) -> Any:
        """All of it, as plain data."""
        items = self._reader.resolve(self._reader.items(self._stored, 0, len(self)))
        return self._reader.assemble(self._stored, items)

    def made(self, make: Callable[[Any], Any], known: MutableMapping[bytes, Any]) -> Any:
        """All of it, with each item as `make` makes it. An item that is stored by itself is kept in
        `known`, and is neither read nor made again: states of a timeline share most items."""
        items = self._reader.items(self._stored, 0, len(self))
        fresh = [each for each in items if type(each) is Ref and each not in known]
        known.update(zip(fresh, map(make, self._reader.resolve([*fresh])), strict=True))
        made = [known[each] if type(each) is Ref else make(each) for each in items]
        return self._reader.assemble(self._stored, made)


class StateMap(Mapping[Any, Any]):
    """A stored dict, or the fields of a stored object, if it is too large for one object. Smaller
    ones come as plain data; `checkpoint.read(path)` gives plain data of both. Keys keep their
    order."""

    def __init__(self, reader: Reader, stored: Stored) -> None:
        self._reader = reader
        self._stored = stored
        self._slots: dict[Any, Any] | None = None

    def _items(self) -> dict[Any, Any]:
        if self._slots is None:
            flat = self._reader.items(self._stored, 0, self._stored.length)
            self._slots = revive_map(flat)
        return self._slots

    def __len__(self) -> int:
        return self._stored.length

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items())

    def __contains__(self, key: object) -> bool:
        return key in self._items()

    def __getitem__(self, key: Any) -> Any:
        return _shallow(self._reader, self._items()[key])

    def __eq__(self, other: object) -> bool:
        return bool(self.load() == plain(other))

    __hash__ = None  # type: ignore[assignment] # as for dict: equal to something mutable

    def __repr__(self) -> str:
        return f"<stored {self._stored.shape.name.lower()} with keys {list(self)!r}>"

    def load(self) -> Any:
        """All of it, as plain data."""
        flat = [part for item in self._items().items() for part in item]
        return self._reader.assemble(self._stored, self._reader.resolve(flat))
