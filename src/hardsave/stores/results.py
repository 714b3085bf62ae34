"""What a store answers about itself: how much it holds, and what a collection or a repair did."""

from hardsave.record import Record


class Stats(Record):
    """What a user has stored. `disk_bytes` is the size of the whole store with its backup;
    `own_bytes` is this user's share of it, in proportion to the size of the packs, less what the
    backup still holds of what its store has given back."""

    timelines: int
    checkpoints: int
    objects: int
    disk_bytes: int
    save_failures: int = 0
    """Saves that failed since this vault was opened. A store leaves it at 0."""
    tasks: int = 0
    """How many are in the ledger. A store leaves it at 0; the vault fills it in."""
    own_bytes: int = 0
    backup_bytes: int = 0
    """Of `disk_bytes`, those of the backup, which is a second copy of everything."""
    object_bytes: int = 0
    """How long the objects are together, before they are compressed."""


class Report(Record):
    """What `repair` found and did. Nothing wrong and nothing set aside: it was left as it is."""

    checkpoints: int
    """How many there are now."""
    unchecked: int
    """How many events were found only on pages without a valid checksum."""
    faults: tuple[str, ...]
    """What is lost or incomplete, one line each."""
    set_aside: str | None
    """Where the old file lies; None if it was left as it is."""

    @property
    def ok(self) -> bool:
        return not self.faults


class Collected(Record):
    """What a collection (`vault.store.gc()`) removed."""

    objects: int
    object_bytes: int
    """Their length together, uncompressed."""
    freed_bytes: int
    """By how much the store's files are smaller now."""
    left: tuple[str | None, ...] = ()
    """Users of whom something may be left, because a process holds a pin for them."""
