"""What is done to whole threads: copied, deleted, pruned, let go when they are old."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Literal

import hardsave
from hardsave.adapters.langgraph.place import Place
from hardsave.adapters.langgraph.threads import AFTER, Threads, id_of

RUN = "run_id"  # of metadata: the label by which the checkpoints of a run are found
_DELTAS = "counters_since_delta_snapshot"  # of metadata: the channels that are kept as deltas
_LONGEST = 200


def labels(metadata: Mapping[str, Any]) -> dict[str, str] | None:
    """What a checkpoint is found by later."""
    run = metadata.get(RUN)
    return {RUN: _label(run)} if isinstance(run, str) else None


def delete(threads: Threads, thread: str) -> None:
    _delete(threads, threads.timeline(thread))


def _delete(threads: Threads, name: str) -> None:
    with suppress(hardsave.NotFound):  # it may have nothing, or be deleted already
        threads.vault.timeline(name).delete()
    threads.lines.forget(name)


def delete_runs(threads: Threads, runs: Iterable[str]) -> None:
    for run in runs:
        for found in _of_run(threads, run):
            threads.vault.delete(found)
            threads.lines.doubt(found.timeline)


def _of_run(threads: Threads, run: str) -> list[hardsave.Checkpoint]:
    found: list[hardsave.Checkpoint] = []
    after: str | None = None
    while True:
        page = threads.vault.checkpoints(labels={RUN: _label(run)}, limit=1_000, after=after)
        found += (each for each in page if threads.has(each))
        if page.next is None:
            return found
        after = page.next


def copy(threads: Threads, source: str, target: str) -> None:
    """All checkpoints with their writes, in the order of their puts. No object is copied."""
    line = threads.vault.timeline(threads.timeline(source))
    onto = threads.vault.timeline(threads.timeline(target))
    made: dict[str, hardsave.Checkpoint] = {}
    for one in reversed(list(threads.rows(line))):
        said = one.metadata
        place = Place(target, said.get("ns", ""), said["id"])
        parent = None if one.parent is None else made.get(one.parent)
        after = said.get(AFTER, one.parent)
        after = made[after].id if after in made else after  # one that was deleted is not there
        made[one.id] = onto.copy(
            one,
            metadata=threads.about(place, said["parent"], said["metadata"], parent, after),
            id=threads.id(place),
            parent=parent,
            expect=hardsave.ANY_HEAD,
        )
    head = line.head
    if head is not None and head.id in made and onto.head != made[head.id]:
        onto.rewind(made[head.id], what="state")


def prune(threads: Threads, thread: str, strategy: Literal["keep_latest", "delete"] | str) -> None:
    """All but the newest of each namespace, and what deltas need that it was made of."""
    if strategy == "delete":
        delete(threads, thread)
        return
    if strategy != "keep_latest":
        raise hardsave.Misuse(f"strategy is 'keep_latest' or 'delete', not {strategy!r}")
    line = threads.vault.timeline(threads.timeline(thread))
    rows = list(threads.rows(line))
    kept: set[str] = set()
    for namespace in {each.metadata.get("ns", "") for each in rows}:
        newest, _ = threads.latest(Place(thread, namespace))
        if newest is not None:
            kept.update(_needed(newest, rows))
    for each in rows:
        if each.id not in kept:
            threads.vault.delete(each)
    threads.lines.doubt(line.name)


def _needed(newest: hardsave.Checkpoint, rows: Sequence[hardsave.Checkpoint]) -> Iterator[str]:
    """A checkpoint and its ancestors back to where each channel of deltas has a value."""
    yield newest.id
    namespace = newest.metadata.get("ns", "")
    near = {id_of(each): each for each in rows if each.metadata.get("ns", "") == namespace}
    one: hardsave.Checkpoint | None = newest
    left = set(newest.metadata["metadata"].get(_DELTAS, ()))
    while one is not None:
        left -= set(one.state)
        if not left:
            return
        one = near.get(one.metadata["parent"])
        if one is not None:
            yield one.id


def expire(threads: Threads, ttl: timedelta) -> int:
    """Delete threads whose rows are all older; how many. No kind of checkpoint keeps its thread."""
    lines = [line.name for line in threads.all()]
    policy = hardsave.Policy(timelines=lines, ttl=ttl, permanent=())
    held = threads.vault.retention.plan(policy).kept  # of each timeline that would go: its head
    old = {each.row.timeline for each in held if each.rule == "ttl" and each.row.is_head}
    for name in old:
        _delete(threads, name)
    return len(old)


def _label(run: str) -> str:
    """A run as it is looked for; one with an unusual id by a digest."""
    usual = run.isascii() and run.isprintable() and len(run) <= _LONGEST
    return run if usual else hardsave.checkpoint_id(run)
