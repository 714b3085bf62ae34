"""What an attempt saves belongs to it, and is refused once its task is somebody else's."""

import asyncio
import threading
from collections.abc import Callable
from contextvars import copy_context
from datetime import timedelta
from pathlib import Path

import pytest

import hardsave
from hardsave.errors import LeaseLost
from hardsave.stores.memory.store import MemoryStore
from hardsave.tasks.async_attempt import Attempt
from hardsave.tasks.attempt import working
from hardsave.timeline.policy import Policy
from hardsave.vault.line import Timeline
from hardsave.vault.vault import Vault
from tests.unit.vault.desk import Desk


def test_a_checkpoint_tells_whose_attempt_saved_it(vault: Vault, line: Timeline) -> None:
    before = line.save({"turn": 0})
    vault.tasks.add("t1", "some work")
    with vault.tasks.attempt("t1"):
        inside = line.save({"turn": 1})
        line.append({"turn": 2})
    after = line.save({"turn": 3})
    assert (before.task, before.attempt) == (after.task, after.attempt) == (None, None)
    assert (inside.task, inside.attempt) == ("t1", 1)
    found = [(each.task, each.attempt) for each in line.checkpoints()]
    assert found == [(None, None), ("t1", 1), ("t1", 1), (None, None)]


def test_files_that_an_attempt_saves_are_its_own_too(desk: Desk) -> None:
    desk.vault.tasks.add("t1")
    with desk.vault.tasks.attempt("t1"):
        assert desk.vault.workspace(desk.work).save_files().task == "t1"


def test_a_runner_s_handlers_each_save_for_their_own_task(vault: Vault) -> None:
    for name in ("a", "b", "c", "d"):
        vault.tasks.add(name)
    with vault.tasks.runner("test") as runner:
        runner.run(
            lambda attempt: vault.timeline(attempt.id).save({}).id, concurrency=3, until_idle=True
        )
    assert {line.name: line.get().task for line in vault.timelines()} == {x: x for x in "abcd"}


def test_coroutines_save_for_their_own_task() -> None:
    async def work(attempt: Attempt, vault: hardsave.aio.Vault) -> None:
        line = await vault.timeline(attempt.id)
        await asyncio.sleep(0)
        saved = await line.save({"by": attempt.id})
        assert (saved.task, saved.attempt) == (attempt.id, 1)

    async def main() -> list[str | None]:
        async with hardsave.aio.open("memory://") as vault:
            for name in ("a", "b", "c", "d"):
                await vault.tasks.add(name)
            async with vault.tasks.runner("test") as runner:
                await runner.run(
                    lambda attempt: work(attempt, vault), concurrency=4, until_idle=True
                )
            await vault.tasks.add("e")
            async with vault.tasks.attempt("e") as attempt:
                await work(attempt, vault)
            line = await vault.timeline("e")
            after = await line.save({})
            states = [task.state for task in await vault.tasks.find()]
            assert states == ["completed"] * 5
            return [after.task]

    assert asyncio.run(main()) == [None]


def test_a_save_is_refused_once_somebody_else_has_the_task(vault: Vault, line: Timeline) -> None:
    line.save({"turn": 0})
    vault.tasks.add("t1")
    attempt = vault.tasks.claim("t1")
    with working(attempt):
        vault.tasks.cancel("t1")
        with pytest.raises(LeaseLost, match="not this attempt's any more"):
            line.save({"turn": 1}, expect=hardsave.ANY_HEAD)
        assert attempt.is_lost
        with pytest.raises(LeaseLost, match="not this attempt's any more"):
            line.save({"turn": 1})
    assert line.load() == {"turn": 0}
    line.save({"turn": 2})
    assert len(line) == 2


