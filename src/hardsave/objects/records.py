"""The rows that stores keep beside objects: plain, immutable, ready to be written.

They are tuples, and hold ids and times as stored, because a listing makes thousands of
them: what people see (`chk_…`, datetimes) is made when somebody looks.
"""

from typing import NamedTuple

from hardsave.objects.hashing import Hash

ID_BYTES = 12  # 96 random bits: unique on any machine, and its first digits tell ids apart

Id = bytes


class CheckpointRecord(NamedTuple):
    """One checkpoint. Its row is also the event of its save."""

    number: int  # the commit that wrote it; the store fills it in
    id: Id
    timeline: str
    seq: int
    parent: Id | None
    created_at: int  # microseconds since 1970, UTC
    name: str | None
    kind: str
    status: str
    description: str
    metadata: bytes
    root: Hash  # of the state
    snapshot: Hash | None = None  # of the captured files, if it has any
    workspace: bytes | None = None  # the directory that they are from
    hidden: int = 0  # above 0: by which commit; the store fills it in

    @property
    def roots(self) -> tuple[Hash, ...]:
        """What keeps its objects alive."""
        return (self.root,) if self.snapshot is None else (self.root, self.snapshot)

    @property
    def is_hidden(self) -> bool:
        """Deleted, and not gone yet. Below 0 it was hidden once, and shown again."""
        return self.hidden > 0


class Tombstone(NamedTuple):
    """What is left of a checkpoint that was dropped for good: its place in history."""

    id: Id
    timeline: str
    seq: int
    parent: Id | None


class LogRecord(NamedTuple):
    """Something that happened and is not a save."""

    number: int  # the commit that wrote it; the store fills it in
    id: Id
    timeline: str | None
    kind: str
    created_at: int
    data: bytes


class TimelineRecord(NamedTuple):
    """Where a timeline stands."""

    name: str
    head: Id | None
    last_seq: int  # the highest number ever given out
    created_at: int
    origin: Id | None  # the checkpoint it was forked from
    is_deleted: bool = False  # not listed, until something is saved on it again
