"""The timeline that people use: save, append, load, fork.

Contract. A save that has returned is durable, and is the head. A handle expects the head
that it last saw: of two writers on one timeline exactly one wins, the other gets `Conflict`
and nothing is written for it. Threads that share a handle are served one after the other.
If a save is interrupted or fails, it is unknown whether it was written. The handle can be used
on: a `save` finds out by itself, an `append` that would double what was written is refused
until the head was looked at.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Final, TypeVar, overload

from hardsave.errors import Conflict, Corrupt, Misuse, NotFound
from hardsave.objects import envelope
from hardsave.objects.growth import Growth
from hardsave.objects.hashing import Hash
from hardsave.objects.levels import Out
from hardsave.objects.records import CheckpointRecord, TimelineRecord
from hardsave.objects.shadow import Shadow
from hardsave.stores.base import Batch, Move, ObjectsGone, Query, position
from hardsave.timeline import names
from hardsave.timeline.refs import to_text
from hardsave.vault import rewind, undo
from hardsave.vault.arguments import check_limit, cursor, microseconds, shaped, whole_id
from hardsave.vault.checkpoint import Checkpoint, Page
from hardsave.vault.context import Context
from hardsave.vault.events import EventName
from hardsave.vault.rewind import Rewind
from hardsave.vault.undo import Operation

T = TypeVar("T")

MAX_METADATA_BYTES = 64 * 1024


class AnyHead(Enum):
    """`expect=ANY_HEAD`: save on top of whatever the head is by then."""

    ANY_HEAD = "any head"


ANY_HEAD: Final = AnyHead.ANY_HEAD
Expected = Checkpoint | str | AnyHead | None


class Timeline:
    """A handle on one timeline. Made by `vault.timeline(name)`."""

    def __init__(self, context: Context, name: str, seen: TimelineRecord | None) -> None:
        self._context = context
        self._name = name
        self._seen = seen
        self._lock = threading.RLock()
        self._shadow: Shadow | None = None
        self._growth: Growth | None = None
        self._is_warm = False  # whether what shadow or growth remember is stored
        self._attempted: TimelineRecord | None = None  # by a save that did not return

    @property
    def name(self) -> str:
        return self._name

    @property
    def head(self) -> Checkpoint | None:
        """The newest checkpoint; None before the first save. Counts as having seen it."""
        with self._lock:
            self._look()
            if self._seen is None or self._seen.head is None:
                return None
            return self._context.checkpoint(self._context.history.at(self._seen.head))

    def __len__(self) -> int:
        """How many checkpoints were saved on it."""
        return self._context.store.count(self._context.user, self._name)

    def __repr__(self) -> str:
        return f"<timeline {self._name!r}>"

    def save(
        self,
        state: Any,
        *,
        name: str | None = None,
        kind: str | None = None,
        status: str = "running",
        description: str = "",
        metadata: Mapping[str, Any] | None = None,
        expect: Expected = None,
    ) -> Checkpoint:
        """Save a whole state. What has not changed since the last save costs a comparison."""
        about = self._about(name, kind, status, description, metadata)
        return self._write(lambda base: self._saved(state), about, expect)

    def append(
        self,
        delta: Mapping[str, Any],
        *,
        name: str | None = None,
        kind: str | None = None,
        status: str = "running",
        description: str = "",
        metadata: Mapping[str, Any] | None = None,
        expect: Expected = None,
    ) -> Checkpoint:
        """Save the head's state with `delta` added: lists grow, other keys are replaced.

        Costs what is in `delta`, however large the state has become.
        """
        if not isinstance(delta, Mapping):
            raise Misuse(f"append takes a dict of what is new, not {type(delta).__name__}")
        about = self._about(name, kind, status, description, metadata)
        if expect is None:
            self._refuse_to_repeat()
        return self._write(lambda base: self._grown(dict(delta), base), about, expect)

    @overload
    def load(self, ref: str = "@") -> Any: ...
    @overload
    def load(self, ref: str = "@", *, type: type[T]) -> T: ...
    def load(self, ref: str = "@", *, type: Any = None) -> Any:
        """The whole state of a checkpoint, as plain data or as a `type`."""
        with self._lock:
            if ref == "@":
                self._look()
            record = self._context.history.find(ref, self._name)
        state = self._context.objects.reader.load(record.root)
        return state if type is None else shaped(state, type)

    def get(self, ref: str = "@") -> Checkpoint:
        """The checkpoint that `ref` names on this timeline."""
        with self._lock:
            if ref == "@":
                self._look()
            return self._context.checkpoint(self._context.history.find(ref, self._name))

    def checkpoints(
        self,
        *,
        name: str | None = None,
        kind: str | None = None,
        status: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Page:
        """A page of checkpoints, newest first. `after` is the `next` of the page before."""
        check_limit(limit)
        query = Query(
            timeline=self._name,
            limit=limit + 1,  # one more, to know whether another page follows
            before_seq=cursor(after),
            name=name,
            kind=kind,
            status=status,
            since=microseconds(since),
            until=microseconds(until),
        )
        rows = self._context.store.checkpoints(self._context.user, query)
        more = len(rows) > limit
        shown = [self._context.checkpoint(row) for row in rows[:limit]]
        return Page(shown, str(rows[limit - 1].seq) if more else None)

    def ancestors(self, ref: str = "@") -> Iterator[Checkpoint]:
        """The path to the root: parents, nearest first, across forks."""
        for record in self._context.history.ancestors(self._find(ref)):
            yield self._context.checkpoint(record)

    def children(self, ref: str = "@") -> list[Checkpoint]:
        """What was saved on top of a checkpoint, on any timeline, oldest first."""
        found = self._context.history.children(self._find(ref))
        return [self._context.checkpoint(record) for record in found]

    def leaves(self) -> list[Checkpoint]:
        """The ends of its branches: checkpoints with nothing saved on top, newest first."""
        found = self._context.history.leaves(self._name)
        return [self._context.checkpoint(record) for record in found]

    def depth(self, ref: str = "@") -> int:
        """How many checkpoints lie between a checkpoint and its root."""
        return sum(1 for _ in self._context.history.ancestors(self._find(ref)))

    # Operations: each can be undone

    def fork(self, ref: str = "@", *, name: str) -> "Timeline":
        """A new timeline that starts at a checkpoint of this one. Copies nothing."""
        names.check_timeline(name)
        line = Timeline(self._context, name, rewind.fork(self._context, self._find(ref), name))
        self._context.events.tell("forked", line)
        return line

    def rewind(
        self,
        ref: str | None = None,
        *,
        status: str | None = None,
        before: datetime | None = None,
        dry_run: bool = False,
    ) -> Rewind:
        """Take the timeline back to a checkpoint. Removes nothing, and `undo` takes it back.

        Without a ref: to the latest with this `status`, saved `before` this moment, or both.
        """
        with self._lock:
            target = self._target(ref, status, microseconds(before))
            done = rewind.rewind(self._context, self._name, target, dry_run=dry_run)
            if done.moved:
                self._look()
        if done.moved:
            self._context.events.tell("rewound", done)
        return done

    def undo(self) -> Operation:
        """Take back the latest operation on this timeline. Saves made since stay reachable."""
        return self._stepped(undo.undo, "undone")

    def redo(self) -> Operation:
        """Do again what the latest undo took back, if no operation came after it."""
        return self._stepped(undo.redo, "redone")

    def clear(self) -> int:
        """Delete its checkpoints; its numbers go on. How many there were."""
        with self._lock:
            count = rewind.clear(self._context, self._name)
            self._look()
        self._context.events.tell("cleared", self)
        return count

    def delete(self) -> int:
        """Delete the timeline with its checkpoints. How many there were."""
        with self._lock:
            count = rewind.delete(self._context, self._name)
            self._look()
        self._context.events.tell("deleted", self)
        return count

    def _stepped(
        self, step: Callable[[Context, str | None], Operation], event: EventName
    ) -> Operation:
        with self._lock:
            done = step(self._context, self._name)
            self._look()
        self._context.events.tell(event, done)
        return done

    def _target(self, ref: str | None, status: str | None, before: int | None) -> CheckpointRecord:
        if ref is not None:
            if status is not None or before is not None:
                raise Misuse("rewind takes a ref, or a status and a time, not both")
            return self._find(ref)
        if status is None and before is None:
            raise Misuse("rewind needs a ref such as '@~1', a status, or a time")
        found = self._context.history.latest(self._name, status=status, before=before)
        if found is None:
            raise NotFound(f"timeline {self._name!r} has no checkpoint like that in its history")
        return found

    def _find(self, ref: str) -> CheckpointRecord:
        return self._context.history.find(ref, self._name)

    # Writing

    def _write(
        self,
        build: Callable[[TimelineRecord | None], tuple[Hash, Out]],
        about: Callable[[TimelineRecord | None, Hash], CheckpointRecord],
        expect: Expected,
    ) -> Checkpoint:
        with self._lock:
            self._meet(expect)
            record: CheckpointRecord | None = None
            gone = 0
            while record is None:
                try:
                    record = self._commit(build, about)
                except ObjectsGone as error:
                    gone += 1  # what was remembered is dropped by now: once more from the store
                    if gone > 1:
                        raise Corrupt(f"{error}, but the head needs it; run verify") from error
                except Conflict as error:
                    if expect is not ANY_HEAD:
                        raise Conflict(self._way_out(error)) from error
                    self._look()
            checkpoint = self._context.checkpoint(record)
        self._context.events.tell("checkpoint_saved", checkpoint)
        return checkpoint

    def _commit(
        self,
        build: Callable[[TimelineRecord | None], tuple[Hash, Out]],
        about: Callable[[TimelineRecord | None, Hash], CheckpointRecord],
    ) -> CheckpointRecord:
        """One attempt on top of the head last seen."""
        base = self._seen
        try:
            root, out = build(base)
            record = about(base, root)
            fresh, requires = self._split(root, out)
            become = TimelineRecord(
                self._name,
                record.id,
                record.seq,
                record.created_at if base is None else base.created_at,
                None if base is None else base.origin,
            )
            batch = Batch(
                user=self._context.user,
                event=record,
                move=Move(base, become),
                objects=fresh,
                requires=requires,
            )
            self._attempted = become
            number = self._context.store.commit(batch)
        except BaseException:
            self._shadow = self._growth = None  # they speak of objects that may not be stored
            raise
        self._is_warm = True
        self._seen = become  # before the attempt is forgotten: Ctrl-C may strike in between
        self._attempted = None
        return record._replace(number=number)

    def _split(self, root: Hash, out: Out) -> tuple[dict[Hash, bytes], set[Hash]]:
        """What has to be stored, and what must be there already for it to make sense.

        A handle that has saved before makes little but news. One that has not may hold a
        whole state that is there already, and asks first.
        """
        if self._is_warm:
            return out, (out.refs | {root}) - out.keys()
        missing = self._context.store.missing(self._context.user, out.keys())
        fresh = {address: data for address, data in out.items() if address in missing}
        pointed = {root}.union(*(envelope.unseal(data).refs for data in fresh.values()))
        return fresh, pointed - fresh.keys()

    def _saved(self, state: Any) -> tuple[Hash, Out]:
        self._growth = None
        if self._shadow is None:
            self._is_warm = False
            self._shadow = Shadow(self._context.objects.builder)
        return self._shadow.save(state)

    def _grown(self, delta: dict[Any, Any], base: TimelineRecord | None) -> tuple[Hash, Out]:
        self._shadow = None
        if self._growth is None:
            head = None if base is None or base.head is None else base.head
            root = None if head is None else self._context.history.at(head).root
            objects = self._context.objects
            self._growth = Growth(objects.builder, objects.verbatim, root)
        return self._growth.append(delta)

    def _about(
        self,
        name: str | None,
        kind: str | None,
        status: str,
        description: str,
        metadata: Mapping[str, Any] | None,
    ) -> Callable[[TimelineRecord | None, Hash], CheckpointRecord]:
        """Everything about a checkpoint but its place and its state, checked."""
        if name is not None:
            names.check_checkpoint(name)
        kind = names.check_kind(kind or ("automatic" if name is None else "manual"))
        names.check_status(status)
        names.check_description(description)
        encoded = _EMPTY_MAP
        if metadata is not None and not isinstance(metadata, Mapping):
            raise Misuse(f"metadata is a dict, not {type(metadata).__name__}")
        if metadata:
            encoded = self._context.objects.codec.encode(dict(metadata), "metadata")
        if len(encoded) > MAX_METADATA_BYTES:
            raise Misuse(f"metadata takes at most {MAX_METADATA_BYTES} bytes; use the state")
        id, moment = self._context.new_id(), self._context.clock()

        def record(base: TimelineRecord | None, root: Hash) -> CheckpointRecord:
            return CheckpointRecord(
                number=0,
                id=id,
                timeline=self._name,
                seq=1 if base is None else base.last_seq + 1,
                parent=None if base is None else base.head,
                created_at=moment,
                name=name,
                kind=kind,
                status=status,
                description=description,
                metadata=encoded,
                root=root,
            )

        return record

    # Heads

    def _look(self) -> None:
        """See where the timeline stands now."""
        self._see(self._standing())

    def _standing(self) -> TimelineRecord | None:
        return self._context.store.timeline(self._context.user, self._name)

    def _see(self, standing: TimelineRecord | None) -> None:
        if position(standing) != position(self._seen):
            self._growth = None  # it grows on a head that is no longer the head
        self._seen = standing
        self._attempted = None

    def _settle(self) -> None:
        """A save that failed or was interrupted may have been written all the same."""
        if self._attempted is None:
            return
        standing = self._standing()
        if position(standing) == position(self._attempted):
            self._see(standing)
        self._attempted = None

    def _refuse_to_repeat(self) -> None:
        """To append once more what was appended already would double it: look first."""
        with self._lock:
            attempted = self._attempted
            if attempted is None or position(self._standing()) != position(attempted):
                return
        raise Conflict(
            f"the save before this one did not return, but it was written as number "
            f"{attempted.last_seq} of timeline {self._name!r}; load() it before you append again"
        )

    def _meet(self, expect: Expected) -> None:
        """Take up the expectation that the caller names."""
        if expect is None:
            self._settle()
            return
        standing = self._standing()
        head = None if standing is None else standing.head
        wanted = head
        if expect is not ANY_HEAD:
            wanted = expect.record.id if isinstance(expect, Checkpoint) else whole_id(expect)
        if wanted is None or head == wanted:
            self._see(standing)
        else:
            raise Conflict(
                f"the head of timeline {self._name!r} is "
                f"{'nothing yet' if head is None else to_text(head)}, not {to_text(wanted)}; "
                "load() it, bring your state up to date, and save again"
            )

    def _way_out(self, error: Conflict) -> str:
        return (
            f"{error}; load() its head, bring your state up to date and save again, or "
            "pass expect=hardsave.ANY_HEAD to save on top of it"
        )


_EMPTY_MAP = b"\x80"
