"""Whether a user of a store is one that it knows."""

from hardsave.errors import NotFound
from hardsave.stores.base import Store
from hardsave.timeline import names


def check(store: Store, user: str | None, *, create: bool) -> None:
    """`NotFound` if nothing of a user is stored, unless they are to begin now."""
    names.check_user(user)
    if user is None or create or _is_known(store, user):
        return
    raise NotFound(
        f"nothing is stored of user {user!r}: see how it is spelt, or begin it with create=True"
    )


def _is_known(store: Store, user: str) -> bool:
    """Whether anything was ever committed for them, and is left."""
    return any(read(user, 0, 1) for read in (store.saved, store.log, store.happened))
