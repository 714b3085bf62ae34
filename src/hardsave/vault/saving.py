"""Putting checkpoints on top of a timeline: the writing half of a handle.

    request → plan, on the head that was seen → attempt: one commit → outcome: the checkpoint

It expects the head that it last saw, and remembers what it saved last, so that the next save
costs only what is new. That is taken out of mind while a save is at work, and put back once the
commit stands: after an error it would speak of objects that may not be stored, and a signal
handler that saves in the middle would go on with what is only half noted.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, Union

from hardsave.defaults import MAX_METADATA_BYTES
from hardsave.errors import Conflict, Corrupt, LeaseLost, Misuse, WorkspaceTaken
from hardsave.logs import log
from hardsave.objects import envelope
from hardsave.objects.growth import Growth
from hardsave.objects.hashing import Hash
from hardsave.objects.levels import Out
from hardsave.objects.records import CheckpointRecord, Id, TimelineRecord, filled
from hardsave.objects.view import plain, view
from hardsave.stores.base import Batch, Move, ObjectsGone, WorkspaceMove, conflict_message, position
from hardsave.stores.ledger import Fence, Work
from hardsave.tasks import current
from hardsave.timeline import names
from hardsave.timeline.refs import to_text
from hardsave.timeline.step_summary import BRIEF, LINE, TITLE, StepSummary, beginning, line
from hardsave.tuples import NamedTuple
from hardsave.vault.arguments import whole_id
from hardsave.vault.checkpoint import Checkpoint, record_of
from hardsave.vault.context import Context
from hardsave.vault.parts import Parts
from hardsave.vault.pin import Pin
from hardsave.vault.step_summaries import (
    NOTHING,
    Heard,
    News,
    Told,
    brief,
    last_of,
    of_state,
    summed,
    told_by,
)

if TYPE_CHECKING:
    from hardsave.objects.shadow import Shadow
    from hardsave.vault.capturing import Taken, Taking

RUNNING: Final = "running"  # the status of a checkpoint that is given none


class AnyHead(Enum):
    """`expect=ANY_HEAD`: save on top of the head that there is by then."""

    ANY_HEAD = "any head"


ANY_HEAD: Final = AnyHead.ANY_HEAD
Expected = Checkpoint | str | AnyHead | None


class About(NamedTuple):
    """What a checkpoint says of itself, redacted and checked: all but its place and its state."""

    id: Id
    created_at: int
    name: str | None
    kind: str
    status: str | None  # None: that of the checkpoint which it stands on
    description: str
    metadata: bytes


Form = Literal["whole", "grown", "parts", "carried"]


class SaveRequest(NamedTuple):
    """What a caller wants to be saved: a `whole` state, a head's state `grown` by a delta, one that
    comes in `parts`, or the head's own, `carried` along with files."""

    about: About
    form: Form
    state: Any = None
    expect: Expected = None
    step: StepSummary | None = None  # what the caller knows of it; the rest is filled in
    title: str = ""  # for a timeline that has none

    @property
    def may_double(self) -> bool:
        """Whether to save it twice would have it twice in the state."""
        return self.form == "grown" or (self.form == "parts" and self.state.goes_on)


class SavePlan(NamedTuple):
    """A request on top of one head: ready to be committed, and what to remember once it is."""

    batch: Batch
    record: CheckpointRecord
    become: TimelineRecord
    memory: "Memory | None"
    told: Told | None  # of its summary, for the next one


class Receipt:
    """For a save that is made for a caller who may be gone before it is: a coroutine that was
    cancelled. Caller and save each set their own mark first, and then look at the other's."""

    def __init__(self, *, doubts: bool) -> None:
        self.id: Id | None = None  # of the checkpoint, once it is made
        self.is_refused = False  # the caller is not there any more to get it
        self.doubts = doubts  # whether to ask for it again would double it


class Unwanted(BaseException):
    """A save was not begun: its caller is gone, and may have saved something newer."""


receipt: ContextVar[Receipt | None] = ContextVar("hardsave_receipt", default=None)

Memory = Union["Shadow", Growth]
"""What is remembered of the state that was saved last."""

Built = tuple[Hash, Out, Memory | None]
"""The address of a state, its objects that may be new, and what to remember once that is saved."""


