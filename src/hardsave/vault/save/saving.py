"""Putting checkpoints on top of a timeline: the writing half of a handle.

    request → plan, on the head that was seen → attempt: one commit → outcome: the checkpoint

It expects the head that it last saw, and remembers what it saved last, so that the next save
costs only what is new. That is taken out of mind while a save is at work, and put back once the
commit stands: after an error it would speak of objects that may not be stored, and a signal
handler that saves in the middle would go on with what is only half noted.
"""

from typing import TYPE_CHECKING, Any, Union

from hardsave.actor import actor
from hardsave.errors import Conflict, Corrupt, LeaseLost, WorkspaceTaken
from hardsave.objects import envelope
from hardsave.objects.growth import Growth
from hardsave.objects.hashing import Hash
from hardsave.objects.levels import Out
from hardsave.objects.records import CheckpointRecord, Id, TimelineRecord, filled
from hardsave.progress import check_deadline
from hardsave.stores.base import (
    NO_CHANGES,
    NO_LABELS,
    NO_NOTES,
    Batch,
    Move,
    ObjectsGone,
    conflict_message,
    position,
)
from hardsave.stores.ledger import NO_WORK, Fence, Work
from hardsave.stores.workspaces import WorkspaceMove
from hardsave.tasks import current
from hardsave.timeline import step_summary
from hardsave.timeline.refs import to_text
from hardsave.tuples import NamedTuple
from hardsave.vault.arguments import whole_id
from hardsave.vault.checkpoint import Checkpoint, record_of
from hardsave.vault.context import Context
from hardsave.vault.save.parts import Parts
from hardsave.vault.save.pin import Pin
from hardsave.vault.save.receipt import Receipt
from hardsave.vault.save.request import ANY_HEAD, RUNNING, About, CaptureGone, Expected, SaveRequest
from hardsave.vault.save.step_summaries import Heard, Summaries, Told

if TYPE_CHECKING:
    from hardsave.objects.shadow import Shadow
    from hardsave.vault.save.captured import Held
    from hardsave.vault.save.capturing import Taken, Taking


class SavePlan(NamedTuple):
    """A request on top of one head: ready to be committed, and what to remember once it is."""

    batch: Batch
    record: CheckpointRecord
    become: TimelineRecord
    memory: "Memory | None"
    told: Told | None  # of its summary, for the next one


Memory = Union["Shadow", Growth]
"""What is remembered of the state that was saved last."""

Built = tuple[Hash, Out, Memory | None]
"""The address of a state, its objects that may be new, and what to remember once that is saved."""


