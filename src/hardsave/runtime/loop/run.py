"""Running a Pydantic AI agent so that it survives: saved after every response and every tool.

    line, workspace = vault.timeline("job-1"), vault.workspace(".")
    outcome = loop.run_sync(agent, "Fix the bug", line=line, workspace=workspace)

Called again after a crash, it goes on where it was: what the model said is not asked for again,
a tool that has returned is not called again, and what was under way is up to its policy.
"""

import asyncio
import contextlib
import inspect
import os
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from pydantic_ai import Agent, CallToolsNode
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.run import AgentRun
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage, UsageLimits
from pydantic_graph import End

from hardsave.errors import Conflict, HardsaveError, Misuse
from hardsave.logs import log
from hardsave.runtime import event_loop
from hardsave.runtime.loop import conversation as conversations
from hardsave.runtime.loop.approvals import ApprovalNeeded
from hardsave.runtime.loop.capability import Keeping, Unknown
from hardsave.runtime.loop.choice import chosen
from hardsave.runtime.loop.conversation import Conversation
from hardsave.runtime.loop.journal import Verdict, lacks_secret
from hardsave.runtime.loop.messages import (
    Prompt,
    live_prompt,
    live_usage,
    plain,
    plain_prompt,
    plain_result,
    plain_usage,
)
from hardsave.runtime.loop.once import read_out
from hardsave.runtime.loop.record import Record
from hardsave.runtime.loop.repair import open_calls, repaired
from hardsave.runtime.loop.retrying import RETRY, Patience, Sleep
from hardsave.tasks.retry import Retry
from hardsave.tuples import NamedTuple
from hardsave.vault.checkpoint import Checkpoint
from hardsave.vault.line import Timeline, is_strict
from hardsave.vault.workspace import Workspace

Out = TypeVar("Out")
Events = Callable[[Any], Any]
"""Told every event of the stream; may be a coroutine function."""
Turns = Callable[[int], object]
"""Told how many responses there were, in a thread, after each; what it raises ends the run."""


@dataclass(frozen=True, kw_only=True)
class Outcome(Generic[Out]):
    """What a run has come to."""

    output: Out
    messages: list[ModelMessage]
    usage: RunUsage
    turn: int
    """How many responses the model gave, in all processes that this run had."""
    run: str
    resumed: bool
    """Whether it began in another call."""
    save_failures: int
    checkpoint: Checkpoint | None
    """The last that was saved; None if none could be."""


async def run(
    agent: Agent[Any, Out],
    prompt: Prompt | None = None,
    *,
    line: Timeline,
    workspace: Workspace | None = None,
    deps: Any = None,
    run_id: str | None = None,
    resume: bool = True,
    history: Sequence[ModelMessage] | None = None,
    model: Model | str | None = None,
    models: Mapping[str, Model] | None = None,
    unknown: Unknown = None,
    events: Events | None = None,
    approvals: Mapping[str, Verdict] | None = None,
    turns: Turns | None = None,
    data: Any = None,
    model_settings: ModelSettings | None = None,
    usage_limits: UsageLimits | None = None,
    restore: bool | None = None,
    retry: Retry = RETRY,
    sleep: Sleep = asyncio.sleep,
) -> Outcome[Out]:
    """Run an agent on a timeline, or go on with what it has begun there.

    If the timeline's head is unfinished, it is finished: `prompt` is None or the one that it was
    begun with, and `Misuse` otherwise. If it is finished, a prompt goes on with the conversation,
    and None gives the outcome again, as does a `run_id` that it was finished under: a program that
    names its run can be started any number of times. `resume=False` begins anew, after `history`
    if there is one.

    `unknown` says what becomes of tools that were under way when a process died: one policy, or
    one by the tool's name; a tool's own stands in its metadata, and `ask` is the default: the
    model is told. `models` are those that a resume may choose from, by the name that was saved:
    the one that they were asked by, not what they call themselves in their answers.
    A tool that needs approval stops the run with `ApprovalNeeded`; `approvals` says by the ids of
    the calls that wait which may be made, and nothing about later ones: models give ids again.
    `events` makes it stream. The files of `workspace` are saved each
    time; `restore=True` brings them back first, None only into an empty directory.
    """
    wanted = _Wanted(None if prompt is None else plain_prompt(prompt), run_id, data)
    opened = await asyncio.to_thread(_opened, line, wanted, resume, history)
    began = opened.conversation
    if opened.resumed and workspace is not None:
        await asyncio.to_thread(_bring_back, line, workspace, restore)
    choice = chosen(model, models or {}, agent.model, asked=began.asked, answered=began.model)
    asked = replace(began, asked=choice.name)
    strict = partial(is_strict, line)
    record = Record(line, workspace, asked, is_kept=opened.is_kept, is_strict=strict)
    words = approvals if opened.is_waiting and approvals else {}
    keeping = Keeping(record, unknown, Patience(retry, sleep), dict(words), _secretless(opened))
    arguments = {
        "deps": deps,
        "model": choice.model,
        "model_settings": model_settings,
        "usage": live_usage(began.usage),
        "usage_limits": usage_limits,
        "capabilities": [keeping],
    }
    with _watched(workspace):
        return await _kept_going(agent, _Walk(record, keeping, events, turns), arguments, opened)


