"""Taking a timeline back, and taking it away. Nothing is removed: heads move, rows are hidden.

Contract. Each is one commit, logged as an operation, and `undo` turns it around. They work
on the timeline as it stands when they commit: another writer's save in between is looked at
again, not overlooked.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from hardsave.actor import actor
from hardsave.errors import Conflict, LeaseLost, Misuse, NotFound
from hardsave.objects.records import (
    CheckpointRecord,
    Id,
    LogRecord,
    TaskRecord,
    TimelineRecord,
    WorkspaceRecord,
)
from hardsave.progress import check_deadline
from hardsave.record import Record
from hardsave.stores import requests
from hardsave.stores.base import Batch, Changes, CheckpointGone, Move, position
from hardsave.stores.ledger import NO_WORK, Work
from hardsave.stores.workspaces import WorkspaceMove
from hardsave.timeline import step_summary
from hardsave.timeline.refs import to_text
from hardsave.tuples import NamedTuple
from hardsave.vault import fencing, operations, request_key
from hardsave.vault.checkpoint import Checkpoint
from hardsave.vault.context import Context
from hardsave.vault.operations import Effects, Entry, FilesMove
from hardsave.vault.request_key import Request
from hardsave.vault.restore import task_rollback as rollback
from hardsave.vault.restore.rewind_request import How, Promise
from hardsave.vault.restore.task_rollback import RolledBack, Rolling
from hardsave.vault.workspaces.places import OtherHost

if TYPE_CHECKING:
    from hardsave.vault.restore.not_saved import Checkout, NotSaved
    from hardsave.vault.restore.plan import FileChanges
    from hardsave.vault.workspaces.place import Place

_PAGE = 1_000
_ATTEMPTS = 100


class Rewind(Record):
    """What a rewind did, or would do."""

    timeline: str
    before: Checkpoint | None
    """The head until then, or what was saved of the present before files were touched. It
    stays reachable: by its id, its number, and `undo`."""
    target: Checkpoint
    """The checkpoint gone back to; the head now, if the state was to go back."""
    moved: bool
    """Whether the head moved: not if it was there already, or if this was a dry run."""
    files: "FileChanges | None" = None
    """What happened, or would happen, to files; None if none were to be restored."""
    tasks: tuple[RolledBack, ...] = ()
    """Those that are, or would be, rolled back."""
    plan: str = ""
    """Of a dry run: what it would do, as a text. `rewind(…, expect=plan)` with the same arguments
    does that, or refuses, if the head, the files or the tasks are not as they were."""

    @property
    def messages_left(self) -> int | None:
        """How many messages the head has more than the target; None if that is not known."""
        ends = [each.summary for each in (self.before, self.target) if each is not None]
        counts = [None if each is None else each.messages for each in ends]
        if len(counts) < 2 or counts[0] is None or counts[1] is None:
            return None
        return max(0, counts[0] - counts[1])

    @property
    def not_saved(self) -> "tuple[NotSaved, ...]":
        """Files that the target did not save and that do not come back."""
        return () if self.files is None else self.files.not_saved

    @property
    def checkout(self) -> "Checkout | None":
        """That git was on another branch then, and stays on the one it is on."""
        return None if self.files is None else self.files.checkout


class _Plan(NamedTuple):
    """What one operation is to do to a timeline."""

    become: TimelineRecord
    hide: tuple[Id, ...] = ()
    keeps: tuple[Id, ...] = ()
    about: Mapping[str, Any] = {}  # never changed
    files: FilesMove | None = None
    is_about_files: bool = False  # then undo leaves the head where it is by then
    tasks: tuple[TaskRecord, ...] = ()  # to be rolled back
    work: Work = NO_WORK  # what else is done to tasks, if none is rolled back


def rewind(context: Context, name: str, target: CheckpointRecord, how: How) -> Rewind:
    """Take state, files or both back to a checkpoint, and tasks, if asked to."""
    check_deadline()
    rolling = Rolling(context, name, target, is_wanted=how.tasks)
    promise = Promise(context, name, target, how)
    done = _rewound(context, name, target, how, rolling, promise)
    if not how.dry_run:
        rolling.told()
    return done.replace(tasks=rolling.shown(), plan=promise.plan if how.dry_run else "")


def rewound_before(context: Context, entry: Entry) -> Rewind:
    """What a rewind returned that was asked for with the same key. What became of single files and
    tasks is not kept."""
    target = context.history.at(entry.effects.about["to"])
    move, files = next(iter(entry.effects.moves), None), entry.effects.files
    before = files.before if files is not None else move and move.expect and move.expect.head
    if entry.kind == requests.NOTHING:
        before = entry.effects.about.get("at")
    found = None if before is None else context.store.checkpoint(context.user, before)
    return Rewind(
        timeline=entry.timeline or target.timeline,
        before=None if found is None else context.checkpoint(found),
        target=context.checkpoint(target),
        moved=move is not None,
    )


def _rewound(
    context: Context,
    name: str,
    target: CheckpointRecord,
    how: How,
    rolling: Rolling,
    promise: Promise,
) -> Rewind:
    if how.what == "state" or (target.snapshot is None and how.moves_head):
        promise.meet(None, rolling.find())
        return _rewind_state(context, name, target, how, rolling, promise)
    place = how.workspace or _workspace_of(context, name, target)
    done = _restored(context, name, target, how, rolling, place, promise)
    if done.move is None and (how.moves_head or how.tasks or how.request):  # the files are there
        state = _rewind_state(context, name, target, how, rolling, promise)
        return state.replace(files=done.files)
    before = done.before or context.history.head(name)
    return Rewind(
        timeline=name,
        before=None if before is None else context.checkpoint(before),
        target=context.checkpoint(target),
        moved=done.move is not None and how.moves_head,
        files=done.files,
    )


class _Restored(NamedTuple):
    """What became of files, and the operation that says so; None if there was nothing to do."""

    files: "FileChanges"
    before: CheckpointRecord | None = None
    move: FilesMove | None = None


def _restored(
    context: Context,
    name: str,
    target: CheckpointRecord,
    how: How,
    rolling: Rolling,
    place: "Place",
    promise: Promise,
) -> _Restored:
    """Plan what brings the files back; do it, and move the head in the same breath."""
    from hardsave.vault.restore.execution import attempt
    from hardsave.vault.restore.path_choice import RestoreRequest  # with all that files need
    from hardsave.vault.restore.plan import plan_restore
    from hardsave.vault.restore.settling import settled

    kind = how.named
    request = RestoreRequest(kind, name, target, how.paths, how.scope, git=how.git)
    with settled(context, place, only_looks=how.dry_run) as files:
        request_key.check_not_done(context, how.request)
        plan = plan_restore(context, place, request, files)
        promise.meet(plan, rolling.find())
        if how.dry_run or plan.is_nothing:
            return _Restored(plan.changes())
        asked = how.request or Request(context.new_id())
        with attempt(context, place, plan, files, asked.id) as restore:
            for standing in _standings(context, name, kind):
                promise.check(standing, restore.move)
                become = _with_files(context, target, how, restore.move, standing, rolling)
                if _committed(context, name, kind, asked, standing, become):
                    break
        outcome = restore.outcome
    assert outcome is not None
    return _Restored(outcome.files, outcome.before, restore.move)


def _with_files(
    context: Context,
    target: CheckpointRecord,
    how: How,
    files: FilesMove,
    standing: TimelineRecord,
    rolling: Rolling,
) -> _Plan:
    if how.moves_head:
        become = standing._replace(head=target.id, is_deleted=False)
    else:
        become = operations.aside(standing, files, context.history.at(files.before))
    return _Plan(
        become,
        keeps=(files.before, target.id),
        about={"to": target.id},
        files=files,
        is_about_files=not how.moves_head,
        tasks=rolling.find(),
    )


def _workspace_of(context: Context, name: str, target: CheckpointRecord) -> "Place":
    """Where this timeline saves its files; if it never has, where the target's are from."""
    own = _saves_at(context, name)
    id = own or target.workspace
    if id is None:
        raise NotFound(
            f"checkpoint {to_text(target.id)} ({name}:{target.seq}) was saved without files; "
            "choose one that has a snapshot, or rewind the state alone"
        )
    places, workspace = context.places, context.places.known(id)
    shown = os.fsdecode(workspace.path)
    if workspace.host != places.host:  # an import may name any directory it likes
        raise OtherHost(
            f"the files are from {shown!r}{_of_host(workspace)}, and this host has never saved "
            "there; name the directory that they shall go to with workspace=, or rewind "
            "what='state' alone",
            workspace,
        )
    then = None if target.workspace in (None, id) else places.known(target.workspace)
    if then and target.timeline == name and then.host == places.host and os.path.isdir(then.path):
        raise Misuse(
            f"the files are from {os.fsdecode(then.path)!r}, and timeline {name!r} saves {shown!r} "
            "by now; name the one that they shall go to with workspace=, or rewind what='state' "
            "alone"
        )
    return places.still_at(
        workspace.path, "name another with workspace=, or rewind what='state' alone"
    )


