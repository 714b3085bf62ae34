"""The purge of a job that has succeeded.

Contract. What goes is what the job's timeline had when the job was completed, and what the ledger
tells of the job: its prompt, its answer, its questions, its steps and its notices. Both go in one
commit, which holds only if no caller has put the job back to work. What was saved on the timeline
later stays. Then its tasks are there again, as ids, names and numbers: the job is still known to
have succeeded, and an attempt that wakes up has no task that it could write for.

May be repeated after an interruption at any point: what is gone by then is not looked for again,
and what came meanwhile is not taken for it.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hardsave.errors import Unavailable
from hardsave.objects.records import LogRecord, TaskRecord
from hardsave.stores.base import Batch
from hardsave.stores.ledger import Fence, TaskMove, TaskQuery, Work, every
from hardsave.tasks import adding
from hardsave.tasks.context import LedgerContext
from hardsave.tasks.ledger import desk_of
from hardsave.vault import fencing, operations
from hardsave.vault.context import Context
from hardsave.vault.jobs import spec as specs
from hardsave.vault.jobs import state as jobs
from hardsave.vault.jobs.spec import JobId, JobSpec
from hardsave.vault.purge import REPLACEMENT, purge
from hardsave.vault.purge.purge import Purged
from hardsave.vault.purge.tasks import check_none_waits, spec_of, told_of

if TYPE_CHECKING:
    from hardsave.vault.vault import Vault

_PAGE = 500


def purge_job(vault: "Vault", id: JobId) -> Purged | None:
    """Purge it, if it has succeeded; None if another job of its name is there by now.

    `Unavailable` for as long as its callback is not told: what was saved is gone by then, and what
    is to be told is not.
    """
    vault._recover()
    context, ledger = vault._context, desk_of(vault.tasks)
    standing = context.store.task(context.user, str(id))
    if standing is not None and not _is_meant(ledger, standing):
        return None
    dropped = 0
    if standing is None or not _is_purged(ledger, standing):
        dropped = _forgotten(context, ledger, id, is_known=standing is not None)
    purged = purge.collected(context, dropped=dropped)
    context.events.tell("purged", purged)
    return purged


def _is_meant(ledger: LedgerContext, task: TaskRecord) -> bool:
    spec = spec_of(ledger.codec, task)
    return task.state == "completed" and spec is not None and spec.on_success == "purge"


def _is_purged(ledger: LedgerContext, task: TaskRecord) -> bool:
    spec = spec_of(ledger.codec, task)
    return spec is not None and specs.is_purged(spec)


# What goes


def _forgotten(context: Context, ledger: LedgerContext, id: JobId, *, is_known: bool) -> int:
    """How many checkpoints have gone."""
    codec = ledger.codec
    tasks = list(every(context.store, context.user, TaskQuery(_PAGE)))
    own = [each for each in tasks if _is_of(id, each.name) and spec_of(codec, each) is not None]
    notices = [each for each in tasks if _is_of(id, told_of(codec, each))]
    untold = [each.name for each in notices if each.state in ("pending", "in_progress")]
    check_none_waits(own, tasks)
    last = _completed(context, id) if is_known else _last_saved(context, id)
    dropped = _dropped(context, id, last, own, () if untold else [*own, *notices])
    if untold:
        raise Unavailable(
            f"what was saved of job {str(id)!r} is gone; what it was asked and has answered is "
            f"kept until task {untold[0]!r} has told its callback, or has given up"
        )
    _leave(context, ledger, id, {each.name: each for each in own})
    return dropped


def _is_of(id: JobId, name: str | None) -> bool:
    """Whether it names the job, or an earlier one that it was resumed from."""
    found = None if name is None else specs.parse(name)
    return found is not None and found.lineage == id.lineage and found.number <= id.number


def _completed(context: Context, id: JobId) -> int:
    """The commit in which it was completed."""
    last, after = 0, 0
    while rows := context.store.entries(context.user, str(id), after, _PAGE):
        last = max([last, *(row.number for row in rows if row.kind == "completed")])
        after = rows[-1].number
    return last


def _last_saved(context: Context, id: JobId) -> int:
    """The same, of a job whose task was forgotten, as far as its conversation tells."""
    for record in context.history.line(id.lineage, hidden=True):
        found = jobs.saved(context.checkpoint(record))
        if found is not None and found.id == id and found.status == "completed":
            return record.number
    return 0


def _dropped(
    context: Context, id: JobId, last: int, own: Sequence[TaskRecord], gone: Sequence[TaskRecord]
) -> int:
    """Checkpoints and tasks go at once; none of them if the job is put back to work meanwhile."""
    fences = {task.name: Fence(task.name, task.epoch) for task in [*own, *gone]}
    work = Work(fences=list(fences.values()), forget=[task.name for task in gone])
    with purge.unless_changed(context, str(id)):
        return purge.saved_until(context, id.lineage, last, work)


# What stays


def _leave(
    context: Context, ledger: LedgerContext, id: JobId, known: Mapping[str, TaskRecord]
) -> None:
    """Have its tasks there again. Those that an interrupted purge has forgotten are made up."""
    ids = [id._replace(number=number) for number in range(1, id.number + 1)]
    moves = [TaskMove(None, _left(ledger, each, known.get(str(each)), last=id)) for each in ids]
    entry = LogRecord(0, context.new_id(), None, "purge", context.clock(), operations.note())
    fencing.commit(context, Batch(context.user, entry, work=Work(moves=moves)))


def _left(ledger: LedgerContext, id: JobId, known: TaskRecord | None, *, last: JobId) -> TaskRecord:
    spec = None if known is None else spec_of(ledger.codec, known)
    if spec is None:
        spec = JobSpec(lineage=id.lineage, prompt=REPLACEMENT, on_success="purge")
    made = adding.new(
        ledger,
        id=str(id),
        text=REPLACEMENT,
        key=f"{specs.KEY}:{id}",
        max_attempts=1 + spec.retries,
        priority=0,
        not_before=None,
        after=(),
        metadata={specs.KEY: specs.to_plain(specs.purged(spec), id)},
    )._replace(due=None, state="completed" if id == last else "failed")
    if known is None:
        return made._replace(attempts=1, ended_at=made.created_at)
    return made._replace(
        state=known.state,
        created_at=known.created_at,
        attempts=known.attempts,
        started_at=known.started_at,
        ended_at=known.ended_at,
        done=known.done,
        total=known.total,
        error=None if known.error is None else REPLACEMENT,
    )
