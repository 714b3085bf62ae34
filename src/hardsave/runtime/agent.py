"""What an agent is, to the code that saves and restores it.

Any object with these few attributes is one. It is saved as plain data; its class is known by
a name: `registry` says how it comes back.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, Protocol, runtime_checkable

from hardsave.errors import Misuse, Unstorable
from hardsave.logs import log

_log = log(__name__)


class Status(StrEnum):
    """Where an agent stands. Agents of one's own may use any text instead."""

    IDLE = "IDLE"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


@dataclass
class Message:
    """Something that was said."""

    content: Any
    role: str = "user"
    metadata: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {"content": self.content, "role": self.role, "metadata": self.metadata}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Message":
        return cls(data["content"], data.get("role", "user"), dict(data.get("metadata", {})))


@runtime_checkable
class Agent(Protocol):
    """What is needed to save one."""

    agent_id: str
    user_id: str
    status: Any
    """An enum or a text."""
    collected_fields: dict[str, Any]
    execution_state: dict[str, Any]
    context: dict[str, Any]

    def get_message_history(self) -> Sequence[Any]: ...


@dataclass(frozen=True, kw_only=True)
class AgentState:
    """An agent as plain data: a deep copy, which nothing that the agent does will change."""

    agent_id: str
    agent_type: str
    user_id: str
    status: str
    collected_fields: dict[str, Any] = field(default_factory=dict)
    required_fields: list[Any] = field(default_factory=list)
    context_summary: str = ""
    execution_state: dict[str, Any] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)
    message: Any = None
    result: Any = None
    message_history: list[Any] = field(default_factory=list)


def captured(agent: Agent) -> AgentState:
    """What an agent is right now."""
    missing = [name for name in _NEEDED if not hasattr(agent, name)]
    if missing:
        raise Misuse(f"{type(agent).__name__} is no agent: it has no {', '.join(missing)}")
    return AgentState(
        agent_id=agent.agent_id,
        agent_type=type_name(agent),
        user_id=agent.user_id,
        status=status_text(agent.status),
        collected_fields=_mapping(agent, "collected_fields"),
        required_fields=_listed(getattr(agent, "required_fields", ()), "required_fields"),
        context_summary=str(getattr(agent, "context_summary", "")),
        execution_state=_mapping(agent, "execution_state"),
        context=_mapping(agent, "context"),
        message=plain(getattr(agent, "message", None), "message"),
        result=plain(getattr(agent, "result", None), "result"),
        message_history=_listed(agent.get_message_history(), "get_message_history()"),
    )


def _mapping(agent: Agent, name: str) -> dict[str, Any]:
    found = getattr(agent, name)
    if not isinstance(found, Mapping):
        raise Misuse(f"the {name} of an agent is a dict, not {type(found).__name__}")
    return {key: copied(value, f"{name}.{key}") for key, value in found.items()}


def _listed(found: Any, name: str) -> list[Any]:
    if not isinstance(found, Iterable) or isinstance(found, str | bytes | Mapping):
        raise Misuse(f"the {name} of an agent is a list, not {type(found).__name__}")
    return [plain(each, f"{name}[{at}]") for at, each in enumerate(found)]


_NEEDED = (
    "agent_id",
    "user_id",
    "status",
    "collected_fields",
    "execution_state",
    "context",
    "get_message_history",
)


def type_name(agent: Agent) -> str:
    """The name that a registry knows its class by."""
    return str(getattr(agent, "agent_type", None) or type(agent).__name__)


def status_text(status: Any) -> str:
    if isinstance(status, Enum):
        return str(status.value)
    if isinstance(status, str):
        return status
    raise Misuse(f"an agent's status is an enum or a text, not {status!r}")


def plain(value: Any, path: str) -> Any:
    """A message as data; anything else as it is, copied."""
    return copied(value.to_dict() if hasattr(value, "to_dict") else value, path)


