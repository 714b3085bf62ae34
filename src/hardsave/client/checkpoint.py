"""A checkpoint of a server: what a list has told of it, and the rest when it is asked for."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hardsave.client import reading
from hardsave.client.calls import Calls
from hardsave.client.files import RemoteFiles
from hardsave.client.reading import Make, Unreadable
from hardsave.client.records import RemoteMessage, RemoteMessages
from hardsave.errors import Misuse, NotFound
from hardsave.timeline.step_summary import StepSummary
from hardsave.values.spelling import from_json, to_json

if TYPE_CHECKING:
    from hardsave.vault.files import GitState, LeftOut


class RemoteCheckpoint:
    """A checkpoint, with the names of `Checkpoint`. What no list tells, such as its notes and its
    labels, is asked for when it is touched, and then kept; a state is asked for each time."""

    def __init__(self, told: Mapping[str, Any], calls: Calls) -> None:
        self._told = dict(told)
        self._calls = calls

    def _field(self, name: str) -> Any:
        if name not in self._told:
            self._told |= self._calls.read("/checkpoint", ref=self.id)
        try:
            return self._told[name]
        except KeyError as error:
            raise Unreadable(f"checkpoint {self.id} has no {name}") from error

    @property
    def id(self) -> str:
        return str(self._told["id"])

    @property
    def timeline(self) -> str:
        """The timeline that it was saved on."""
        return str(self._field("timeline"))

    @property
    def seq(self) -> int:
        """Its number on that timeline."""
        return int(self._field("seq"))

    @property
    def parent(self) -> str | None:
        found: str | None = self._field("parent")
        return found

    @property
    def created_at(self) -> datetime:
        return reading.moment(self._field("created_at"))

    @property
    def name(self) -> str | None:
        found: str | None = self._field("name")
        return found

    @property
    def kind(self) -> str:
        return str(self._field("kind"))

    @property
    def status(self) -> str:
        return str(self._field("status"))

    @property
    def description(self) -> str:
        return str(self._field("description"))

    @property
    def summary(self) -> StepSummary | None:
        """What is new in it, as lists tell it; None if there is none."""
        told = self._field("summary")
        return None if told is None else reading.record(StepSummary, told)

    @property
    def by(self) -> str | None:
        """Who saved it: see `hardsave.acting_as`. None if that was not said."""
        summary = self.summary
        return None if summary is None else summary.by or None

    @property
    def metadata(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = from_json(self._field("metadata"))
        return found

    @property
    def labels(self) -> Mapping[str, str]:
        """The texts that it is found by."""
        return dict(self._field("labels"))

    @property
    def notes(self) -> Mapping[str, Any]:
        """What was put beside it, by the time that this was asked for."""
        found: Mapping[str, Any] = from_json(self._field("notes"))
        return found

    @property
    def task(self) -> str | None:
        """The id of the task whose attempt saved it; None if none did."""
        found: str | None = self._field("task")
        return found

    @property
    def attempt(self) -> int | None:
        """Which attempt at that task it was, from 1."""
        found: int | None = self._field("attempt")
        return found

    @property
    def files(self) -> RemoteFiles | None:
        """The captured files, lazily; None if it was saved without."""
        has_none = self._field("workspace") is None
        return None if has_none else RemoteFiles(self.id, self._field, self._calls)

    @property
    def git(self) -> "GitState | None":
        """Where the repository stood; None without files, or without a repository."""
        return None if (files := self.files) is None else files.git

    @property
    def not_captured(self) -> "tuple[LeftOut, ...]":
        """Paths of the workspace that are not in it, each with its reason."""
        return () if (files := self.files) is None else files.not_captured

    @property
    def state(self) -> Any:
        """The whole state, as plain data. `read` asks for a part of it."""
        return self.read()

    def read(self, *path: Any) -> Any:
        """The plain value at a path of keys, indexes and slices: `read("messages", -1)`. Asks for
        nothing else than that."""
        at = next((at for at, step in enumerate(path) if isinstance(step, slice)), len(path))
        if at == len(path):
            return self._value(path)
        value = self._sliced(path[:at], path[at])
        for step in path[at + 1 :]:
            try:
                value = value[step]
            except LookupError as error:
                raise NotFound(f"{self.id} has no {path} in its state") from error
            except TypeError as error:
                raise Misuse(f"{path} leads into a {type(value).__name__}") from error
        return value

    def _value(self, path: tuple[Any, ...], **part: int) -> Any:
        """What lies at a path; of a list, perhaps a part."""
        spelt = json.dumps([to_json(step) for step in path]) if path else None
        told = self._calls.read("/state", ref=self.id, path=spelt, **part)
        return from_json(told["value"])

    def _sliced(self, path: tuple[Any, ...], part: slice) -> Any:
        """A part of a list. What the server has no words for is cut out here."""
        first, end = part.start or 0, part.stop
        if part.step in (None, 1) and (end is None or end > first >= 0):
            asked = {"start": first} if end is None else {"start": first, "limit": end - first}
            try:
                return self._value(path, **asked)
            except Misuse:  # it is a tuple or a text
                pass
        try:
            return self._value(path)[part]
        except TypeError as error:
            raise Misuse(f"{path} of {self.id} leads to what has no slices") from error

    def messages(
        self,
        start: int = 0,
        limit: int = 50,
        *,
        after: str | None = None,
        full: bool = False,
    ) -> RemoteMessages:
        """So many messages of its conversation, from number `start` on; -20 is the twentieth from
        the end. `after` is the `next` of the page before. `full` gives whole texts, and each
        message as it was saved."""
        told = self._calls.read(
            "/messages", ref=self.id, start=start or None, limit=limit, cursor=after, full=full
        )
        return RemoteMessages(
            [reading.record(RemoteMessage, each) for each in reading.items(told)],
            told.get("next"),
            total=told["total"],
            key=told.get("key"),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteCheckpoint) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<checkpoint {self.id} of {self._calls.url}>"


Ref = RemoteCheckpoint | str
"""What names a checkpoint: one that is at hand, or a text such as `@~2`."""


def named(ref: Ref) -> str:
    """The text that names it."""
    return ref.id if isinstance(ref, RemoteCheckpoint) else ref


def checkpoint(calls: Calls, told: Any) -> RemoteCheckpoint:
    """A checkpoint out of an answer."""
    if not isinstance(told, dict) or not isinstance(told.get("id"), str):
        raise Unreadable("a checkpoint without an id")
    return RemoteCheckpoint(told, calls)


def maker(calls: Calls) -> Make:
    """Makes the checkpoints that records hold."""
    return lambda told: checkpoint(calls, told)
