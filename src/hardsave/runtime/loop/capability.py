"""What the loop adds to a run: a journal around the tools, patience with the model."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed
from pydantic_ai.messages import ModelResponse, ToolReturn
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from hardsave.errors import StepUnknown, Unstorable
from hardsave.logs import log
from hardsave.runtime.loop import approvals, journal
from hardsave.runtime.loop.journal import Noted, Verdict
from hardsave.runtime.loop.messages import live_result, plain_result, sayable
from hardsave.runtime.loop.once import read_out
from hardsave.runtime.loop.record import Record
from hardsave.runtime.loop.retrying import Patience, Retrying
from hardsave.tasks.steps import UnknownPolicy

Unknown = UnknownPolicy | Mapping[str, UnknownPolicy] | None


@dataclass
class Keeping(AbstractCapability[Any]):
    """Given to a run, never to the agent: what it holds is that run's."""

    record: Record
    unknown: Unknown
    patience: Patience
    approvals: dict[str, Verdict] = field(default_factory=dict)
    """What people have said about the calls of the response that a run goes on with."""
    secretless: set[str] = field(default_factory=set)
    """Which of these calls held a secret that was not saved."""
    _ids: Counter[str] = field(default_factory=Counter)

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return Journalled(toolset, self)

    def get_wrapper_model(self, model: Model) -> Model:
        return Retrying(model, self.patience)

    async def after_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,
        response: ModelResponse,
    ) -> ModelResponse:
        """Before a tool acts on a response it is one that can be saved."""
        return sayable(response)

    def next_response(self) -> None:
        """Ids may come again from here on, and what was said about them was about others."""
        self._ids.clear()
        self.approvals.clear()
        self.secretless.clear()

    def key(self, id: str) -> str:
        """What a call is on record as: a careless model may give an id twice."""
        self._ids[id] += 1
        return id if self._ids[id] == 1 else f"{id}#{self._ids[id]}"

    def put_off(self, id: str) -> None:
        """It was not called after all: the next one of that id is the same call."""
        self._ids[id] -= 1

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Calls that need approval are made, refused, or waited for. Others are not ours."""
        if not requests.approvals:
            return None
        verdicts: dict[str, Verdict] = {}
        waiting: list[approvals.PendingCall] = []
        for call in requests.approvals:
            id, noted = call.tool_call_id, self.record.noted(call.tool_call_id)
            said = journal.unmade(call.tool_name) if id in self.secretless else None
            verdict = journal.verdict(noted, said or self.approvals.get(id))
            if verdict is None:
                waiting.append(approvals.pending(call))
                continue
            verdicts[id] = verdict
            if noted is None:
                await self._decided(id, call.tool_name, verdict)
        if waiting:
            raise approvals.ApprovalNeeded(waiting, self.record.conversation.turn)
        return approvals.results(verdicts)

    async def _decided(self, id: str, tool: str, verdict: Verdict) -> None:
        """What a person has said is on record before anything follows from it."""
        if journal.is_yes(verdict):
            args = dict(verdict) if isinstance(verdict, Mapping) else None
            await self.record.approved(id, tool, args)
        else:
            await self.record.ended(id, tool, "denied", approvals.reason(verdict))


@dataclass
class Journalled(WrapperToolset[Any]):
    """Every call of every tool: replayed, run, or decided about."""

    keeping: Keeping

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],
    ) -> Any:
        if ctx.tool_call_id is None:  # not asked for by a model, so no resume will ask again
            return await super().call_tool(name, tool_args, ctx, tool)
        policy = journal.policy_for(name, tool.tool_def.metadata, self.keeping.unknown)
        key = self.keeping.key(ctx.tool_call_id)
        record = self.keeping.record
        noted = record.noted(key)
        decision = journal.decide(noted, policy)
        if noted is not None and decision != "run":
            return await self._known(key, noted, decision)
        if ctx.tool_call_id in self.keeping.secretless:
            return await self._told(key, name, journal.unmade(name))
        if policy != "retry":
            await record.began(key, name)
        return await self._run(key, name, tool_args, ctx, tool)

    async def _known(self, key: str, noted: Noted, decision: journal.Decision) -> Any:
        """What stands for a call that is not made."""
        if decision == "replay":
            return _replayed(noted)
        if decision == "refuse":
            raise StepUnknown(journal.refused(key, noted))
        text = journal.told(noted) if decision == "tell" else journal.skipped(noted)
        return await self._told(key, noted.tool, text)

    async def _told(self, key: str, tool: str, text: str) -> str:
        """What the model is told in the place of a result, as often as it is asked for."""
        await self.keeping.record.ended(key, tool, "returned", plain_result(text))
        return text

    async def _run(
        self,
        key: str,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],
    ) -> Any:
        record = self.keeping.record
        try:
            value = read_out(await super().call_tool(name, tool_args, ctx, tool))
            value = _with_word_of_change(value, record.noted(key))
        except (CallDeferred, ApprovalRequired):
            record.forget(key)
            self.keeping.put_off(str(ctx.tool_call_id))
            raise
        except ModelRetry as error:
            await record.ended(key, name, "retry", error.message)
            raise
        except ToolFailed as error:
            await record.ended(key, name, "failed", error.message)
            raise
        except Exception as error:
            await record.ended(key, name, "raised", f"{type(error).__name__}: {error}")
            raise
        told, kept = _as_kept(value, name)
        await record.ended(key, name, "returned", kept)
        return told


def _with_word_of_change(value: Any, noted: Noted | None) -> Any:
    """What a tool has returned; a model whose arguments a person has changed is told so beside
    it."""
    if noted is None or noted.args is None:
        return value
    result = value if isinstance(value, ToolReturn) else ToolReturn(value)
    said = result.content or []
    content = [said] if isinstance(said, str) else list(said)
    return replace(result, content=[journal.changed(noted.args), *content])


def _as_kept(value: Any, tool: str) -> tuple[Any, dict[str, Any]]:
    """What the model is told, and the same as data. In the place of what cannot be stored it is
    told so: no model could be told that result, either, and one that is replayed would not be."""
    try:
        return value, plain_result(value, f"result of {tool}")
    except Unstorable as error:
        log(__name__).warning("%s; the model is told so in its place", error)
        text = f"This call of {tool!r} returned what could not be stored: {error}"
        return text, plain_result(text)


def _replayed(noted: Noted) -> Any:
    if noted.state == "retry":
        raise ModelRetry(noted.value)
    if noted.state == "failed":
        raise ToolFailed(noted.value)
    return live_result(noted.value)
