"""Purge: what must be gone is gone, from every file of the store.

Contract. Cannot be undone. A ref or a timeline that names nothing is an error; a text that is
nowhere is not: that is what was asked for, and the answer has only zeros. Nothing is purged by
halves: an interrupted purge is finished by calling it again (a checkpoint by its whole id, or by
its number). When it returns, the bytes that only the purged checkpoints held, or the text, are in
no file of the store: not in its main file, its WAL, its backup, its search index, the caches of
its workspaces, nor in free pages; nor in the logs and notes beside it. Where a text stays all the
same, `Purged.left` says so: in names of timelines and sessions, in the path of the project, with
a process that is at work, in files that a repair set aside (see `vault.remains`).

What goes on is told nothing, and no memory of ours brings a text back: who repeats what he has
said of his checkpoints has to find it in the store (`Saving.carry`). But what people and programs
hand us is theirs: a conversation that goes on, a transcript, a file of the workspace, the state in
an agent's memory, a path. If they have the text when they are saved next, it is there again. So are
exports.

Values are built anew without a text: where it was the text of a date, a time or a Decimal, that
becomes a text; keys that would become equal stay apart (see `objects.rewriting`).
Captured files are rewritten like everything else, names and link targets too. Operations whose
log entries name such paths are forgotten, with those before them: they cannot be undone.

What stays: tombstones, that is ids, numbers and parents.
"""

import contextlib
import time
from collections.abc import Iterator, Sequence

from hardsave.actor import actor, signature
from hardsave.errors import Conflict, LeaseLost, Misuse, NotFound, Unavailable
from hardsave.objects import envelope
from hardsave.objects.records import (
    CheckpointRecord,
    Id,
    LogRecord,
    TimelineRecord,
    Tombstone,
    WorkspaceRecord,
)
from hardsave.record import Record
from hardsave.stores import requests
from hardsave.stores.base import Batch, Changes, Move
from hardsave.stores.ledger import NO_WORK, Work
from hardsave.stores.workspaces import NO_HOST, WorkspaceMove
from hardsave.timeline import step_summary
from hardsave.timeline.step_summary import TITLE, without_text
from hardsave.vault import fencing, operations
from hardsave.vault.context import Context
from hardsave.vault.operations import Effects
from hardsave.vault.purge import REPLACEMENT, remains
from hardsave.vault.purge import tasks as purge_tasks
from hardsave.vault.purge.rewriting import Rewriter, path_without_text
from hardsave.vault.workspaces import local_data

MIN_TEXT = 4  # characters: anything shorter is in half of all words

PATIENCE = 30.0  # seconds
_PAUSE = 0.1
_PAGE = 500


class Purged(Record):
    """What a purge removed."""

    dropped: int
    """Checkpoints that are gone."""
    rewritten: int
    """Checkpoints that had the text, and have another in its place."""
    objects: int
    """Objects whose bytes are gone."""
    tasks: int = 0
    """Tasks that had the text, or were of the job: they are gone, with their history."""
    left: tuple[str, ...] = ()
    """Where it still is, or may be, and what helps. Nothing: it is gone."""


def checkpoint(context: Context, ref: str) -> Purged:
    """Drop one checkpoint for good, deleted or not. If it is the head, the one before it becomes
    the head. Of one that was dropped before, the bytes may still be there: they go now."""
    record = context.history.trace(ref)
    if isinstance(record, Tombstone):
        return collected(context)
    standing = context.store.timeline(context.user, record.timeline)
    become = standing
    if standing is not None and standing.head == record.id:
        above = next(context.history.ancestors(record), None)
        become = standing._replace(head=None if above is None else above.id)
    if become is not None and _is_titled_by(become, record):
        become = become._replace(title="")
    is_moved = become is not None and become != standing
    moves = (Move(standing, become),) if is_moved and become is not None else ()
    _drop(context, [record.id], moves)
    return collected(context, dropped=1)


def timeline(context: Context, name: str) -> Purged:
    """Drop every checkpoint of a timeline, deleted ones too, and the timeline from the list; with
    that of a job all that the ledger tells of it, in the same commit."""
    standing = context.store.timeline(context.user, name)
    if standing is None:
        raise NotFound(f"there is no timeline {name!r}; vault.timelines() lists them")
    tasks = purge_tasks.of_job(context, name)
    ids = [record.id for record in context.history.line(name, hidden=True)]
    become = standing._replace(head=None, is_deleted=True, title="")
    with unless_changed(context, name):
        _drop(context, ids, (Move(standing, become),), purge_tasks.forgetting(tasks))
    return collected(context, dropped=len(ids)).replace(tasks=len(tasks))


