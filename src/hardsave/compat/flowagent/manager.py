"""Saving and restoring agents; listing, comparing and clearing checkpoints; telling who asked."""

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeVar, get_args
from uuid import uuid4
from weakref import ref

from hardsave.compat import foreign
from hardsave.compat.flowagent.records import Checkpoint, Comparison, compare
from hardsave.compat.flowagent.shelf import check_page
from hardsave.compat.flowagent.storage import CheckpointStorage, InMemoryCheckpointStorage
from hardsave.compat.flowagent.tree import Tree
from hardsave.errors import Misuse, NotFound
from hardsave.runtime.agent import Agent, AgentState, Message, StandardAgent, captured
from hardsave.runtime.registry import Agents

EventName = Literal["checkpoint_saved", "checkpoint_restored"]
Handler = TypeVar("Handler", bound=Callable[..., Any])

_PAGE = 1_000

_log = logging.getLogger(__name__)


class CheckpointManager:
    """Checkpoints of agents in a storage. Without one they live in memory."""

    def __init__(
        self,
        storage: CheckpointStorage | None = None,
        *,
        agents: Agents | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.storage = InMemoryCheckpointStorage() if storage is None else storage
        self.agents = Agents(of=StandardAgent) if agents is None else agents
        """The classes that can be restored, by name: unless others were given, all standard agents
        that the program has defined, and those that were saved here."""
        self._clock = clock
        self._latest = _Latest()
        self._handlers: dict[str, list[Callable[..., Any]]] = {}

    async def save(
        self,
        agent: Agent,
        *,
        metadata: Mapping[str, Any] | None = None,
        parent: str | None = None,
        label: str | None = None,
    ) -> str:
        """Save an agent as it is now; the checkpoint's id.

        Its parent is the checkpoint that this agent was last saved to or restored from, or
        the one that is named: then it is a branch, which may have a `label`. `Misuse` if the agent
        could not be restored, with what its class needs for that.
        """
        state = captured(agent)
        self.agents.check_restorable(agent)
        checkpoint = Checkpoint(
            id=f"chk_{uuid4().hex[:12]}",
            parent_checkpoint_id=self._latest.of(agent) if parent is None else parent,
            timestamp=self._clock(),
            metadata=dict(metadata or {}),
            branch_label=label,
            **vars(state),
        )
        saved = await self.save_checkpoint(checkpoint)
        self._latest.note(agent, saved)
        self.agents.meet(agent)
        return saved

    async def restore(self, checkpoint_id: str, *, user_id: str | None = None) -> Any:
        """The agent as it was, its id, history and status too. What it saves goes on from there.

        Its class is known by its name, or by the `agent_type` that it has, if it derives from
        `StandardAgent` and is defined by now, or if an agent of it was saved here; others are made
        known with `manager.agents.register(MyAgent)`. A name that two classes have has to be, too:
        see `hardsave.runtime.registry` for the whole rule. With a `user_id` another user's
        checkpoint is not found.
        """
        checkpoint = await self.load(checkpoint_id, user_id)
        if checkpoint is None:
            raise NotFound(f"there is no checkpoint {checkpoint_id!r}; see list_by_user()")
        agent: Any = self.agents.revived(_state(checkpoint))
        if getattr(agent, "checkpoint_manager", self) is None:
            agent.checkpoint_manager = self
        self._latest.note(agent, checkpoint.id)
        await self._tell("checkpoint_restored", checkpoint, agent)
        return agent

    async def replay_from(
        self, checkpoint_id: str, message: Message | str, *, label: str = "replay"
    ) -> tuple[Any, str]:
        """Restore an agent, tell it something else, and save what comes of it as a branch.

        The agent and its new checkpoint. What followed the first time is left as it is.
        """
        agent = await self.restore(checkpoint_id)
        await agent.reply(message)
        return agent, await self.save(agent, parent=checkpoint_id, label=label)

    async def save_checkpoint(self, checkpoint: Checkpoint) -> str:
        """Save a record as it is, and tell the handlers of `checkpoint_saved`."""
        saved = await self.storage.save(checkpoint)
        await self._tell("checkpoint_saved", checkpoint)
        return saved

    async def load(self, checkpoint_id: str, user_id: str | None = None) -> Checkpoint | None:
        """The whole record; None if there is none, or if it is not that of a `user_id`."""
        found = await self.storage.load(checkpoint_id)
        if found is None or (user_id is not None and found.user_id != user_id):
            return None
        return found

    async def get(self, checkpoint_id: str, user_id: str | None = None) -> Checkpoint | None:
        """The same as `load`."""
        return await self.load(checkpoint_id, user_id)

    async def list_by_user(
        self, user_id: str, limit: int = 50, offset: int = 0, full: bool = False
    ) -> list[Checkpoint]:
        """A user's checkpoints, newest first. Without `full` they have only what tells them apart,
        and to touch another field is `Misuse`."""
        check_page(limit, offset)
        if full:
            return await self.storage.list_by_user(user_id, limit, offset)
        return await self.storage.list_light(user_id, limit, offset)

    async def list_by_agent(
        self,
        agent_id: str,
        limit: int = 50,
        offset: int = 0,
        full: bool = False,
        *,
        user_id: str | None = None,
    ) -> list[Checkpoint]:
        """The same of an agent: of all users, or of one."""
        check_page(limit, offset)
        return await self.storage.list_by_agent(agent_id, limit, offset, user_id=user_id, full=full)

    async def tree(self, user_id: str) -> Tree:
        """How a user's checkpoints follow from each other, without their contents."""
        found: list[Checkpoint] = []
        while page := await self.storage.list_light(user_id, _PAGE, len(found)):
            found += page
        return Tree(found)

    async def compare(
        self, checkpoint_id_1: str, checkpoint_id_2: str, *, user_id: str | None = None
    ) -> Comparison | None:
        """What changed from the first to the second; None if one of them is not there, or, with a
        `user_id`, is another user's."""
        old = await self.load(checkpoint_id_1, user_id)
        new = await self.load(checkpoint_id_2, user_id)
        return None if old is None or new is None else compare(old, new)

    async def clear_user_history(self, user_id: str) -> int:
        """Delete all of a user's checkpoints. How many there were."""
        return await self.storage.clear_user(user_id)

    async def clear_agent_history(self, agent_id: str, *, user_id: str | None = None) -> int:
        """Delete all of an agent's checkpoints, of all users or of one. How many there were."""
        return await self.storage.clear_agent(agent_id, user_id=user_id)

    async def cleanup_old_checkpoints(self, max_age_days: float) -> int:
        """Delete every user's checkpoints that are older. How many there were."""
        foreign.check(max_age_days, int | float, "max_age_days")
        if not max_age_days >= 0:  # nor is what is no number
            raise Misuse(f"max_age_days is not negative ({max_age_days})")
        try:
            moment = self._clock() - timedelta(days=max_age_days)
        except OverflowError:  # nothing is that old
            return 0
        return await self.storage.clear_before(moment)

    def on(self, event: EventName) -> Callable[[Handler], Handler]:
        """Decorate a handler of an event: a function or a coroutine function, any number.

        `checkpoint_saved` hands over the checkpoint, `checkpoint_restored` the checkpoint and
        the agent. A handler that fails is logged, and breaks nothing.
        """
        if event not in get_args(EventName):
            known = ", ".join(get_args(EventName))
            raise Misuse(f"there is no event {event!r}; there are: {known}")

        def add(handler: Handler) -> Handler:
            self._handlers.setdefault(event, []).append(handler)
            return handler

        return add

    async def _tell(self, event: EventName, *about: object) -> None:
        for handler in tuple(self._handlers.get(event, ())):
            try:
                answer = handler(*about)
                if inspect.isawaitable(answer):
                    await answer
            except Exception:  # noqa: BLE001 # anything at all: what has been saved is saved
                _log.exception("a handler of %s failed: %r", event, handler)


class _Latest:
    """The checkpoint that each agent was last saved to or restored from. Agents are told apart by
    which object they are: they may equal each other, and may be gone at any time."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Callable[[], Any], str]] = {}

    def of(self, agent: Any) -> str | None:
        found = self._known.get(id(agent))
        return None if found is None or found[0]() is not agent else found[1]

    def note(self, agent: Any, checkpoint_id: str) -> None:
        key, known = id(agent), self._known
        try:
            still: Callable[[], Any] = ref(agent, lambda _: known.pop(key, None))
        except TypeError:  # a class with slots
            still = lambda: agent  # noqa: E731 # as long as the manager, then
        known[key] = still, checkpoint_id


def _state(checkpoint: Checkpoint) -> AgentState:
    return AgentState(**{each.name: getattr(checkpoint, each.name) for each in fields(AgentState)})
