"""What a step does when its record cannot be written, or its task is not ours any more."""

import asyncio
from contextvars import Context, copy_context
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave import aio
from hardsave.errors import LeaseLost, StepUnknown, Unavailable
from hardsave.tasks.step_calls import Paused
from tests.unit.tasks.room import AT_ONCE, Counter, Room


@pytest.fixture
def room() -> Room:
    return Room()


def unwritable(
    monkeypatch: pytest.MonkeyPatch, store: Any, kind: str, *, is_written: bool = False
) -> None:
    """The store fails once, when an entry of this kind is to be written; before that, or after."""
    commit, failing = store.commit, [True]

    def flaky(batch: Any) -> int:
        if batch.event.kind != kind or not failing:
            return int(commit(batch))
        failing.clear()
        if is_written:
            commit(batch)
        raise Unavailable("the disk is full")

    monkeypatch.setattr(store, "commit", flaky)


def test_a_result_is_the_same_the_first_time_and_from_the_record_without_its_secrets() -> None:
    token = "ghp_" + "a1B2" * 9
    seen = Counter()

    def handler(attempt: hardsave.Attempt) -> None:
        for number, result in enumerate([token, token.encode(), [token], 7]):
            seen(attempt.step("login", lambda value=result: value, key=str(number)))
        if attempt.number == 1:
            raise OSError("away")

    with hardsave.open("memory://", redact=True) as vault:
        vault.tasks.add("t1")
        with vault.tasks.runner("s") as runner:
            runner.run(handler, until_idle=True, retry=AT_ONCE)
    stands = "[redacted:github-token]"
    assert seen.calls[:4] == seen.calls[4:] == [stands, stands.encode(), [stands], 7]


@pytest.mark.parametrize("retry", [None, AT_ONCE])
def test_a_function_that_was_called_is_not_called_again_because_its_record_failed(
    room: Room, monkeypatch: pytest.MonkeyPatch, retry: hardsave.Retry | None
) -> None:
    room.tasks.add("t1")
    paid = Counter()
    unwritable(monkeypatch, room.store, "step_done")
    with pytest.raises(Unavailable), room.tasks.attempt("t1", retry=AT_ONCE) as attempt:
        attempt.step("pay", paid, 10, unknown="fail", retry=retry)
    assert paid.calls == [10]
    with pytest.raises(StepUnknown), room.tasks.attempt("t1") as attempt:
        attempt.step("pay", paid, 10, unknown="fail", retry=retry)
    assert paid.calls == [10], "nobody knows whether it was paid: a person has to look"


