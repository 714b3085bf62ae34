"""What an attempt appends is appended once, however often it begins again."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave import aio
from hardsave.errors import Conflict
from hardsave.stores.memory.store import MemoryStore

AT_ONCE = hardsave.Retry(first_seconds=0, max_seconds=0)
Body = Callable[[hardsave.Attempt, hardsave.Timeline], Any]


@pytest.fixture
def vault() -> hardsave.Vault:
    return hardsave.Vault(MemoryStore())


def said(vault: hardsave.Vault, name: str = "chat") -> Any:
    return vault.timeline(name).load()["said"]


def twice(vault: hardsave.Vault, body: Body) -> None:
    """A body whose first attempt fails at its end."""

    def handler(attempt: hardsave.Attempt) -> None:
        body(attempt, vault.timeline("chat"))
        if attempt.number == 1:
            raise OSError("at the end")

    vault.tasks.add("t")
    with vault.tasks.runner("test") as runner:
        runner.run(handler, until_idle=True, retry=AT_ONCE)
    assert vault.tasks.get("t").attempts == 2


def fail(
    vault: hardsave.Vault, task: str, name: str, look: Callable[[hardsave.Timeline], object]
) -> None:
    with vault.tasks.attempt(task, retry=AT_ONCE):
        look(vault.timeline(name))
        vault.timeline(name).append({"said": ["ok"]})
        raise OSError("at the end")


def test_what_the_first_attempt_has_appended_the_second_does_not_append_again(
    vault: hardsave.Vault,
) -> None:
    made: list[hardsave.Checkpoint] = []

    def body(attempt: hardsave.Attempt, chat: hardsave.Timeline) -> None:
        made.append(chat.append({"said": ["hello"]}))
        made.append(chat.append({"said": ["hello"]}))
        chat.append({"said": [f"by {attempt.number}"]})
        attempt.step("act", lambda: chat.append({"said": ["hello"]}).seq)

    twice(vault, body)
    assert said(vault) == ["hello", "hello", "by 1", "hello", "by 2"]
    assert made[:2] == made[2:]


def test_a_step_that_is_tried_again_appends_once(vault: hardsave.Vault) -> None:
    failures = [OSError("one"), OSError("two")]

    def reply() -> None:
        vault.timeline("chat").append({"said": ["hello"]})
        if failures:
            raise failures.pop()

    vault.tasks.add("t")
    with vault.tasks.attempt("t") as attempt:
        attempt.step("reply", reply, retry=AT_ONCE)
        attempt.step("reply", reply)  # another one
    assert said(vault) == ["hello", "hello"]


def test_an_attempt_that_has_looked_goes_on_from_what_is_there(vault: hardsave.Vault) -> None:
    """It knows what was appended: the same words again are other ones."""
    looks: list[Callable[[hardsave.Timeline], object]] = [
        lambda chat: chat.head and chat.load(),
        lambda chat: chat.head,
        len,
        lambda chat: list(chat.checkpoints()),
        lambda chat: chat.summary(),
    ]
    for number, look in enumerate(looks):
        vault.tasks.add(f"t{number}")
        name = f"line{number}"
        for _ in range(2):
            with pytest.raises(OSError, match="at the end"):
                fail(vault, f"t{number}", name, look)
        assert said(vault, name) == ["ok", "ok"], number


def test_what_was_looked_at_outside_of_a_step_does_not_concern_it(vault: hardsave.Vault) -> None:
    def body(attempt: hardsave.Attempt, chat: hardsave.Timeline) -> None:
        before = chat.head  # noqa: F841 # it is looked at, that is all

        def reply() -> None:
            chat.append({"said": ["ok"]})
            if attempt.number == 1:
                raise OSError("before its end is on record")

        attempt.step("reply", reply)

    twice(vault, body)
    assert said(vault) == ["ok"]


def thrice(vault: hardsave.Vault, body: Body) -> Any:
    """What is on the timeline after a body whose first two attempts fail at their end."""

    def handler(attempt: hardsave.Attempt) -> None:
        body(attempt, vault.timeline("chat"))
        if attempt.number < 3:
            raise OSError("at the end")

    vault.tasks.add("t")
    with vault.tasks.runner("test") as runner:
        runner.run(handler, until_idle=True, retry=AT_ONCE)
    assert vault.tasks.get("t").attempts == 3
    return said(vault)


def test_a_look_inside_of_a_step_belongs_to_that_step_alone(vault: hardsave.Vault) -> None:
    """A later attempt gets the step's result from the journal, and looks at nothing."""

    def body(attempt: hardsave.Attempt, chat: hardsave.Timeline) -> None:
        chat.append({"said": ["s"]})
        attempt.step("len", lambda: len(chat))
        chat.append({"said": ["t"]})

    assert thrice(vault, body) == ["s", "t"]


