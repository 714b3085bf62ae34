import asyncio
import logging
from pathlib import Path
from typing import Any, get_args

import pytest

from hardsave import Task, aio
from hardsave.errors import Misuse, Unstorable
from hardsave.stores.memory.store import MemoryStore
from hardsave.tasks import states
from hardsave.vault.events import EventName, Events, SaveFailed
from hardsave.vault.line import Timeline
from hardsave.vault.vault import Vault


def test_handlers_are_called_in_the_order_they_were_added(vault: Vault, line: Timeline) -> None:
    told: list[tuple[int, object]] = []
    for number in range(3):
        vault.on("checkpoint_saved", lambda cp, number=number: told.append((number, cp)))
    saved = line.save(1)
    assert told == [(0, saved), (1, saved), (2, saved)]


def test_each_event_is_told_to_its_own_handlers(vault: Vault, line: Timeline) -> None:
    saves: list[Any] = []
    forks: list[Any] = []
    vault.on("checkpoint_saved", saves.append)
    vault.on("forked", forks.append)
    saved, appended = line.save({}), line.append({})
    fork = line.fork(name="other")
    assert saves == [saved, appended]
    assert forks == [fork]


def test_when_a_handler_is_told_the_save_has_happened(vault: Vault, line: Timeline) -> None:
    seen: list[Any] = []
    vault.on("checkpoint_saved", lambda cp: seen.append(vault.get(cp.id).read()))
    line.save({"turn": 1})
    assert seen == [{"turn": 1}]


def test_a_handler_may_save_itself(vault: Vault, line: Timeline) -> None:
    audit = vault.timeline("audit")

    def note(checkpoint: Any) -> None:
        if checkpoint.timeline == "main":
            audit.append({"saved": [checkpoint.id]})

    vault.on("checkpoint_saved", note)
    saved = [line.save(n).id for n in range(3)]
    assert audit.load() == {"saved": saved}


def test_a_handler_may_save_on_the_same_handle(vault: Vault, line: Timeline) -> None:
    def again(checkpoint: Any) -> None:
        if checkpoint.seq < 4:
            line.save(checkpoint.seq + 1)

    vault.on("checkpoint_saved", again)
    line.save(1)
    assert line.load() == 4