def copied(value: Any, path: str) -> Any:
    """A copy that no other code can change; `Unstorable` if there can be none, as of a lock, a
    connection or an iterator."""
    try:
        return deepcopy(value)
    except Exception as error:  # all that a class of the user's may raise
        raise Unstorable(path, f"cannot be copied ({type(error).__name__}: {error})") from error


def own(value: Any) -> Any:
    """A copy, if there can be one, else the value itself: what was worked for is not given up, and
    the save will say what is wrong."""
    try:
        return plain(value, "value")
    except Unstorable:
        return value


# A base for agents

Observer = Callable[["StandardAgent"], Awaitable[None]]


class StandardAgent:
    """An agent with a life: it is told something, works, and answers.

    Override the hooks. `on_running(message)` does the work and returns the answer; it may set
    the status itself, to wait for more. Observers are told of every change of status, and of the
    answer of one that waits.
    """

    def __init__(
        self,
        agent_id: str | None = None,
        user_id: str = "",
        *,
        required_fields: Sequence[Any] = (),
        checkpoint_manager: Any = None,
    ) -> None:
        self.agent_id = agent_id or f"agent_{uuid.uuid4().hex[:12]}"
        self.user_id = user_id
        self.status: Status = Status.IDLE
        self.collected_fields: dict[str, Any] = {}
        self.required_fields: list[Any] = list(required_fields)
        self.execution_state: dict[str, Any] = {}
        self.context: dict[str, Any] = {}
        self.context_summary = ""
        self.message: Any = None
        self.result: Any = None
        self.checkpoint_manager = checkpoint_manager
        self._history: list[Message] = []
        self._observers: list[Observer] = []

    # Hooks

    async def on_running(self, msg: Message) -> Any:
        """Do the work. What it returns is the answer."""

    async def on_waiting(self, msg: Message) -> None:
        """It needs to be told more."""

    async def on_completed(self, result: Any) -> None:
        """It is done."""

    async def on_error(self, error: BaseException) -> None:
        """The work has failed; the error goes on to the caller."""

    # Life

    async def reply(self, msg: Message | str) -> Message:
        """Tell it something; its answer."""
        message = msg if isinstance(msg, Message) else Message(msg)
        self._history.append(message)
        self.message = message
        await self.set_status(Status.RUNNING)
        try:
            answer = await self.on_running(message)
        except (Exception, asyncio.CancelledError) as error:
            await self._failed(error)
            raise
        self.result = own(answer)
        spoken = answer if isinstance(answer, Message) else Message(answer, "assistant")
        self._history.append(spoken)  # before handlers are told: a save of theirs has it
        if self.status is Status.WAITING:
            await self._tell()  # it was told when it began to wait, and had not said what for
            await self.on_waiting(message)
        else:
            await self.set_status(Status.COMPLETED)
            await self.on_completed(self.result)
        return spoken

    async def _failed(self, error: BaseException) -> None:
        self.execution_state["error"] = f"{type(error).__name__}: {error}"
        await self.set_status(Status.FAILED)
        await self.on_error(error)

    async def set_status(self, status: Status) -> None:
        """Change the status, and tell the observers. One that fails breaks nothing."""
        if not isinstance(status, Status):
            raise Misuse(f"a status is one of {', '.join(Status.__members__)}, not {status!r}")
        if status is self.status:
            return
        self.status = status
        await self._tell()

    async def _tell(self) -> None:
        for observer in tuple(self._observers):
            try:
                await observer(self)
            except Exception:  # noqa: BLE001 # anything at all: the agent's work goes on
                _log.exception("an observer of %s failed", self.agent_id)

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Have a coroutine function called at every change of status; the answer ends it."""
        self._observers.append(observer)
        return lambda: self._observers.remove(observer)

    # History

    def get_message_history(self) -> list[Message]:
        return list(self._history)

    def set_message_history(self, messages: Sequence[Any]) -> None:
        self._history = [
            each if isinstance(each, Message) else Message.from_dict(each) for each in messages
        ]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.agent_id} {self.status.value}>"
