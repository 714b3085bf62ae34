"""What was saved on this host while a server did not answer, brought into the store of that server.

Each checkpoint goes by itself, in the order in which it was saved and under its own id: a delivery
that was interrupted is repeated, and what is there already is left out. It comes on top of the
timeline that it was meant for, as it would have come in time. Where another host or directory has
saved later on that timeline, it goes under the next free name (NAME-2), and says so: the head that
is there must not be moved back to files of an earlier moment.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hardsave.defaults import MAX_DESCRIPTION
from hardsave.errors import Conflict, WorkspaceTaken
from hardsave.objects import envelope
from hardsave.objects.hashing import Hash
from hardsave.objects.records import CheckpointRecord, Id, TimelineRecord
from hardsave.stores.base import Batch, Move, Query
from hardsave.stores.workspaces import WorkspaceMove
from hardsave.timeline.refs import to_text
from hardsave.tuples import NamedTuple
from hardsave.vault.context import Context
from hardsave.vault.save.pin import Pin
from hardsave.vault.transfer import placing

if TYPE_CHECKING:
    from hardsave.vault.vault import Vault

_PAGE = 100
_ATTEMPTS = 20  # each time, another writer was quicker
_CHUNK_BYTES = 4 * 1024 * 1024
_CHUNK_OBJECTS = 500
_TOGETHER = 64  # objects that are read at once
_LOOK_BACK = 50  # checkpoints among which the last one of this directory is looked for


class Delivered(NamedTuple):
    """What has come of a delivery."""

    checkpoints: int
    beside: Mapping[str, str]  # timelines that had moved on elsewhere, and what goes beside them


class Left(NamedTuple):
    """What is still to be delivered."""

    checkpoints: int
    since: datetime | None  # when the first of them was saved
    timelines: tuple[str, ...]


class Target(NamedTuple):
    """Where one checkpoint goes."""

    base: TimelineRecord | None  # the timeline as it stands; None: it is made
    name: str
    parent: Id | None
    overtaken: str = ""  # the timeline that it was meant for, which had moved on


def deliver(
    source: "Vault", target: "Vault", after: int, done: Callable[[int], None] = lambda _: None
) -> Delivered:
    """Bring what `source` has saved after a commit into `target`. `done` is told the number of each
    commit of the source that has arrived."""
    return _Delivery(source._context, target._context).run(after, done)


def left(source: "Vault", after: int) -> Left:
    """What `source` has saved after a commit."""
    found = list(_saved(source._context, after))
    first = min((each.created_at for each in found), default=None)
    since = None if first is None else datetime.fromtimestamp(first / 1e6, UTC)
    return Left(len(found), since, tuple(dict.fromkeys(each.timeline for each in found)))


def _saved(source: Context, after: int) -> Iterator[CheckpointRecord]:
    while page := source.store.saved(source.user, after, _PAGE):
        yield from page
        after = page[-1].number


class _Delivery:
    def __init__(self, source: Context, target: Context) -> None:
        self._source = source
        self._target = target
        self._beside: dict[str, str] = {}
        self._made: set[Id] = set()

    def run(self, after: int, done: Callable[[int], None]) -> Delivered:
        for record in _saved(self._source, after):
            if not self._is_there(record.id):
                self._bring(record)
            self._made.add(record.id)
            done(record.number)
        return Delivered(len(self._made), self._beside)

    def _is_there(self, id: Id) -> bool:
        """Also if it was dropped since: then it is not brought back."""
        store, user = self._target.store, self._target.user
        return store.checkpoint(user, id) is not None or store.tombstone(user, id) is not None

    def _bring(self, record: CheckpointRecord) -> None:
        pin = Pin(self._target, "delivery")
        try:
            for _ in range(_ATTEMPTS):
                self._store(pin, record)
                try:
                    self._target.store.commit(self._batch(record))
                except Conflict:
                    continue  # what was decided on has changed: look again
                return
        finally:
            pin.give_back()
        raise Conflict(f"{to_text(record.id)} was overtaken {_ATTEMPTS} times; deliver it again")

    # Objects

    def _store(self, pin: Pin, record: CheckpointRecord) -> None:
        """Put what the target lacks, children before what leads to them."""
        pin.put({})  # from here on, nothing that is there goes
        lacking = self._lacking(record)[::-1]
        for chunk in self._chunks(lacking):
            pin.put(chunk)

    def _lacking(self, record: CheckpointRecord) -> list[Hash]:
        """What the target lacks of a checkpoint, from its roots down: an object that is there has
        all that it leads to."""
        found: dict[Hash, None] = {}
        level = list(dict.fromkeys(record.roots))
        while level:
            missing = self._target.store.missing(self._target.user, level)
            level = [address for address in level if address in missing]
            below: dict[Hash, None] = {}
            for part in _parts(level):
                for data in self._source.objects.fetch(part).values():
                    below.update(dict.fromkeys(envelope.refs(data)))
            for address in level:  # once more where it is met again further down
                found.pop(address, None)
                found[address] = None
            level = list(below)
        return list(found)

    def _chunks(self, addresses: list[Hash]) -> Iterator[dict[Hash, bytes]]:
        chunk: dict[Hash, bytes] = {}
        size = 0
        for address in addresses:
            chunk[address] = self._source.objects.fetch([address])[address]
            size += len(chunk[address])
            if size >= _CHUNK_BYTES or len(chunk) >= _CHUNK_OBJECTS:
                yield chunk
                chunk, size = {}, 0
        if chunk:
            yield chunk

    # The commit

    def _batch(self, record: CheckpointRecord) -> Batch:
        where = self._workspace(record)
        own = None if where is None else where.become.id
        to = self._place(record, own)
        seq = 1 if to.base is None else to.base.last_seq + 1
        new = record._replace(number=0, timeline=to.name, seq=seq, parent=to.parent, workspace=own)
        if to.overtaken:
            self._beside[to.overtaken] = to.name
            new = new._replace(description=_told(record.description, to.overtaken))
        attached = (self._source.user, [record.id])
        return Batch(
            user=self._target.user,
            event=new,
            move=Move(to.base, self._become(to, new, record.timeline)),
            requires=record.roots,
            labels=self._source.store.labels(*attached),
            notes=self._source.store.notes(*attached),
            workspaces=() if where is None else (where,),
        )

    def _become(self, to: Target, new: CheckpointRecord, called: str) -> TimelineRecord:
        there = self._source.store.timeline(self._source.user, called)
        title = "" if there is None else there.title
        if to.base is None:
            return TimelineRecord(to.name, new.id, 1, new.created_at, to.parent, False, title)
        return to.base._replace(
            head=new.id, last_seq=new.seq, is_deleted=False, title=to.base.title or title
        )

    def _workspace(self, record: CheckpointRecord) -> WorkspaceMove | None:
        """The workspace of the target that the files are of: the same directory of this host. One
        that was taken over is another host's now, and the directory a workspace of its own."""
        if record.workspace is None:
            return None
        places = self._target.places
        path = self._source.places.known(record.workspace).path
        try:
            return places.begun(places.of(path))
        except WorkspaceTaken:
            return places.begun(places.of(path))

    def _place(self, record: CheckpointRecord, own: bytes | None) -> Target:
        """Where a checkpoint goes, as the target stands now."""
        store, user = self._target.store, self._target.user
        before = None if record.parent is None else store.checkpoint(user, record.parent)
        name = record.timeline if before is None else before.timeline
        base = store.timeline(user, name)
        if base is None or base.head is None:
            return Target(base, name, None if before is None else before.id)
        if before is not None and (base.head == before.id or base.head in self._made):
            return Target(base, name, before.id)
        head = store.checkpoint(user, base.head)
        if head is None or not _is_overtaken(head, record, own):
            return Target(base, name, base.head)
        free = placing.free_name(name, lambda each: store.timeline(user, each) is not None)
        fork = before.id if before is not None else self._last_of(name, own)
        return Target(None, free, fork, overtaken=name)

    def _last_of(self, timeline: str, own: bytes | None) -> Id | None:
        """The newest on a timeline that has files of this directory; None if none of the last few
        has."""
        query = Query(timeline=timeline, limit=_LOOK_BACK)
        found = self._target.store.checkpoints(self._target.user, query)
        return next((each.id for each in found if own and each.workspace == own), None)


def _is_overtaken(head: CheckpointRecord, record: CheckpointRecord, own: bytes | None) -> bool:
    """Whether a head was saved later than a checkpoint that arrives, and not from its directory.
    The clocks of two hosts may differ: then what was saved at nearly the same time comes on top, as
    it would have without a server that did not answer, or goes beside."""
    return (own is None or head.workspace != own) and head.created_at > record.created_at


def _told(description: str, timeline: str) -> str:
    """The description of what goes beside a timeline."""
    told = f"beside {timeline!r}, which had moved on elsewhere"
    return (f"{told}: {description}" if description else told)[:MAX_DESCRIPTION]


def _parts(addresses: list[Hash]) -> Iterator[list[Hash]]:
    """So many that all of them may be in memory."""
    for start in range(0, len(addresses), _TOGETHER):
        yield addresses[start : start + _TOGETHER]