def test_a_failing_handler_breaks_no_save_and_is_logged(
    vault: Vault, line: Timeline, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[object] = []

    def fail(*_: object) -> None:
        raise ZeroDivisionError("a bug in a handler")

    vault.on("checkpoint_saved", fail)
    vault.on("checkpoint_saved", told.append)
    vault.on("forked", fail)
    with caplog.at_level(logging.ERROR):
        saved = line.save(1)
        fork = line.fork(name="other")
    assert told == [saved]
    assert line.load() == fork.load() == 1
    assert len(caplog.records) == 2
    assert "checkpoint_saved" in caplog.text
    assert "a bug in a handler" in caplog.text
    assert line.save(2).seq == 2


def test_a_failed_save_is_told_to_nobody(vault: Vault, line: Timeline) -> None:
    told: list[object] = []
    vault.on("checkpoint_saved", told.append)
    with pytest.raises(Unstorable):
        line.save(object())
    assert told == []


def test_a_handler_can_be_taken_away(vault: Vault, line: Timeline) -> None:
    told: list[object] = []
    off = vault.on("checkpoint_saved", told.append)
    first = line.save(1)
    off()
    line.save(2)
    off()
    line.save(3)
    assert told == [first]


def test_taking_one_away_leaves_the_others(vault: Vault, line: Timeline) -> None:
    told: list[object] = []
    offs = [vault.on("checkpoint_saved", told.append) for _ in range(3)]
    offs[1]()
    offs[1]()  # a second time does nothing, although the same handler is there twice more
    saved = line.save(1)
    assert told == [saved, saved]


def test_a_handler_may_take_itself_away(vault: Vault, line: Timeline) -> None:
    told: list[object] = []

    def once(checkpoint: object) -> None:
        told.append(checkpoint)
        off()

    off = vault.on("checkpoint_saved", once)
    vault.on("checkpoint_saved", told.append)
    line.save(1)
    line.save(2)
    assert len(told) == 3


@pytest.mark.parametrize("event", ["saved", "", "checkpoint_save", None, ["forked"]])
def test_an_unknown_event_is_misuse(vault: Vault, event: Any) -> None:
    with pytest.raises(Misuse, match="checkpoint_saved, save_failed, forked"):
        vault.on(event, print)


def test_each_vault_has_handlers_of_its_own(store: Any) -> None:
    told: list[object] = []
    one, two = Vault(store), Vault(store)
    one.on("checkpoint_saved", told.append)
    two.timeline("main").save(1)
    assert told == []


def test_an_event_without_handlers_is_told_to_nobody() -> None:
    Events().tell("forked", 1, 2)


def test_upkeep_is_told_with_what_it_returned(vault: Vault, tmp_path: Path) -> None:
    told: list[tuple[str, object]] = []
    names: tuple[EventName, ...] = ("imported", "retained", "collected", "purged")
    for name in names:
        vault.on(name, lambda about, name=name: told.append((name, about)))
    with Vault(MemoryStore()) as other:
        other.timeline("theirs").save({"key": "sk-12345"})
        other.export_file(tmp_path / "out")
    done: list[object] = [
        vault.import_file(tmp_path / "out"),
        vault.retention.apply(vault.retention.plan()),
        vault.store.gc(),
        vault.store.purge(text="sk-12345"),
    ]
    assert told == list(zip(names, done, strict=True))


def test_a_save_that_fails_is_told_and_counted_and_still_raised(
    vault: Vault, line: Timeline
) -> None:
    told: list[Any] = []
    vault.on("save_failed", told.append)
    line.save({"n": 1})
    with pytest.raises(Unstorable) as caught:
        line.append({"n": object()})
    assert told == [SaveFailed(line.name, caught.value)]
    assert vault.store.stats().save_failures == 1
    line.save({"n": 2})
    assert vault.store.stats().save_failures == 1


def test_a_save_that_fails_as_nobody_foresaw_is_told_too(
    vault: Vault, line: Timeline, monkeypatch: pytest.MonkeyPatch, store: Any
) -> None:
    told: list[object] = []
    vault.on("save_failed", told.append)
    monkeypatch.setattr(store, "commit", _no_memory)
    with pytest.raises(MemoryError):
        line.save({"n": 1})
    assert len(told) == vault.store.stats().save_failures == 1


def _no_memory(*_: object, **__: object) -> None:
    raise MemoryError


def test_what_happens_to_a_task_is_told_with_the_task_as_it_stands_then(
    vault: Vault, line: Timeline
) -> None:
    told: list[tuple[str, str, str]] = []
    names = [name for name in get_args(EventName) if name.startswith("task_")]
    for name in names:
        vault.on(name, lambda task, name=name: told.append((name, task.id, task.state)))
    first = line.save({}).id
    vault.tasks.add("t1")
    with vault.tasks.attempt("t1") as attempt:
        attempt.step("a", lambda: 1)
        attempt.progress(1, 2)
        line.save({"n": 1})
    line.rewind(first, tasks=True, dry_run=True)
    line.rewind(first, tasks=True)
    line.undo()
    line.redo()
    vault.tasks.retry("t1")
    vault.tasks.cancel("t1")
    assert told == [
        ("task_added", "t1", "pending"),
        ("task_claimed", "t1", "in_progress"),
        ("task_progressed", "t1", "in_progress"),
        ("task_completed", "t1", "completed"),
        ("task_rolled_back", "t1", "rolled_back"),
        ("task_reinstated", "t1", "completed"),
        ("task_rolled_back", "t1", "rolled_back"),
        ("task_retried", "t1", "pending"),
        ("task_cancelled", "t1", "failed"),
    ]
    assert set(names) == {f"task_{kind}" for kind in KINDS}


KINDS = {"added", *states.MOVES} - {"forced", "started over"}


def test_a_handler_of_task_events_that_fails_breaks_nothing(vault: Vault) -> None:
    def fails(task: object) -> None:
        raise ValueError("no")

    vault.on("task_completed", fails)
    vault.tasks.add("t1")
    with vault.tasks.attempt("t1"):
        pass
    assert vault.tasks.get("t1").state == "completed"


def test_coroutines_are_told_of_tasks_too() -> None:
    async def main() -> list[str]:
        told = []

        async def handler(task: Task) -> None:
            await asyncio.sleep(0)
            told.append(task.id)

        async with aio.open("memory://") as vault:
            vault.on("task_completed", handler)
            await vault.tasks.add("t1")
            async with vault.tasks.attempt("t1"):
                pass
        return told

    assert asyncio.run(main()) == ["t1"]


def test_stats_count_tasks(vault: Vault) -> None:
    for name in ("a", "b"):
        vault.tasks.add(name)
    assert vault.store.stats().tasks == 2
