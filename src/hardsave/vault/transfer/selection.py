"""Choosing what an export holds, and in which order.

What is chosen
    All that is visible on the timelines named, and the history of each: the parents of every
    checkpoint, across forks, as `@~n` finds them. Timelines that only lend their past come
    along up to the last number that is needed.
    The other numbers of these timelines, deleted or dropped ones and those that nothing
    needs, come as tombstones. So every parent that is named is in the file, and every number.

The order
    Checkpoints as they were committed, parents always first, then the tombstones that no
    checkpoint led to, by timeline and number. Importing commits them in the same order, so
    an export of an import is the same file again.

What has been saved since the first look is left out, and what is deleted or dropped since is in
it: records are kept as they were listed.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from hardsave.errors import Corrupt, NotFound
from hardsave.objects.frames import Counts
from hardsave.objects.hashing import Hash
from hardsave.objects.records import CheckpointRecord, Id, TimelineRecord, Tombstone
from hardsave.stores.base import Query
from hardsave.timeline.refs import to_text
from hardsave.tuples import NamedTuple
from hardsave.vault.context import Context
from hardsave.vault.scratch import Scratch
from hardsave.vault.transfer import archive
from hardsave.vault.transfer.archive import Past

TABLES = """
    CREATE TABLE lines (
        name TEXT PRIMARY KEY, head BLOB, last_seq INTEGER, created_at INTEGER, origin BLOB,
        deleted INTEGER, title TEXT, whole INTEGER
    ) WITHOUT ROWID;
    CREATE TABLE past (
        id      BLOB PRIMARY KEY,
        line    TEXT NOT NULL,
        seq     INTEGER NOT NULL,
        parent  BLOB,
        number  INTEGER,          -- of its commit; NULL: a tombstone
        hidden  INTEGER NOT NULL,
        whole   INTEGER NOT NULL, -- as its timeline's
        mark    INTEGER NOT NULL  -- see below
    ) WITHOUT ROWID;
    CREATE TABLE listed (
        id BLOB PRIMARY KEY, data BLOB NOT NULL, root BLOB NOT NULL, snapshot BLOB
    ) WITHOUT ROWID;
    CREATE INDEX past_by_seq ON past (line, seq);
    CREATE VIEW chosen AS         -- alive: as a checkpoint, not as a tombstone
        SELECT *, number IS NOT NULL AND (mark = 2 OR (whole AND NOT hidden)) AS alive FROM past;
    CREATE TABLE ordered (place INTEGER PRIMARY KEY, id BLOB UNIQUE);
"""
# Marks. What a deleted checkpoint is to its own timeline, and to one that was forked from it,
# differs: the first passes over it, to the second it is history.
_LISTED = 0
_OWN = 1  # the history of its own timeline leads to it
_NEEDED = 2  # the history of another one does
_PAGE = 500
_LINES_IN_MIND = 20_000

_PLACED = """
    SELECT o.place, c.id, c.line, c.seq, c.parent, c.alive, l.data, l.root, l.snapshot
    FROM ordered AS o JOIN chosen AS c ON c.id = o.id LEFT JOIN listed AS l ON l.id = o.id
    WHERE o.place > ? ORDER BY o.place LIMIT ?
"""


# Whether its parent has its place once all before it have theirs.
_COMMITTED = """
    SELECT c.id, c.parent IS NULL OR (p.alive AND p.number < c.number)
    FROM chosen AS c LEFT JOIN chosen AS p ON p.id = c.parent WHERE c.alive ORDER BY c.number