class Saving:
    """Saves on one timeline. Threads that share it take turns."""

    def __init__(self, context: Context, name: str, seen: TimelineRecord | None) -> None:
        self._context = context
        self._name = name
        self.seen = seen
        self._memory: Memory | None = None
        self._grown_on: Hash | None = None  # the state that a growth remembers
        self._made: tuple[Id, Hash] | None = None  # the checkpoint that was saved last, its state
        self._summaries = Summaries(context)
        self._is_warm = False  # whether most of what is built is stored already
        self._attempted: TimelineRecord | None = None  # by a save that did not return

    def save(self, request: SaveRequest, files: "Taking | Held | None" = None) -> CheckpointRecord:
        """Plan a request on the head that was seen, and attempt that, as often as it takes. If a
        checkpoint has the id that its caller has chosen, that one is returned."""
        if request.about.is_chosen and (done := self._done(request)):
            return done
        if request.expect is not None or self._attempted is not None:
            self._expect(request)
        if request.form != "parts":
            return self._saved(request, files, None)
        pin = Pin(self._context, "save")
        try:
            saved = self._saved(request, files, pin)
        except BaseException:
            pin.give_back(is_given_up=True)
            raise
        pin.give_back()
        return saved

    def _stands_on_own(self) -> bool:
        """Whether the head was made here, as far as this handle knows: the commit finds out."""
        return self._made is not None and self.seen is not None and self._made[0] == self.seen.head

    def look(self) -> None:
        """See where the timeline stands now."""
        self._see(self._standing())

    def head(self) -> CheckpointRecord | None:
        """The head as it is now; it counts as seen."""
        standing, head = self._context.history.standing(self._name)
        self._see(standing)
        self._summaries.row = head
        return head

    def _saved(
        self, request: SaveRequest, files: "Taking | Held | None", pin: Pin | None
    ) -> CheckpointRecord:
        gone = 0  # how often objects that the plan relied on were not stored any more
        while True:
            was_grown = isinstance(self._memory, Growth)
            try:
                taken = None if files is None else files.take(afresh=gone > 0)
                record = self._attempt(self._plan(request, taken, pin, asks=gone == 0))
            except (Conflict, Corrupt) as error:
                if request.about.is_chosen and (done := self._done(request)):
                    return done  # by another process, just now
                gone = self._again(error, request, gone, was_grown=was_grown)
                continue
            if files is not None:
                files.done()
            return self._ours(record, request) if request.about.is_chosen else record

    def _expect(self, request: SaveRequest) -> None:
        """Take up what the caller expects of the head, and settle what an attempt left open."""
        expect = request.expect
        if self._attempted is not None and expect is None and request.may_double:
            self._refuse_to_repeat(self._attempted)
        looks = expect is not None and not (request.form == "carried" and self._stands_on_own())
        if looks or self._attempted is not None:
            self._meet(expect)

    def _again(
        self, error: Conflict | Corrupt, request: SaveRequest, gone: int, *, was_grown: bool
    ) -> int:
        """Whether a plan that could not be committed is to be made anew, on which head, and how
        often objects were gone by now; else the error is raised."""
        if isinstance(error, WorkspaceTaken | CaptureGone):
            raise error
        if isinstance(error, LeaseLost):
            work = current.work(self._context.store, self._context.user)
            if work is not None:
                work.lost()
            raise error
        if isinstance(error, ObjectsGone):
            self._made = None  # or a text was purged from it
            self._summaries.forget()
            if gone:
                raise Corrupt(f"{error}, but the head needs it; run verify") from error
            return 1  # what was remembered is collected by now: once more, with all of it
        if isinstance(error, Corrupt) and was_grown and gone == 0:
            self._summaries.forget()
            return 1  # a text may have been purged from what was remembered
        conflict = self._overtaken(error)
        if request.expect is None and self._follows():
            return gone
        if request.expect is not ANY_HEAD:
            raise Conflict(self._way_out(conflict)) from error
        self.look()
        return gone

    def _done(self, request: SaveRequest) -> CheckpointRecord | None:
        """What has the id that a caller has chosen, if the same was saved before. One that was
        deleted is not given as if it had been saved now."""
        found = self._context.store.checkpoint(self._context.user, request.about.id)
        if found is not None:
            from hardsave.vault.save import chosen_id  # few saves come twice

            chosen_id.check_same(self._context, self._name, request, found)
        return found

    def _ours(self, record: CheckpointRecord, request: SaveRequest) -> CheckpointRecord:
        """What was committed under a chosen id. The store recognises an id that comes twice: then
        another process was quicker, and nothing of what is remembered here was written."""
        found = self._context.store.checkpoint(self._context.user, record.id)
        if found is None or found[1:-1] == record[1:-1]:
            return record
        self._memory = self._made = None
        self._summaries.forget()
        self.look()
        return self._done(request) or record

    def _plan(
        self, request: SaveRequest, files: "Taken | None", pin: Pin | None, *, asks: bool
    ) -> SavePlan:
        """A request on top of the head last seen. Nothing is written, but for all parts of a state
        that comes in parts except its last, which go ahead under a pin."""
        base, heard = self.seen, Heard()
        on = self._stands_on(request, base)
        root, out, memory = self._built(request, on, pin, heard)
        grown = memory if isinstance(memory, Growth) else None
        summary, told = self._summaries.of(request, on, (grown, self._grown_on), out, heard, files)
        record = self._record(request.about, base, on, root, summary)
        fresh, requires = self._split(root, out, asks=asks and not self._is_warm)
        where: tuple[WorkspaceMove, ...] = ()
        if files is not None:
            record = record._replace(snapshot=files.address, workspace=files.workspace)
            fresh = {**fresh, **files.objects}
            requires = (requires | files.requires) - fresh.keys()
            where = (files.where,)
        elif request.form == "copied":
            record, requires = _with_files(record, request.state, requires)
        by = actor()
        if by is not None or request.form == "copied":
            record = record._replace(summary=step_summary.signed(record.summary, by))
        if grown is not None and self._grown_on is not None:
            requires.add(self._grown_on)  # a text may have been purged from the head
        work = self._work()
        if work is not None:
            record = record._replace(
                task=work.task, generation=work.generation, attempt=work.attempt
            )
        if base is None:
            created_at, origin, title = record.created_at, None, request.title
        else:
            created_at, origin, title = base.created_at, base.origin, base.title or request.title
        place = (self._name, record.id, record.seq, created_at, origin, False, title)
        become = filled(TimelineRecord, place)
        move = filled(Move, (base, become))
        rest = (NO_CHANGES, NO_WORK, NO_LABELS, NO_NOTES, where)
        batch = filled(Batch, (self._context.user, record, move, fresh, requires, *rest))
        if request.attached is not None:
            labels, notes = request.attached
            batch = batch._replace(labels={record.id: labels}, notes={record.id: notes})
        if work is not None:
            batch = batch._replace(work=Work(fences=(Fence(work.task, work.epoch),)))
        return filled(SavePlan, (batch, record, become, memory, told))

    def _attempt(self, plan: SavePlan) -> CheckpointRecord:
        """Commit a plan, and remember what it made."""
        check_deadline()
        batch, record, become, memory, told = plan
        self._attempted = become
        number = self._context.store.commit(batch)
        self._is_warm = True
        self._memory, self._grown_on = memory, record.root
        self._made = (record.id, record.root)
        self._summaries.saved(record.id, told)
        self.seen = become  # before the attempt is forgotten: Ctrl-C may strike in between
        self._attempted = None
        return filled(CheckpointRecord, (number, *record[1:]))

    def _work(self) -> current.Standing | None:
        """The attempt that this save belongs to."""
        found = current.work(self._context.store, self._context.user)
        return None if found is None else found.standing()

    def _split(self, root: Hash, out: Out, *, asks: bool) -> tuple[dict[Hash, bytes], set[Hash]]:
        """What has to be stored, and what must be there already for it to make sense.

        A handle that has saved before makes little but news. One that has not may hold a
        whole state that is there already, and asks first; what it is told may be collected
        a moment later, so it asks only once.
        """
        if not asks:
            return out, (out.refs | {root}) - out.keys()
        missing = self._context.store.missing(self._context.user, out.keys())
        fresh = {address: data for address, data in out.items() if address in missing}
        pointed = {root}.union(*(envelope.unseal(data).refs for data in fresh.values()))
        return fresh, pointed - fresh.keys()

    # States

    def _stands_on(self, request: SaveRequest, base: TimelineRecord | None) -> Id | None:
        """The parent of what is to be saved: the head, unless the request names another."""
        head = None if base is None else base.head
        if request.parent is None or request.parent.id == head:
            return head
        self._forget_growth()  # it grows on the head
        return request.parent.id

    def _built(self, request: SaveRequest, on: Id | None, pin: Pin | None, heard: Heard) -> Built:
        form = request.form
        if form == "grown":
            growth = self._growth(on)
            return *growth.append(dict(request.state)), growth
        if form == "whole":
            return self._whole(request.state)
        if form == "carried":
            return self._carried(on)
        if form == "copied":
            self._forget_growth()
            memory, self._memory = self._memory, None
            return request.state.root, Out(), memory
        return self._in_parts(request.state, on, pin, heard)

    def _whole(self, state: Any) -> Built:
        from hardsave.objects.shadow import Shadow  # who only appends, or saves files, needs none

        shadow, self._memory = self._memory, None
        if not isinstance(shadow, Shadow):
            self._is_warm = False
            shadow = Shadow(self._context.objects.builder)
        return *shadow.save(state), shadow

    def _in_parts(self, parts: Parts, on: Id | None, pin: Pin | None, heard: Heard) -> Built:
        assert pin is not None
        if not parts.goes_on:
            self._memory, self._grown_on = self._growing(None), None
        growth = self._growth(on)
        return *parts.grown(heard.by(growth.append), pin.put), growth

    def _carried(self, on: Id | None) -> Built:
        if on is None:
            return self._whole(None)
        memory, self._memory = self._memory, None
        return self._root_of(on), Out(), memory

    def _root_of(self, head: Id) -> Hash:
        """A purge gives a checkpoint another root: then the one that is known here is not stored
        any more, and the commit that relies on it is refused."""
        if self._made is not None and self._made[0] == head:
            return self._made[1]
        return self._context.history.at(head).root

    def _growth(self, on: Id | None) -> Growth:
        """What grows on the state of a checkpoint; out of mind until it is committed."""
        growth, self._memory = self._memory, None
        if not isinstance(growth, Growth):
            root = None if on is None else self._context.history.at(on).root
            growth, self._grown_on = self._growing(root), root
        return growth

    def _growing(self, root: Hash | None) -> Growth:
        objects = self._context.objects
        return Growth(objects.builder, objects.verbatim, root)

    def _record(
        self,
        about: About,
        base: TimelineRecord | None,
        parent: Id | None,
        root: Hash,
        summary: bytes | None,
    ) -> CheckpointRecord:
        """A checkpoint in its place."""
        id, moment, name, kind, status, description, metadata, _ = about
        seq = 1 if base is None else base.last_seq + 1
        if status is None:
            status = self._status_of(parent)
        said = (name, kind, status, description, metadata)
        place = (0, id, self._name, seq, parent, moment)
        rest = (root, None, None, None, 0, 0, summary, 0)  # no files, no task, not hidden
        return filled(CheckpointRecord, (*place, *said, *rest))

    def _status_of(self, head: Id | None) -> str:
        return RUNNING if head is None else self._context.history.at(head).status

    # Heads

    def _standing(self) -> TimelineRecord | None:
        return self._context.store.timeline(self._context.user, self._name)

    def _see(self, standing: TimelineRecord | None) -> None:
        if position(standing) != position(self.seen):
            self._forget_growth()  # it grows on a head that is no longer the head
        self.seen = standing
        self._attempted = None

    def _forget_growth(self) -> None:
        if isinstance(self._memory, Growth):
            self._memory = None

    def doubt(self, id: Id) -> None:
        """The caller did not get this checkpoint. If it is the head all the same, it must not be
        doubled by one who asks again: as after a commit that did not return."""
        if self.seen is not None and self.seen.head == id:
            self._attempted = self.seen

    def hand_over(self, record: CheckpointRecord, waiting: Receipt | None) -> None:
        """Made, and no other thread can have saved on it yet."""
        if waiting is not None:
            waiting.id = record.id
            if waiting.is_refused and waiting.doubts:
                self.doubt(record.id)

    def _settle(self) -> None:
        """A save that failed or was interrupted may have been written all the same."""
        if self._attempted is None:
            return
        standing = self._standing()
        if position(standing) == position(self._attempted):
            self._see(standing)
        self._attempted = None

    def _refuse_to_repeat(self, attempted: TimelineRecord) -> None:
        """To append once more what was appended already would double it: look first.

        And look once: the leader of its round may write it at any moment. After this look that
        is a `Conflict`; a second look would take it for the head to append to.
        """
        if position(self._standing()) != position(attempted):
            self._attempted = None
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
            wanted = record_of(expect).id if isinstance(expect, Checkpoint) else whole_id(expect)
        if wanted is None or head == wanted:
            self._see(standing)
        else:
            raise Conflict(
                f"the head of timeline {self._name!r} is "
                f"{'nothing yet' if head is None else to_text(head)}, not {to_text(wanted)}; "
                "load() it, bring your state up to date, and save again"
            )

    def _follows(self) -> bool:
        """Whether only operations of this program have moved the head since it was seen, such as
        the checkpoint that a failed restore has made; then it is seen."""
        standing = self._standing()
        if not self._context.moves.lead(self.seen, standing):
            return False
        self._see(standing)
        return True

    def _overtaken(self, error: Conflict | Corrupt) -> Conflict:
        """What is missing from a head that is no longer the head may have been collected."""
        if isinstance(error, Conflict):
            return error
        standing = self._standing()
        if position(standing) == position(self.seen):
            raise error
        return Conflict(conflict_message(self._name, standing, self.seen))

    def _way_out(self, error: Conflict) -> str:
        return (
            f"{error}; load() its head, bring your state up to date and save again, or "
            "pass expect=hardsave.ANY_HEAD to save on top of it"
        )


def _with_files(
    record: CheckpointRecord, source: CheckpointRecord, requires: set[Hash]
) -> tuple[CheckpointRecord, set[Hash]]:
    """A copy of a checkpoint, with the files and the summary of that."""
    copied = record._replace(
        snapshot=source.snapshot, workspace=source.workspace, summary=source.summary
    )
    return copied, requires | set(source.roots)