def run_sync(agent: Agent[Any, Out], prompt: Prompt | None = None, **options: Any) -> Outcome[Out]:
    """The same for programs without coroutines; the options are those of `run`. It runs in the
    thread of `hardsave.runtime.event_loop`: an agent may be run so again and again, from any
    thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return event_loop.run(run(agent, prompt, **options))
    raise Misuse("a loop is running here already: await run() instead of run_sync()")


# Opening


class _Wanted(NamedTuple):
    prompt: Any
    run_id: str | None
    data: Any

    @property
    def run(self) -> str:
        return self.run_id or f"run_{uuid.uuid4().hex[:12]}"


class _Opened(NamedTuple):
    conversation: Conversation
    is_kept: bool
    """Whether the head of the timeline holds its messages."""
    resumed: bool
    is_waiting: bool = False
    """Whether a person was asked about its calls: a word is about these, and no others."""


def _opened(
    line: Timeline, wanted: _Wanted, resume: bool, history: Sequence[ModelMessage] | None
) -> _Opened:
    saved = line.load() if resume and line.head is not None else None
    if saved is not None:  # else files alone were saved
        return _reopened(conversations.from_state(saved, line.name), wanted, line)
    if wanted.prompt is None:
        raise Misuse(f"there is nothing to go on with on timeline {line.name!r}: give a prompt")
    begun = Conversation(
        run=wanted.run,
        prompt=wanted.prompt,
        begun_with=wanted.prompt,
        messages=repaired(plain(history or ())),
        data=wanted.data,
    )
    return _Opened(begun, is_kept=False, resumed=False)


def _secretless(opened: _Opened) -> set[str]:
    """The calls that a run goes on with and that held what was not saved."""
    calls = open_calls(opened.conversation.messages) if opened.resumed else []
    return {str(call["tool_call_id"]) for call in calls if lacks_secret(call)}


def _reopened(saved: Conversation, wanted: _Wanted, line: Timeline) -> _Opened:
    is_same = wanted.prompt is None or wanted.run_id == saved.run
    if saved.status == "completed" and not is_same:
        messages = repaired(saved.messages)
        data = saved.data if wanted.data is None else wanted.data
        fresh = Conversation(
            run=wanted.run,
            prompt=wanted.prompt,
            begun_with=wanted.prompt,
            messages=messages,
            model=saved.model,
            asked=saved.asked,
            data=data,
        )
        return _Opened(fresh, is_kept=messages == saved.messages, resumed=False)
    _check_same(saved, wanted, line)
    messages = repaired(conversations.up_to_response(saved.messages), keep_last=True)
    data = saved.data if wanted.data is None else wanted.data
    going_on = replace(saved, status="running", messages=messages, error=None, data=data)
    if conversations.next_of(going_on) == "nothing":
        raise Misuse(f"nothing was said on timeline {line.name!r}: begin anew with resume=False")
    is_waiting = saved.status == "waiting"
    return _Opened(going_on, messages == saved.messages, resumed=True, is_waiting=is_waiting)


def _check_same(saved: Conversation, wanted: _Wanted, line: Timeline) -> None:
    prompts = (None, _prompt(saved))
    is_asked = wanted.prompt in prompts or line.as_saved(wanted.prompt) in prompts
    if not is_asked or wanted.run_id not in (None, saved.run):
        raise Misuse(
            f"timeline {line.name!r} holds run {saved.run!r}, which was asked something else or is "
            "not finished; finish it with prompt=None, or begin anew with resume=False"
        )


def _prompt(saved: Conversation) -> Any:
    """What it was asked; of what an older version has saved, the last that looks like it."""
    known = saved.prompt if saved.begun_with is None else saved.begun_with
    if known is not None:
        return known
    parts = [part for message in saved.messages for part in message["parts"]]
    prompts = [part for part in parts if part.get("part_kind") == "user-prompt"]
    return prompts[-1]["content"] if prompts else None


def _bring_back(line: Timeline, workspace: Workspace, restore: bool | None) -> None:
    """The files of a job that goes on in another place."""
    head = line.head
    if head is None or head.files is None or restore is False:
        return
    if restore or not any(os.scandir(workspace.path)):
        line.rewind(head.id, what="files", workspace=workspace)


@contextlib.contextmanager
def _watched(workspace: Workspace | None) -> Iterator[None]:
    """Saves look only at what may have changed, where that can be told."""
    if workspace is None:
        yield
        return
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(workspace.watch())
        except HardsaveError as error:
            log(__name__).info("the workspace is not watched: %s", error)
        yield


# Walking


class _Walk(NamedTuple):
    """What a run keeps in mind, and whom it tells."""

    record: Record
    keeping: Keeping
    events: Events | None
    turns: Turns | None


async def _kept_going(
    agent: Agent[Any, Out], way: _Walk, arguments: dict[str, Any], opened: _Opened
) -> Outcome[Out]:
    record = way.record
    try:
        if not opened.is_kept or not opened.resumed:
            await record.opened()
        async with _begun(agent, record, arguments) as (walk, node):
            output = await _walked(walk, node, way)
            usage = walk.usage
        return Outcome(
            output=output,
            messages=record.messages,
            usage=usage,
            turn=record.conversation.turn,
            run=record.conversation.run,
            resumed=opened.resumed,
            save_failures=record.failures,
            checkpoint=record.last,
        )
    except Conflict:
        raise
    except ApprovalNeeded:
        await record.finished("waiting")
        raise
    except Exception as error:
        await record.finished("failed", error=f"{type(error).__name__}: {error}")
        raise


@contextlib.asynccontextmanager
async def _begun(
    agent: Agent[Any, Out], record: Record, arguments: dict[str, Any]
) -> AsyncIterator[tuple[AgentRun[Any, Out], Any]]:
    """The run, and the node that it begins with."""
    saved = record.conversation
    prompt = None if saved.prompt is None else live_prompt(saved.prompt)
    before = record.messages
    async with agent.iter(prompt, message_history=before or None, **arguments) as walk:
        if conversations.next_of(saved) != "end":
            yield walk, walk.next_node
            return
        # All was said. Asked to go on, Pydantic AI would ask the model once more.
        last = before[-1]
        assert isinstance(last, ModelResponse)
        yield walk, CallToolsNode(last)


async def _walked(walk: AgentRun[Any, Out], node: Any, way: _Walk) -> Out:
    record = way.record
    while not isinstance(node, End):
        await _streamed(walk, node, way.events)
        # How many messages there are tells nothing: the caller may keep them few.
        is_asked = Agent.is_model_request_node(node)
        node = await walk.next(node)
        if is_asked and Agent.is_call_tools_node(node):
            way.keeping.next_response()
            response = node.model_response
            usage = plain_usage(walk.usage)
            await record.responded(walk.all_messages(), usage=usage, model=response.model_name)
            if way.turns is not None:
                await asyncio.to_thread(way.turns, record.conversation.turn)
    output: Out = read_out(node.data.output)
    usage = {**record.conversation.usage, "tool_calls": walk.usage.tool_calls}
    await record.finished("completed", walk.all_messages(), usage=usage, output=_output(output))
    return output


async def _streamed(walk: AgentRun[Any, Any], node: Any, events: Events | None) -> None:
    if events is None or not (Agent.is_model_request_node(node) or Agent.is_call_tools_node(node)):
        return
    streaming: Any = node.stream(walk.ctx)  # two kinds of streams, of the same events
    async with streaming as stream:
        async for event in stream:
            told = events(event)
            if inspect.isawaitable(told):
                await told


def _output(output: Any) -> Any:
    """The output as data; the messages hold it in any case."""
    try:
        return plain_result(output, "output")["value"]
    except HardsaveError:
        return None
