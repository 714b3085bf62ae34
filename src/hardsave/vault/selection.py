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

from hardsave.errors import Corrupt, NotFound
from hardsave.objects.frames import Counts
from hardsave.objects.hashing import Hash
from hardsave.objects.records import CheckpointRecord, Id, TimelineRecord, Tombstone
from hardsave.stores.base import Query
from hardsave.timeline.refs import to_text
from hardsave.tuples import NamedTuple
from hardsave.vault import archive
from hardsave.vault.archive import Past
from hardsave.vault.context import Context
from hardsave.vault.scratch import Scratch

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

_PLACED = """
    SELECT o.place, c.id, c.line, c.seq, c.parent, c.alive, l.data, l.root, l.snapshot
    FROM ordered AS o JOIN chosen AS c ON c.id = o.id LEFT JOIN listed AS l ON l.id = o.id
    WHERE o.place > ? ORDER BY o.place LIMIT ?
"""


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

    def choose(self, timelines: Iterable[str] | None) -> Counts:
        """Decide what is in it; how much that is."""
        chosen = [self._begin(line, whole=True) for line in self._named(timelines)]
        for line in chosen:
            self._list(line.name, line.last_seq)
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

    def _list(self, name: str, upto: int) -> int:
        """Add the past of a timeline up to a number; how much of it was new."""
        added = 0
        before = upto + 1
        while True:
            query = Query(timeline=name, limit=_PAGE, before_seq=before, hidden=True)
            rows = self._store.checkpoints(self._user, query)
            added += sum(self._add(row, _LISTED) for row in rows)
            if len(rows) < _PAGE:
                break
            before = rows[-1].seq
        before = upto + 1
        while stones := self._store.tombstones(self._user, name, before, _PAGE):
            added += sum(self._add(stone, _LISTED) for stone in stones)
            before = stones[-1].seq
        return added

    def _add(self, record: CheckpointRecord | Tombstone, mark: int) -> int:
        is_whole = self._scratch.one("SELECT whole FROM lines WHERE name = ?", record.timeline)
        if is_whole is None:
            self._begin(self._standing(record.timeline), whole=False)
        number, is_hidden = None, False
        if isinstance(record, CheckpointRecord):
            number, is_hidden = record.number, record.is_hidden
            path = record.workspace and self._places.shown(record.workspace).path
            data = archive.from_past(Past(record, is_hidden, path))
            keep = "INSERT OR IGNORE INTO listed VALUES (?, ?, ?, ?)"
            self._scratch.do(keep, record.id, data, record.root, record.snapshot)
        return self._scratch.do(
            "INSERT OR IGNORE INTO past VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            *(record.id, record.timeline, record.seq, record.parent),
            *(number, is_hidden, bool(is_whole), mark),
        )

    def _mark_history(self, line: TimelineRecord) -> None:
        """Follow all parents of what is seen of a timeline, and of its head."""
        self._climb(line.head, line.name)
        sql = "SELECT parent FROM past WHERE line = ? AND number IS NOT NULL AND NOT hidden"
        for parent in [parent for (parent,) in self._scratch.rows(sql, line.name)]:
            self._climb(parent, line.name)

    def _climb(self, at: Id | None, name: str) -> None:
        """Mark the history of a timeline, from somewhere on."""
        line: str | None = name  # None from the first checkpoint of another timeline on
        while at is not None:
            row = self._scratch.row("SELECT line, parent, mark FROM past WHERE id = ?", at)
            if row is None:
                record = self._record(at)
                self._add(record, _LISTED)
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
            new += self._add(self._record(id), _LISTED)
        for name, upto in list(self._scratch.rows(lent)):
            new += self._list(name, upto or 0)
        return bool(new)

    def _order(self) -> None:
        """Give everything its place: as committed, but nothing before its parent."""
        checkpoints = "SELECT id FROM chosen WHERE alive ORDER BY number"
        others = "SELECT id FROM chosen WHERE NOT alive ORDER BY line, seq"
        for sql in (checkpoints, others):
            for (id,) in self._scratch.rows(sql):
                self._place(id)

    def _place(self, id: Id | None) -> None:
        chain: list[Id] = []
        while id is not None:
            if self._scratch.row("SELECT 1 FROM ordered WHERE id = ?", id) is not None:
                break
            chain.append(id)
            id = self._scratch.one("SELECT parent FROM past WHERE id = ?", id)
        self._scratch.many("INSERT INTO ordered (id) VALUES (?)", [(each,) for each in chain[::-1]])

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
