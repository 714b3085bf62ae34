"""A timeline in numbers."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

from hardsave import aio
from hardsave.vault.line import Timeline
from tests.unit.vault.stage import MOMENT, SECOND, Clock, Watched


def test_an_empty_timeline_has_the_zero_form(line: Timeline) -> None:
    assert line.summary().to_dict() == {
        "checkpoints": 0,
        "unique_names": 0,
        "names": {},
        "kinds": {},
        "first": None,
        "last": None,
        "first_at": None,
        "last_at": None,
        "duration_seconds": 0.0,
    }


def test_a_summary_counts_names_and_kinds_and_knows_both_ends(
    line: Timeline, clock: Clock, store: Watched
) -> None:
    first = line.save({"n": 0}, name="start")
    line.save({"n": 1}, name="step")
    line.save({"n": 2}, name="step", kind="session")
    clock.now += 7 * SECOND
    last = line.save({"n": 3})
    store.forget_reads()
    summary = line.summary()
    assert store.reads == 0, "rows are enough"
    assert (summary.checkpoints, summary.unique_names) == (4, 2)
    assert list(summary.names.items()) == [("step", 2), ("start", 1)]
    assert dict(summary.kinds) == {"manual": 2, "session": 1, "automatic": 1}
    assert (summary.first, summary.last) == (first.id, last.id)
    assert summary.first_at == datetime.fromtimestamp((MOMENT + SECOND) / SECOND, UTC)
    assert summary.duration == timedelta(seconds=10)
    assert json.loads(json.dumps(summary.to_dict()))["duration_seconds"] == 10.0


def test_what_was_deleted_is_not_counted(line: Timeline) -> None:
    line.save({"n": 0}, name="start")
    line.clear()
    assert line.summary().checkpoints == 0
    line.undo()
    assert line.summary().checkpoints == 1


def test_a_long_timeline_is_summed_over_all_pages(line: Timeline) -> None:
    for n in range(1_203):
        line.save(n, name=f"name {n % 3}")
    assert line.summary().names == {f"name {n}": 401 for n in range(3)}


def test_awaited() -> None:
    async def session() -> int:
        async with aio.open("memory://") as vault:
            line = await vault.timeline("main")
            await line.save({})
            return (await line.summary()).checkpoints

    assert asyncio.run(session()) == 1