def _of_host(workspace: WorkspaceRecord) -> str:
    return f" of host {workspace.host}" if workspace.host else ""


def _saves_at(context: Context, name: str) -> bytes | None:
    """The workspace of its newest checkpoint with files. What it was only rewound to may be from
    anywhere; it counts for a timeline that has saved none of its own."""
    head = context.history.head(name)
    past = () if head is None else chain([head], context.history.ancestors(head))
    found = chain(islice(context.history.line(name), _PAGE), islice(past, _PAGE))
    return next((each.workspace for each in found if each.workspace), None)


def _rewind_state(
    context: Context,
    name: str,
    target: CheckpointRecord,
    how: How,
    rolling: Rolling,
    promise: Promise,
) -> Rewind:
    """Move the head of a timeline to a checkpoint, and roll tasks back."""
    before = context.history.head(name)
    is_elsewhere = how.moves_head and (before is None or before.id != target.id)

    move: Move | None = None
    if (is_elsewhere or how.tasks or how.request) and not how.dry_run:
        move = _moved(context, name, target, how, rolling, promise)
    if move is not None:
        left = None if move.expect is None else move.expect.head
        before = None if left is None else context.store.checkpoint(context.user, left)
    return Rewind(
        timeline=name,
        before=None if before is None else context.checkpoint(before),
        target=context.checkpoint(target),
        moved=move is not None,
    )


