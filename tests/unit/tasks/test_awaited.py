"""The ledger for coroutines is the synchronous one, awaited; steps and handlers are their own."""

import asyncio
import inspect
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave import aio
from hardsave.defaults import POLL_SECONDS
from hardsave.errors import Conflict, LeaseLost, Misuse, StepUnknown, Unavailable
from hardsave.stores.base import Batch
from hardsave.tasks import async_ledger as awaited
from hardsave.tasks import attempt, executor, ledger
from hardsave.tasks.async_attempt import Attempt
from hardsave.tasks.lease import Lease
from tests.unit.tasks.room import AT_ONCE, Counter

PAIRS = [
    (ledger.Tasks, awaited.Tasks),
    (attempt.Attempt, Attempt),
    (executor.Runner, awaited.Runner),
]


def _public(cls: type) -> set[str]:
    return {name for name in vars(cls) if not name.startswith("_")}


def _parameters(function: Any) -> list[tuple[str, Any, Any]]:
    parameters = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in parameters]


@pytest.mark.parametrize(("sync", "other"), PAIRS)
def test_both_sides_have_the_same_names_and_arguments(sync: type, other: type) -> None:
    assert _public(sync) == _public(other)
    for name in _public(sync):
        ours, theirs = getattr(sync, name), getattr(other, name)
        if not isinstance(ours, property):
            assert _parameters(ours) == _parameters(theirs), name


def run(body: Any, url: str = "memory://") -> Any:
    async def session() -> Any:
        async with aio.open(url) as vault:
            return await body(vault.tasks)

    return asyncio.run(session())


def test_a_task_from_start_to_end() -> None:
    effects = Counter()

    async def later(value: str) -> str:
        await asyncio.sleep(0)
        return str(effects(value))

    async def body(tasks: awaited.Tasks) -> None:
        await tasks.add("t1", "do it", priority=1)
        async with tasks.attempt("t1") as attempt:
            assert await attempt.step("async", later, "a") == "a"
            assert await attempt.step("plain", effects, "b") == "b"
            assert await attempt.step("keyword", later, value="c") == "c"
            assert await attempt.step("plain keyword", int, "ff", base=16) == 255
            with pytest.raises(Misuse, match=r"a hardsave\.Retry, not 1"):
                await attempt.step("odd", int, "1", retry=1)  # type: ignore[call-overload]
            await attempt.progress(1, 2)
        assert (await tasks.get("t1")).state == "completed"
        assert (await tasks.stats()).completed == 1
        assert [each.kind for each in await tasks.history("t1")][-1] == "completed"
        assert len(await tasks.find(state="completed")) == 1
        assert await tasks.iterate() == await tasks.iterations == 1
        with pytest.raises(Conflict):
            await tasks.claim("t1")

    run(body)
    assert effects.calls == ["a", "b", "c"]


def test_recorded_steps_are_not_awaited_again() -> None:
    effects = Counter()

    async def pay() -> str:
        return str(effects("paid"))

    async def body(tasks: awaited.Tasks) -> None:
        await tasks.add("t1")
        for fails in (True, False):
            attempt = await tasks.claim("t1", retry=AT_ONCE)
            assert await attempt.step("pay", pay) == "paid"
            await (attempt.fail("away") if fails else attempt.complete("done"))

    run(body)
    assert effects.calls == ["paid"]


def test_steps_lie_inside_each_other_and_at_once() -> None:
    async def body(tasks: awaited.Tasks) -> list[str | None]:
        await tasks.add("t1")

        async def inner(value: int) -> int:
            await asyncio.sleep(0)
            return value

        async def outer(attempt: Attempt) -> list[int]:
            calls = [attempt.step("inner", inner, n, key=str(n)) for n in range(3)]
            return list(await asyncio.gather(*calls))

        async with tasks.attempt("t1") as attempt:
            assert await attempt.step("outer", outer, attempt) == [0, 1, 2]
            plain = await attempt.step("plain", lambda: attempt._sync.step("in", lambda: 5))
            assert plain == 5
        store = tasks._sync._context.store
        return [entry.step for entry in store.journal(None, "t1", 1)]

    found = run(body)
    assert sorted(found[:3]) == [f"outer#1/inner[{n}]" for n in range(3)]
    assert found[3:] == ["outer#1", "plain#1/in#1", "plain#1"]


