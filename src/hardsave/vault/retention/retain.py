"""Letting checkpoints go: what a policy decides over a user's history, carried out.

Contract. A plan changes nothing. `apply` drops what the plan shows and the same policy still
wants at that moment, never more: what has become a head meanwhile, or can be undone by an
operation logged meanwhile, stays. It works in commits of some hundred checkpoints, each of
which holds only if no operation came in between; if one did, it looks again. Stopped half
way, it leaves a shorter history that is whole.

**It cannot be undone.** Dropped checkpoints leave tombstones; their bytes go with `gc`.
Entries of the log that are older than the undo window go too: what they lead back to may.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from hardsave.errors import Conflict, LeaseLost, Misuse
from hardsave.objects.records import CheckpointRecord, Id, LogRecord
from hardsave.progress import meter
from hardsave.record import Record
from hardsave.stores.base import Batch, Changes
from hardsave.timeline.policy import DEFAULT, MICROSECOND, Policy
from hardsave.timeline.retention import RetentionPlan, choose_by_timeline
from hardsave.vault import fencing, operations
from hardsave.vault.context import Context
from hardsave.vault.operations import Entry
from hardsave.vault.retention.history import RetentionHistory

CHUNK = 500  # checkpoints in one commit: others wait for the store meanwhile
_PAGE = 1_000
_ATTEMPTS = 100  # each time, another process has got an operation through


class Retained(Record):
    """What `apply` did. It cannot be undone."""

    dropped: int
    spared: int
    """Were in the plan, and have been gone or wanted by the time it was carried out."""
    forgotten: int
    """Entries of the log."""

    def __str__(self) -> str:
        spared = f", {self.spared} of the plan stay or were gone" if self.spared else ""
        return f"{self.dropped} checkpoints dropped for good{spared}; gc gives their room back"


def plan(context: Context, policy: Policy | None) -> RetentionPlan:
    """What would go."""
    if policy is not None and not isinstance(policy, Policy):
        raise Misuse(f"retention.plan takes a hardsave.Policy, not {type(policy).__name__}")
    return _look(context, policy or DEFAULT).plan


def apply(context: Context, plan: RetentionPlan) -> Retained:
    """Drop what a plan shows, as far as its policy still wants it."""
    if not isinstance(plan, RetentionPlan):
        raise Misuse(f"retention.apply takes what retention.plan made, not {type(plan).__name__}")
    wanted = {choice.row.id for choice in plan.drops}
    dropped = forgotten = 0
    for _ in range(_ATTEMPTS):
        view = _look(context, plan.policy)
        try:
            for ids, entries in _commits(context, view, wanted):
                dropped += ids
                forgotten += entries
        except LeaseLost:
            raise
        except Conflict:
            continue
        return Retained(dropped, len(wanted) - dropped, forgotten)
    raise Conflict(f"other operations came first {_ATTEMPTS} times; plan and apply again")


# Looking


@dataclass(frozen=True, slots=True)
class _View:
    """A decision, and up to which operation it knows everything."""

    plan: RetentionPlan
    latest: int
    outdated: list[LogRecord]  # the oldest of the log, none of which is needed any more


def _look(context: Context, policy: Policy) -> _View:
    now = context.clock()
    log = list(_log(context))  # before the rows: what is logged later makes the commit fail
    since = now - policy.undo_window // MICROSECOND
    size = None
    if policy.max_store_bytes is not None:
        size = context.store.stats(context.user).own_bytes
    entries = [entry for entry in map(operations.decode, log) if entry is not None]
    times = _Times(entries, now)
    history = _read(context, policy, times)
    entries = times.of_entries()
    hidden_at, protected = _hidden_at(entries), _targets(entries, since)
    return _View(
        choose_by_timeline(
            lambda: history.lines(hidden_at, protected), policy, now, store_bytes=size
        ),
        log[-1].number if log else 0,
        list(_outdated(log, entries, policy, since)),
    )


def _read(context: Context, policy: Policy, times: "_Times") -> RetentionHistory:
    heads = {line.head for line in context.history.timelines()}
    history = RetentionHistory()
    done = meter("looking", "checkpoints")
    for record in _history(context, policy.timelines):
        history.add(record, is_head=record.id in heads, stored_at=times.of(record))
        done.add(1)
    return history


class _Times:
    """When things were stored, at the earliest: none before what was there already, although the
    clock was behind. Moments that are still to come were told by a clock that was wrong, too."""

    def __init__(self, entries: list[Entry], now: int) -> None:
        self._left = deque(entries)
        self._met: list[Entry] = []
        self._now = now
        self._latest = 0

    def of(self, record: CheckpointRecord) -> int:
        """Of a checkpoint, or of the operation that has added it. To be asked in their order."""
        while self._left and _begin(self._left[0]) <= record.number:
            self._meet(self._left.popleft())
        self._look_at(record.created_at)
        return self._latest

    def of_entries(self) -> list[Entry]:
        """All operations, each with its moment; to be asked when no checkpoint is left."""
        while self._left:
            self._meet(self._left.popleft())
        return self._met

    def _meet(self, entry: Entry) -> None:
        self._look_at(entry.created_at)
        self._met.append(entry._replace(created_at=max(entry.created_at, self._latest)))

    def _look_at(self, moment: int) -> None:
        if self._latest < moment <= self._now:
            self._latest = moment


def _begin(entry: Entry) -> int:
    """The first number that is an operation's: what it has added comes right before itself."""
    return entry.number - entry.effects.added


