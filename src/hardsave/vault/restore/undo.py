"""Undo and redo, over the log, from any number of processes.

Contract. Each call takes back (or does again) one operation, whole, in one commit that holds
only if no other operation was logged meanwhile; if one was, it looks again. What it would
take back must still stand for every timeline that it touched. It is logged itself, so
nothing that it does is final. Refused, like a save, to an attempt that has lost its task.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from hardsave.actor import signature, signed
from hardsave.errors import Conflict, Corrupt, LeaseLost, NotFound
from hardsave.objects.records import CheckpointRecord, Id, LogRecord, TimelineRecord
from hardsave.page import Page, cursor_of
from hardsave.progress import check_deadline
from hardsave.record import Record
from hardsave.stores.base import Batch, CheckpointGone, Move, Query, position
from hardsave.tuples import NamedTuple
from hardsave.vault import fencing, operations, request_key
from hardsave.vault.arguments import check_limit, cursor
from hardsave.vault.context import Context
from hardsave.vault.operations import Entry, FilesMove, Lost
from hardsave.vault.request_key import Request

if TYPE_CHECKING:
    from hardsave.vault.restore.plan import FileChanges

_PAGE = 50
_FIRST_PAGE = 2  # mostly the newest is the one: fifty of other timelines need not be read
_ATTEMPTS = 100  # each time, another process has got an operation through


class Operation(Record):
    """Something that was done and can be taken back, or the taking back itself."""

    id: str
    kind: str
    timeline: str | None
    created_at: datetime
    number: int
    """Of its commit: operations are in this order."""
    is_undone: bool
    about: dict[str, Any]
    files: "FileChanges | None" = None
    """Of an undo or redo that was just done: what happened to files, and which were left as they
    are; None if it was not about files."""

    @property
    def by(self) -> str | None:
        """Who did it: see `hardsave.acting_as`. None if that was not said."""
        return signature(self.about)

    def __str__(self) -> str:
        where = f" of {self.timeline!r}" if self.timeline else ""
        return f"{self.kind}{where} at {self.created_at:%Y-%m-%d %H:%M:%S} UTC"


Choose = Callable[[Iterator[Entry], str | None], Entry | None]


def undo(context: Context, timeline: str | None, request: Request) -> Operation:
    """Take back the latest operation of a timeline; None: of all of this user's."""
    return _step(context, timeline, "undo", operations.next_undo, request)


def redo(context: Context, timeline: str | None, request: Request) -> Operation:
    """Do again what the latest undo took back."""
    return _step(context, timeline, "redo", operations.next_redo, request)


def page(context: Context, timeline: str | None, limit: int, after: str | None) -> Page[Operation]:
    """Operations, newest first. Whether one was undone is said by entries that are newer than it:
    a page further down reads these again."""
    check_limit(limit)
    listing = f"operations {context.user!r} {timeline!r}"
    last = cursor(after, listing)
    settled: dict[Id, bool] = {}
    found: list[Operation] = []
    for entry in entries(context, timeline):
        if not entry.touches(timeline):
            continue
        undone = settled.setdefault(entry.subject, entry.kind == "undo")
        if last is not None and entry.number >= last:
            continue
        if len(found) == limit:
            return Page(found, cursor_of(listing, found[-1].number))
        found.append(_public(entry, is_undone=undone and entry.kind != "undo"))
    return Page(found, None)


def entries(context: Context, timeline: str | None = None) -> Iterator[Entry]:
    """Operations in the log, newest first: all, or those that may be about a timeline."""
    before: int | None = None
    while rows := context.store.log_before(context.user, before, _PAGE, timeline):
        check_deadline()
        for row in rows:
            entry = operations.decode(row)
            if entry is not None:
                yield entry
        before = rows[-1].number


def unsettled(context: Context, timeline: str | None) -> Iterator[Entry]:
    """What touched a timeline, newest first, less what undos and redos among it have settled: a
    chain of undos costs what one does. Behind one that does not say what it has turned around
    nothing is left out: that may have been turned around again."""
    before: int | None = None
    turned: set[int] = set()  # entries that later ones have turned around: these settle nothing
    size, may_jump = _FIRST_PAGE, True
    while rows := context.store.log_before(context.user, before, size, timeline):
        for row in rows:
            if before is not None and row.number >= before:
                continue
            before = row.number
            entry = operations.decode(row)
            if entry is not None and entry.touches(timeline):
                yield entry
                may_jump = may_jump and not entry.is_silent
                if may_jump and entry.number not in turned:
                    before = entry.settles_from(timeline)
                turned.add(entry.effects.turned)
        size = min(size * 5, _PAGE)