def test_a_record_that_was_written_all_the_same_counts(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.tasks.add("t1")
    paid = Counter()
    unwritable(monkeypatch, room.store, "step_done", is_written=True)
    with pytest.raises(Unavailable), room.tasks.attempt("t1", retry=AT_ONCE) as attempt:
        attempt.step("pay", paid, 10)
    with room.tasks.attempt("t1") as attempt:
        assert attempt.step("pay", paid, 10) == 10
    assert paid.calls == [10]


def test_coroutines_are_not_called_again_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid = Counter()

    async def pay(value: int) -> Any:
        return paid(value)

    async def body() -> None:
        async with aio.open(f"sqlite:///{tmp_path}/store.db") as vault:
            await vault.tasks.add("t1")
            unwritable(monkeypatch, vault.tasks._sync._context.store, "step_done")
            with pytest.raises(Unavailable):
                async with vault.tasks.attempt("t1") as attempt:
                    await attempt.step("pay", pay, 10, retry=AT_ONCE)

    asyncio.run(body())
    assert paid.calls == [10]


def test_a_wait_for_the_next_try_ends_with_the_attempt(room: Room) -> None:
    room.tasks.add("t1")
    attempt = room.tasks.claim("t1")
    called = Counter()

    def random() -> float:
        attempt.hand_back()  # while it waits
        return 0.0

    attempt._calls.context = attempt._calls.context._replace(random=random)

    def fails() -> None:
        called("once")
        raise OSError("away")

    with pytest.raises(LeaseLost):
        attempt.step("call", fails, retry=hardsave.Retry(first_seconds=60))
    assert called.calls == ["once"]


def test_a_coroutine_waits_in_vain_for_the_next_try_of_a_lost_task() -> None:
    called = Counter()

    async def body() -> None:
        async with aio.open("memory://") as vault:
            await vault.tasks.add("t1")
            attempt = await vault.tasks.claim("t1")

            async def fails() -> None:
                called("once")
                asyncio.get_running_loop().call_later(0.05, attempt._sync.hand_back)
                raise OSError("away")

            with pytest.raises(LeaseLost):
                await attempt.step("call", fails, retry=hardsave.Retry(first_seconds=0.3))

    asyncio.run(body())
    assert called.calls == ["once"]


def test_a_task_whose_journal_cannot_be_read_is_left_to_others(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.tasks.add("t1")
    room.tasks.claim("t1").hand_back()
    journal = room.store.journal

    def broken(*args: Any) -> Any:
        raise Unavailable("the disk fails")

    monkeypatch.setattr(room.store, "journal", broken)
    with pytest.raises(Unavailable):
        room.tasks.claim("t1")
    monkeypatch.setattr(room.store, "journal", journal)
    assert room.tasks.get("t1").state == "pending", "else it is ours, and nobody works on it"
    room.tasks.claim("t1").complete()


def test_what_is_forced_begins_with_an_empty_journal(room: Room) -> None:
    room.tasks.add("t1")
    called = Counter()
    for number in (1, 2):
        with room.tasks.attempt("t1", force=True) as attempt:
            assert attempt.step("call", called, number) == number
    assert called.calls == [1, 2]


def test_there_is_no_moment_in_which_what_was_handed_back_can_be_saved_into(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A runner hands a task back while its handler, in another thread, is about to save."""
    room.tasks.add("t1")
    with room.tasks.attempt("t1") as attempt:
        line = room.vault.timeline("main")
        line.save({"n": 1})
        lose = attempt.lost

        def save_first() -> None:
            monkeypatch.setattr(attempt, "lost", lose)
            with pytest.raises(LeaseLost):
                line.save({"n": 2})
            lose()

        monkeypatch.setattr(attempt, "lost", save_first)
        attempt.hand_back()
    assert line.load() == {"n": 1}


def test_what_still_works_for_a_block_that_was_left_cannot_save_once_its_task_is_handed_back(
    room: Room,
) -> None:
    """A thread of `asyncio.to_thread` goes on when the coroutine around it is cancelled."""
    room.tasks.add("t1")
    line = room.vault.timeline("main")
    contexts: list[Context] = []

    def interrupted() -> None:
        with room.tasks.attempt("t1"):
            contexts.append(copy_context())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with room.tasks.attempt("t1"), pytest.raises(LeaseLost):
        contexts[0].run(line.save, {"n": 1})
    assert line.save({"n": 2}).task is None


def test_a_block_in_a_block_of_the_same_attempt_leaves_no_work_behind(room: Room) -> None:
    room.tasks.add("t1")
    with room.tasks.attempt("t1") as attempt:
        with attempt:
            attempt.hand_back()
        assert room.vault.timeline("main").save({"n": 1}).task is None
    assert room.vault.timeline("main").save({"n": 2}).task is None


def test_a_task_is_not_completed_by_the_pause_of_another(room: Room) -> None:
    room.tasks.add("a")
    room.tasks.add("b", priority=-1)

    def asks(attempt: hardsave.Attempt) -> None:
        room.tasks.claim("b").ask("may I?")  # without a block that would see to it

    room.run(asks)
    assert room.tasks.get("b").question == "may I?"
    found = room.tasks.get("a")
    assert (found.state, found.error) == ("failed", "Paused: task 'b' asks: may I?")


def test_nor_by_that_of_another_coroutine() -> None:
    async def body() -> str:
        async with aio.open("memory://") as vault, vault.tasks.runner("s") as runner:
            await vault.tasks.add("a")
            await vault.tasks.add("b", priority=-1)

            async def asks(attempt: aio.Attempt) -> None:
                await (await vault.tasks.claim("b")).ask("may I?")

            await runner.run(asks, until_idle=True)
            return (await vault.tasks.get("a")).state

    assert asyncio.run(body()) == "failed"


def test_a_block_is_not_left_unfinished_by_the_pause_of_another(room: Room) -> None:
    for name in ("a", "b"):
        room.tasks.add(name)
    with pytest.raises(Paused), room.tasks.attempt("a"):
        room.tasks.claim("b").ask("may I?")
    assert room.tasks.get("a").state == "pending"