def _targets(entries: Iterable[Entry], since: int) -> set[Id | None]:
    """What undo and redo of these may lead back to."""
    recent = [e.effects for e in entries if e.created_at > since]
    moves = chain.from_iterable(effects.moves for effects in recent)
    heads = {standing.head for move in moves for standing in (move.expect, move.become) if standing}
    files = [effects.files for effects in recent if effects.files is not None]
    return heads | {id for move in files for id in move.checkpoints}


def _hidden_at(entries: Iterable[Entry]) -> dict[int, int]:
    """When what a commit has hidden was last hidden: by itself, or by a redo of it."""
    times: dict[int, int] = {}
    for entry in entries:  # oldest first
        for number in (entry.number, *entry.effects.hidden_again):
            times[number] = entry.created_at
    return times


def _outdated(
    log: list[LogRecord], entries: list[Entry], policy: Policy, since: int
) -> Iterator[LogRecord]:
    """The beginning of the log that is not needed any more.

    Where a policy is about some timelines only, the other ones' operations are not its
    business: it forgets its own timelines' old ones, up to the first that is not, and the
    traces of earlier retention.
    """
    moments = {entry.number: entry.created_at for entry in entries}
    for record in log:
        is_old = moments.get(record.number, record.created_at) <= since
        if policy.timelines is None:
            goes = is_old
        else:
            goes = record.kind == "retain" or (is_old and record.timeline in policy.timelines)
        if not goes:
            return
        yield record


def _log(context: Context) -> Iterator[LogRecord]:
    after = 0
    while rows := context.store.log(context.user, after, _PAGE):
        yield from rows
        after = rows[-1].number


def _history(context: Context, timelines: Collection[str] | None) -> Iterator[CheckpointRecord]:
    """Every checkpoint in the order in which they were stored, hidden ones too, also those of
    timelines that were deleted."""
    if timelines is not None:
        lines = (context.history.line(name, hidden=True) for name in timelines)
        yield from sorted(chain.from_iterable(lines), key=lambda record: record.number)
        return
    after = 0
    while rows := context.store.saved(context.user, after, _PAGE):
        yield from rows
        after = rows[-1].number


# Dropping


def _commits(context: Context, view: _View, wanted: set[Id]) -> Iterator[tuple[int, int]]:
    """Commit what goes, chunk by chunk: how many checkpoints and log entries went each time."""
    goes = [choice.row.id for choice in view.plan.drops if choice.row.id in wanted]
    outdated = view.outdated if goes or view.plan.policy.timelines is None else []
    latest = view.latest
    # The log first: no entry may be left that leads to what is gone.
    chunks = [goes[at : at + CHUNK] for at in range(0, len(goes), CHUNK)]
    for chunk in chunks or ([[]] if outdated else []):
        data = operations.note({"checkpoints": len(chunk)})
        event = LogRecord(0, context.new_id(), None, "retain", context.clock(), data)
        forget = outdated[-1].number if outdated else 0
        changes = Changes(drop=chunk, forget_log=forget, latest=latest)
        latest = fencing.commit(context, Batch(context.user, event, changes=changes))
        yield len(chunk), len(outdated)
        outdated = []
