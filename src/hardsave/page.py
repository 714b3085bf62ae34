"""`Page`: some of a long listing, and where the rest begins.

A cursor is text that callers hand back and do not read: the place of the last item, and a mark of
the listing that it belongs to, so that one of another listing is refused instead of giving a page
that is not the next one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar, overload
from zlib import crc32

T = TypeVar("T")


class Page(Sequence[T]):
    """Some items, and `next`: the cursor of those that follow, None at the end."""

    def __init__(self, items: Iterable[T], following: str | None) -> None:
        self._items = list(items)
        self.next = following
        """Pass it as `after=` to get the next page; None on the last."""

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> list[T]: ...
    def __getitem__(self, at: int | slice) -> T | list[T]:
        return self._items[at]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Page):
            return NotImplemented
        return (self._items, self.next) == (other._items, other.next)

    __hash__ = None  # type: ignore[assignment] # as of a list: what it holds may have none

    def __repr__(self) -> str:
        return f"<page of {len(self)}{', more follow' if self.next else ''}>"


def every(read: Callable[[str | None], Page[T]]) -> Iterator[T]:
    """The items of all pages; `read` takes what `after=` takes."""
    page = read(None)
    yield from page
    while page.next is not None:
        page = read(page.next)
        yield from page


def cursor_of(listing: str, place: object) -> str:
    """The cursor of what follows on a place in a listing."""
    return f"{place}.{_mark(listing)}"


def place_of(listing: str, cursor: object) -> str | None:
    """The place that a cursor names; None if it is none of this listing."""
    if not isinstance(cursor, str):
        return None
    place, _, mark = cursor.rpartition(".")
    return place if place and mark == _mark(listing) else None


def _mark(listing: str) -> str:
    return f"{crc32(listing.encode('utf-8', 'surrogatepass')) & 0xFFFF:04x}"
