"""Operations on checkpoints as a store is asked for them, for tests of what reads the outcome."""

import os

from hardsave.objects.records import LogRecord
from hardsave.stores.base import Batch, Changes, Store
from hardsave.timeline.refs import from_text
from hardsave.vault.checkpoint import Checkpoint


def operate(store: Store, changes: Changes, *, user: str | None = None) -> int:
    """Commit an operation; its number."""
    entry = LogRecord(0, os.urandom(12), None, "operation", 1, b"\x80")
    return store.commit(Batch(user=user, event=entry, changes=changes))


def hide(store: Store, *checkpoints: Checkpoint, user: str | None = None) -> int:
    return operate(store, Changes(hide=[from_text(c.id) for c in checkpoints]), user=user)


def show(store: Store, number: int) -> int:
    return operate(store, Changes(show=[number]))


def drop(store: Store, *checkpoints: Checkpoint) -> int:
    return operate(store, Changes(drop=[from_text(c.id) for c in checkpoints]))