def _step(
    context: Context, timeline: str | None, kind: str, choose: Choose, request: Request
) -> Operation:
    for _ in range(_ATTEMPTS):
        latest = _latest(context)
        met: list[Entry] = []
        entry = choose(_noted(unsettled(context, timeline), met), timeline)
        if entry is None:
            where = "" if timeline is None else f" on timeline {timeline!r}"
            raise NotFound(f"there is nothing to {kind}{where}; see operations()")
        _check_it_stands(context, entry, choose, timeline)
        try:
            on_any = timeline is None and operations.is_all_within(met, entry)
            return _take(context, entry, _Step(kind, request, latest, on_any, _lost(met, entry)))
        except _Moved:
            continue
        except CheckpointGone as error:
            raise NotFound(f"this {entry.kind} cannot be taken back any more: {error}") from error
    raise Conflict(f"other operations came first {_ATTEMPTS} times; try {kind} again")


def turned_before(context: Context, done: Entry) -> Operation:
    """What a step returned that was asked for with the same key."""
    turned = context.store.log(context.user, done.effects.turned - 1, 1)
    about = {"of": turned[0].kind} if turned else {}
    return _public(done, is_undone=False, about={**about, **_tasks(done), **done.effects.about})


def _noted(entries: Iterator[Entry], met: list[Entry]) -> Iterator[Entry]:
    for entry in entries:
        met.append(entry)
        yield entry


def _lost(met: list[Entry], entry: Entry) -> tuple[Lost, ...]:
    """What entries from one on have lost. The step that turns it around takes that along: later
    walks jump over them."""
    later = (each.effects.lost for each in met if each.number >= entry.number)
    return tuple(dict.fromkeys(chain.from_iterable(later)))


class _Step(NamedTuple):
    """An undo or a redo that is to be committed."""

    kind: str
    request: Request
    latest: int  # the number of the last entry when it was decided
    on_any: bool  # what came after that which it turns around is settled, on any timeline
    lost: tuple[Lost, ...]  # since then


class _Moved(Conflict):
    """Another process was faster: look again."""


def _check_it_stands(context: Context, entry: Entry, choose: Choose, timeline: str | None) -> None:
    """No timeline that it touched may have had an operation since. On the one that was asked for,
    and among all of them, it is the latest: so it was chosen."""
    others = {move.become.name for move in entry.effects.moves} - {timeline}
    if timeline is None or not others:
        return
    for name, later in _since(context, entry, others).items():
        other = choose(iter((*later, entry)), None)  # all of these are about it
        if other is None or other.id != entry.id:
            what = "another operation" if other is None else f"a later {other.kind}"
            raise Conflict(f"timeline {name!r} has had {what}; take that back first")


def _since(context: Context, entry: Entry, moved: set[str]) -> dict[str, list[Entry]]:
    """What came after an operation, newest first, by those of its timelines that it touched.

    One walk for all of them: an import may have brought thousands.
    """
    found: dict[str, list[Entry]] = {}
    for later in entries(context):
        if later.number <= entry.number:
            break
        for name in moved & later.timelines:
            found.setdefault(name, []).append(later)
    return found


def _take(context: Context, entry: Entry, step: _Step) -> Operation:
    if entry.effects.files is None:
        return _turned(context, entry, step)
    from hardsave.vault.restore.execution import attempt
    from hardsave.vault.restore.path_choice import turned  # with all that files need
    from hardsave.vault.restore.plan import plan_restore
    from hardsave.vault.restore.settling import settled

    place = context.places.still(entry.effects.files.workspace, f"then {step.kind} again")
    request = turned(context, entry, entry.effects.files, step.kind)
    with settled(context, place) as files:
        request_key.check_not_done(context, step.request)
        plan = plan_restore(context, place, request, files)
        if not plan.is_nothing:
            with attempt(context, place, plan, files, step.request.id) as restore:
                done = _turned(context, entry, step, restore.move)
            assert restore.outcome is not None
            return done.replace(files=restore.outcome.files)
    return _turned(context, entry, step).replace(files=plan.changes())


