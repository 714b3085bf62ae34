"""What this host keeps of a user's store: the search index, the caches of workspaces, the objects
that attempts at jobs have fetched, and what they have left.

A purge has to reach it on every host, and runs on one. So each host notes the last purge after
which its data were made; where the store has a later one, they are dropped before they are used. So
they are if the store is of another generation: they may tell of commits that are gone, and count on
from numbers that were given again. On a store of one host the purge itself drops them, and nothing
has to be noted.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from blake3 import blake3

from hardsave.errors import Unavailable
from hardsave.objects.records import CheckpointRecord
from hardsave.vault.context import Context
from hardsave.vault.workspaces.attempt_directories import AttemptDirectories

if TYPE_CHECKING:
    from hardsave.vault.workspaces.host_cache import HostCache
    from hardsave.workspace.snapshot.content import Fetch


def attempts_folder(context: Context) -> Path:
    """Where attempts at jobs have their directories, on a store that hosts share."""
    folder = _path(context, "attempts")
    if folder is None:
        raise Unavailable(
            "attempts at jobs need a folder for their files: give this user a home directory, or "
            "set XDG_CACHE_HOME to a directory that it can write to"
        )
    return folder


@contextmanager
def host_fetch(context: Context, source: CheckpointRecord) -> "Iterator[Fetch]":
    """A fetch for the objects of a checkpoint, which asks the store for those that this host has
    not fetched already. Where hosts do not share the store, it is on this disk itself."""
    drop_if_purged(context)
    mark, cache = _made_after(context), _host_cache(context)
    if cache is None:
        yield context.objects.fetch
        return

    def is_valid() -> bool:
        """No purge came before the cache was there to be dropped, or has taken the checkpoint."""
        now = context.store.checkpoint(context.user, source.id)
        return now is not None and now.snapshot == source.snapshot and _made_after(context) == mark

    with cache.before(context.objects.fetch, mark, is_valid) as fetch:
        yield fetch


def _host_cache(context: Context) -> "HostCache | None":
    path = _path(context, "contents") if context.store.is_shared else None
    if path is None:
        return None
    from hardsave.vault.workspaces.host_cache import HostCache  # needs a database

    return HostCache(path)


def drop(context: Context) -> None:
    """Drop it, whichever process of this host has made it."""
    made_after = _made_after(context)
    context.search_index().erase()
    context.places.drop_caches()
    context.places.made_after = made_after
    if context.store.is_shared:
        attempts = _path(context, "attempts")
        if attempts is not None:
            AttemptDirectories(attempts).drop()
        cache = _host_cache(context)
        if cache is not None:
            cache.drop()
        _note(context, made_after)


def drop_if_purged(context: Context) -> None:
    """Drop what was made before the last purge, if another host may have purged."""
    if not context.store.is_shared:
        return
    made_after = _made_after(context)
    if _noted(context) != made_after:
        drop(context)
    elif context.places.made_after != made_after:  # another process of this host has dropped it
        context.places.forget_caches()
        context.places.made_after = made_after


def _made_after(context: Context) -> bytes:
    """The last purge that there is, and the generation that the store is of."""
    latest = context.store.last_purge(context.user)
    return b"%d %s" % (latest, context.store.generation())


def _noted(context: Context) -> bytes | None:
    """None: that is not known, and what is there may be from before any purge."""
    path = _path(context, "purge")
    if path is None:
        return context.places.made_after
    try:
        return path.read_bytes()
    except OSError:
        return None


def _note(context: Context, made_after: bytes) -> None:
    path = _path(context, "purge")
    if path is None:
        return
    try:
        path.write_bytes(made_after)
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be written: {error.strerror}; see to the disk, then repeat"
        ) from error


def _path(context: Context, what: str) -> Path | None:
    """Names of users are no names of files."""
    whose = "" if context.user is None else f"-{blake3(context.user.encode()).hexdigest(10)}"
    local = context.store.local(f"{what}{whose}")
    return None if local is None else Path(local)
