"""The journal of a task: which steps were taken, and what to do when one is asked for again.

Pure: from entries to decisions. A step is known by its *path*: the enclosing step, its name,
and `#n` for the n-th of that name there, or `[key]` if it was given one.

A step that was done gives its result ever after. One that was begun and not ended is
*unknown*. The order of steps is compared with the record: a step that is asked for in a place
where another one stands is a program that has changed, and running on would mix the two.
Steps that overlap, and those with a key, may come in any order.
"""

import struct
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal

from hardsave.errors import Corrupt, Misuse, StepsChanged, Unstorable
from hardsave.objects.codec import Codec
from hardsave.objects.hashing import digest
from hardsave.objects.records import EntryRecord, filled
from hardsave.tuples import NamedTuple

UnknownPolicy = Literal["retry", "ask", "skip", "fail"]
POLICIES: tuple[UnknownPolicy, ...] = ("retry", "ask", "skip", "fail")

NO_PLACE = 0  # a step that may come anywhere
NO_ARGUMENTS = bytes(8)

_HEAD = struct.Struct(">8sI")  # the hash of the arguments, the place in the order


class Body(NamedTuple):
    """What the entry of a step holds: how it was called, where, and an encoded value."""

    arguments: bytes
    place: int
    value: bytes


def pack(body: Body) -> bytes:
    return _HEAD.pack(body.arguments, body.place) + body.value


def unpack(data: bytes) -> Body:
    if len(data) < _HEAD.size:
        raise Corrupt("the entry of a step is too short")
    arguments, place = _HEAD.unpack_from(data)
    return Body(arguments, place, data[_HEAD.size :])


