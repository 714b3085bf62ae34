"""Ids that other systems give out, or that name work instead of a checkpoint: each leads to one.

Asked when a ref is none of ours. In this order:

    fix, fix~2                        the newest checkpoint of a job, at that resumption
    the id of a task                  the newest checkpoint that an attempt at it has saved
    chk_…, ckpt_…, checkpoint-DATE-TIME, SESSION:N
                                      the checkpoint that an interface of `hardsave.compat` has
                                      saved under this id, which lies in its metadata

An id that leads to several checkpoints is refused with all of them. Ids of a shape that no program
gives out are not looked for: a mistyped name must not read a whole store.
"""

import re
from collections.abc import Callable, Iterator

from hardsave.errors import Misuse
from hardsave.objects.records import CheckpointRecord
from hardsave.stores.base import Store
from hardsave.timeline.history import CANDIDATES, History
from hardsave.timeline.names import numbered
from hardsave.timeline.refs import to_text
from hardsave.tuples import NamedTuple
from hardsave.vault.checkpoint import Checkpoint
from hardsave.vault.jobs import spec as specs
from hardsave.vault.jobs import state as states
from hardsave.vault.jobs.spec import JobId

KEYS = ("id", "skill")
"""Where in its metadata a checkpoint has the id that another system knows it by."""
OFFSET = "offset"
"""How far the numbers of a session run ahead of its timeline's."""


class Sources(NamedTuple):
    """Where ids are looked up: one user's part of a store."""

    store: Store
    user: str | None
    history: History
    checkpoint: Callable[[CheckpointRecord], Checkpoint]


_GIVEN_OUT = re.compile(r"(chk|ckpt)_\w+|checkpoint-\d{8}-\d{6}.*")
_OF_TASKS = "task_"


def resolve(sources: Sources, ref: str) -> CheckpointRecord | None:
    """The checkpoint that an id of another kind leads to; None if it leads to none. `Misuse` if
    there are several."""
    for found in (_of_job(sources, ref), _of_task(sources, ref), _of_metadata(sources, ref)):
        several = list(found)
        if len(several) > 1:
            raise Misuse(_ambiguous(ref, several))
        if several:
            return several[0]
    return None


def _of_job(sources: Sources, ref: str) -> Iterator[CheckpointRecord]:
    """The newest that was saved under this id. One that was queued again and has not begun stands
    where the resumption before it has ended."""
    asked = specs.parse(ref)
    for record in sources.history.line(asked.lineage):
        saved = _job_id(sources, record)
        if saved is None or saved.lineage != asked.lineage:
            return
        if saved.number <= asked.number:
            is_known = saved == asked or sources.store.task(sources.user, ref) is not None
            yield from [record] if is_known else []
            return


def _job_id(sources: Sources, record: CheckpointRecord) -> JobId | None:
    found = states.saved(sources.checkpoint(record))
    return None if found is None else found.id


def _of_task(sources: Sources, ref: str) -> Iterator[CheckpointRecord]:
    """The newest on each timeline that it has saved on."""
    if not ref.startswith(_OF_TASKS) and sources.store.task(sources.user, ref) is None:
        return
    for timeline in sources.history.timelines():
        own = (each for each in sources.history.line(timeline.name) if each.task == ref)
        yield from [newest] if (newest := next(own, None)) else []


def _of_metadata(sources: Sources, ref: str) -> Iterator[CheckpointRecord]:
    """The newest that was saved under this id, on each timeline."""
    session = numbered(ref)
    if session is None and not _GIVEN_OUT.fullmatch(ref):
        return
    for timeline in sources.history.timelines():
        if session is not None and not timeline.name.endswith(f"/{session[0]}"):
            continue
        found = (
            each
            for each in sources.history.line(timeline.name)
            if (session or _says(each, ref)) and ref in _ids(sources, each, session)
        )
        yield from [newest] if (newest := next(found, None)) else []


def _says(record: CheckpointRecord, ref: str) -> bool:
    """Whether the id is in its metadata at all: to decode all of them would take long."""
    return ref.encode() in record.metadata


def _ids(
    sources: Sources, record: CheckpointRecord, session: tuple[str, str] | None
) -> Iterator[str]:
    metadata = sources.checkpoint(record).metadata
    given = [metadata[key] for key in KEYS if isinstance(metadata.get(key), str)]
    yield from given
    offset = metadata.get(OFFSET)
    if session is not None and not given and isinstance(offset, int):
        yield f"{session[0]}:{record.seq + offset}"


def _ambiguous(ref: str, found: list[CheckpointRecord]) -> str:
    named = [f"{each.timeline}:{each.seq} ({to_text(each.id)})" for each in found[:CANDIDATES]]
    more = " and more" if len(found) > CANDIDATES else ""
    return f"{ref!r} leads to several checkpoints: {', '.join(named)}{more}; write one of these"