@contextlib.contextmanager
def unless_changed(context: Context, job: str) -> Iterator[None]:
    """A write that is refused because a task of a job is not as it was looked at."""
    try:
        yield
    except LeaseLost as error:
        if fencing.is_lost(context):
            raise
        raise Conflict(f"job {job!r} was changed meanwhile; look at it again") from error


def saved_until(context: Context, name: str, last: int, work: Work) -> int:
    """Drop what was saved on a timeline up to a commit, in one commit with `work`; how many. What
    was saved later stays, and with it the timeline. Their bytes are for `collected`."""
    standing = context.store.timeline(context.user, name)
    saved = list(context.history.line(name, hidden=True))
    gone = [record for record in saved if record.number <= last]
    moves: tuple[Move, ...] = ()
    if standing is not None and gone:
        become = _without(standing, gone, is_empty=len(gone) == len(saved))
        moves = (Move(standing, become),) if become != standing else ()
    _drop(context, [record.id for record in gone], moves, work)
    return len(gone)


def _without(
    line: TimelineRecord, gone: Sequence[CheckpointRecord], *, is_empty: bool
) -> TimelineRecord:
    """A timeline without some of its checkpoints."""
    if is_empty:
        return line._replace(head=None, is_deleted=True, title="")
    is_titled = any(_is_titled_by(line, record) for record in gone)
    return line._replace(
        head=None if any(record.id == line.head for record in gone) else line.head,
        title="" if is_titled else line.title,
    )


def text(context: Context, wanted: str) -> Purged:
    """Put `REPLACEMENT` in the place of a text, in every checkpoint, deleted ones too. Tasks that
    have it are forgotten."""
    if not isinstance(wanted, str):
        raise Misuse(f"a text to purge is text, not {type(wanted).__name__}")
    if len(wanted) < MIN_TEXT:
        raise Misuse(f"a text to purge has at least {MIN_TEXT} characters, not {len(wanted)}")
    if wanted in REPLACEMENT * len(wanted):
        raise Misuse(f"{wanted!r} is part of {REPLACEMENT!r}, which would stand in its place")
    if _could_return(wanted):
        raise Misuse(
            f"{wanted!r} has a part of {REPLACEMENT!r}, which would stand in its place, at an end "
            "or inside: beside it the text could be there again; purge it without that part"
        )
    if wanted in (actor() or ""):
        raise Misuse("the name of who acts has the text, and would stand in the log; take another")
    old = wanted.encode("utf-8", "surrogatepass")
    tasks = purge_tasks.forget(context, old)
    rewriter = Rewriter(context, wanted, old)
    _forget_names(context, old)
    _forget_titles(context, wanted)
    _forget_paths(context, old)
    count = rewriter.rewrite_all()
    purged = collected(context, rewritten=count)
    while again := rewriter.rewrite_all():  # saved meanwhile, by a handle that remembered it
        count += again
        _forget_titles(context, wanted)
        _forget_paths(context, old)
        purged = collected(context, rewritten=count)
    left = remains.clear(context, wanted)
    return purged.replace(tasks=tasks, left=(*purged.left, *left))


def _could_return(wanted: str) -> bool:
    """Whether what stands in its place, and what was beside it, may make the text anew: of
    `key[` in `keykey[` it would."""
    parts = range(1, len(REPLACEMENT))
    return REPLACEMENT in wanted or any(
        wanted.endswith(REPLACEMENT[:size]) or wanted.startswith(REPLACEMENT[-size:])
        for size in parts
    )


def _forget_names(context: Context, old: bytes) -> None:
    """Forget what the log says of files, tasks and callers whose names have a text, and what came
    before."""
    last, after = 0, 0
    while rows := context.store.log(context.user, after, _PAGE):
        last = max([last, *(row.number for row in rows if _has_name(row, old))])
        after = rows[-1].number
    if last:
        record = LogRecord(0, context.new_id(), None, "purge", context.clock(), operations.note())
        batch = Batch(context.user, record, changes=Changes(forget_log=last, purges=True))
        fencing.commit(context, batch)


def _is_titled_by(line: TimelineRecord, record: CheckpointRecord) -> bool:
    """Whether the title of a timeline is the prompt of a checkpoint."""
    summary = None if record.summary is None else step_summary.decode(record.summary)
    prompt = "" if summary is None else step_summary.line(summary.prompt, TITLE)
    return prompt != "" and prompt == line.title