def test_a_look_inside_of_a_nested_step_concerns_neither_the_step_around_it_nor_the_body(
    vault: hardsave.Vault,
) -> None:
    def body(attempt: hardsave.Attempt, chat: hardsave.Timeline) -> None:
        def outer() -> None:
            chat.append({"said": ["s"]})
            attempt.step("inner", lambda: chat.load()["said"])
            chat.append({"said": ["t"]})
            if attempt.number == 1:
                raise OSError("before its end is on record")

        attempt.step("outer", outer)
        chat.append({"said": ["u"]})

    assert thrice(vault, body) == ["s", "t", "u"]


def test_what_a_step_appends_after_its_own_look_is_new(vault: hardsave.Vault) -> None:
    def body(attempt: hardsave.Attempt, chat: hardsave.Timeline) -> None:
        def fill() -> None:
            while len(chat) < 5:
                chat.append({"said": ["more"]})
                if attempt.number < 3 and len(chat) == 2 * attempt.number:
                    raise OSError("before its end is on record")

        attempt.step("fill", fill)

    assert thrice(vault, body) == ["more"] * 5


def test_a_loop_that_looks_goes_on_where_the_last_attempt_has_ended(vault: hardsave.Vault) -> None:
    def body(attempt: hardsave.Attempt, chat: hardsave.Timeline) -> None:
        while len(chat) < 5:
            chat.append({"said": ["more"]})
            if attempt.number < 3 and len(chat) == 2 * attempt.number:
                return

    assert thrice(vault, body) == ["more"] * 5


def test_after_a_step_that_looked_and_failed_no_append_is_lost(vault: hardsave.Vault) -> None:
    """The next attempt calls it again, and its error may tell something else then."""

    def body(attempt: hardsave.Attempt, chat: hardsave.Timeline) -> None:
        def refuse() -> None:
            raise OSError(f"{len(chat)}")

        with pytest.raises(OSError, match=f"{attempt.number - 1}"):
            attempt.step("refuse", refuse)
        chat.append({"said": ["ok"]})

    assert thrice(vault, body) == ["ok"] * 3


def test_a_whole_state_that_was_saved_begins_anew(vault: hardsave.Vault) -> None:
    def body(attempt: hardsave.Attempt, chat: hardsave.Timeline) -> None:
        chat.save({"said": []})
        chat.append({"said": ["hello"]})

    twice(vault, body)
    assert said(vault) == ["hello"]


def test_what_was_taken_back_is_appended_again(vault: hardsave.Vault) -> None:
    vault.timeline("chat").save({"said": []})
    vault.tasks.add("t")
    for _ in range(2):
        with pytest.raises(OSError, match="at the end"):
            fail(vault, "t", "chat", lambda _: None)
        assert said(vault) == ["ok"]
        vault.timeline("chat").rewind("@~1")
    assert said(vault) == []


