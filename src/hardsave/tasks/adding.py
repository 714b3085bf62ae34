"""A task that is to be added: what may be said of it, and what it looks like then."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from hardsave.defaults import MOST_ATTEMPTS
from hardsave.errors import Misuse
from hardsave.objects.hashing import digest
from hardsave.objects.records import TaskRecord
from hardsave.tasks import names, states
from hardsave.tasks.context import LedgerContext

_MOST = 2**63 - 1  # of a number in a row


def new(
    context: LedgerContext,
    *,
    id: str,
    text: str,
    key: str | None,
    max_attempts: int,
    priority: int,
    not_before: datetime | None,
    after: Iterable[str],
    metadata: Mapping[str, Any] | None,
) -> TaskRecord:
    """Its record; `Misuse` if it cannot be meant. Whether those it comes `after` exist is for the
    caller to see."""
    names.check("the id of a task", id)
    names.check_text("the text of a task", text)
    names.check_text("the key of a task", "" if key is None else key)
    if not _is_between(-_MOST, priority, _MOST):
        raise Misuse(f"priority is between {-_MOST} and {_MOST}, not {priority!r}")
    if not _is_between(1, max_attempts, MOST_ATTEMPTS):
        raise Misuse(f"max_attempts is between 1 and {MOST_ATTEMPTS}, not {max_attempts!r}")
    if not isinstance(metadata, Mapping | None):
        raise Misuse(f"metadata is a dict, not {metadata!r}")
    if isinstance(after, str):  # its letters are no ids
        raise Misuse(f"after is a list of ids: [{after!r}], not {after!r}")
    text = context.redacted(text)
    begin = 0 if not_before is None else _micros(not_before)
    return TaskRecord(
        name=id,
        text=text,
        key=key_of(text or id if key is None else key),
        state="pending",
        priority=priority,
        created_at=context.clock(),
        epoch=first_epoch(context),
        generation=1,
        attempts=0,
        max_attempts=max_attempts,
        not_before=begin,
        due=begin,
        after=tuple(dict.fromkeys(after)),
        waits_for=None,
        owner=None,
        started_at=None,
        ended_at=None,
        done=0,
        total=0,
        error=None,
        result=None,
        question=None,
        metadata=context.codec.encode(dict(metadata or {}), "metadata"),
    )


def key_of(text: str) -> bytes:
    """By what a task is found that is there already: a key, or its text."""
    return digest(text.encode())


def first_epoch(context: LedgerContext) -> int:
    """Where no other task of that name has been, as far as chance goes: an attempt at one that was
    forgotten may be alive, and what it writes must not be taken for a write of this one's."""
    return int.from_bytes(context.new_id()[:4]) >> 1


def means_to_go_on(task: TaskRecord) -> bool:
    """Whether adding this one again means to go on with it."""
    if states.is_by_name(task):
        return False
    if task.state == "rolled_back":
        return True
    return (
        task.state == "failed"
        and task.attempts < task.max_attempts
        and task.error != states.CANCELLED
    )


def _is_between(least: int, number: Any, most: int) -> bool:
    return isinstance(number, int) and least <= number <= most


def _micros(moment: datetime) -> int:
    """A time without a zone is taken to be local; one before 1970 has come like any other."""
    if not isinstance(moment, datetime):
        raise Misuse(f"not_before is a datetime, not {moment!r}")
    if moment.year < 1971:
        return 0
    if moment.year >= states.NEVER.year:  # `datetime.max` is not to be had in every zone
        return states.NEVER_COMES
    return int(moment.astimezone().timestamp() * 1_000_000)
