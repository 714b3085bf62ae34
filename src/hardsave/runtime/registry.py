"""From the name of a class and what was saved to an agent again.

The rule. An agent is saved under its `agent_type`, if it has one or its class has, else under the
name of its class. What was saved under a name comes back as

1. what is registered under it; else
2. the one class that goes by it: among those of agents that were saved here under it, and, with
   `of`, that class and all that the program has derived from it. If two go by one name,
   neither comes back: that is `Misuse`, which names both and what to do.

A class that stands where another one stood is that one, anew: a cell of a notebook that was run
again, a module that was loaded again. Two that a function has made are two, and so are a class and
one that inherits its `agent_type`: each wants one of its own. An `agent_type` that only instances
have, because `__init__` sets it, does not tell which class it belongs to before one was saved here:
elsewhere that class has to be registered under it. A save of an agent that another process
would not find by this rule says so in the log.

Nothing is ever imported because a stored byte says so.
"""

import gc
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import fields
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
        `agent_id` and `user_id`, as far as it takes them, and with what else of the saved state
        it cannot do without, and gets the rest. Can be used as a decorator, and once more when the
        class was defined anew."""
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
        """Know the class of an agent that the program has handed over, with any base class."""
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

    def check_restorable(self, agent: Agent) -> None:
        """`Misuse` if what is saved of an agent could not become one again: better when it is saved
        than when it is needed. Nothing is made for that; a class may connect to something."""
        name = type_name(agent)
        cls = self._registered.get(name, type(agent))
        if (name in self._factories and name not in self._registered) or _has_own_way(cls):
            return
        status = _needed(cls).get("status")
        if status is not None and isinstance(agent.status, Enum) and not _is_enum(status):
            raise Misuse(f"{cls.__name__} could not be made again with its status; {_OWN_WAY}")
        if getattr(cls, "set_message_history", None) is None and not _is_its_own(agent):
            raise Misuse(f"{cls.__name__} could not {_MESSAGES}")

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
        """What a name means among classes that were not registered."""
        found = self._going_by(name)
        if len(found) > 1:
            del found
            gc.collect()  # classes without a reference linger
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


def _has_own_way(cls: type) -> bool:
    return hasattr(cls, "from_state")


_OWN_WAY = "give it a class method from_state(state)"
_MESSAGES = (
    "take its messages back; give it a method set_message_history(messages), have "
    f"get_message_history() return the list of plain messages itself, or {_OWN_WAY}"
)


def _by_attributes(cls: type) -> Factory:
    def make(state: AgentState) -> Agent:
        given = {
            name: _argument(parameter, getattr(state, name))
            for name, parameter in _needed(cls).items()
        }
        agent: Any = cls(**given)
        put_back(agent, state)
        return agent  # type: ignore[no-any-return] # the caller registered a class of agents

    return make


def _needed(cls: type) -> dict[str, inspect.Parameter]:
    """What a class is made with: its ids, if it takes them, and of the rest of a state what it
    cannot be made without. `Misuse` if that is not enough."""
    try:
        taken = inspect.signature(cls).parameters
    except (TypeError, ValueError) as error:
        raise Misuse(f"{cls.__name__} cannot be made again ({error}); {_OWN_WAY}") from error
    named = {name: each for name, each in taken.items() if each.kind in _BY_NAME}
    anything = next((each for each in taken.values() if each.kind is each.VAR_KEYWORD), None)
    needed = {name: each for name, each in taken.items() if _is_required(each)}
    missing = [name for name in needed if name not in named or name not in _OF_A_STATE]
    if missing:
        raise Misuse(
            f"{cls.__name__} cannot be made with agent_id and user_id alone (missing a required "
            f"argument: {', '.join(map(repr, missing))}); {_OWN_WAY}"
        )
    for name in ("agent_id", "user_id"):
        if name in named or anything is not None:
            needed[name] = named.get(name, anything)  # type: ignore[assignment] # one of them
    return needed


_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_OF_A_STATE = frozenset(each.name for each in fields(AgentState))


def _is_required(parameter: inspect.Parameter) -> bool:
    is_one = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return is_one and parameter.default is parameter.empty


def _argument(parameter: inspect.Parameter, saved: Any) -> Any:
    return parameter.annotation(saved) if _is_enum(parameter) else deepcopy(saved)


def _is_enum(parameter: inspect.Parameter) -> bool:
    kind = parameter.annotation
    return isinstance(kind, type) and issubclass(kind, Enum)


def put_back(agent: Any, state: AgentState) -> None:
    """Give an agent what was saved. A status that its class does not know is refused."""
    agent.status = _status_like(getattr(agent, "status", None), state.status)
    for name in ("agent_id", "user_id"):
        if getattr(agent, name, None) != getattr(state, name):
            setattr(agent, name, getattr(state, name))
    for name in ("collected_fields", "execution_state", "context"):
        setattr(agent, name, deepcopy(getattr(state, name)))
    for name in ("required_fields", "context_summary", "message", "result"):
        saved = getattr(state, name)
        if saved not in ([], "", None) or hasattr(agent, name):  # not every agent has them
            setattr(agent, name, deepcopy(saved))
    if hasattr(agent, "message"):
        agent.message = _message_like(agent, state.message)
    _put_messages_back(agent, state.message_history)


def _put_messages_back(agent: Any, saved: list[Any]) -> None:
    restore = getattr(agent, "set_message_history", None)
    if restore is not None:
        restore(deepcopy(saved))
        return
    own = agent.get_message_history()
    if isinstance(own, list) and own is agent.get_message_history():
        own[:] = [_kept(each) for each in saved]
    elif saved:
        raise Misuse(f"{type(agent).__name__} cannot {_MESSAGES}")


def _is_its_own(agent: Agent) -> bool:
    """Whether the messages of an agent can be put back into the list that it gives away, as they
    were: plain ones, or messages of ours, which come back as such."""
    messages = agent.get_message_history()
    if not messages:
        return True
    is_same = isinstance(messages, list) and messages is agent.get_message_history()
    return is_same and all(_comes_back(each) for each in messages)


def _comes_back(message: Any) -> bool:
    return isinstance(message, Message) or not (hasattr(message, "to_dict") or _is_message(message))


def _kept(saved: Any) -> Any:
    return Message.from_dict(deepcopy(saved)) if _is_message(saved) else deepcopy(saved)


def _is_message(saved: Any) -> bool:
    return isinstance(saved, Mapping) and saved.keys() == {"content", "role", "metadata"}


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