LAST = Policy(max_per_timeline=1, undo_window=timedelta(0))
MOVES: dict[str, Callable[[Vault, Timeline, Path], object]] = {
    "save": lambda vault, line, there: line.save({"turn": 9}, expect=hardsave.ANY_HEAD),
    "fork": lambda vault, line, there: line.fork(name="other"),
    "rewind": lambda vault, line, there: line.rewind("@~1"),
    "undo": lambda vault, line, there: vault.undo(),
    "redo": lambda vault, line, there: vault.redo(),
    "clear": lambda vault, line, there: line.clear(),
    "delete": lambda vault, line, there: line.delete(),
    "purge": lambda vault, line, there: vault.store.purge(timeline=line.name),
    "retain": lambda vault, line, there: vault.retention.apply(vault.retention.plan(LAST)),
    "import": lambda vault, line, there: vault.import_file(there),
}
TAKEN: dict[str, Callable[[Vault, hardsave.Attempt], object]] = {
    "away": lambda vault, attempt: vault.tasks.cancel(attempt.id),
    "handed back": lambda vault, attempt: attempt.hand_back(),
}


@pytest.mark.parametrize("taken", TAKEN)
@pytest.mark.parametrize("move", MOVES)
def test_nothing_moves_a_timeline_for_an_attempt_that_has_lost_its_task(
    store: MemoryStore, vault: Vault, line: Timeline, tmp_path: Path, move: str, taken: str
) -> None:
    with hardsave.open("memory://") as elsewhere:
        elsewhere.timeline("brought").save({})
        elsewhere.export_file(tmp_path / "there")
    for turn in range(4):
        line.save({"turn": turn})
    for _ in range(2):
        line.rewind("@~1")
    vault.undo()  # so that there is something to undo, and to redo
    before = (line.head, len(line), [each.name for each in vault.timelines()])
    vault.tasks.add("t1")
    attempt = vault.tasks.claim("t1")
    with working(attempt):
        TAKEN[taken](vault, attempt)
        with pytest.raises(LeaseLost):
            MOVES[move](vault, line, tmp_path / "there")
        assert attempt.is_lost
    assert before == (line.head, len(line), [each.name for each in vault.timelines()])
    MOVES[move](vault, line, tmp_path / "there")  # anybody else may


def test_files_of_a_fork_are_taken_back_if_its_attempt_has_lost_its_task(
    desk: Desk, tmp_path: Path
) -> None:
    workspace = desk.vault.workspace(desk.work)
    (desk.work / "a").write_text("a")
    saved = desk.vault.timeline("main").save({}, workspace=workspace)
    desk.vault.tasks.add("t1")
    with working(desk.vault.tasks.claim("t1")):
        desk.vault.tasks.cancel("t1")
        with pytest.raises(LeaseLost):
            workspace.fork(saved, tmp_path / "new" / "fork", name="other")
        (tmp_path / "own").mkdir()
        with pytest.raises(LeaseLost):
            workspace.fork(saved, tmp_path / "own", name="other")
    assert [line.name for line in desk.vault.timelines()] == ["main"]
    assert not (tmp_path / "new").exists()
    assert list((tmp_path / "own").iterdir()) == []  # it was there before


def test_what_is_saved_after_an_attempt_has_ended_is_nobody_s(vault: Vault, line: Timeline) -> None:
    vault.tasks.add("t1")
    with vault.tasks.attempt("t1") as attempt:
        attempt.complete()
        assert line.save({}).task is None


def test_another_vault_s_attempts_are_nobody_s_here(vault: Vault) -> None:
    vault.tasks.add("t1")
    with Vault(MemoryStore()) as other, vault.tasks.attempt("t1"):
        other.tasks.add("t1")
        assert other.timeline("main").save({}).task is None


def test_another_user_s_attempts_are_nobody_s_here(
    vault: Vault, line: Timeline, store: MemoryStore
) -> None:
    theirs = Vault(store, user="ada")  # closed with the other: they share a store
    theirs.tasks.add("t1")
    with theirs.tasks.attempt("t1"):
        assert line.save({}).task is None
    theirs.tasks.close()


def test_a_thread_of_its_own_belongs_to_nobody(vault: Vault, line: Timeline) -> None:
    vault.tasks.add("t1")
    with vault.tasks.attempt("t1"):
        thread = threading.Thread(target=lambda: line.save({}))
        thread.start()
        thread.join()
    assert line.get().task is None


def test_a_block_may_end_in_another_context_than_it_began_in(vault: Vault, line: Timeline) -> None:
    vault.tasks.add("t1")
    attempt = vault.tasks.claim("t1")
    copy_context().run(attempt.__enter__)
    assert line.save({}).task is None
    attempt.__exit__(None, None, None)
    assert vault.tasks.get("t1").state == "completed"
