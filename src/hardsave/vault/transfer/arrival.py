"""What an import changes in a store, decided on what the store holds now.

Who is who
    A checkpoint is known by its id. One that is here is skipped, hidden or not: what was
    deleted here stays deleted. One that was dropped here comes back to its place.
    The file and the store must agree on the parent and the number of what both know, or
    history could run in circles.

Which timeline is which
    By name, or by what it holds: what was imported under another name once goes on there.
    `placing` decides whether it fits.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

from hardsave.errors import Corrupt
from hardsave.objects.records import (
    CheckpointRecord,
    Id,
    LogRecord,
    TimelineRecord,
    Tombstone,
    WorkspaceRecord,
)
from hardsave.stores.base import Batch, Changes, Move, Query
from hardsave.stores.workspaces import NO_HOST, WorkspaceMove
from hardsave.timeline.refs import to_text
from hardsave.tuples import NamedTuple
from hardsave.vault import operations
from hardsave.vault.context import Context
from hardsave.vault.scratch import Scratch
from hardsave.vault.transfer import archive, placing
from hardsave.vault.transfer.archive import Past
from hardsave.vault.transfer.placing import Arriving, Here, Relation

_PAGE = 500
_DATA = "SELECT data FROM past WHERE id = ?"

Attached = TypeVar("Attached")


class Brought(NamedTuple):
    """What an import has done."""

    timelines: tuple[str, ...]
    checkpoints: int
    skipped: int
    hidden: int
    renamed: Mapping[str, str]


class Plan:
    """What an import would change, decided on what the store holds now."""

    def __init__(self, context: Context, scratch: Scratch) -> None:
        self._context = context
        self._store = context.store
        self._user = context.user
        self._scratch = scratch
        self._latest = 0
        self._renamed: dict[str, str] = {}
        self.moves: dict[str, Move] = {}

    def decided(self) -> "Plan":
        newest = self._store.log_before(self._user, None, 1)
        self._latest = newest[0].number if newest else 0
        self._recognise()
        lines = list(self._lines())
        for line in lines:
            self._settle(line)
        for line in lines:
            self._bring_back(line)
        return self

    def _bring_back(self, line: TimelineRecord) -> None:
        """Timelines to which something returns that was dropped are listed again.

        A head moves only to what has returned, and only forwards, as for what is new.
        """
        returning = "SELECT DISTINCT home FROM past WHERE line = ? AND state = 'back'"
        arriving = self._arriving(line)
        here = self._here(arriving)
        for name in [name for (name,) in self._scratch.rows(returning, line.name)]:
            if name in self.moves:
                continue
            standing = self._standing(name)
            become = standing._replace(is_deleted=False)
            if here is not None and here.line == standing:
                head = placing.extended(arriving, here).head
                become = become._replace(head=head)  # its numbers were all given out before
            self.moves[name] = Move(standing, become)

    def batch(self, entry: Id) -> Batch:
        """The one commit of an import."""
        roots = self._scratch.rows(
            "SELECT root FROM news WHERE alive UNION "
            "SELECT snapshot FROM news WHERE snapshot IS NOT NULL"
        )
        hidden = self._scratch.rows("SELECT id FROM news WHERE alive AND hidden")
        checkpoints = _Checkpoints(self._scratch)
        tombstones = [
            Tombstone(*row)
            for row in self._scratch.rows(
                "SELECT id, home, seq, parent FROM past WHERE NOT alive AND state = 'new' "
                "ORDER BY place"
            )
        ]
        moves = tuple(self.moves.values())
        effects = operations.Effects(
            moves=moves,
            added=len(checkpoints) + len(tombstones),
            about={"checkpoints": len(checkpoints), "renamed": self._renamed},
        )
        data = operations.encode(effects)
        return Batch(
            user=self._user,
            event=LogRecord(0, entry, None, "import", self._context.clock(), data),
            requires=[root for (root,) in roots],
            changes=Changes(
                moves=moves,
                checkpoints=checkpoints,
                tombstones=tombstones,
                hide=[id for (id,) in hidden],
                keeps=self._relied_on(),
                latest=self._latest,
            ),
            workspaces=self._workspaces(),
            labels=_Beside(self._scratch, lambda past: past.labels),
            notes=_Beside(self._scratch, lambda past: past.notes),
        )

    def _workspaces(self) -> list[WorkspaceMove]:
        """Those that are not here come without a host: an import may name any directory it likes,
        and none is written to before this host has captured it."""
        every = self._scratch.rows("SELECT id, path FROM places ORDER BY id")
        return [
            WorkspaceMove(None, WorkspaceRecord(id, NO_HOST, path))
            for id, path in every
            if self._store.workspace(self._user, id) is None
        ]

    def brought(self) -> Brought:
        count = self._scratch.one
        new = count("SELECT count(*) FROM news WHERE alive")
        hidden = count("SELECT count(*) FROM past WHERE alive AND NOT hidden AND state = 'gone'")
        every = count("SELECT count(*) FROM past WHERE alive")
        return Brought(
            timelines=tuple(sorted(self.moves)),
            checkpoints=new,
            skipped=every - new,
            hidden=hidden,
            renamed=dict(self._renamed),
        )

    def _relied_on(self) -> list[Id]:
        """Checkpoints that are here, and that something new points at."""
        sql = (
            "SELECT DISTINCT p.id FROM news AS c JOIN past AS p ON p.id = c.parent "
            "WHERE p.state = 'here' AND p.alive"
        )
        heads = [move.become.head for move in self.moves.values()]
        new = "SELECT 1 FROM news WHERE id = ?"
        relied = {id for (id,) in self._scratch.rows(sql)}
        relied |= {id for id in heads if id is not None and self._scratch.row(new, id) is None}
        return sorted(id for id in relied if self._store.checkpoint(self._user, id) is not None)

    # What is here already

    def _recognise(self) -> None:
        """Say of everything in the file whether it is here, and where."""
        sql = (
            "SELECT place, id, seq, parent, alive FROM past WHERE place > ? ORDER BY place LIMIT ?"
        )
        after = 0
        while rows := list(self._scratch.rows(sql, after, _PAGE)):
            changes = [(*self._recognised(*row[1:]), row[0]) for row in rows]
            self._scratch.many("UPDATE past SET state = ?, home = ? WHERE place = ?", changes)
            after = rows[-1][0]

    def _recognised(
        self, id: Id, seq: int, parent: Id | None, is_alive: bool
    ) -> tuple[str, str | None]:
        found = self._store.checkpoint(self._user, id)
        known = found or self._store.tombstone(self._user, id)
        if known is None:
            return "new", None
        if (known.seq, known.parent) != (seq, parent):
            raise Corrupt(
                f"the file and the store disagree about checkpoint {to_text(id)}; "
                "one of them was not written by Hardsave"
            )
        if found is None:
            return "back" if is_alive else "here", known.timeline
        return "gone" if found.is_hidden else "here", found.timeline

    # Where timelines go

    def _settle(self, line: TimelineRecord) -> None:
        """Find a place for one timeline of the file."""
        arriving = self._arriving(line)
        if not arriving.newest and (arriving.is_known or self._is_taken(line.name)):
            return
        here = self._here(arriving)
        if here is not None and here.line.name not in self.moves and placing.fits(here):
            self._move(line.name, Move(here.line, placing.extended(arriving, here)))
            return
        name = line.name
        if self._is_taken(name):
            if not arriving.has_new_checkpoints and not self._is_leant_on(name):
                # Cleared elsewhere: nothing of it is to be seen, and nothing needs its places.
                sql = "UPDATE past SET state = 'left' WHERE line = ? AND state = 'new'"
                self._scratch.do(sql, name)
                return
            name = placing.free_name(name, self._is_named)
            self._renamed[line.name] = name
        self._move(line.name, Move(None, placing.created(arriving, name)))

    def _is_leant_on(self, line: str) -> bool:
        """Whether another timeline of the file leads to what is new of this one."""
        children = (
            "SELECT 1 FROM past AS p JOIN past AS c ON c.parent = p.id "
            "WHERE p.line = ?1 AND p.state = 'new' AND c.line != ?1 LIMIT 1"
        )
        forks = (
            "SELECT 1 FROM past AS p JOIN lines AS l ON p.id IN (l.head, l.origin) "
            "WHERE p.line = ?1 AND p.state = 'new' AND l.name != ?1 LIMIT 1"
        )
        return any(self._scratch.row(sql, line) is not None for sql in (children, forks))

    def _move(self, line: str, move: Move) -> None:
        name = move.become.name
        self.moves[name] = move
        self._scratch.do("UPDATE past SET home = ? WHERE line = ? AND state = 'new'", name, line)

    def _lines(self) -> Iterator[TimelineRecord]:
        for row in self._scratch.rows("SELECT * FROM lines ORDER BY name"):
            line = TimelineRecord._make(row)
            yield line._replace(is_deleted=bool(line.is_deleted))

    def _arriving(self, line: TimelineRecord) -> Arriving:
        head = self._shown(line)
        state = "SELECT state FROM past WHERE id = ?"
        known = "SELECT 1 FROM past WHERE line = ? AND state != 'new' LIMIT 1"
        new = "FROM past WHERE line = ? AND state = 'new'"
        first = self._scratch.row(f"SELECT parent {new} AND alive ORDER BY seq LIMIT 1", line.name)
        return Arriving(
            line=line._replace(head=head),
            newest=self._scratch.one(f"SELECT max(seq) {new}", line.name) or 0,
            has_new_checkpoints=first is not None,
            is_known=self._scratch.row(known, line.name) is not None,
            is_head_new=head is not None and self._scratch.one(state, head) in ("new", "back"),
            fork_point=None if first is None else first[0],
        )

    def _shown(self, line: TimelineRecord) -> Id | None:
        """Its head, or the nearest of its history that is not deleted here."""
        at = line.head
        while at is not None:
            state, is_alive, parent = self._scratch.row(
                "SELECT state, alive, parent FROM past WHERE id = ?", at
            ) or ("gone", 0, None)
            if is_alive and state != "gone":
                break
            at = parent
        return at

    def _candidate(self, name: str) -> str:
        """The timeline here that may be the same: by what it holds, or else by name."""
        newest = "SELECT home FROM past WHERE line = ? AND state != 'new' ORDER BY seq DESC LIMIT 1"
        return self._scratch.one(newest, name) or name

    def _here(self, arriving: Arriving) -> Here | None:
        line = self._store.timeline(self._user, self._candidate(arriving.line.name))
        if line is None:
            return None
        return Here(line, self._is_free(arriving, line), self._relation(arriving, line))

    def _is_free(self, arriving: Arriving, line: TimelineRecord) -> bool:
        sql = "SELECT seq FROM past WHERE line = ? AND state = 'new' AND seq <= ? ORDER BY seq"
        numbers = self._scratch.rows(sql, arriving.line.name, line.last_seq)
        return not any(self._is_given_out(line.name, seq) for (seq,) in numbers)

    def _is_given_out(self, name: str, seq: int) -> bool:
        query = Query(timeline=name, seq=seq, limit=1, hidden=True)
        if self._store.checkpoints(self._user, query):
            return True
        stones = self._store.tombstones(self._user, name, seq + 1, 1)
        return bool(stones) and stones[0].seq == seq

    def _relation(self, arriving: Arriving, line: TimelineRecord) -> Relation:
        theirs, ours = arriving.line.head, line.head
        if not arriving.is_known and line.last_seq and (ours is None or theirs is None):
            return "apart"  # two strangers, one of them cleared
        if ours is None:
            return "behind"
        if theirs is None or theirs == ours or self._leads_to(theirs, ours):
            return "ahead"
        return "behind" if self._is_behind(ours, theirs) else "apart"

    def _is_behind(self, ours: Id, theirs: Id) -> bool:
        """Whether our head is an ancestor of theirs: the file knows all of theirs."""
        depth = self._scratch.one("SELECT depth FROM past WHERE id = ?", ours)
        at: Any = theirs if depth is not None else None
        while at is not None and at != ours:
            sql = "SELECT CASE WHEN depth > ? THEN parent END FROM past WHERE id = ?"
            at = self._scratch.one(sql, depth, at)
        return at is not None

    def _leads_to(self, theirs: Id, ours: Id) -> bool:
        """Whether their head is an ancestor of ours: up from ours, as far as it can be."""
        depth = self._scratch.one("SELECT depth FROM past WHERE id = ?", theirs)
        at: Id | None = ours
        while at is not None and at != theirs:
            known = self._scratch.one("SELECT depth FROM past WHERE id = ?", at)
            if known is not None and known <= depth:
                return False  # what both know has the same ancestors in both
            record = self._store.checkpoint(self._user, at) or self._store.tombstone(self._user, at)
            at = None if record is None else record.parent
        return at is not None

    def _standing(self, name: str) -> TimelineRecord:
        found = self._store.timeline(self._user, name)
        if found is None:
            raise Corrupt(f"timeline {name!r} is missing; run verify")
        return found

    def _is_taken(self, name: str) -> bool:
        return name in self.moves or self._store.timeline(self._user, name) is not None

    def _is_named(self, name: str) -> bool:
        """Whether a timeline has this name, here or in the file."""
        in_file = "SELECT 1 FROM lines WHERE name = ?"
        return self._is_taken(name) or self._scratch.row(in_file, name) is not None


class _Beside(Mapping[Id, Attached]):
    """What belongs to the new checkpoints, read from the scratch when it is written."""

    def __init__(self, scratch: Scratch, which: Callable[[Past], Attached]) -> None:
        self._scratch = scratch
        self._which = which
        self._count = int(scratch.one("SELECT count(*) FROM news WHERE alive AND beside"))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Id]:
        sql = "SELECT id FROM news WHERE alive AND beside ORDER BY place"
        return (id for (id,) in self._scratch.rows(sql))

    def __getitem__(self, id: Id) -> Attached:
        return self._which(archive.to_past(self._scratch.one(_DATA, id)))


class _Checkpoints(Sequence[CheckpointRecord]):
    """What is new, read from the scratch when it is written: it may be more than fits in memory."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._count = int(scratch.one("SELECT count(*) FROM news WHERE alive"))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[CheckpointRecord]:
        sql = "SELECT data, home FROM news WHERE alive ORDER BY place"
        for data, home in self._scratch.rows(sql):
            record = archive.to_past(data).record
            assert isinstance(record, CheckpointRecord)
            yield record._replace(timeline=home)

    @overload
    def __getitem__(self, at: int) -> CheckpointRecord: ...
    @overload
    def __getitem__(self, at: slice) -> list[CheckpointRecord]: ...
    def __getitem__(self, at: int | slice) -> CheckpointRecord | list[CheckpointRecord]:
        return list(self)[at]
