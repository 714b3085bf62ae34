"""Coroutines that are cancelled while a thread works for them: nothing is left half begun."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hardsave import aio
from hardsave.errors import Unavailable
from hardsave.tasks import async_ledger as awaited
from tests.unit.tasks.room import Counter


class Slow:
    """A store that takes its time over one kind of entry."""

    def __init__(self, tasks: awaited.Tasks, kind: str) -> None:
        self.is_at_it, self.go_on = threading.Event(), threading.Event()
        self._kind = kind
        self.fails_at = ""
        store: Any = tasks._sync._context.store
        self._commit = store.commit
        store.commit = self._slowly

    def _slowly(self, batch: Any) -> int:
        if batch.event.kind == self.fails_at:
            raise Unavailable("the disk is full")
        if batch.event.kind == self._kind:
            self.is_at_it.set()
            assert self.go_on.wait(60)
        return int(self._commit(batch))


@asynccontextmanager
async def one_task() -> AsyncIterator[awaited.Tasks]:
    async with aio.open("memory://") as vault:
        await vault.tasks.add("t1")
        yield vault.tasks


async def cancelled_inside(slow: Slow, work: Any) -> None:
    """Cancel it while the store is at it, which then goes on."""
    running = asyncio.ensure_future(work)
    assert await asyncio.to_thread(slow.is_at_it.wait, 60)
    running.cancel()
    for _ in range(5):  # until it knows
        await asyncio.sleep(0)
    slow.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await running


def test_a_claim_that_is_cancelled_leaves_the_task_to_others() -> None:
    async def body() -> None:
        async with one_task() as tasks:
            await cancelled_inside(Slow(tasks, "claimed"), tasks.claim("t1"))
            task = await tasks.get("t1")
            assert (task.state, task.attempts) == ("pending", 0)
            await (await tasks.claim("t1")).complete()

    asyncio.run(body())


def test_a_step_that_is_cancelled_before_its_call_is_not_unknown() -> None:
    paid = Counter()

    async def body() -> None:
        async with one_task() as tasks, tasks.attempt("t1") as attempt:
            step = attempt.step("pay", paid, 10, key="rent", unknown="fail")
            await cancelled_inside(Slow(tasks, "step_started"), step)
            assert paid.calls == []
            assert await attempt.step("pay", paid, 10, key="rent", unknown="fail") == 10

    asyncio.run(body())
    assert paid.calls == [10]


def test_a_step_that_was_cancelled_may_be_asked_for_again() -> None:
    async def body() -> None:
        async with one_task() as tasks, tasks.attempt("t1") as attempt:
            first = attempt.step("pay", lambda: 1, unknown="skip")
            await cancelled_inside(Slow(tasks, "step_started"), first)
            assert await attempt.step("pay", lambda: 2) == 2

    asyncio.run(body())


@pytest.mark.parametrize(
    ("begun", "undone", "what"),
    [
        ("claimed", "handed_back", "<attempt 1 at task 't1'>"),
        ("step_started", "step_failed", "<step 'pay#1' of task 't1'>"),
    ],
)
def test_who_is_cancelled_is_cancelled_though_what_was_begun_cannot_be_undone(
    begun: str, undone: str, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        async with one_task() as tasks:
            slow = Slow(tasks, begun)
            slow.fails_at = undone
            if begun == "claimed":
                await cancelled_inside(slow, tasks.claim("t1"))
                return
            attempt = await tasks.claim("t1")
            await cancelled_inside(slow, attempt.step("pay", lambda: 1, unknown="fail"))

    asyncio.run(body())
    assert f"{what} was begun for a call that was cancelled" in caplog.text


def test_a_run_that_is_cancelled_while_it_claims_leaves_the_task_to_others() -> None:
    called = Counter()

    async def handler(attempt: aio.Attempt) -> None:
        called(attempt.id)

    async def body() -> None:
        async with one_task() as tasks, tasks.runner("s") as runner:
            await cancelled_inside(Slow(tasks, "claimed"), runner.run(handler))
            task = await tasks.get("t1")
            assert (task.state, task.attempts) == ("pending", 0)

    asyncio.run(body())
    assert called.calls == []


def test_a_block_that_is_cancelled_while_it_completes_is_cancelled_and_nothing_else() -> None:
    async def body() -> None:
        async with one_task() as tasks:

            async def work() -> None:
                async with tasks.attempt("t1") as attempt:
                    await attempt.complete("done")

            await cancelled_inside(Slow(tasks, "completed"), work())
            assert (await tasks.get("t1")).result == "done"

    asyncio.run(body())
