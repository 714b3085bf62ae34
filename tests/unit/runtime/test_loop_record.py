"""Keeping a conversation: in order, whoever is cancelled, and whatever goes wrong."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

import hardsave
from hardsave.errors import Conflict
from hardsave.runtime.loop.conversation import Conversation
from hardsave.runtime.loop.record import Record
from hardsave.vault.checkpoint import Checkpoint
from hardsave.vault.line import Timeline


class Slow:
    """A timeline some of whose saves take until they are let go, or fail."""

    def __init__(self, line: Timeline) -> None:
        self._line = line
        self.name = line.name
        self.begun: list[str] = []
        self.held = ""
        self.fails: dict[str, Exception] = {}
        self.has_begun = threading.Event()
        self.go_on = threading.Event()

    @property
    def head(self) -> Checkpoint | None:
        return self._line.head

    @property
    def title(self) -> str:
        return self._line.title

    def save(self, state: Any, **how: Any) -> Checkpoint:
        return self._after(how["description"], lambda: self._line.save(state, **how))

    def append(self, state: Any, **how: Any) -> Checkpoint:
        return self._after(how["description"], lambda: self._line.append(state, **how))

    def _after(self, what: str, save: Callable[[], Checkpoint]) -> Checkpoint:
        self.begun.append(what)
        if what == self.held:
            self.has_begun.set()
            assert self.go_on.wait(60)
        if what in self.fails:
            raise self.fails[what]
        return save()


@pytest.fixture
def line() -> Slow:
    return Slow(hardsave.open("memory://").timeline("x"))


def record(line: Slow) -> Record:
    conversation = Conversation(run="r", prompt="hi")
    return Record(line, None, conversation, is_kept=False)  # type: ignore[arg-type] # as good as one


async def cancelled_while(line: Slow, kept: Record) -> "asyncio.Task[None]":
    """A call that is cancelled, twice, in the middle of its save."""
    line.held = "before slow"
    task = asyncio.create_task(kept.began("1", "slow"))
    await asyncio.to_thread(line.has_begun.wait, 60)
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
    return task


def test_no_save_is_overtaken_by_one_whose_caller_was_cancelled(line: Slow) -> None:
    async def run() -> None:
        kept = record(line)
        await kept.opened()
        task = await cancelled_while(line, kept)
        following = asyncio.create_task(kept.ended("2", "quick", "returned", {"value": 1}))
        for _ in range(20):
            await asyncio.sleep(0)
        assert line.begun == ["prompt", "before slow"]
        assert not task.done()  # it has asked for something that is not over
        line.go_on.set()
        await following
        with pytest.raises(asyncio.CancelledError):
            await task
        assert kept.failures == 0

    asyncio.run(run())
    head = line.head
    assert head is not None
    assert head.description == "quick returned"
    assert head.read("calls").keys() == {"1", "2"}


def test_a_save_that_fails_after_its_caller_was_cancelled_is_told(
    line: Slow, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        kept = record(line)
        await kept.opened()
        line.fails["before slow"] = Conflict("somebody else was here")
        task = await cancelled_while(line, kept)
        line.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert "has failed after its caller was cancelled: somebody else was here" in caplog.text


@pytest.mark.parametrize("error", [OSError("gone"), RuntimeError("can't start new thread")])
def test_whatever_a_save_fails_with_the_agent_goes_on(
    line: Slow, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    async def run() -> Record:
        kept = record(line)
        line.fails["prompt"] = error
        await kept.opened()
        await kept.began("1", "look")
        return kept

    kept = asyncio.run(run())
    assert kept.failures == 1
    assert f"could not be saved ({error})" in caplog.text
    head = line.head
    assert head is not None  # the next one makes up for it
    assert head.read("prompt") == {"content": "hi"}


def test_a_conversation_is_called_after_its_first_prompt(line: Slow) -> None:
    async def run(prompt: Any) -> None:
        conversation = Conversation(run="r", prompt=prompt)
        await Record(line, None, conversation, is_kept=False).opened()  # type: ignore[arg-type] # as good as one

    for prompt in (["not a text"], "Fix the parser,\nplease", "Another one"):
        asyncio.run(run(prompt))
    assert line.title == "Fix the parser, please"