def test_many_handlers_run_at_once_on_one_loop() -> None:
    async def body(tasks: awaited.Tasks) -> None:
        for number in range(8):
            await tasks.add(f"t{number}")
        together = asyncio.Barrier(8)

        async def handler(attempt: Attempt) -> str:
            await asyncio.wait_for(together.wait(), 60)
            return attempt.id

        async with tasks.runner("s") as runner:
            assert runner.report.was_clean
            await runner.run(handler, concurrency=8, until_idle=True)
        assert (await tasks.stats()).completed == 8

    run(body)


def test_a_failing_handler_is_tried_again_and_a_question_waits() -> None:
    async def body(tasks: awaited.Tasks) -> None:
        await tasks.add("flaky")
        await tasks.add("asks")

        async def handler(attempt: Attempt) -> Any:
            if attempt.id == "asks":
                return await attempt.ask("Sure?")
            if attempt.number < 3:
                raise OSError("away")
            return attempt.number

        async with tasks.runner("s") as runner:
            await runner.run(handler, until_idle=True, retry=AT_ONCE)
            assert (await tasks.get("flaky")).result == 3
            assert (await tasks.get("asks")).question == "Sure?"
            await tasks.answer("asks", "yes")
            await runner.run(handler, until_idle=True)
        assert (await tasks.get("asks")).result == "yes"

    run(body)


def test_a_run_that_is_cancelled_hands_its_tasks_back() -> None:
    async def body(tasks: awaited.Tasks) -> None:
        await tasks.add("t1")
        begun = asyncio.Event()

        async def handler(attempt: Attempt) -> None:
            begun.set()
            await asyncio.sleep(60)

        async with tasks.runner("s") as runner:
            running = asyncio.create_task(runner.run(handler))
            await asyncio.wait_for(begun.wait(), 60)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        task = await tasks.get("t1")
        assert (task.state, task.attempts) == ("pending", 0)

    run(body)


def test_a_handler_that_does_not_end_in_time_is_handed_back() -> None:
    async def body(tasks: awaited.Tasks) -> None:
        await tasks.add("t1")
        async with tasks.runner("s") as runner:

            async def handler(attempt: Attempt) -> None:
                runner.stop()
                await asyncio.sleep(60)

            await runner.run(handler, grace_seconds=0.05)
        assert (await tasks.get("t1")).state == "pending"

    run(body)


def test_a_stop_hands_back_in_time_though_every_thread_is_in_a_plain_function() -> None:
    """Nor does the vault wait for them when it is closed."""
    inside, go_on = threading.Barrier(aio.THREADS + 1, timeout=60), threading.Event()
    has_ended: list[bool] = []

    def hangs() -> None:
        inside.wait()
        has_ended.append(go_on.wait(120))

    async def body(tasks: awaited.Tasks) -> None:
        for number in range(aio.THREADS + 1):
            await tasks.add(f"t{number}")

        async def handler(attempt: Attempt) -> None:
            await attempt.step("hangs", hangs)

        async with tasks.runner("s") as runner:
            work = runner.run(handler, concurrency=aio.THREADS + 1, grace_seconds=0.05)
            running = asyncio.create_task(work)
            await asyncio.to_thread(inside.wait)
            runner.stop()
            await asyncio.wait_for(running, 60)
            assert (await tasks.stats()).pending == aio.THREADS + 1

    run(body)
    assert has_ended == []
    go_on.set()


@pytest.mark.parametrize("sweep_seconds", [60.0, 0.0])
def test_a_stop_hands_back_in_time_though_every_thread_waits_for_the_store(
    monkeypatch: pytest.MonkeyPatch, sweep_seconds: float
) -> None:
    """Those of the vault: they try to record what has ended, and have nothing else to do."""
    monkeypatch.setattr(executor, "until_sweep", lambda runner: sweep_seconds)
    tried: set[str] = set()
    all_tried = threading.Event()

    async def body(tasks: awaited.Tasks) -> None:
        store: Any = tasks._sync._context.store
        commit = store.commit

        def broken(batch: Batch) -> int:
            if batch.event.kind == "completed":
                tried.add(str(getattr(batch.event, "task", None)))
                if len(tried) == aio.THREADS:
                    all_tried.set()
                raise Unavailable("the disk is full")
            return int(commit(batch))

        async def handler(attempt: Attempt) -> None:
            pass

        store.commit = broken
        for number in range(aio.THREADS):
            await tasks.add(f"t{number}")
        async with tasks.runner("s") as runner:
            work = runner.run(handler, concurrency=aio.THREADS, grace_seconds=0.05)
            running = asyncio.create_task(work)
            assert await asyncio.to_thread(all_tried.wait, 60)
            if not sweep_seconds:  # it has come, and waits for a thread, too
                await asyncio.sleep(2 * POLL_SECONDS)
            runner.stop()
            await asyncio.wait_for(running, 60)
            assert (await tasks.stats()).pending == aio.THREADS

    run(body)