def _turned(
    context: Context, entry: Entry, step: _Step, files: FilesMove | None = None
) -> Operation:
    """Commit the turning around of an entry."""
    moved = [move.become.name for move in entry.effects.moves]
    standing = {name: _stands(context, name) for name in moved}
    again = {mark.checkpoint for mark in step.lost if mark.number in entry.effects.shown}
    hide = _added(context, entry) + _visible(context, sorted(again))
    newest = {
        move.become.name: _newest(context, move.become.name)
        for move in entry.effects.moves
        if standing[move.become.name].last_seq > move.become.last_seq
    }
    turn = operations.turn(
        entry, standing, newest=newest, hide=hide, latest=step.latest, files=files
    )
    effects = turn.effects._replace(
        on_any=step.on_any, lost=step.lost + turn.effects.lost, asked=step.request.asked
    )
    timeline = entry.timeline
    data = operations.encode(effects)
    record = LogRecord(0, step.request.id, timeline, step.kind, context.clock(), data)
    move = None if timeline is None or moved else _aside(context, timeline, files)
    try:
        batch = Batch(context.user, record, move, changes=turn.changes)
        number = _committed(context, batch, entry, step)
    except (CheckpointGone, request_key.MadeMeanwhile):
        raise
    except Conflict as error:
        if isinstance(error, LeaseLost) and fencing.is_lost(context):
            raise
        raise _Moved from error
    for each in (*effects.moves, *(() if move is None else (move,))):
        context.moves.note(each.become.name, position(each.expect), position(each.become))
    done = Entry(number, step.request.id, step.kind, timeline, record.created_at, effects)
    return _public(done, is_undone=False, about=signed({"of": entry.kind, **_tasks(entry)}))


def _aside(context: Context, name: str, files: FilesMove | None) -> Move | None:
    """Where the head goes that was saved for this alone, if nothing else moves it."""
    standing = context.store.timeline(context.user, name)
    if standing is None or files is None:
        return None
    become = operations.aside(standing, files, context.history.at(files.before))
    return None if become == standing else Move(standing, become)


def _committed(context: Context, batch: Batch, entry: Entry, step: _Step) -> int:
    """Commit it, with the tasks that the entry was about."""
    if not entry.effects.tasks:
        return request_key.commit(context, batch, step.request)
    from hardsave.vault.restore import (
        task_rollback as rollback,  # with the ledger, which few undos touch
    )

    work = rollback.turned(context, entry.effects.tasks, step.kind, batch.event.id)
    number = request_key.commit(context, batch._replace(work=work), step.request)
    rollback.told(context, [move.become for move in work.moves])
    return number


def _stands(context: Context, name: str) -> TimelineRecord:
    found = context.store.timeline(context.user, name)
    if found is None:
        raise Corrupt(f"timeline {name!r} is in the log and not in the store; run verify")
    return found


def _added(context: Context, entry: Entry) -> list[CheckpointRecord]:
    """The checkpoints that an operation brought."""
    count = entry.effects.added
    if not count:
        return []
    rows = context.store.saved(context.user, entry.number - count - 1, count)
    return [row for row in rows if row.number < entry.number]


def _newest(context: Context, name: str) -> int:
    """The highest number of a timeline that is to be seen; 0 if none is."""
    rows = context.store.checkpoints(context.user, Query(timeline=name, limit=1))
    return rows[0].seq if rows else 0


def _visible(context: Context, ids: list[Id]) -> list[CheckpointRecord]:
    found = (context.store.checkpoint(context.user, id) for id in ids)
    return [record for record in found if record is not None and not record.is_hidden]


def _latest(context: Context) -> int:
    rows = context.store.log_before(context.user, None, 1)
    return rows[0].number if rows else 0


def _public(entry: Entry, *, is_undone: bool, about: Mapping[str, Any] | None = None) -> Operation:
    return Operation(
        id="op_" + entry.id.hex(),
        kind=entry.kind,
        timeline=entry.timeline,
        created_at=datetime.fromtimestamp(entry.created_at / 1_000_000, UTC),
        number=entry.number,
        is_undone=is_undone,
        about={**entry.effects.about, **_tasks(entry)} if about is None else dict(about),
    )


def _tasks(entry: Entry) -> dict[str, Any]:
    """The tasks that it was about, if any."""
    names = [mark.task for mark in entry.effects.tasks]
    return {"tasks": names} if names else {}
