"""The asynchronous vault is the synchronous one, awaited."""

import asyncio
import inspect
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave import aio
from hardsave.errors import Conflict, Misuse, Unstorable
from hardsave.stores.base import Batch
from hardsave.stores.memory.store import MemoryStore
from hardsave.vault.events import SaveFailed
from hardsave.vault.opening import open_vault
from hardsave.vault.restore.guard import Guard

PAIRS = [
    (hardsave.Vault, aio.Vault),
    (hardsave.Timeline, aio.Timeline),
    (hardsave.Checkpoint, aio.Checkpoint),
    (hardsave.Workspace, aio.Workspace),
    (hardsave.VaultStore, aio.VaultStore),
    (hardsave.Retention, aio.Retention),
    (hardsave.Jobs, aio.Jobs),
]
# What differs on purpose; the module's docstring says why.
ONLY_SYNC = {
    "Checkpoint": {"state", "files", "git", "not_captured"},
}
ONLY_AIO = {"Timeline": {"count"}, "Checkpoint": {"sync"}, "Workspace": {"sync"}}


def _public(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


@pytest.mark.parametrize(("sync", "awaited"), PAIRS)
def test_both_sides_have_the_same_names(sync: type, awaited: type) -> None:
    only_sync = ONLY_SYNC.get(sync.__name__, set())
    only_aio = ONLY_AIO.get(sync.__name__, set())
    assert _public(sync) - only_sync == _public(awaited) - only_aio


@pytest.mark.parametrize(("sync", "awaited"), PAIRS)
def test_both_sides_take_the_same_arguments(sync: type, awaited: type) -> None:
    for name in _public(sync) & _public(awaited):
        ours, theirs = getattr(sync, name), getattr(awaited, name)
        if isinstance(ours, property):
            assert isinstance(theirs, property)
            continue
        assert _parameters(ours) == _parameters(theirs), name


def test_open_takes_the_same_arguments() -> None:
    assert _parameters(open_vault) == _parameters(aio.open)


def _parameters(function: Any) -> list[tuple[str, Any, Any]]:
    parameters = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in parameters]


def test_methods_that_read_or_write_are_coroutines() -> None:
    waits = {"save", "append", "load", "get", "checkpoints", "fork", "count"}
    assert all(inspect.iscoroutinefunction(getattr(aio.Timeline, name)) for name in waits)


def test_a_session_from_start_to_end() -> None:
    async def session() -> None:
        async with aio.open("memory://") as vault:
            line = await vault.timeline("s")
            assert await line.head is None
            first = await line.save({"messages": [1], "turn": 0}, name="start")
            second = await line.append({"messages": [2], "turn": 1}, expect=first)
            assert await line.load() == {"messages": [1, 2], "turn": 1}
            assert await second.read("messages", -1) == 2
            assert await line.head == second
            assert await line.count() == 2
            other = await line.fork("start", name="other")
            await other.save({"messages": [1, 3], "turn": 1})
            assert [name async for name in _names(vault)] == ["other", "s"]
            found = await vault.diff(first, second)
            assert [str(path) for path in found.added] == ["messages[1]"]
            page = await line.checkpoints(limit=1)
            assert page[0] == second
            assert page.next is not None
            assert (await vault.store.verify()).ok
            assert (await vault.store.stats()).checkpoints == 3

    asyncio.run(session())


async def _names(vault: aio.Vault) -> Any:
    async for line in vault.timelines():
        yield line.name


def test_a_conflict_reaches_the_coroutine_that_caused_it(tmp_path: Path) -> None:
    async def session() -> None:
        async with aio.open(f"sqlite:///{tmp_path}/a.db") as vault:
            one, two = await vault.timeline("s"), await vault.timeline("s")
            results = await asyncio.gather(
                one.save({"n": 1}), two.save({"n": 2}), return_exceptions=True
            )
            assert {type(result) for result in results} == {aio.Checkpoint, Conflict}

    asyncio.run(session())


