"""Hooks of a run that save its turn while it is under way: see `turn`."""

import secrets
from collections.abc import Callable, Mapping
from typing import Any

from agents import Agent, ModelResponse, RunContextWrapper, Tool
from agents.items import ItemHelpers, TResponseInputItem
from agents.lifecycle import RunHooks
from agents.run_context import AgentHookContext
from agents.tool_context import ToolContext

from hardsave.adapters.openai_agents import turn
from hardsave.adapters.threads import in_thread

Turn = Mapping[str, Any]
Note = Callable[[Callable[[Turn | None], Turn | None]], None]


class SavingHooks(RunHooks[Any]):
    """Made by `HardsaveSession.hooks`."""

    def __init__(self, note: Note, also: RunHooks[Any] | None) -> None:
        self.run = secrets.token_hex(8)
        self._note = note
        self._also = RunHooks[Any]() if also is None else also

    async def on_llm_end(
        self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse
    ) -> None:
        """Save the answer, before any tool of it runs."""
        items = response.to_input_items()
        await in_thread(lambda: self._note(lambda _: turn.begun(self.run, items)))
        await self._also.on_llm_end(context, agent, response)

    async def on_tool_start(
        self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool
    ) -> None:
        """Note that the call has begun: without a result, what it did is unknown."""
        if isinstance(context, ToolContext):
            id = context.tool_call_id
            await in_thread(lambda: self._note(lambda at: self._started(at, id)))
        await self._also.on_tool_start(context, agent, tool)

    async def on_tool_end(
        self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool, result: object
    ) -> None:
        """Save the result, with the files that the tool has left."""
        call = context.tool_call if isinstance(context, ToolContext) else None
        if call is not None:
            item = ItemHelpers.tool_call_output_item(call, result)
            id = call.call_id
            await in_thread(lambda: self._note(lambda at: self._ended(at, id, item)))
        await self._also.on_tool_end(context, agent, tool, result)

    def _started(self, at: Turn | None, id: str) -> Turn | None:
        if at is None or at["run"] != self.run or id in at["started"]:
            return None
        return {**at, "started": [*at["started"], id]}

    def _ended(self, at: Turn | None, id: str, item: Any) -> Turn | None:
        if at is None or at["run"] != self.run:
            return None
        return {**at, "outputs": {**at["outputs"], id: item}}

    # What is only handed on

    async def on_llm_start(
        self,
        context: RunContextWrapper[Any],
        agent: Agent[Any],
        system_prompt: str | None,
        input_items: list[TResponseInputItem],
    ) -> None:
        await self._also.on_llm_start(context, agent, system_prompt, input_items)

    async def on_agent_start(self, context: AgentHookContext[Any], agent: Agent[Any]) -> None:
        await self._also.on_agent_start(context, agent)

    async def on_agent_end(
        self, context: AgentHookContext[Any], agent: Agent[Any], output: Any
    ) -> None:
        await self._also.on_agent_end(context, agent, output)

    async def on_handoff(
        self, context: RunContextWrapper[Any], from_agent: Agent[Any], to_agent: Agent[Any]
    ) -> None:
        await self._also.on_handoff(context, from_agent, to_agent)