"""
_PLACE = "INSERT INTO ordered (id) VALUES (?)"


class Piece(NamedTuple):
    """A checkpoint or a tombstone of an export."""

    id: Id
    data: bytes  # as the file holds it
    roots: tuple[Hash, ...]  # what it leads to


class Selection:
    """What an export of one user's timelines holds, kept in a scratch."""

    def __init__(self, context: Context, scratch: Scratch) -> None:
        self._store = context.store
        self._user = context.user
        self._history = context.history
        self._places = context.places
        self._scratch = scratch
        self._last_seqs: dict[str, int] = {}

    def choose(self, timelines: Iterable[str] | None) -> Counts:
        """Decide what is in it; how much that is."""
        chosen = [self._begin(line, whole=True) for line in self._named(timelines)]
        if timelines is None:
            self._list_all()
        for line in chosen:
            self._list(line.name, line.last_seq, stones_alone=timelines is None)
        for line in chosen:
            self._mark_history(line)
        while self._explain():
            pass
        self._order()
        return self._counts()

    def timelines(self) -> Iterator[TimelineRecord]:
        """Where each timeline stands, as far as it is in the file, by name."""
        for *row, is_whole in self._scratch.rows("SELECT * FROM lines ORDER BY name"):
            line = TimelineRecord._make(row)
            line = line._replace(is_deleted=bool(line.is_deleted))
            yield line._replace(head=self._shown(line)) if is_whole else self._lent(line)

    def past(self) -> Iterator[Piece]:
        """Checkpoints and tombstones, each parent before its children."""
        after = 0
        while rows := list(self._scratch.rows(_PLACED, after, _PAGE)):
            for _, id, line, seq, parent, is_alive, data, *roots in rows:
                if is_alive:
                    yield Piece(id, data, tuple(root for root in roots if root is not None))
                else:
                    stone = Tombstone(id, line, seq, parent)
                    yield Piece(id, archive.from_past(Past(stone)), ())
            after = rows[-1][0]

    # Choosing

    def _named(self, timelines: Iterable[str] | None) -> Iterator[TimelineRecord]:
        if timelines is None:
            yield from self._history.timelines()
            return
        for name in dict.fromkeys(timelines):
            found = self._store.timeline(self._user, name)
            if found is None or found.is_deleted:
                raise NotFound(f"timeline {name!r} does not exist; vault.timelines() lists them")
            yield found

    def _begin(self, line: TimelineRecord, *, whole: bool) -> TimelineRecord:
        add = "INSERT OR IGNORE INTO lines VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        self._scratch.do(add, *line, whole)
        return line

    def _list_all(self) -> None:
        """Add the checkpoints of all timelines that were begun, in the order of their commits: each
        timeline by itself would lead to the same places of the store and the scratch again and
        again."""
        after = 0
        while rows := self._store.saved(self._user, after, _PAGE):
            self._add(row for row in rows if row.seq <= self._last_seq(row.timeline))
            after = rows[-1].number

    def _list(self, name: str, upto: int, *, stones_alone: bool = False) -> int:
        """Add the past of a timeline up to a number; how much of it was new."""
        added = 0
        before = upto + 1
        while not stones_alone:
            query = Query(timeline=name, limit=_PAGE, before_seq=before, hidden=True)
            rows = self._store.checkpoints(self._user, query)
            added += self._add(rows)
            if len(rows) < _PAGE:
                break
            before = rows[-1].seq
        before = upto + 1
        while stones := self._store.tombstones(self._user, name, before, _PAGE):
            added += self._add(stones)
            before = stones[-1].seq
        return added

    def _last_seq(self, name: str) -> int:
        """Up to which number a timeline that was begun is in the file; 0 for others."""
        if name not in self._last_seqs:
            if len(self._last_seqs) >= _LINES_IN_MIND:
                self._last_seqs.clear()
            sql = "SELECT last_seq FROM lines WHERE name = ?"
            self._last_seqs[name] = self._scratch.one(sql, name) or 0
        return self._last_seqs[name]

    def _add(self, records: Iterable[CheckpointRecord | Tombstone]) -> int:
        """List checkpoints and tombstones; how many were new."""
        listed: list[tuple[Any, ...]] = []
        past: list[tuple[Any, ...]] = []
        whole: dict[str, bool] = {}
        for record in records:
            if record.timeline not in whole:
                whole[record.timeline] = self._is_whole(record.timeline)
            number, is_hidden = None, False
            if isinstance(record, CheckpointRecord):
                number, is_hidden = record.number, record.is_hidden
                path = record.workspace and self._places.shown(record.workspace).path
                data = archive.from_past(Past(record, is_hidden, path))
                listed.append((record.id, data, record.root, record.snapshot))
            place = (record.id, record.timeline, record.seq, record.parent)
            past.append((*place, number, is_hidden, whole[record.timeline], _LISTED))
        self._scratch.many("INSERT OR IGNORE INTO listed VALUES (?, ?, ?, ?)", listed)
        return self._scratch.many(
            "INSERT OR IGNORE INTO past VALUES (?, ?, ?, ?, ?, ?, ?, ?)", past
        )

    def _is_whole(self, name: str) -> bool:
        """Whether a timeline is in the file for itself; one that is not is begun for its past."""
        found = self._scratch.one("SELECT whole FROM lines WHERE name = ?", name)
        if found is None:
            self._begin(self._standing(name), whole=False)
        return bool(found)

    def _mark_history(self, line: TimelineRecord) -> None:
        """Follow all parents of what is seen of a timeline, and of its head. On the timeline itself
        a parent comes before its child, so one way down through its numbers meets all; only what
        leads elsewhere is climbed step by step."""
        reached: set[Id | None] = {line.head}
        sql = (
            "SELECT id, parent, number IS NOT NULL AND NOT hidden FROM past WHERE line = ? "
            "ORDER BY seq DESC"
        )
        for id, parent, is_seen in self._scratch.rows(sql, line.name):
            if is_seen or id in reached:
                reached.discard(id)
                reached.add(parent)
        for left in reached:
            self._climb(left, line.name)

    def _climb(self, at: Id | None, name: str) -> None:
        """Mark the history of a timeline, from somewhere on."""
        line: str | None = name  # None from the first checkpoint of another timeline on
        while at is not None:
            row = self._scratch.row("SELECT line, parent, mark FROM past WHERE id = ?", at)
            if row is None:
                record = self._record(at)
                self._add([record])
                row = (record.timeline, record.parent, _LISTED)
            home, parent, mark = row
            line = line if line == home else None
            wanted = _OWN if line is not None else _NEEDED
            if mark >= wanted:
                return
            self._scratch.do("UPDATE past SET mark = ? WHERE id = ?", wanted, at)
            at = parent

    def _explain(self) -> bool:
        """List what tombstones lead to, and the numbers of lent timelines; whether any was new."""
        missing = (
            "SELECT parent FROM past WHERE parent IS NOT NULL AND parent NOT IN "
            "(SELECT id FROM past) UNION SELECT origin FROM lines WHERE origin IS NOT NULL "
            "AND origin NOT IN (SELECT id FROM past)"
        )
        lent = (
            "SELECT name, (SELECT max(seq) FROM past WHERE line = name) FROM lines WHERE NOT whole"
        )
        new = 0
        for (id,) in list(self._scratch.rows(missing)):
            new += self._add([self._record(id)])
        for name, upto in list(self._scratch.rows(lent)):
            new += self._list(name, upto or 0)
        return bool(new)

    def _order(self) -> None:
        """Give everything its place: as committed, but nothing before its parent."""
        early: set[Id] = set()  # placed before their turn
        batch: list[tuple[Id]] = []
        for id, is_next in self._scratch.rows(_COMMITTED):
            if id in early:
                continue
            batch.append((id,))
            if not is_next or len(batch) == _PAGE:
                *ready, (last,) = batch
                self._scratch.many(_PLACE, ready)
                early.update(self._place(last))
                batch = []
        self._scratch.many(_PLACE, batch)
        for (id,) in self._scratch.rows("SELECT id FROM chosen WHERE NOT alive ORDER BY line, seq"):
            self._place(id)

    def _place(self, id: Id | None) -> list[Id]:
        """Place a checkpoint behind those above it; what was placed."""
        chain: list[Id] = []
        while id is not None:
            if self._scratch.row("SELECT 1 FROM ordered WHERE id = ?", id) is not None:
                break
            chain.append(id)
            id = self._scratch.one("SELECT parent FROM past WHERE id = ?", id)
        self._scratch.many(_PLACE, [(each,) for each in chain[::-1]])
        return chain

    def _counts(self) -> Counts:
        alive = self._scratch.one("SELECT count(*) FROM chosen WHERE alive")
        every = self._scratch.one("SELECT count(*) FROM past")
        return Counts(self._scratch.one("SELECT count(*) FROM lines"), alive, every - alive)

    # Telling

    def _shown(self, line: TimelineRecord) -> Id | None:
        """The head, or the nearest of its history that is not deleted."""
        at = line.head
        sql = "SELECT parent, alive AND NOT (hidden AND line = ?) FROM chosen WHERE id = ?"
        while at is not None:
            parent, is_shown = self._scratch.row(sql, line.name, at) or (None, False)
            if is_shown:
                break
            at = parent
        return at

    def _lent(self, line: TimelineRecord) -> TimelineRecord:
        """A timeline that comes along for its past, up to the last number that is needed."""
        newest = "SELECT id, max(seq) FROM chosen WHERE line = ? AND alive AND NOT hidden"
        head, _ = self._scratch.row(newest, line.name) or (None, None)
        last = self._scratch.one("SELECT max(seq) FROM past WHERE line = ?", line.name) or 0
        return line._replace(head=head, last_seq=last, is_deleted=line.is_deleted or head is None)

    # Looking

    def _standing(self, name: str) -> TimelineRecord:
        found = self._store.timeline(self._user, name)
        if found is None:
            raise Corrupt(f"timeline {name!r} is missing; run verify")
        return found

    def _record(self, id: Id) -> CheckpointRecord | Tombstone:
        found = self._store.checkpoint(self._user, id) or self._store.tombstone(self._user, id)
        if found is None:
            raise Corrupt(f"checkpoint {to_text(id)} is missing; run verify")
        return found