def test_handlers_may_be_coroutines_and_their_failure_breaks_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def session() -> list[str]:
        seen: list[str] = []

        async def slow(checkpoint: aio.Checkpoint) -> None:
            await asyncio.sleep(0)
            seen.append(f"async {await checkpoint.read('n')}")

        async def broken(checkpoint: aio.Checkpoint) -> None:
            raise ValueError("no")

        async with aio.open("memory://") as vault:
            off = vault.on("checkpoint_saved", slow)
            vault.on("checkpoint_saved", broken)
            vault.on("checkpoint_saved", lambda checkpoint: seen.append(f"sync {checkpoint.seq}"))
            with pytest.raises(Misuse):
                vault.on("nonsense", slow)  # type: ignore[arg-type] # that is the test
            line = await vault.timeline("s")
            await line.save({"n": 7})
            off()
            await line.save({"n": 8})
        return seen

    assert asyncio.run(session()) == ["sync 1", "async 7", "sync 2"]
    assert "a handler of checkpoint_saved failed" in caplog.text


def test_a_handler_that_is_a_coroutine_function_is_told_of_a_failed_save() -> None:
    async def session() -> list[tuple[str, str]]:
        told: list[tuple[str, str]] = []

        async def note(failed: SaveFailed) -> None:
            told.append((failed.timeline, type(failed.error).__name__))

        async with aio.open("memory://") as vault:
            vault.on("save_failed", note)
            line = await vault.timeline("s")
            with pytest.raises(Unstorable):
                await line.save(object())
        return told

    assert asyncio.run(session()) == [("s", "Unstorable")]