class Given(NamedTuple):
    """The arguments of a step."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = MappingProxyType({})

    def listed(self) -> tuple[Any, ...]:
        """As one tuple, in which the order of keywords does not count."""
        return (*self.args, *sorted(self.kwargs.items())) if self.kwargs else self.args


def arguments_hash(codec: Codec, given: Given) -> bytes:
    """Tells one set of arguments from another; what cannot be stored counts by its type."""
    args = given.listed()
    if not args:
        return NO_ARGUMENTS
    try:
        return digest(codec.encode(args, "arguments"))[:8]
    except Unstorable:
        return digest(b"".join(_part(codec, value) for value in args))[:8]


def _part(codec: Codec, value: object) -> bytes:
    try:
        return codec.encode(value, "argument")
    except Unstorable:
        kind = type(value)
        return f"{kind.__module__}.{kind.__qualname__}".encode()


def path_of(enclosing: str, name: str, which: int | str) -> str:
    """`which` is the ordinal, or the key."""
    shown = f"#{which}" if isinstance(which, int) else f"[{_escaped(which)}]"
    own = f"{_escaped(name)}{shown}"
    return f"{enclosing}/{own}" if enclosing else own


def _escaped(name: str) -> str:
    return name if name.isidentifier() else name.translate(_MARKS)  # most are


_MARKS = {ord(mark): f"%{ord(mark):02x}" for mark in "%/#[]"}


StepState = Literal["done", "answered", "failed", "skipped", "unknown"]
"""`answered` is for questions: it is done, and a person has done it."""


class Recorded(NamedTuple):
    """What the journal knows of one step."""

    state: StepState
    body: Body


class Journal:
    """The steps of one generation, as recorded up to now."""

    def __init__(self, entries: Iterable[EntryRecord] = ()) -> None:
        self._steps: dict[str, Recorded] = {}
        self._places: dict[tuple[str, int], str] = {}  # (enclosing, place) to path
        for entry in entries:
            self.add(entry)

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, entry: EntryRecord) -> None:
        assert entry.step is not None
        self.note(entry.step, entry.kind, unpack(entry.data))

    def note(self, path: str, kind: str, body: Body) -> None:
        """What the last entry of a path says."""
        before = self._steps.get(path)
        self._steps[path] = filled(Recorded, (STATES[kind], body))
        enclosing = _enclosing(path)
        if before is not None and before.body.place != NO_PLACE:
            self._places.pop((enclosing, before.body.place), None)  # others may have joined it
        if body.place != NO_PLACE:
            self._places[enclosing, body.place] = path

    def get(self, path: str) -> Recorded | None:
        return self._steps.get(path)

    def unknown(self) -> list[str]:
        """The paths of steps that were begun and not ended."""
        return [path for path, known in self._steps.items() if known.state == "unknown"]

    def ran(self) -> list[str]:
        """The paths of steps whose function was called, as far as is known, to any end."""
        called = ("done", "failed", "unknown")
        return [path for path, known in self._steps.items() if known.state in called]

    def checked(self, path: str, place: int, arguments: bytes) -> Recorded | None:
        """What is recorded of a step, if anything; `StepsChanged` if that is another one."""
        known = self._steps.get(path)
        # One that has overlapped others is free, also if the start of the first of them was
        # recorded while it was alone, and its end never was.
        is_free = place == NO_PLACE or (known is not None and known.body.place == NO_PLACE)
        expected = None if is_free else self._places.get((_enclosing(path), place))
        if expected is not None and expected != path:
            raise StepsChanged(
                f"step {path!r} is asked for where {expected!r} was recorded (number {place}): the "
                "steps of this task have changed since. Restore the old order, give those a key= "
                "that come only at times, or start the task over: tasks.roll_back(), then "
                "tasks.retry()"
            )
        if known is not None and known.body.arguments != arguments:
            raise StepsChanged(
                f"step {path!r} was recorded with other arguments; its result is not theirs. "
                "Restore them, give the step a key=, or start the task over: "
                "tasks.roll_back(), then tasks.retry()"
            )
        return known


STATES: dict[str, StepState] = {
    "step_started": "unknown",
    "step_done": "done",
    "step_answered": "answered",
    "step_failed": "failed",
    "step_skipped": "skipped",
}
"""What the last entry of a step says of it, by its kind."""

UNKNOWN_ANSWERS = ("retry", "skip", "fail")
_UNKNOWN_ENDS = "was begun, and its end was not recorded: retry, skip or fail?"


def unknown_question(path: str) -> str:
    """What a person is asked about a step whose end is not known."""
    return f"step {path!r} {_UNKNOWN_ENDS}"


def is_unknown_question(question: str) -> bool:
    return question.startswith("step ") and question.endswith(_UNKNOWN_ENDS)


def _enclosing(path: str) -> str:
    return path.rpartition("/")[0]


class Asked(NamedTuple):
    """A step that is asked for: its path, and its place in the order."""

    path: str
    place: int


class Scope:
    """Inside one step, or the task itself: what was asked for in this attempt."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._asked = 0
        self._active: dict[str, str | None] = {}  # path to name; None: it has a key
        self._overlapped: set[str] = set()

    def enter(self, enclosing: str, name: str, key: str | None) -> Asked:
        """What is asked for now. Two that cannot be told apart are `Misuse`."""
        if key is None and name in self._active.values():
            raise Misuse(
                f"two steps named {name!r} overlap, and nothing tells which is which: give each "
                "a key="
            )
        asked = self._named(enclosing, name) if key is None else self._keyed(enclosing, name, key)
        if self._active:
            self._overlapped.update(self._active, [asked.path])
            asked = Asked(asked.path, NO_PLACE)
        self._active[asked.path] = name if key is None else None
        return asked

    def _named(self, enclosing: str, name: str) -> Asked:
        self._counts[name] = self._counts.get(name, 0) + 1
        self._asked += 1
        return filled(Asked, (path_of(enclosing, name, self._counts[name]), self._asked))

    def _keyed(self, enclosing: str, name: str, key: str) -> Asked:
        path = path_of(enclosing, name, key)
        if path in self._active:
            raise Misuse(f"step {path!r} is under way already; each needs a key of its own")
        return Asked(path, NO_PLACE)

    def place(self, asked: Asked) -> int:
        """Its place in the order, or none if others were under way at the same time."""
        return NO_PLACE if asked.path in self._overlapped else asked.place

    def leave(self, asked: Asked) -> None:
        self._active.pop(asked.path, None)
