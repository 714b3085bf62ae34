"""From the name of a class and what was saved to an agent again.

The rule. An agent is saved under its `agent_type`, if it has one or its class has, else under the
name of its class. What was saved under a name comes back as

1. whatever is registered under it; else
2. the one class that goes by it: among those of agents that were saved here under it, and, with
   `of`, that class and all that the program has derived from it. If two go by one name,
   neither comes back: that is `Misuse`, which names both and what to do.

A class that stands where another one stood is that one, anew: a cell of a notebook that was run
again, a module that was loaded again. Two that a function has made are two, and so are a class and
one that inherits its `agent_type`: each wants one of its own. An `agent_type` that only instances
have, because `__init__` sets it, tells nobody which class it belongs to before one was saved here:
elsewhere that class has to be registered under it. Whoever saves an agent that another process
would not find by this rule is told so in the log.

Nothing is ever imported because a stored byte says so.
"""

import gc
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from enum import Enum
from typing import Any

from hardsave.errors import Misuse, NotFound
from hardsave.logs import log
from hardsave.runtime.agent import Agent, AgentState, Message, StandardAgent, type_name

Factory = Callable[[AgentState], Agent]


class Agents:
    """Classes of agents by name: all that a stored name can turn into, by the rule above."""

    def __init__(self, *classes: type, of: type | None = None) -> None:
        self._factories: dict[str, Factory] = {}
        self._registered: dict[str, type] = {}
        self._of = of
        self._met: dict[str, dict[type, None]] = {}
        for cls in classes:
            self.register(cls)

    def register(self, cls: type, *, name: str | None = None) -> type:
        """Have a class come back. It has a class method `from_state`, or it is made with
        `agent_id` and `user_id` and gets what was saved. Can be used as a decorator, and once more
        when the class was defined anew."""
        name = name or _name_of(cls)
        known = self._registered.get(name)
        if known is not None and not _is_anew(cls, known):
            raise Misuse(
                f"agents called {name!r} are registered already, as {_places([known])}; give "
                f"{_places([cls])} an agent_type of its own, or register it with name="
            )
        if known is None:
            self.add(name, _factory(cls))
        self._registered[name], self._factories[name] = cls, _factory(cls)
        return cls

    def add(self, name: str, factory: Factory) -> None:
        """Have `factory` make the agents that were saved under a name."""
        if name in self._factories:
            raise Misuse(f"agents called {name!r} are registered already")
        self._factories[name] = factory

    def meet(self, agent: Agent) -> None:
        """Know the class of an agent that the program has handed over, whatever it derives from."""
        name, cls = type_name(agent), type(agent)
        if self._of is None or cls in self._met.get(name, ()):
            return
        self._met.setdefault(name, {})[cls] = None
        if name in self._factories:
            return
        found = _told_apart(each for each in _family(self._of) if _name_of(each) == name)
        if found != [_newest(cls)]:
            known = f"may be {_places(found)}" if found else "is none that it could know"
            log(__name__).warning(
                "an agent called %r was saved, which to another process %s; "
                "agents.register(%s, name=%r) tells it",
                name,
                known,
                cls.__name__,
                name,
            )

    def revived(self, state: AgentState) -> Agent:
        """The agent that was saved."""
        name = state.agent_type
        factory = self._factories.get(name) or self._defined(name)
        if factory is None:
            known = ", ".join(self.names()) or "none"
            raise NotFound(
                f"no agent called {name!r} is registered (there are: {known}); register its class "
                f"before you restore it: agents.register(TheClass, name={name!r})"
            )
        return factory(state)

    def names(self) -> list[str]:
        """What can come back."""
        family = () if self._of is None else _family(self._of)
        return sorted({*self._factories, *self._met, *map(_name_of, family)})

    def _defined(self, name: str) -> Factory | None:
        """What a name means among classes that nobody has registered."""
        found = self._going_by(name)
        if len(found) > 1:
            del found
            gc.collect()  # classes that nobody holds any more linger
            found = self._going_by(name)
        if len(found) > 1:
            raise Misuse(
                f"agents called {name!r} may be {_places(found)}; register the one that is meant "
                f"before you restore it: agents.register(TheClass, name={name!r}). Each with an "
                "agent_type of its own is told apart from then on"
            )
        return next(map(_factory, found), None)

    def _going_by(self, name: str) -> list[type]:
        family = () if self._of is None else _family(self._of)
        ours = (cls for cls in family if _name_of(cls) == name)
        return _told_apart((*self._met.get(name, ()), *ours))


def _family(cls: type) -> Iterator[type]:
    """A class and all that derive from it."""
    yield cls
    children: list[type] = cls.__subclasses__()
    for each in children:
        yield from _family(each)


def _name_of(cls: type) -> str:
    """As `type_name` says it of its agents, unless they have a name of their own."""
    name = getattr(cls, "agent_type", None)
    return name if isinstance(name, str) and name else cls.__name__


def _told_apart(classes: Iterable[type]) -> list[type]:
    """Each once, as it is defined now."""
    return list(dict.fromkeys(map(_newest, classes)))


def _newest(cls: type) -> type:
    """What stands where this one was defined: itself, or what has taken its place."""
    return _standing(cls) or cls


def _is_anew(cls: type, known: type) -> bool:
    """Whether a class is another one, or takes its place: a decorator is called before it does."""
    return cls is known or (_place(cls) == _place(known) and _standing(cls) in (cls, known))


def _standing(cls: type) -> type | None:
    """The class that a module has now where this one was defined; those that functions have made
    stand nowhere."""
    found: Any = sys.modules.get(cls.__module__)
    for name in cls.__qualname__.split("."):
        found = getattr(found, "__dict__", {}).get(name)
    return found if isinstance(found, type) and _place(found) == _place(cls) else None


def _place(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _places(classes: Iterable[type]) -> str:
    counted = Counter(map(_place, classes))
    named = (
        place if count == 1 else f"one of {count} that are {place}"
        for place, count in sorted(counted.items())
    )
    return " or ".join(named)


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
    agent.message, agent.result = _message_like(agent, state.message), deepcopy(state.result)
    restore = getattr(agent, "set_message_history", None)
    if restore is not None:
        restore(deepcopy(state.message_history))
    elif state.message_history:
        raise Misuse(
            f"{type(agent).__name__} cannot take its messages back; give it a method "
            "set_message_history(messages), or a class method from_state(state)"
        )


def _message_like(agent: Any, saved: Any) -> Any:
    """A standard agent has a message, and nothing else, for what it was told."""
    if isinstance(agent, StandardAgent) and isinstance(saved, Mapping) and "content" in saved:
        return Message.from_dict(deepcopy(saved))
    return deepcopy(saved)


def _status_like(now: Any, saved: str) -> Any:
    if not isinstance(now, Enum):
        return saved
    try:
        return type(now)(saved)
    except ValueError:
        known = ", ".join(str(each.value) for each in type(now))
        raise Misuse(f"an agent was saved with status {saved!r}; known are {known}") from None