@pytest.mark.parametrize("when", ["while it is written", "while somebody is told"])
def test_an_append_that_was_cancelled_is_not_made_twice(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after `asyncio.wait_for`: whoever tries again would not know that it was written."""

    async def work() -> None:
        async with aio.open("memory://") as vault:
            line = await vault.timeline("main")
            await line.append({"messages": [1]})
            begun, goes_on = asyncio.Event(), threading.Event()
            loop = asyncio.get_running_loop()

            def late(self: MemoryStore, batch: Batch) -> int:
                loop.call_soon_threadsafe(begun.set)
                assert goes_on.wait(60)
                return commit(self, batch)

            async def told(checkpoint: aio.Checkpoint) -> None:
                begun.set()
                await asyncio.sleep(10)

            with monkeypatch.context() as slow:
                end = vault.on("checkpoint_saved", told)
                if when == "while it is written":
                    slow.setattr(MemoryStore, "commit", late)
                appending = asyncio.create_task(line.append({"messages": [2]}))
                await begun.wait()
                appending.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await appending
                end()
                again = asyncio.create_task(line.append({"messages": [2]}))
                await asyncio.sleep(0.05)
                goes_on.set()
                with pytest.raises(Conflict, match="was written as number 2"):
                    await again
            assert await line.load() == {"messages": [1, 2]}
            await line.append({"messages": [3]})
            assert await line.load() == {"messages": [1, 2, 3]}

    commit = MemoryStore.commit
    asyncio.run(work())


@pytest.mark.parametrize("how", ["save", "append"])
def test_what_was_cancelled_before_it_was_begun_is_not_saved_after_all(
    how: str, tmp_path: Path
) -> None:
    """Else it would come on top of what its caller has saved since, and be the newest."""
    url = f"sqlite:///{tmp_path}/a.db"

    async def work() -> None:
        async with aio.open(url) as vault:
            line = await vault.timeline("main")
            await line.save({"messages": [1]})
            with line._sync._lock:
                begun = getattr(line, how)({"messages": [2]})
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(begun, 0.2)

    asyncio.run(work())  # whose end waits for calls that go on
    with hardsave.open(url) as vault:
        assert vault.timeline("main").load() == {"messages": [1]}


def test_what_a_handler_saves_is_nothing_to_whoever_waits_for_a_save() -> None:
    async def work() -> None:
        async with aio.open("memory://") as vault:
            log = vault._sync.timeline("log")
            line = await vault.timeline("main")
            begun, goes_on, seen = threading.Event(), threading.Event(), threading.Event()

            def told(checkpoint: hardsave.Checkpoint) -> None:
                if checkpoint.timeline == "main":
                    begun.set()
                    assert goes_on.wait(60)
                    log.append({"seen": [checkpoint.seq]})
                    seen.set()

            vault.on("checkpoint_saved", told)
            appending = asyncio.create_task(line.append({"messages": [1]}))
            await asyncio.to_thread(begun.wait, 60)
            asyncio.get_running_loop().call_later(0.05, goes_on.set)
            appending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await appending
            with pytest.raises(Conflict, match="was written as number 1"):
                await line.append({"messages": [1]})
            assert await asyncio.to_thread(seen.wait, 60)  # its thread goes on
            assert log.load() == {"seen": [1]}

    asyncio.run(asyncio.wait_for(work(), 60))


def test_a_cancelled_save_is_unknown_and_the_line_goes_on(tmp_path: Path) -> None:
    async def session() -> None:
        async with aio.open(f"sqlite:///{tmp_path}/a.db") as vault:
            line = await vault.timeline("s")
            saving = asyncio.ensure_future(line.save({"n": 1}))
            await asyncio.sleep(0)
            saving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await saving
            await line.head  # sees whichever it was
            await line.save({"n": 2})
            assert await line.load() == {"n": 2}
            assert (await vault.store.verify()).ok

    asyncio.run(session())


def test_opening_fails_like_the_synchronous_open(tmp_path: Path) -> None:
    async def session() -> None:
        async with aio.open(f"sqlite:///{tmp_path}"):
            pass

    with pytest.raises(Misuse, match="directory"):
        asyncio.run(session())


SAMPLE = """
import asyncio
import hardsave
from hardsave import aio

async def main() -> int:
    async with aio.open("memory://") as vault:
        line: aio.Timeline = await vault.timeline("s")
        checkpoint: aio.Checkpoint = await line.save({"n": 1}, name="one")
        head: aio.Checkpoint | None = await line.head
        state = await line.load(type=dict)
        state.keys()
        reveal_type(await line.count())
        await line.save({"n": 2}, expect=hardsave.ANY_HEAD)
        await line.save({"n": 2}, nonsense=1)
        async with vault.tasks.attempt("t") as attempt:
            reveal_type(await attempt.step("plain", len, "ab"))
            reveal_type(await attempt.step("awaited", line.count))
        target, moved = await line.rewind("@")
        (await line.rewind("@")).moved = False
        aio.opne("memory://")
        return checkpoint.seq + (head.seq if head else 0)

reveal_type(hardsave.__version__)
with hardsave.opne("memory://"): ...
asyncio.run(main())
"""


def test_a_sample_program_is_type_checked(tmp_path: Path) -> None:
    program = tmp_path / "sample.py"
    program.write_text(SAMPLE)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(program)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = [line for line in result.stdout.splitlines() if ": error:" in line]
    assert result.stdout.count('Revealed type is "int"') == 3, result.stdout + result.stderr
    assert result.stdout.count('Revealed type is "str"') == 1, result.stdout
    wrong = ["nonsense", '"Rewind" object is not iterable', "read-only", "opne", "opne"]
    assert [name in error for name, error in zip(wrong, errors, strict=True)] == [True] * 5, errors


def test_an_event_that_is_awaited_names_its_task() -> None:
    async def session() -> list[tuple[str, str | None]]:
        async with aio.open("memory://") as vault:
            await vault.tasks.add("build")
            async for event in vault.follow(after=0):
                return [(event.kind, event.task)]
        return []

    assert asyncio.run(session()) == [("task_added", "build")]


def test_coroutines_are_told_of_upkeep(tmp_path: Path) -> None:
    async def session() -> list[str]:
        seen: list[str] = []

        async def note(about: object) -> None:
            seen.append(type(about).__name__)

        async with aio.open("memory://") as vault:
            for event in ("imported", "retained", "collected", "purged"):
                vault.on(event, note)
            await (await vault.timeline("main")).save({"key": "sk-12345"})
            await vault.export_file(tmp_path / "out")
            await vault.import_file(tmp_path / "out")
            await vault.retention.apply(await vault.retention.plan())
            await vault.store.gc()
            await vault.store.purge(text="sk-12345")
        return seen

    assert asyncio.run(session()) == ["Imported", "Retained", "Collected", "Purged"]


def test_a_checkpoint_at_hand_is_as_good_as_a_ref(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    asyncio.run(_with_checkpoints(folder))


async def _with_checkpoints(folder: Path) -> None:
    async with aio.open("memory://") as vault:
        line = await vault.timeline("main")
        work = await vault.workspace(folder)
        (folder / "a").write_text("one")
        first = await line.save({"turn": 1}, workspace=folder)
        (folder / "a").write_text("two")
        await line.save({"turn": 2}, workspace=folder)
        assert await line.load(first) == {"turn": 1}
        assert (await line.get(first)).id == (await vault.get(first)).id == first.id
        assert (await work.status(first)).files.changed
        await work.restore(first)
        assert (folder / "a").read_text() == "one"
        assert (await line.rewind(first)).target.id == first.id
        assert (await vault.store.verify(first)).ok
        await line.fork(first, name="fork")
        await work.fork(first, folder.parent / "other")
        last = await line.save({"turn": 3})
        assert (await vault.delete(last)).id == last.id
        assert (await vault.store.purge(last)).dropped == 1


def test_a_guard_that_is_cancelled_again_and_again_is_left_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    file = tmp_path / "work/a.txt"
    file.write_text("one")
    leaving, may_leave = threading.Event(), threading.Event()
    real = Guard._take_back

    def slow(self: Guard, error: BaseException) -> None:
        leaving.set()
        may_leave.wait()
        real(self, error)

    async def work(vault: aio.Vault, begun: asyncio.Event) -> None:
        line = await vault.timeline("main")
        async with line.guard(workspace=tmp_path / "work"):
            file.write_text("two")
            begun.set()
            await asyncio.Event().wait()

    async def main() -> None:
        async with await aio.open(f"sqlite:///{tmp_path}/store.db") as vault:
            begun = asyncio.Event()
            task = asyncio.create_task(work(vault, begun))
            await begun.wait()
            task.cancel()
            await asyncio.to_thread(leaving.wait)
            for _ in range(3):
                task.cancel()
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                assert not task.done()
            may_leave.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert file.read_text() == "one"

    monkeypatch.setattr(Guard, "_take_back", slow)
    asyncio.run(main())


def test_whoever_awaits_an_attempt_can_name_it() -> None:
    from hardsave.tasks import async_attempt as awaited_attempt

    assert aio.Attempt is awaited_attempt.Attempt
    assert {name for name in aio.__all__ if not hasattr(aio, name)} == set()
    with pytest.raises(AttributeError, match="no attribute 'Attempts'"):
        _ = aio.Attempts  # type: ignore[attr-defined] # what is tested


def test_a_task_saves_on_a_head_that_it_has_moved_itself(tmp_path: Path) -> None:
    """Each of its calls may be made by another thread. What another task has moved is another's."""

    async def play() -> None:
        async with aio.open(f"sqlite:///{tmp_path}/s.db") as vault:
            line = await vault.timeline("main")
            for turn in range(5):
                await line.save({"turn": turn})
                await line.save({"turn": turn + 1})
                await line.rewind("@~1")
                await asyncio.gather(*(line.load() for _ in range(4)))  # in other threads
                await vault.undo()
                await line.save({"turn": turn})
            await line.rewind("@~1")
            await asyncio.create_task(vault.undo())
            with pytest.raises(Conflict):
                await line.save({"turn": 9})

    asyncio.run(play())
