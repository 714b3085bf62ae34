"""Several agents at once: one that fails loses nothing of the others.

With `auto_checkpoint` every change of an agent's status is saved. A save that fails does not stop
an agent: it is logged and counted. With `strict` the call that it was made in raises as well.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from hardsave.errors import Misuse, NotFound
from hardsave.logs import log
from hardsave.runtime.agent import Message, StandardAgent
from hardsave.tuples import NamedTuple

_log = log(__name__)


class Keeper(Protocol):
    """An object that saves agents."""

    async def save(self, agent: Any) -> str: ...


class Outcome(NamedTuple):
    """How one agent's work ended."""

    agent_id: str
    answer: Message | None
    error: BaseException | None

    @property
    def ok(self) -> bool:
        return self.error is None


class Orchestrator:
    """Runs agents that it was given."""

    def __init__(
        self,
        agents: Iterable[StandardAgent],
        checkpoint_manager: Keeper | None = None,
        auto_checkpoint: bool = False,
        *,
        strict: bool = False,
    ) -> None:
        self._agents: dict[str, StandardAgent] = {}
        self._keeper = checkpoint_manager
        self._auto = auto_checkpoint
        self._strict = strict
        self._unsaved: dict[str, Exception] = {}  # by agent: why its last save failed
        if auto_checkpoint and checkpoint_manager is None:
            raise Misuse("auto_checkpoint needs a checkpoint_manager to save with")
        self.saves = 0
        """How often an agent was saved on its own account."""
        self.failed_saves = 0
        for agent in agents:
            self.add(agent)

    def add(self, agent: StandardAgent) -> None:
        if agent.agent_id in self._agents:
            raise Misuse(
                f"there is an agent {agent.agent_id!r} already; give this one another agent_id"
            )
        self._agents[agent.agent_id] = agent
        if self._keeper is not None and agent.checkpoint_manager is None:
            agent.checkpoint_manager = self._keeper
        if self._auto:
            agent.observe(self._save)

    @property
    def agents(self) -> list[StandardAgent]:
        return list(self._agents.values())

    def agent(self, agent_id: str) -> StandardAgent:
        if agent_id not in self._agents:
            known = ", ".join(map(repr, self._agents)) or "none"
            raise NotFound(f"there is no agent {agent_id!r} (there are: {known})")
        return self._agents[agent_id]

    async def send(self, agent_id: str, msg: Message | str) -> Message:
        """Tell one agent something; its answer. What it raises goes on."""
        self._unsaved.pop(agent_id, None)
        answer = await self.agent(agent_id).reply(msg)
        error = self._unsaved.pop(agent_id, None)
        if self._strict and error is not None:
            raise error
        return answer

    async def run(self, messages: Message | str | Mapping[str, Message | str]) -> list[Outcome]:
        """Tell all agents something, or each its own; all at once. How each of them ended."""
        given = (
            dict(messages)
            if isinstance(messages, Mapping)
            else dict.fromkeys(self._agents, messages)
        )
        for agent_id in given:
            self.agent(agent_id)
        return await asyncio.gather(*(self._ended(*each) for each in given.items()))

    async def _ended(self, agent_id: str, msg: Message | str) -> Outcome:
        try:
            return Outcome(agent_id, await self.send(agent_id, msg), None)
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            return Outcome(agent_id, None, error)
        except Exception as error:  # noqa: BLE001 # the other agents go on
            return Outcome(agent_id, None, error)

    async def _save(self, agent: StandardAgent) -> None:
        assert self._keeper is not None
        try:
            await self._keeper.save(agent)
            self.saves += 1
        except Exception as error:  # noqa: BLE001 # a save must not stop an agent's work
            self.failed_saves += 1
            self._unsaved[agent.agent_id] = error
            _log.exception("agent %s could not be saved", agent.agent_id)


def is_cancelled() -> bool:
    """Of a `CancelledError`: whether it is we who are cancelled. Else it is an agent's own, of
    something that it waited for, and a failure like any other."""
    current = asyncio.current_task()
    return current is not None and current.cancelling() > 0