class Saving:
    """Saves on one timeline. Threads that share it take turns."""

    def __init__(
        self,
        context: Context,
        name: str,
        seen: TimelineRecord | None,
        once: Id | None = None,
    ) -> None:
        self._context = context
        self._name = name
        self._once = once  # the id of the one checkpoint to be made, perhaps by another already
        self.seen = seen
        self._memory: Memory | None = None
        self._grown_on: Hash | None = None  # the state that a growth remembers
        self._made: tuple[Id, Hash] | None = None  # the checkpoint that was saved last, its state
        self._told: tuple[Id, Told] | None = None  # of the summary of the head
        self._row: CheckpointRecord | None = None  # of the head, as it was looked up last
        self._is_warm = False  # whether most of what is built is stored already
        self._attempted: TimelineRecord | None = None  # by a save that did not return

    def save(self, request: SaveRequest, files: "Taking | None" = None) -> CheckpointRecord:
        """Plan a request on the head that was seen, and attempt that, as often as it takes."""
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

    @property
    def is_once(self) -> bool:
        """Whether its checkpoint has its id from the caller."""
        return self._once is not None

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
        self._row = head
        return head

    def _saved(
        self, request: SaveRequest, files: "Taking | None", pin: Pin | None
    ) -> CheckpointRecord:
        gone = 0  # how often objects that the plan relied on were not stored any more
        while True:
            if self._once is not None and (done := self._done(self._once)):
                return done
            was_grown = isinstance(self._memory, Growth)
            try:
                taken = None if files is None else files.take(afresh=gone > 0)
                record = self._attempt(self._plan(request, taken, pin, asks=gone == 0))
            except (Conflict, Corrupt) as error:
                gone = self._again(error, request, gone, was_grown=was_grown)
                continue
            if files is not None:
                files.done()
            return record if self._once is None else self._done(self._once) or record

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
        if isinstance(error, WorkspaceTaken):
            raise error
        if isinstance(error, LeaseLost):
            work = current.work(self._context.store, self._context.user)
            if work is not None:
                work.lost()
            raise error
        if isinstance(error, ObjectsGone):
            self._made = self._told = self._row = None  # or a text was purged from it
            if gone:
                raise Corrupt(f"{error}, but the head needs it; run verify") from error
            return 1  # what was remembered is collected by now: once more, with all of it
        if isinstance(error, Corrupt) and was_grown and gone == 0:
            self._told = self._row = None
            return 1  # a text may have been purged from what was remembered
        conflict = self._overtaken(error)
        if request.expect is None and self._follows():
            return gone
        if request.expect is not ANY_HEAD:
            raise Conflict(self._way_out(conflict)) from error
        self.look()
        return gone

    def _done(self, once: Id) -> CheckpointRecord | None:
        """What this save was to make, if it is there: made by another process, or just now.

        Looked up after the head was. A process that makes it later moves the head, and our commit
        is recognised by its id; it is not ours then.
        """
        return self._context.store.checkpoint(self._context.user, once)

    def _plan(
        self, request: SaveRequest, files: "Taken | None", pin: Pin | None, *, asks: bool
    ) -> SavePlan:
        """A request on top of the head last seen. Nothing is written, but for all parts of a state
        that comes in parts except its last, which go ahead under a pin."""
        base = self.seen
        heard = Heard()
        root, out, memory = self._built(request, base, pin, heard)
        summary, told = self._summary(request, base, memory, out, heard, files)
        record = self._record(request.about, base, root, summary)
        fresh, requires = self._split(root, out, asks=asks and not self._is_warm)
        where: tuple[WorkspaceMove, ...] = ()
        if files is not None:
            record = record._replace(snapshot=files.address, workspace=files.workspace)
            fresh = {**fresh, **files.objects}
            requires = (requires | files.requires) - fresh.keys()
            where = (files.where,)
        if isinstance(memory, Growth) and self._grown_on is not None:
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
        batch = Batch(self._context.user, record, Move(base, become), fresh, requires)
        if where:
            batch = batch._replace(workspaces=where)
        if work is not None:
            batch = batch._replace(work=Work(fences=(Fence(work.task, work.epoch),)))
        return SavePlan(batch, record, become, memory, told)

    def _attempt(self, plan: SavePlan) -> CheckpointRecord:
        """Commit a plan, and remember what it made."""
        batch, record, become, memory, told = plan
        self._attempted = become
        number = self._context.store.commit(batch)
        self._is_warm = True
        self._memory, self._grown_on = memory, record.root
        self._made = (record.id, record.root)
        self._told = None if told is None else (record.id, told)
        self.seen = become  # before the attempt is forgotten: Ctrl-C may strike in between
        self._attempted = None
        return CheckpointRecord(number, *record[1:])

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

    def _built(
        self, request: SaveRequest, base: TimelineRecord | None, pin: Pin | None, heard: Heard
    ) -> Built:
        form = request.form
        if form == "grown":
            growth = self._growth(base)
            return *growth.append(dict(request.state)), growth
        if form == "whole":
            return self._whole(request.state)
        if form == "carried":
            return self._carried(base)
        return self._in_parts(request.state, base, pin, heard)

    def _whole(self, state: Any) -> Built:
        from hardsave.objects.shadow import Shadow  # who only appends, or saves files, needs none

        shadow, self._memory = self._memory, None
        if not isinstance(shadow, Shadow):
            self._is_warm = False
            shadow = Shadow(self._context.objects.builder)
        return *shadow.save(state), shadow

    def _in_parts(
        self, parts: Parts, base: TimelineRecord | None, pin: Pin | None, heard: Heard
    ) -> Built:
        assert pin is not None
        if not parts.goes_on:
            self._memory, self._grown_on = self._growing(None), None
        growth = self._growth(base)
        return *parts.grown(heard.by(growth.append), pin.put), growth

    def _carried(self, base: TimelineRecord | None) -> Built:
        if base is None or base.head is None:
            return self._whole(None)
        memory, self._memory = self._memory, None
        return self._root_of(base.head), Out(), memory

    def _root_of(self, head: Id) -> Hash:
        """A purge gives a checkpoint another root: then the one that is known here is not stored
        any more, and the commit that relies on it is refused."""
        if self._made is not None and self._made[0] == head:
            return self._made[1]
        return self._context.history.at(head).root

    def _growth(self, base: TimelineRecord | None) -> Growth:
        """What grows on the head's state; out of mind until it is committed."""
        growth, self._memory = self._memory, None
        if not isinstance(growth, Growth):
            head = None if base is None else base.head
            root = None if head is None else self._context.history.at(head).root
            growth, self._grown_on = self._growing(root), root
        return growth

    def _growing(self, root: Hash | None) -> Growth:
        objects = self._context.objects
        return Growth(objects.builder, objects.verbatim, root)

    def about(
        self,
        name: str | None,
        kind: str | None,
        status: str | None,
        description: str,
        metadata: Mapping[str, Any] | None,
        *,
        carries: bool = False,
    ) -> About:
        """One that `carries` the state of the head has the head's status, if it is given none."""
        if status is None and not carries:
            raise Misuse("a status is text, not None")
        if self._context.objects.codec.redaction is not None:
            redacted = self._context.objects.redacted
            name, status, description = redacted(name), redacted(status), redacted(description)
        if name is not None:
            names.check_checkpoint(name)
        kind = names.check_kind(kind) if kind else ("automatic" if name is None else "manual")
        if status is not None and status is not RUNNING:
            names.check_status(status)
        if description != "":
            names.check_description(description)
        encoded = _EMPTY_MAP
        if metadata is not None and not isinstance(metadata, Mapping):
            raise Misuse(f"metadata is a dict, not {type(metadata).__name__}")
        if metadata:
            encoded = self._context.objects.codec.encode(dict(metadata), "metadata")
        if len(encoded) > MAX_METADATA_BYTES:
            raise Misuse(f"metadata takes at most {MAX_METADATA_BYTES} bytes; use the state")
        id, moment = self._once or self._context.new_id(), self._context.clock()
        return About(id, moment, name, kind, status, description, encoded)

    def _record(
        self, about: About, base: TimelineRecord | None, root: Hash, summary: bytes | None
    ) -> CheckpointRecord:
        """A checkpoint in its place."""
        id, moment, name, kind, status, description, metadata = about
        parent, seq = (None, 1) if base is None else (base.head, base.last_seq + 1)
        if status is None:
            status = self._status_of(parent)
        said = (name, kind, status, description, metadata)
        place = (0, id, self._name, seq, parent, moment)
        rest = (root, None, None, None, 0, 0, summary, 0)  # no files, no task, not hidden
        return filled(CheckpointRecord, (*place, *said, *rest))

    def _status_of(self, head: Id | None) -> str:
        return RUNNING if head is None else self._context.history.at(head).status

    # What lists tell

    def step(self, given: StepSummary | None) -> StepSummary | None:
        """What a caller knows of a step, as it is kept: cut, and without secrets."""
        if given is None:
            return None
        if not isinstance(given, StepSummary):
            raise Misuse(f"step is a StepSummary, not {type(given).__name__}")
        if given.phase not in ("", "before", "after"):
            raise Misuse(f"the phase of a step is 'before', 'after' or '', not {given.phase!r}")
        redacted = self._context.objects.redacted
        return StepSummary(
            prompt=beginning(redacted(given.prompt)),
            call=line(redacted(given.call)),
            call_id=line(redacted(given.call_id)),
            phase=given.phase,
            outside=tuple(line(redacted(each)) for each in given.outside),
        )

    def title(self, given: str) -> str:
        if not isinstance(given, str):
            raise Misuse(f"a title is text, not {type(given).__name__}")
        return line(self._context.objects.redacted(given), TITLE)

    def _summary(
        self,
        request: SaveRequest,
        base: TimelineRecord | None,
        memory: Memory | None,
        out: Out,
        heard: Heard,
        files: "Taken | None",
    ) -> tuple[bytes | None, Told | None]:
        """The summary of a checkpoint, and what the next one has to know of it. A state is any
        data: one that cannot be told of is saved all the same."""
        try:
            before = self._before(base)
            news = self._news(request, before, memory, out, heard)
            if files is None and request.step is None:
                return brief(news)
            return summed(news, request.step, before, files, self._context.objects.fetch)
        except (Corrupt, LookupError, TypeError, ValueError, AttributeError, RecursionError):
            log(__name__).warning("a checkpoint is saved without its summary", exc_info=True)
            return None, None

    def _before(self, base: TimelineRecord | None) -> Told:
        """What the summary of the head tells."""
        head = None if base is None else base.head
        if head is None:
            return NOTHING
        if self._told is None or self._told[0] != head:
            row = self._row
            if row is None or row.id != head:
                row = self._context.history.at(head)
            self._told = head, told_by(row, self._context.objects.reader_of(row))
        return self._told[1]

    def _news(
        self, request: SaveRequest, before: Told, memory: Memory | None, out: Out, heard: Heard
    ) -> News:
        """What is new in the conversation of a state."""
        form, state = request.form, request.state
        limit = LINE if form == "parts" or request.step is not None else BRIEF
        if form == "whole":
            items = of_state(state)
            if items is None:
                return News()
            count = len(items)
            new = count - (before.messages or 0)
            return News(count, new, *last_of(items, new, limit, self._plain))
        if form == "grown":
            heard.note(state)
        if heard.key is None or not isinstance(memory, Growth):
            return News(before.messages, 0, before.said, "", before.tools)
        count = memory.length(heard.key, out) or 0
        goes_on = form == "grown" or state.goes_on
        new = heard.new if goes_on else count - (before.messages or 0)
        said, prompt, tools = last_of(heard.items, heard.new, limit, self._plain)
        if not said and goes_on:
            called = before.tools if before.tools is not None else self._tools_of_head()
            said = f"after {called}" if called else before.said
        return News(count, new, said, prompt, tools)

    def _tools_of_head(self) -> str:
        """The tools that the last message of the head calls, whose results are all that is new."""
        root = self._grown_on
        items = None if root is None else of_state(view(self._context.objects.reader, root))
        return last_of([plain(items[-1])], 0, LINE, self._plain).tools if items else ""

    def _plain(self, message: Any) -> Any:
        """A message as it is read again, without secrets."""
        objects = self._context.objects
        if objects.codec.redaction is None and isinstance(message, dict | str):
            return message
        return objects.as_saved(message)

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

    def wanted(self) -> Receipt | None:
        """Before it is begun, and while no other thread can save in between. The receipt is for
        this save alone, and not for those of a handler that is told of it."""
        waiting = receipt.get()
        if waiting is None:
            return None
        receipt.set(None)
        if waiting.is_refused:
            raise Unwanted
        return waiting

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


_EMPTY_MAP = b"\x80"
