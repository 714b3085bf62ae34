"""A store that several vaults share, as one of them has it: it can be given back alone.

A vault that is closed must not write any more, while the store stays open for the others. What a
vault was lent answers like the store itself, at no cost for a call, until it is given back.
"""

from collections.abc import Callable
from typing import Any, NoReturn, cast

from hardsave.errors import Misuse
from hardsave.stores.base import Store

_STORE = "_lent_store"


class _Lent:
    """All that a store offers, for as long as it is lent."""

    def __init__(self, store: Store) -> None:
        offered = {name: getattr(store, name) for name in dir(store) if not name.startswith("_")}
        vars(self).update(offered, **{_STORE: store})

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or _STORE in vars(self):
            raise AttributeError(name)
        raise Misuse("this vault is closed; open it again")


def lend(store: Store) -> tuple[Store, Callable[[], None]]:
    """The store for one more vault, and what gives it back."""
    lent = _Lent(store)
    return cast(Store, lent), vars(lent).clear


def is_same(one: Store, other: Store) -> bool:
    """Whether two vaults have the same store."""
    return _own(one) is _own(other)


def _own(store: Store) -> Any:
    return vars(store).get(_STORE, store)
