"""Values of a workflow as plain data, and back.

Messages and what else Agent Framework itself puts into a checkpoint become dicts that say under
`maf` what they are, so that logs, diffs and searches read them; its own storages pickle them. A
user's dict with that key is wrapped. What is no plain data is in a table here, or a class that the
program has named: a stored name is looked up in these, and never imported. All else is refused when
it is saved, because it would not come back as it was.
"""

import dataclasses
import datetime
import decimal
import enum
import uuid
from collections.abc import Iterable
from typing import Any

from agent_framework import (
    AgentExecutorRequest,
    AgentExecutorResponse,
    AgentResponse,
    AgentResponseUpdate,
    ChatResponse,
    Content,
    Message,
    WorkflowCheckpoint,
    WorkflowEvent,
    WorkflowEventSource,
    WorkflowMessage,
)
from pydantic import BaseModel

import hardsave

TAG = "maf"
_EVENT = ("data", "origin", "request_id", "source_executor_id", "request_type", "response_type")
_DESCRIBED = (AgentResponse, AgentResponseUpdate, ChatResponse, Content, Message)
_FRAMEWORK = (
    *_DESCRIBED,
    *(AgentExecutorRequest, AgentExecutorResponse, WorkflowCheckpoint, WorkflowMessage),
    WorkflowEventSource,
    type(WorkflowMessage(None, "").type),  # an enum that has no public name
)
_NATIVE: tuple[type, ...] = (
    *(str, int, float, bool, type(None), bytes),
    *(datetime.datetime, datetime.date, datetime.time, datetime.timedelta),
    *(decimal.Decimal, uuid.UUID),
)
_CONTAINERS: tuple[type, ...] = (dict, list, tuple, set, frozenset)


class Values:
    """What becomes of values in a store. `types` are classes of the program that come back as
    themselves: dataclasses, pydantic models and enums."""

    def __init__(self, types: Iterable[type] = ()) -> None:
        self._types = {_name(each): each for each in (*_FRAMEWORK, *types)}
        for each in self._types.values():
            if not (_is_known_kind(each) or each in _DESCRIBED):
                raise hardsave.Misuse(
                    f"{_name(each)} is no dataclass, pydantic model or enum, so it cannot come back"
                )

    def plain(self, value: Any) -> Any:
        """A value as it is stored. `Misuse` if it could not come back as it is."""
        kind = type(value)
        if kind in _NATIVE:
            return value
        if kind is dict:
            told = {key: self.plain(each) for key, each in value.items()}
            return {TAG: "dict", "value": told} if TAG in told else told
        if kind in _CONTAINERS:
            return kind(map(self.plain, value))
        if kind is WorkflowEvent:
            return {TAG: "event", "value": self._event(value)}
        if isinstance(value, type):
            self._type(_name(value))
            return {TAG: "type", "value": _name(value)}
        self._type(_name(kind))
        return {TAG: _name(kind), "value": self._parts(value)}

    def revived(self, value: Any) -> Any:
        """A stored value as the workflow had it."""
        kind = type(value)
        if kind is dict:
            return self._revived(value) if TAG in value else self._items(value)
        return kind(map(self.revived, value)) if kind in _CONTAINERS else value

    def _revived(self, value: dict[str, Any]) -> Any:
        try:
            return self._made(value[TAG], value["value"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise hardsave.Misuse(
                f"what is stored as a {value[TAG]} does not make one: {error!r}; "
                "if the class has changed since, let it still take what it had"
            ) from error

    def _made(self, tag: str, told: Any) -> Any:
        if tag == "dict":
            return self._items(told)
        if tag == "type":
            return self._type(told)
        if tag == "event":
            return WorkflowEvent("request_info", **self._items(told))
        known = self._type(tag)
        if issubclass(known, _DESCRIBED):
            return known.from_dict(told)
        if issubclass(known, enum.Enum):
            return known(self.revived(told))
        fields = self._items(told)
        if issubclass(known, BaseModel):
            return known.model_validate(fields)
        return _dataclass(known, fields)

    def _items(self, value: dict[Any, Any]) -> dict[Any, Any]:
        return {key: self.revived(each) for key, each in value.items()}

    def _event(self, event: WorkflowEvent[Any]) -> dict[str, Any]:
        if event.type != "request_info":
            raise hardsave.Misuse(f"no checkpoint holds events of type {event.type!r}")
        return {name: self.plain(getattr(event, name)) for name in _EVENT}

    def _parts(self, value: Any) -> Any:
        if isinstance(value, _DESCRIBED):
            return value.to_dict()
        if isinstance(value, enum.Enum):
            return self.plain(value.value)
        names = (
            type(value).model_fields
            if isinstance(value, BaseModel)
            else [each.name for each in dataclasses.fields(value)]
        )
        return {name: self.plain(getattr(value, name)) for name in names}

    def _type(self, name: str) -> type[Any]:
        known = self._types.get(name) or _BUILTIN.get(name)
        if known is None:
            raise hardsave.Misuse(
                f"a checkpoint holds a {name}, which is made again only if it is named: "
                "HardsaveCheckpointStorage(vault, types=[…])"
            )
        return known


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


_BUILTIN = {_name(each): each for each in (*_NATIVE, *_CONTAINERS)}


def _is_known_kind(kind: type) -> bool:
    return dataclasses.is_dataclass(kind) or issubclass(kind, BaseModel | enum.Enum)


def _dataclass(known: type[Any], fields: dict[str, Any]) -> Any:
    taken = {each.name for each in dataclasses.fields(known) if each.init}
    made = known(**{name: each for name, each in fields.items() if name in taken})
    for name in fields.keys() - taken:
        object.__setattr__(made, name, fields[name])
    return made