def test_another_task_and_a_task_that_starts_over_append_for_themselves(
    vault: hardsave.Vault,
) -> None:
    for name in ("a", "b"):
        vault.tasks.add(name)
        with vault.tasks.attempt(name):
            vault.timeline("chat").append({"said": ["hello"]})
    with vault.tasks.attempt("a", force=True):
        vault.timeline("chat").append({"said": ["hello"]})
    assert said(vault) == ["hello"] * 3


def test_an_append_that_failed_is_the_same_when_it_is_made_again(vault: hardsave.Vault) -> None:
    def body(attempt: hardsave.Attempt, chat: hardsave.Timeline) -> None:
        if attempt.number == 1:
            vault.timeline("chat").append({"said": ["other"]})  # behind the back of the handle
            with pytest.raises(Conflict):
                chat.append({"said": ["hello"]})
        vault.timeline("chat").append({"said": ["hello"]})

    twice(vault, body)
    assert said(vault) == ["other", "hello"]


def test_files_are_saved_as_they_are_by_then(tmp_path: Path) -> None:
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        work = tmp_path / "work"
        work.mkdir()

        def body(attempt: hardsave.Attempt, chat: hardsave.Timeline) -> None:
            (work / "a.txt").write_text(f"{attempt.number}")
            chat.append({"said": ["hello"]}, workspace=work)

        twice(vault, body)
        assert said(vault) == ["hello"]
        head = vault.timeline("chat").head
        assert head is not None
        assert head.files is not None
        assert head.files.read("a.txt") == b"2"


def coroutine_thrice(body: Callable[[aio.Attempt, aio.Timeline], Awaitable[None]]) -> Any:
    async def main() -> Any:
        async with aio.open("memory://") as vault:

            async def handler(attempt: aio.Attempt) -> None:
                await body(attempt, await vault.timeline("chat"))
                if attempt.number < 3:
                    raise OSError("at the end")

            await vault.tasks.add("t")
            async with vault.tasks.runner("test") as runner:
                await runner.run(handler, until_idle=True, retry=AT_ONCE)
            assert (await vault.tasks.get("t")).attempts == 3
            return (await (await vault.timeline("chat")).load())["said"]

    return asyncio.run(main())


def test_a_look_of_a_coroutine_inside_of_a_step_belongs_to_that_step_alone() -> None:
    async def body(attempt: aio.Attempt, chat: aio.Timeline) -> None:
        async def look() -> int:
            return await attempt.step("inner", chat.count)

        await chat.append({"said": ["s"]})
        await attempt.step("look", look)
        await chat.append({"said": ["t"]})

    assert coroutine_thrice(body) == ["s", "t"]


def test_after_a_step_that_looked_and_was_cancelled_no_append_is_lost() -> None:
    async def body(attempt: aio.Attempt, chat: aio.Timeline) -> None:
        async def look_for_ever() -> None:
            await chat.count()
            await asyncio.sleep(60)

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(attempt.step("look", look_for_ever), 0.1)
        await chat.append({"said": ["ok"]})

    assert coroutine_thrice(body) == ["ok"] * 3


def test_the_same_goes_for_coroutines() -> None:
    async def act(chat: aio.Timeline) -> None:
        await chat.append({"said": ["tock"]})

    async def main() -> Any:
        async with aio.open("memory://") as vault:

            async def handler(attempt: aio.Attempt) -> None:
                chat = await vault.timeline("chat")
                await asyncio.gather(*(chat.append({"said": ["tick"]}) for _ in range(3)))
                await attempt.step("act", act, chat)
                if attempt.number == 1:
                    raise OSError("at the end")

            await vault.tasks.add("t")
            async with vault.tasks.runner("test") as runner:
                await runner.run(handler, until_idle=True, retry=AT_ONCE)
            assert (await vault.tasks.get("t")).attempts == 2
            chat = await vault.timeline("chat")
            return (await chat.load())["said"]

    assert asyncio.run(main()) == ["tick"] * 3 + ["tock"]
