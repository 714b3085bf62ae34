"""Finding checkpoints: refs, queries, ancestors. Reads a store, writes nothing."""

from collections.abc import Iterator
from itertools import chain

from hardsave.errors import Corrupt, Misuse, NotFound
from hardsave.objects.records import CheckpointRecord, Id, TimelineRecord, Tombstone
from hardsave.progress import check_deadline
from hardsave.stores.base import CheckpointGone, Query, Store
from hardsave.timeline import refs
from hardsave.timeline.names import numbered

PAGE = 1_000
FEW = 4  # ancestors, at first: most callers need the nearest alone
CANDIDATES = 10  # listed when a prefix is not unique


class History:
    """One user's checkpoints in a store."""

    def __init__(self, store: Store, user: str | None) -> None:
        self._store = store
        self._user = user

    def find(self, ref: str, timeline: str | None = None) -> CheckpointRecord:
        """The checkpoint that `ref` names; `@…` and names are looked up on `timeline`."""
        check_deadline()
        meant = refs.parse(ref)
        if isinstance(meant, refs.Back):
            found = self._back(ref, timeline, meant.steps)
        elif isinstance(meant, refs.Whole):
            found = self._store.checkpoint(self._user, meant.id)
        elif isinstance(meant, refs.Numbered):
            found = self._numbered(_where(meant, timeline), meant.seq)
        else:
            found = self._named(meant, timeline)
        if found is None:
            raise NotFound(self._not_found(ref, timeline, is_id=isinstance(meant, refs.Whole)))
        if found.is_hidden and not isinstance(meant, refs.Back):
            raise NotFound(f"checkpoint {ref!r} was deleted; undo may bring it back")
        return found

    def trace(self, ref: str) -> CheckpointRecord | Tombstone:
        """What an id or a numbered ref names, also if it was deleted, or what is left of it."""
        meant = refs.parse(ref)
        found: CheckpointRecord | Tombstone | None = None
        if isinstance(meant, refs.Whole):
            found = self._store.checkpoint(self._user, meant.id)
            found = found or self._store.tombstone(self._user, meant.id)
        elif isinstance(meant, refs.Numbered):
            found = self._numbered(meant.timeline, meant.seq)
            found = found or self._stone(meant.timeline, meant.seq)
        return self.find(ref) if found is None else found

    def ancestors(self, record: CheckpointRecord) -> Iterator[CheckpointRecord]:
        """The parents of `record`, nearest first, across forks.

        What was dropped, or deleted by itself, is passed over. The history that a fork has
        in common with a timeline that was deleted later is still its history.
        """
        child, parent, size = record.id, record.parent, FEW
        while parent is not None:
            check_deadline()
            if page := self._store.ancestors(self._user, parent, size):
                for found in page:
                    if not found.is_hidden or found.timeline != record.timeline or record.is_hidden:
                        yield found
                child, parent = page[-1].id, page[-1].parent
                size = min(PAGE, 4 * size)
                continue
            stone = self._store.tombstone(self._user, parent)
            if stone is None:
                raise Corrupt(
                    f"checkpoint {refs.to_text(parent)}, the parent of "
                    f"{refs.to_text(child)}, is missing; run verify"
                )
            child, parent = stone.id, stone.parent

    def children(self, record: CheckpointRecord) -> list[CheckpointRecord]:
        """What was saved on top of `record`, on any timeline, oldest first."""
        return self._store.children(self._user, record.id)

    def leaves(self, timeline: str) -> Iterator[CheckpointRecord]:
        """Checkpoints of a timeline that nothing of it was saved on top of, newest first."""
        parents: set[Id | None] = set()
        for record in self.line(timeline):  # children have higher numbers, and come first
            if record.id not in parents:
                yield record
            parents.add(record.parent)

    def line(self, timeline: str, *, hidden: bool = False) -> Iterator[CheckpointRecord]:
        """All checkpoints saved on a timeline, newest first."""
        before: int | None = None
        while True:
            query = Query(timeline=timeline, limit=PAGE, before_seq=before, hidden=hidden)
            check_deadline()
            rows = self._store.checkpoints(self._user, query)
            yield from rows
            if len(rows) < PAGE:
                return
            before = rows[-1].seq

    def latest(
        self, timeline: str, *, status: str | None, before: int | None
    ) -> CheckpointRecord | None:
        """The nearest of the head and its ancestors that has a status, and is older."""
        head = self.head(timeline)
        for record in [] if head is None else chain([head], self.ancestors(head)):
            if status in (None, record.status) and (before is None or record.created_at < before):
                return record
        return None

    def head(self, timeline: str) -> CheckpointRecord | None:
        """The head of a timeline; None if it has none."""
        return self.standing(timeline)[1]

    def standing(self, timeline: str) -> tuple[TimelineRecord | None, CheckpointRecord | None]:
        """Where a timeline stands, and its head."""
        gone: Id | None = None
        while True:
            record = self._store.timeline(self._user, timeline)
            if record is None or record.head is None:
                return record, None
            try:
                return record, self.at(record.head)
            except CheckpointGone as error:
                # The timeline moved on, and it was dropped, between two looks: look again.
                if record.head == gone:
                    raise Corrupt(
                        f"timeline {timeline!r} stands at {refs.to_text(gone)}, which was dropped; "
                        "rewind it to another checkpoint"
                    ) from error
                gone = record.head

    def timelines(
        self, *, deleted: bool = False, prefix: str = "", after: str | None = None
    ) -> Iterator[TimelineRecord]:
        """Those that are not deleted, by name; or all."""
        check_deadline()
        while rows := self._store.timelines(
            self._user, after, PAGE, deleted=deleted, prefix=prefix
        ):
            yield from rows
            check_deadline()
            after = rows[-1].name

    def at(self, id: Id) -> CheckpointRecord:
        """A checkpoint that must be there, because something stored points to it.

        `CheckpointGone` if it was dropped: what pointed to it has changed since.
        """
        found = self._store.checkpoint(self._user, id)
        if found is not None:
            return found
        if self._store.tombstone(self._user, id) is not None:
            raise CheckpointGone(f"checkpoint {refs.to_text(id)} was dropped meanwhile")
        raise Corrupt(f"checkpoint {refs.to_text(id)} is missing; run verify")

    def _back(self, ref: str, timeline: str | None, steps: int) -> CheckpointRecord | None:
        if timeline is None:
            raise Misuse(f"{ref!r} needs a timeline: write vault.timeline(name).load({ref!r})")
        found = self.head(timeline)
        ancestors = self.ancestors(found) if found is not None else iter(())
        for _ in range(steps):
            found = next(ancestors, None)
            if found is None:
                break
        return found

    def _numbered(self, name: str, seq: int) -> CheckpointRecord | None:
        if seq >= 1 << 63:
            return None
        query = Query(timeline=name, seq=seq, limit=1, hidden=True)
        rows = self._store.checkpoints(self._user, query)
        return rows[0] if rows else None

    def _stone(self, name: str, seq: int) -> Tombstone | None:
        if seq >= 1 << 62:
            return None
        stones = self._store.tombstones(self._user, name, seq + 1, 1)
        return stones[0] if stones and stones[0].seq == seq else None

    def _named(self, meant: refs.Named, timeline: str | None) -> CheckpointRecord | None:
        if timeline is not None:
            query = Query(timeline=timeline, name=meant.name, limit=1)
            rows = self._store.checkpoints(self._user, query)
            if rows:
                return rows[0]
        if meant.low is None or meant.high is None:
            return None
        rows = self._store.checkpoints_between(self._user, meant.low, meant.high, CANDIDATES + 1)
        if len(rows) > 1:
            raise Misuse(_ambiguous(meant.name, rows))
        return rows[0] if rows else None

    def _not_found(self, ref: str, timeline: str | None, *, is_id: bool) -> str:
        where = "" if timeline is None else f" on timeline {timeline!r}"
        names = {} if is_id else dict.fromkeys(self._names(timeline))  # an id is not mistyped
        if ref in names:
            return f"checkpoint {ref!r} not found here: a name is looked up on its timeline"
        near = _near(ref, list(names)) if names else []
        verb = "is" if len(near) == 1 else "are"
        hint = f"; the nearest {verb} {', '.join(map(repr, near))}" if near else ""
        if not hint and timeline is not None:
            last = self._store.timeline(self._user, timeline)
            hint = f"; its last number is {last.last_seq}" if last else "; nothing was saved there"
        elif (
            not hint and (meant := numbered(ref)) and not self._store.timeline(self._user, meant[0])
        ):
            hint = f": there is no timeline {meant[0]!r}; vault.timelines() lists them"
        return f"checkpoint {ref!r} not found{where}{hint}"

    def _names(self, timeline: str | None) -> list[str]:
        """What a mistyped ref may have meant: recent names, and numbers of known timelines."""
        names: list[str] = []
        for record in self._store.timelines(self._user, None, 100):
            if record.last_seq:
                names.append(f"{record.name}:{record.last_seq}")
            if record.name == timeline or timeline is None:
                recent = self._store.checkpoints(self._user, Query(timeline=record.name, limit=200))
                names += [row.name for row in recent if row.name is not None]
        return names


def _near(ref: str, names: list[str]) -> list[str]:
    import difflib  # only for a name that is mistyped: it takes a while to load

    return difflib.get_close_matches(ref, names, n=3, cutoff=0.5)


def _ambiguous(prefix: str, rows: list[CheckpointRecord]) -> str:
    shown = ", ".join(
        f"{refs.to_text(row.id)} ({row.timeline}:{row.seq})" for row in rows[:CANDIDATES]
    )
    more = " and more" if len(rows) > CANDIDATES else ""
    return f"{prefix!r} begins the ids of several checkpoints: {shown}{more}; write more of it"


def _where(meant: refs.Numbered, timeline: str | None) -> str:
    number = meant.seq
    if not meant.timeline and timeline is None:
        raise Misuse(f"':{number}' is a number on a timeline; say on which: TIMELINE:{number}")
    return meant.timeline or timeline or ""