def _moved(
    context: Context,
    name: str,
    target: CheckpointRecord,
    how: How,
    rolling: Rolling,
    promise: Promise,
) -> Move | None:
    """Commit the rewind of a state, with the tasks that it rolls back."""
    request, kind = how.request or Request(context.new_id()), how.kind or "rewind"
    for standing in _standings(context, name, kind):
        promise.check(standing)
        become = standing
        if how.moves_head:
            become = standing._replace(head=target.id, is_deleted=False)
        tasks = rolling.find()
        about = {"to": target.id}
        if become == standing and not tasks and standing.head is not None:  # for a repeated request
            about["at"] = standing.head
        plan = _Plan(become, keeps=(target.id,), about=about, tasks=tasks)
        if done := _committed(context, name, kind, request, standing, plan):
            return done.move
    return None


def fork(
    context: Context,
    source: CheckpointRecord,
    name: str,
    request: Request,
    place: "Place | None" = None,
) -> TimelineRecord:
    """A timeline that starts at a checkpoint; one that was deleted may give its name.

    With a `place`, where its files are by now, it begins with a checkpoint of them.
    """
    standing = context.store.timeline(context.user, name)
    if standing is not None and not standing.is_deleted:
        raise Conflict(f"timeline {name!r} exists already; choose another name")
    moment = context.clock()
    last_seq = 0 if standing is None else standing.last_seq
    become = TimelineRecord(name, source.id, last_seq, moment, source.id)
    added: tuple[CheckpointRecord, ...] = ()
    where: tuple[WorkspaceMove, ...] = ()
    if place is not None:
        added = (_first(source, become, context.new_id(), place.id),)
        where = (context.places.begun(place),)
        become = become._replace(head=added[0].id, last_seq=added[0].seq)
    move = Move(standing, become)
    about = {"source": source.id, "from": source.timeline}
    effects = Effects((move,), added=len(added), about=about, asked=request.asked)
    entry = LogRecord(0, request.id, name, "fork", moment, operations.encode(effects))
    changes = Changes(keeps=(source.id,), checkpoints=added)
    needed = source.roots if added else ()
    batch = Batch(context.user, entry, move, requires=needed, changes=changes, workspaces=where)
    request_key.commit(context, batch, request)
    return become


def _first(
    source: CheckpointRecord, line: TimelineRecord, id: Id, workspace: bytes
) -> CheckpointRecord:
    """The checkpoint that a fork into a directory begins with: the source's, at that place."""
    return source._replace(
        number=0,
        id=id,
        timeline=line.name,
        seq=line.last_seq + 1,
        parent=source.id,
        created_at=line.created_at,
        name=None,
        kind="automatic",
        description=f"forked from {source.timeline}:{source.seq}",
        workspace=workspace,
        task=None,
        generation=0,
        attempt=0,
        summary=step_summary.signed(source.summary, actor()),
        hidden=0,
    )


def clear(context: Context, name: str, request: Request) -> int:
    """Hide all checkpoints of a timeline; its numbers go on. How many there were."""
    if context.store.timeline(context.user, name) is not None:
        return _hide_all(context, name, "clear", request, is_deleted=False)
    if request.has_key:
        data = operations.encode(Effects(about={"checkpoints": 0}, asked=request.asked))
        entry = LogRecord(0, request.id, name, requests.NOTHING, context.clock(), data)
        request_key.commit(context, Batch(context.user, entry), request)
    return 0


def delete(context: Context, name: str, request: Request) -> int:
    """Hide a timeline with all its checkpoints. How many there were."""
    return _hide_all(context, name, "delete", request, is_deleted=True)


