"""Which call of a tool has made a change to a file, decided over calls and changes. Pure.

A change belongs to the calls that were running when it was made. An edit by one of the agent's own
tools is known by its path as well; so only what was made while several commands ran at once may be
"one of these". What was made while no call ran belongs to none: a person's edit, or a process that
a command has left in the background.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from hardsave.agents.tools import Kind, Work
from hardsave.tuples import NamedTuple
from hardsave.vault.restore.authorship import CallSpan, Does

NEXT = "during the next tool"  # where it is not known which call was running
_MANY_CALLS = 200  # that have ended, of which the oldest are forgotten
_NAMED = 20  # paths that a checkpoint names for a call
_LONGEST_TARGET = 150  # characters
_LONGEST_DESCRIPTION = 200


class Call(NamedTuple):
    """One call of a tool."""

    id: str
    tool: str
    target: str = ""  # the command, or the file
    kind: Kind = Kind.OTHER
    paths: tuple[str, ...] = ()  # that it may change, if its input says so
    began: float | None = None  # in seconds since 1970; None: unknown
    ended: float | None = None  # None: it is running
    goes_on: bool = False  # whether its command has not ended with it
    went_on: float = 0.0  # until when it did, in the background
    behind: str = ""  # the call before whose end it does not begin

    def __str__(self) -> str:
        return f"{self.tool}: {self.target}" if self.target else self.tool

    def ran_during(self, after: float, before: float) -> bool:
        """Whether it was running at any moment between two."""
        return (self.began is None or self.began <= before) and (
            self.ended is None or self.goes_on or max(self.ended, self.went_on) >= after
        )


class Change(NamedTuple):
    """A path that differs; it was changed at some moment between two."""

    path: str
    after: float
    before: float


class Verdict(NamedTuple):
    """Paths that the same calls may have changed: one, several, or none."""

    paths: tuple[str, ...]
    calls: tuple[Call, ...]


def call(id: str, tool: str, work: Work, directory: str = "") -> Call:
    """A call of this work. Paths are made relative to a directory."""
    paths = [os.path.relpath(os.path.join(directory, path), directory) for path in work.paths]
    target = ", ".join(paths)[:_LONGEST_TARGET] if paths else work.target
    return Call(id, tool, target, work.kind, tuple(paths))


def attributed(changes: Iterable[Change], calls: Sequence[Call]) -> list[Verdict]:
    """The calls that have made each change, with changes of the same calls together."""
    found: dict[tuple[Call, ...], list[str]] = {}
    for change in changes:
        found.setdefault(candidates(change, calls), []).append(change.path)
    return [Verdict(tuple(paths), made) for made, paths in found.items()]


def candidates(change: Change, calls: Sequence[Call]) -> tuple[Call, ...]:
    """Of the calls that were running, those of the kind that is most likely to change this path."""
    running = [each for each in calls if each.ran_during(change.after, change.before)]
    for kind in (Kind.EDITS, Kind.RUNS, Kind.OTHER, Kind.TOUCHES):
        found = [each for each in running if each.kind == kind and _may_change(each, change.path)]
        if found:
            return tuple(found)
    return ()


def _may_change(call: Call, path: str) -> bool:
    """A directory that has come or gone with a file counts as its path."""
    if call.kind in (Kind.RUNS, Kind.OTHER):
        return True
    return any(each == path or each.startswith(f"{path}/") for each in call.paths)


def described(verdicts: Sequence[Verdict], *, is_known: bool) -> str:
    """For a log. `is_known`: whether it is known which calls were running at all."""
    made = dict.fromkeys(each for verdict in verdicts for each in verdict.calls)
    if not made:
        return "between calls" if is_known else NEXT
    is_sure = all(len(verdict.calls) <= 1 for verdict in verdicts)
    several = "" if is_sure or len(made) == 1 else "one of "
    text = " | ".join(str(each) for each in made)
    return f"during {several}{text}"[:_LONGEST_DESCRIPTION]


def metadata(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """For a checkpoint: which paths belong to which calls, by their ids."""
    told = [
        {
            "calls": [{"tool": each.tool, "tool_use_id": each.id} for each in verdict.calls],
            "paths": list(verdict.paths[:_NAMED]),
            "count": len(verdict.paths),
        }
        for verdict in verdicts
        if verdict.calls
    ]
    return {"changed_by": told} if told else {}


_DOES: Mapping[Kind, Does] = {Kind.EDITS: "edits", Kind.TOUCHES: "touches"}


def spans(
    calls: Iterable[Call], session: Callable[[str], str], timeline: Callable[[str], str]
) -> Iterator[CallSpan]:
    """Those of them that may change a file, for `vault.authorship` to tell sessions apart."""
    for each in calls:
        if each.kind != Kind.READS:
            went_on = max(each.ended or 0.0, each.went_on)
            own = session(each.id)
            yield CallSpan(
                timeline(own),
                own,
                each.id,
                _DOES.get(each.kind, "runs"),
                frozenset(os.fsencode(path) for path in each.paths),
                each.began,
                None if each.ended is None or each.goes_on else went_on,
            )


class About(NamedTuple):
    """What a checkpoint says of the calls that have made its changes."""

    description: str = ""
    metadata: Mapping[str, Any] = {}


NOTHING = About()


class Calls:
    """The calls of all sessions: begun, ended, and which were running when."""

    def __init__(self) -> None:
        self._calls: dict[str, Call] = {}
        self._sessions: dict[str, str] = {}

    def begin(self, one: Call, session: str, at: float | None) -> None:
        """A call that began at a moment. Told twice, by a hook and by a transcript, the earlier
        moment counts, and what is known of its input stays."""
        known = self._calls.get(one.id, one)
        if one.target:
            known = known._replace(tool=one.tool, target=one.target, kind=one.kind, paths=one.paths)
        self._calls[one.id] = known._replace(
            began=_earlier(known.began, at), behind=one.behind or known.behind
        )
        self._sessions[one.id] = session

    def end(self, id: str, at: float) -> None:
        """The earliest moment counts at which it is known to have ended."""
        if (known := self._calls.get(id)) is not None:
            self._calls[id] = known._replace(ended=_earlier(known.ended, at))
            self._forget()

    def leave_running(self, id: str) -> None:
        """It has ended, and its command goes on in the background."""
        if (known := self._calls.get(id)) is not None:
            self._calls[id] = known._replace(goes_on=True)

    def end_in_background(self, id: str, at: float) -> None:
        known = self._calls.get(id)
        if known is not None and known.goes_on:
            self._calls[id] = known._replace(goes_on=False, went_on=at)

    def end_all(self, session: str, at: float) -> None:
        """Where a turn begins or ends no call of a session is running."""
        for known in self.running(session):
            self.end(known.id, at)

    def session(self, id: str) -> str:
        """The one that has made a call."""
        return self._sessions.get(id, "")

    def running(self, session: str) -> list[Call]:
        """Those of a session that have not ended."""
        known = self._calls.items()
        return [each for id, each in known if each.ended is None and self.session(id) == session]

    def during(self, after: float, before: float) -> list[Call]:
        found = (self._in_order(each) for each in self._calls.values())
        return [each for each in found if each is not None and each.ran_during(after, before)]

    def _in_order(self, one: Call) -> Call | None:
        """With the moment at which it can have begun; None if it has not, though it is asked for.
        What edits or runs a command waits for the call that was asked for before it."""
        before = self._calls.get(one.behind)
        if before is None or one.kind not in (Kind.EDITS, Kind.RUNS):
            return one
        if before.ended is None:
            return None if one.ended is None else one
        return one._replace(began=max(one.began or 0.0, before.ended))

    def is_running(self) -> bool:
        return any(each.ended is None for each in self._calls.values())

    def _forget(self) -> None:
        past = [id for id, each in self._calls.items() if each.ended is not None]
        ended = [id for id in past if not self._calls[id].goes_on]
        for id in ended[:-_MANY_CALLS]:
            del self._calls[id]
            self._sessions.pop(id, None)


def _earlier(one: float | None, other: float | None) -> float | None:
    return min((each for each in (one, other) if each is not None), default=None)