def _forget_titles(context: Context, wanted: str) -> None:
    """Titles of timelines, deleted ones too, without a text. One that is saved on meanwhile is
    looked at again."""
    end = time.monotonic() + PATIENCE
    while moves := list(_without_titles(context, wanted)):
        record = LogRecord(0, context.new_id(), None, "purge", context.clock(), operations.note())
        batch = Batch(context.user, record, changes=Changes(moves=moves, purges=True))
        try:
            fencing.commit(context, batch)
        except LeaseLost:
            raise
        except Conflict:
            if time.monotonic() > end:
                raise


def _without_titles(context: Context, wanted: str) -> Iterator[Move]:
    for line in context.history.timelines(deleted=True):
        title = without_text(line.title, wanted, REPLACEMENT)[:TITLE]
        if title != line.title:
            yield Move(line, line._replace(title=title))


def _forget_paths(context: Context, old: bytes) -> None:
    """Workspaces without a text in their paths. They lose their host: the directory, which has the
    text in its path still, is another workspace from its next capture on."""
    found = list(_with_text(context, old))
    moves = [
        WorkspaceMove(each.epoch if id == each.id else None, new)
        for each in found
        for id in [path_without_text(each.id, old)]
        for new in [WorkspaceRecord(id, NO_HOST, path_without_text(each.path, old), each.epoch + 1)]
        if id == each.id or context.store.workspace(context.user, id) is None
    ]
    if not found:
        return
    gone = [each.id for each in found if path_without_text(each.id, old) != each.id]
    record = LogRecord(0, context.new_id(), None, "purge", context.clock(), operations.note())
    changes = Changes(forget_workspaces=gone)
    fencing.commit(context, Batch(context.user, record, changes=changes, workspaces=moves))
    context.places.forget(each.id for each in found)


def _with_text(context: Context, old: bytes) -> Iterator[WorkspaceRecord]:
    after = ("", b"", b"")
    while rows := context.store.workspaces(context.user, after, _PAGE):
        yield from (each for each in rows if old in each.path)
        after = (rows[-1].host, rows[-1].path, rows[-1].id)


def _has_name(row: LogRecord, old: bytes) -> bool:
    """Whether an entry names a file, a task or a caller that has the text."""
    if old not in row.data:
        return False
    about, entry = requests.told(row), operations.decode(row)
    named = [str(each).encode() for each in (signature(about), about.get("task"))]
    return any(old in name for name in named) or (entry is not None and _names(entry.effects, old))


def _names(effects: Effects, old: bytes) -> bool:
    """Whether a path or the id of a task has the text."""
    named = [mark.task.encode() for mark in effects.tasks]
    if effects.files is not None:
        move = effects.files
        named += [move.workspace, *(move.paths or ()), *(move.only or ())]
        named += [*move.brought, *move.took]
    return any(old in name for name in named)


def _drop(context: Context, ids: list[Id], moves: tuple[Move, ...], work: Work = NO_WORK) -> None:
    dropped = set(ids)
    moved = {move.become.name for move in moves}
    for line in context.history.timelines():
        if line.head in dropped and line.name not in moved:
            raise Conflict(f"timeline {line.name!r} stands there; purge or rewind it first")
    entry = LogRecord(0, context.new_id(), None, "purge", context.clock(), operations.note())
    children = list(_without_paths(context, dropped))
    changes = Changes(moves=moves, drop=ids, replace=children, purges=True)
    fencing.commit(context, Batch(context.user, entry, changes=changes, work=work))


def _without_paths(context: Context, dropped: set[Id]) -> Iterator[CheckpointRecord]:
    """The children of checkpoints that are dropped: their summaries name files that these had."""
    after = 0
    while rows := context.store.saved(context.user, after, _PAGE):
        for row in rows:
            if row.parent in dropped and row.id not in dropped and row.summary is not None:
                summary = step_summary.decode(row.summary).replace(paths=())
                yield row._replace(summary=step_summary.encode(summary))
        after = rows[-1].number


def collected(context: Context, *, dropped: int = 0, rewritten: int = 0) -> Purged:
    """Let the bytes go. Waits for those who store objects ahead of a checkpoint: mostly captures
    of files, which are short."""
    local_data.drop(context)
    end = time.monotonic() + PATIENCE
    gone = context.store.collect(envelope.refs, exact=True)
    objects = gone.objects
    while context.user in gone.left and time.monotonic() < end:
        time.sleep(_PAUSE)
        gone = context.store.collect(envelope.refs, exact=True)
        objects += gone.objects
    context.objects.forget()
    if context.user in gone.left:
        raise Unavailable(
            "what was purged is still in the store's files: a capture, an export, an import or "
            "another purge of this user is under way, and holds on to them; repeat it afterwards"
        )
    return Purged(dropped, rewritten, objects, left=remains.aside(context))