def hidden_before(entry: Entry) -> int:
    """What `clear` or `delete` returned that was asked for with the same key."""
    return int(entry.effects.about["checkpoints"])


def delete_one(context: Context, record: CheckpointRecord, request: Request) -> CheckpointRecord:
    """Hide one checkpoint. If it is its timeline's head, the one before it becomes the head."""
    for line in context.history.timelines():
        if line.head == record.id and line.name != record.timeline:
            raise Conflict(f"it is the head of timeline {line.name!r}: delete that first")

    name = record.timeline
    for standing in _standings(context, name, "delete"):
        become = standing
        if standing.head == record.id:
            above = next(context.history.ancestors(record), None)
            become = standing._replace(head=None if above is None else above.id)
        keeps = () if become.head is None else (become.head,)
        plan = _Plan(become, (record.id,), keeps, {"checkpoint": record.id})
        if _committed(context, name, "delete", request, standing, plan):
            break
    return record


def deleted_before(context: Context, entry: Entry) -> CheckpointRecord:
    """What `delete_one` returned that was asked for with the same key."""
    return context.history.at(entry.effects.about["checkpoint"])


def delete_with_tasks(
    context: Context,
    name: str,
    request: Request,
    about: Mapping[str, Any],
    work: Callable[[], Work],
) -> Work:
    """The same, together with what is done to tasks: `work` says it each time that it is tried."""
    done = NO_WORK
    for standing in _standings(context, name, "delete"):
        done = work()
        plan = _hiding(context, standing, is_deleted=True)
        plan = plan._replace(about={**plan.about, **about}, work=done)
        if _committed(context, name, "delete", request, standing, plan):
            break
    return done


def _hide_all(context: Context, name: str, kind: str, request: Request, *, is_deleted: bool) -> int:
    count = 0
    for standing in _standings(context, name, kind):
        plan = _hiding(context, standing, is_deleted=is_deleted)
        count = len(plan.hide)
        if _committed(context, name, kind, request, standing, plan):
            break
    return count


def _hiding(context: Context, standing: TimelineRecord, *, is_deleted: bool) -> _Plan:
    ids = tuple(record.id for record in context.history.line(standing.name))
    become = standing._replace(head=None, is_deleted=is_deleted)
    return _Plan(become, ids, about={"checkpoints": len(ids)})


# One operation


def _standings(context: Context, name: str, kind: str) -> Iterator[TimelineRecord]:
    """Where a timeline stands, each time that an operation on it is attempted. `Conflict` after the
    last, which was in vain like those before it."""
    for _ in range(_ATTEMPTS):
        standing = context.store.timeline(context.user, name)
        if standing is None or (standing.is_deleted and kind in ("clear", "delete")):
            raise NotFound(f"there is no timeline {name!r}; vault.timelines() lists them")
        yield standing
    raise Conflict(f"others wrote to timeline {name!r} first {_ATTEMPTS} times; try again")


class _Committed(NamedTuple):
    move: Move | None  # None: the timeline stays where it is


def _committed(
    context: Context,
    name: str,
    kind: str,
    request: Request,
    standing: TimelineRecord,
    plan: _Plan,
) -> _Committed | None:
    """Attempt a plan on a timeline as it stood; None if it stands elsewhere by now: look again.
    Refused, like a save, to an attempt that has lost its task."""
    stays = plan.become == standing
    if stays and not plan.hide and not plan.tasks and plan.files is None:
        if not request.has_key:
            return _Committed(None)
        kind = requests.NOTHING
    move = None if stays and not plan.hide else Move(standing, plan.become)
    moves = () if move is None or plan.is_about_files else (move,)
    effects = Effects(moves, hid=bool(plan.hide), about=plan.about, files=plan.files)
    effects = effects._replace(tasks=rollback.marks(plan.tasks), asked=request.asked)
    work = rollback.rolled_back(context, plan.tasks, request.id) if plan.tasks else plan.work
    record = LogRecord(0, request.id, name, kind, context.clock(), operations.encode(effects))
    changes = Changes(hide=plan.hide, keeps=plan.keeps)
    try:
        batch = Batch(context.user, record, move, changes=changes, work=work)
        request_key.commit(context, batch, request)
    except request_key.MadeMeanwhile:
        raise
    except CheckpointGone as error:
        raise NotFound(f"{error}; choose another checkpoint") from error
    except LeaseLost:
        if fencing.is_lost(context):
            raise
        return None  # a worker has claimed or ended one of the tasks
    except Conflict:
        if position(context.store.timeline(context.user, name)) == position(standing):
            raise
        return None
    if move is not None and plan.is_about_files:  # its head means what it meant
        moved = position(move.expect), position(move.become)
        context.moves.note(name, *moved, is_same_state=True)
    return _Committed(move)
