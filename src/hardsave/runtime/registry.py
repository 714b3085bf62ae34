"""From the name of a class and what was saved to an agent again.

A class comes back only if the program has registered it, or has defined it as a subclass of one
that it named. Nothing is ever imported because a stored byte says so, and a name that could mean
two classes means none.
"""

import inspect
from collections.abc import Callable, Iterator
from copy import deepcopy
from enum import Enum
from typing import Any

from hardsave.errors import Misuse, NotFound
from hardsave.runtime.agent import Agent, AgentState

Factory = Callable[[AgentState], Agent]


class Agents:
    """Classes of agents by name: all that a stored name can turn into.

    With `of`, these are also that class and whatever subclasses of it the program has defined when
    one is asked for, and the classes of agents that were `met`; a class that is registered under
    its name comes before them.
    """

    def __init__(self, *classes: type, of: type | None = None) -> None:
        self._factories: dict[str, Factory] = {}
        self._of = of
        self._met: dict[type, None] = {}
        for cls in classes:
            self.register(cls)

    def register(self, cls: type, *, name: str | None = None) -> type:
        """Have a class come back. It has a class method `from_state`, or it is made with
        `agent_id` and `user_id` and gets what was saved. Can be used as a decorator."""
        self.add(name or cls.__name__, _factory(cls))
        return cls

    def add(self, name: str, factory: Factory) -> None:
        """Have `factory` make the agents that were saved under a name."""
        if name in self._factories:
            raise Misuse(f"agents called {name!r} are registered already")
        self._factories[name] = factory

    def meet(self, agent: Agent) -> None:
        """Know the class of an agent that the program has handed over, whatever it derives from."""
        if self._of is not None:
            self._met[type(agent)] = None

    def revived(self, state: AgentState) -> Agent:
        """The agent that was saved."""
        name = state.agent_type
        factory = self._factories.get(name) or self._defined(name)
        if factory is None:
            known = ", ".join(self.names()) or "none"
            raise NotFound(
                f"no agent called {name!r} is registered (there are: {known}); "
                "register its class before you restore it"
            )
        return factory(state)

    def names(self) -> list[str]:
        return sorted({*self._factories, *map(_name_of, self._open())})

    def _defined(self, name: str) -> Factory | None:
        """What a name means among classes that nobody has registered. One that was defined again,
        as a notebook or a reload does, is the same one."""
        found = {_place(cls): cls for cls in self._open() if _name_of(cls) == name}
        if len(found) > 1:
            raise Misuse(
                f"agents called {name!r} may be {' or '.join(sorted(found))}; register the one "
                "that is meant before you restore it"
            )
        return next(map(_factory, found.values()), None)

    def _open(self) -> Iterator[type]:
        if self._of is not None:
            yield from _family(self._of)
        yield from self._met


def _family(cls: type) -> Iterator[type]:
    """A class and all that derive from it, earlier definitions first."""
    yield cls
    children: list[type] = cls.__subclasses__()
    for each in children:
        yield from _family(each)


def _name_of(cls: type) -> str:
    """As `type_name` says it of its agents."""
    name = getattr(cls, "agent_type", None)
    return name if isinstance(name, str) and name else cls.__name__


def _place(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _factory(cls: type) -> Factory:
    return getattr(cls, "from_state", None) or _by_attributes(cls)


def _by_attributes(cls: type) -> Factory:
    def make(state: AgentState) -> Agent:
        try:
            inspect.signature(cls).bind(agent_id=state.agent_id, user_id=state.user_id)
        except (TypeError, ValueError) as error:
            raise Misuse(
                f"{cls.__name__} cannot be made with agent_id and user_id alone ({error}); give it "
                "a class method from_state(state)"
            ) from error
        agent: Any = cls(agent_id=state.agent_id, user_id=state.user_id)
        put_back(agent, state)
        return agent  # type: ignore[no-any-return] # the caller registered a class of agents

    return make


def put_back(agent: Any, state: AgentState) -> None:
    """Give an agent what was saved. A status that its class does not know is refused."""
    agent.status = _status_like(agent.status, state.status)
    for name in ("collected_fields", "required_fields", "execution_state", "context"):
        setattr(agent, name, deepcopy(getattr(state, name)))
    agent.context_summary = state.context_summary
    agent.message, agent.result = deepcopy(state.message), deepcopy(state.result)
    restore = getattr(agent, "set_message_history", None)
    if restore is not None:
        restore(deepcopy(state.message_history))
    elif state.message_history:
        raise Misuse(
            f"{type(agent).__name__} cannot take its messages back; give it a method "
            "set_message_history(messages), or a class method from_state(state)"
        )


def _status_like(now: Any, saved: str) -> Any:
    if not isinstance(now, Enum):
        return saved
    try:
        return type(now)(saved)
    except ValueError:
        known = ", ".join(str(each.value) for each in type(now))
        raise Misuse(f"an agent was saved with status {saved!r}; known are {known}") from None