def test_a_cancelled_step_is_unknown(tmp_path: Path) -> None:
    async def body(tasks: awaited.Tasks) -> None:
        await tasks.add("t1")
        begun = asyncio.Event()

        async def pay() -> None:
            begun.set()
            await asyncio.sleep(60)

        async def work() -> None:
            async with tasks.attempt("t1") as attempt:
                await attempt.step("pay", pay, unknown="fail")

        running = asyncio.create_task(work())
        await asyncio.wait_for(begun.wait(), 60)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await tasks.get("t1")).state == "pending"
        with pytest.raises(StepUnknown):
            async with tasks.attempt("t1") as attempt:
                await attempt.step("pay", pay, unknown="fail")

    run(body, f"sqlite:///{tmp_path}/store.db")


def test_a_coroutine_and_a_function_are_the_same_step(tmp_path: Path) -> None:
    """What one vault has recorded, the other one knows."""
    url = f"sqlite:///{tmp_path}/store.db"
    effects = Counter()
    with hardsave.open(url) as vault:
        vault.tasks.add("t1")
        attempt = vault.tasks.claim("t1", retry=AT_ONCE)
        attempt.step("pay", effects, 10)
        attempt.fail("away")

    async def body(tasks: awaited.Tasks) -> Any:
        async def pay(value: int) -> Any:
            return effects(value)

        async with tasks.attempt("t1") as attempt:
            return await attempt.step("pay", pay, 10)

    assert run(body, url) == 10
    assert effects.calls == [10]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_stop_cleanly_and_are_given_back(number: signal.Signals) -> None:
    """Also to a loop that had asked for them."""
    told: list[str] = []

    async def body(tasks: awaited.Tasks) -> None:
        loop = asyncio.get_running_loop()
        heard = asyncio.Event()

        def hear(what: str) -> None:
            told.append(what)
            heard.set()

        before = signal.getsignal(number)
        await tasks.add("t1")

        async def handler(attempt: Attempt) -> str:
            os.kill(os.getpid(), number)
            await asyncio.sleep(0)
            return "ended"

        async with tasks.runner("s") as runner:
            await asyncio.wait_for(runner.run(handler), 60)
            assert signal.getsignal(number) == before
            assert (await tasks.get("t1")).result == "ended"
            loop.add_signal_handler(number, hear, "its own")
            await asyncio.wait_for(runner.run(handler, until_idle=True), 60)
            os.kill(os.getpid(), number)
            await asyncio.wait_for(heard.wait(), 60)
        loop.remove_signal_handler(number)

    run(body)
    assert told == ["its own"]


def test_a_plain_function_is_no_handler_and_no_fault_of_a_task() -> None:
    async def body(tasks: awaited.Tasks) -> None:
        await tasks.add("t1")
        plain: Any = lambda attempt: None  # noqa: E731
        async with tasks.runner("s") as runner:
            with pytest.raises(Misuse, match="a handler is a coroutine function"):
                await runner.run(plain, until_idle=True)
        assert (await tasks.get("t1")).state == "pending"

    run(body)


def test_a_coroutine_that_wakes_after_its_lease_calls_nothing_that_others_may_have_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    effects = Counter()

    async def later(value: int) -> None:
        effects(value)

    async def body(tasks: awaited.Tasks) -> None:
        await tasks.add("t1")
        attempt = await tasks.claim("t1")
        await tasks.cancel("t1")
        monkeypatch.setattr(Lease, "is_overdue", lambda lease: True)
        with pytest.raises(LeaseLost):
            await attempt.step("one", later, 1)

    run(body)
    assert effects.calls == []
