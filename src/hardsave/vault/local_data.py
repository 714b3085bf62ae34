"""What this host keeps of a user's store to be quick: the search index, the caches of workspaces.

A purge has to reach it on every host, and runs on one. So each host notes the last purge after
which its data were made; where the store has a later one, they are dropped before they are used. On
a store of one host the purge itself drops them, and nothing has to be noted.
"""

from pathlib import Path

from blake3 import blake3

from hardsave.errors import Unavailable
from hardsave.vault.context import Context


def drop(context: Context) -> None:
    """Drop it, whichever process of this host has made it."""
    latest = context.store.last_purge(context.user)
    context.search_index().erase()
    context.places.drop_caches()
    context.places.last_purge = latest
    if context.store.is_shared:
        _note(context, latest)


def drop_if_purged(context: Context) -> None:
    """Drop what was made before the last purge, if another host may have purged."""
    if not context.store.is_shared:
        return
    latest = context.store.last_purge(context.user)
    if _noted(context) != latest:
        drop(context)
    elif context.places.last_purge != latest:  # another process of this host has dropped the files
        context.places.forget_caches()
        context.places.last_purge = latest


def _noted(context: Context) -> int | None:
    """None: that is not known, and what is there may be from before any purge."""
    path = _path(context)
    if path is None:
        return context.places.last_purge
    try:
        return int(path.read_bytes())
    except FileNotFoundError:
        return 0
    except (OSError, ValueError):
        return None


def _note(context: Context, latest: int) -> None:
    path = _path(context)
    if path is None:
        return
    try:
        path.write_bytes(b"%d\n" % latest)
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be written: {error.strerror}; see to the disk, then repeat"
        ) from error


def _path(context: Context) -> Path | None:
    """Names of users are no names of files."""
    whose = "" if context.user is None else f"-{blake3(context.user.encode()).hexdigest(10)}"
    local = context.store.local(f"purge{whose}")
    return None if local is None else Path(local)
