"""Agents are run again and again by plain functions, with clients that keep their connections."""

import asyncio
import concurrent.futures
import contextvars
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

import hardsave
from hardsave.runtime import event_loop, loop
from hardsave.runtime.jobs.worker import Worker
from hardsave.runtime.scripted import Reply, ScriptedModel

ONCE = hardsave.Retry(first_seconds=0, max_seconds=0, never=(Exception,))


@pytest.fixture
def vault() -> Iterator[hardsave.Vault]:
    with hardsave.open("memory://") as opened:
        yield opened


@pytest.fixture
def scripted() -> Iterator[ScriptedModel]:
    with ScriptedModel([Reply("done")]) as model:
        yield model


@pytest.fixture(params=["openai", "anthropic"])
def agent(request: pytest.FixtureRequest, scripted: ScriptedModel) -> Iterator[Agent[None, Any]]:
    """With a client that tries nothing twice: a second connection would hide a dead one."""
    if request.param == "openai":
        openai = AsyncOpenAI(base_url=scripted.openai_url, api_key="none", max_retries=0)
        yield Agent(OpenAIChatModel("scripted", provider=OpenAIProvider(openai_client=openai)))
        event_loop.run(openai.close())
    else:
        client = AsyncAnthropic(base_url=scripted.anthropic_url, api_key="none", max_retries=0)
        provider = AnthropicProvider(anthropic_client=client)
        yield Agent(AnthropicModel("scripted", provider=provider))
        event_loop.run(client.close())


def asked(agent: Agent[None, Any], vault: hardsave.Vault, name: str) -> Any:
    return loop.run_sync(agent, "Do it", line=vault.timeline(name), retry=ONCE).output


def test_an_agent_is_run_again_and_again(agent: Agent[None, Any], vault: hardsave.Vault) -> None:
    assert [asked(agent, vault, str(number)) for number in range(3)] == ["done"] * 3


def test_an_agent_is_run_from_several_threads(
    agent: Agent[None, Any], vault: hardsave.Vault
) -> None:
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda number: asked(agent, vault, str(number)), range(8)))
    assert found == ["done"] * 8


def test_a_second_run_of_a_worker_and_another_worker_use_the_same_agent(
    agent: Agent[None, Any], vault: hardsave.Vault
) -> None:
    worker = Worker(vault, {"default": agent}, model_retry=ONCE)
    for id, one in (("a", worker), ("b", worker), ("c", Worker(vault, {"default": agent}))):
        vault.jobs.add(id, "Do it")
        one.run(until_idle=True)
        job = vault.jobs.get(id)
        assert (job.state, job.error) == ("succeeded", None)
    assert asked(agent, vault, "d") == "done"


def test_a_coroutine_has_the_context_of_its_caller() -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)

    async def read() -> int:
        return variable.get()

    variable.set(7)
    assert event_loop.run(read()) == 7


def test_errors_and_cancellation_reach_the_caller() -> None:
    async def failing() -> None:
        raise TimeoutError("its own")

    async def cancelled() -> None:
        raise asyncio.CancelledError

    with pytest.raises(TimeoutError, match="its own"):
        event_loop.run(failing())
    with pytest.raises(asyncio.CancelledError):
        event_loop.run(cancelled())


def test_an_interrupted_call_waits_for_the_end_of_its_coroutine() -> None:
    began, ended = threading.Event(), threading.Event()

    async def long() -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)  # as a save that is under way
            ended.set()

    def interrupt() -> None:
        began.wait()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        event_loop.run(long())
    assert ended.is_set()


PROGRAM = """
import asyncio, os
from hardsave.runtime import event_loop

async def left_running():
    try:
        await asyncio.sleep(60)
    finally:
        print("told", flush=True)

async def begin():
    return asyncio.create_task(left_running())

event_loop.run(begin())
if (child := os.fork()) == 0:
    async def two():
        return 2
    os._exit(event_loop.run(two()))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
"""


def test_a_process_ends_cleanly_and_its_child_has_a_loop_of_its_own() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "told\n", "")
