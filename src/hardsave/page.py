"""`Page`: some of a long listing, and where the rest begins."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar, overload

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

    def __repr__(self) -> str:
        return f"<page of {len(self)}{', more follow' if self.next else ''}>"
