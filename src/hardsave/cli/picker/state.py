"""A list to choose a moment from: keys in, the next state out. Pure: no terminal, no store.

picker = press(picker, "down")     a picker, or `Chosen`, or `Cancelled`

Sessions stand above their prompts, prompts above their steps. The steps of a prompt are shown when
it is open, and when they match what was typed. What a `Picker` looks like is in `frame`.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from rich.text import Text

from hardsave.tuples import NamedTuple

What = Literal["all", "state", "files"]
WHATS: tuple[What, ...] = ("all", "state", "files")
Action = Literal["rewind", "fork", "go on"]
ACTIONS: dict[str, Action] = {"enter": "rewind", "fork": "fork", "go on": "go on"}  # by key
Level = Literal["session", "prompt", "step"]

PAGE = 10  # rows
AHEAD = 500  # rows that are read before one gets there


class Option(NamedTuple):
    """One row: a moment to choose, or a heading of some."""

    key: str  # of this row alone: two prompts may go back to one checkpoint
    id: str  # of the checkpoint; empty: a heading, which cannot be chosen
    level: Level
    text: Text
    ref: str
    age: str
    files: Text  # what became of them: +1 ~2
    searched: str  # what a filter looks at, in lower case
    has_files: bool = True
    mark: str = " "
    under: str = ""  # the key of the prompt that a step belongs to
    has_steps: bool = False  # of a prompt


class Size(NamedTuple):
    """Of a terminal."""

    width: int
    height: int


class Picker(NamedTuple):
    """What is on the screen. Made by `begun`, so that `found` always fits the rest."""

    options: tuple[Option, ...]
    found: tuple[Option, ...]  # what is listed of them
    query: str = ""
    at: int = 0  # in what is listed
    what: What = "all"
    opened: frozenset[str] = frozenset()  # keys of prompts whose steps are listed
    is_whole: bool = True  # else there are older ones that were not read yet
    diff: Sequence[Text] | None = None  # None: not known yet
    shows_diff: bool = False
    top: int = 0  # the first line of the diff that is shown

    @property
    def current(self) -> Option | None:
        """The row that would be chosen; None if there is none."""
        if not self.found:
            return None
        option = self.found[self.at]
        return option if option.id else None

    @property
    def wants_more(self) -> bool:
        """Whether older moments have to be read: a filter looks at all of them."""
        return not self.is_whole and (bool(self.query) or self.at + AHEAD >= len(self.found))


class Chosen(NamedTuple):
    """What the user has chosen to do."""

    id: str
    what: What
    action: Action = "rewind"


class Cancelled(NamedTuple):
    """The user has left without a choice."""


def begun(options: Sequence[Option], *, what: What = "all", is_whole: bool = True) -> Picker:
    """A picker at the newest moment, whose prompt is open."""
    opened = next((each.key for each in options if each.level == "prompt"), "")
    first = Picker(tuple(options), (), what=what, opened=frozenset({opened}), is_whole=is_whole)
    return _listed(first)


def with_options(picker: Picker, options: Sequence[Option], *, is_whole: bool) -> Picker:
    """The same with more that was read; the cursor stays on its row, which may be known by now as
    the step of a prompt."""
    key = picker.found[picker.at].key if picker.found else ""
    under = next((each.under for each in options if each.key == key), "")
    opened = picker.opened | {under} if under else picker.opened
    more = picker._replace(options=tuple(options), is_whole=is_whole, opened=opened)
    return _at_key(_listed(more), key)


# Keys


def press(picker: Picker, key: str) -> Picker | Chosen | Cancelled:
    """What comes of a key."""
    if key in ACTIONS:
        return _chosen(picker, ACTIONS[key])
    if key == "interrupt":
        return Cancelled()
    if picker.shows_diff:
        return _in_diff(picker, key)
    if key == "escape":
        return Cancelled()
    if key in ("tab", "back tab"):
        step = 1 if key == "tab" else -1
        what = WHATS[(WHATS.index(picker.what) + step) % len(WHATS)]
        return picker._replace(what=what, diff=None)
    if key == "diff":
        is_there = picker.current is not None
        return picker._replace(shows_diff=True, top=0) if is_there else picker
    if key in ("left", "right"):
        return _folded(picker, is_open=key == "right")
    if key in _MOVES:
        return _moved(picker, _MOVES[key])
    return _typed(picker, key)


_FAR = 1 << 31
_MOVES = {
    "up": -1,
    "down": 1,
    "page up": -PAGE,
    "page down": PAGE,
    "home": -_FAR,
    "end": _FAR,
}


def _chosen(picker: Picker, action: Action) -> Picker | Chosen:
    option = picker.current
    if option is None:
        return picker
    return Chosen(option.id, picker.what if option.has_files else "state", action)


def _in_diff(picker: Picker, key: str) -> Picker:
    if key in ("escape", "diff", "q", "left"):
        return picker._replace(shows_diff=False, top=0)
    step = _MOVES.get("page down" if key == " " else key, 0)
    last = max(0, len(picker.diff or ()) - 1)
    return picker._replace(top=min(max(picker.top + step, 0), last))


def _folded(picker: Picker, *, is_open: bool) -> Picker:
    """Open or close the prompt that the cursor is at, or whose step it is at."""
    if not picker.found:
        return picker
    option = picker.found[picker.at]
    key = option.under or option.key
    opened = picker.opened | {key} if is_open else picker.opened - {key}
    after = _listed(picker._replace(opened=opened))
    return _at_key(after, option.key if is_open else key)


def _moved(picker: Picker, step: int) -> Picker:
    """Headings are passed over; where there is nothing but headings, the cursor stays."""
    places = [at for at, option in enumerate(picker.found) if option.id]
    if not places:
        return picker
    now = places.index(picker.at) if picker.at in places else 0
    return _looking_at(picker, places[min(max(now + step, 0), len(places) - 1)])


def _looking_at(picker: Picker, at: int) -> Picker:
    return picker._replace(at=at, diff=None if at != picker.at else picker.diff)


def _typed(picker: Picker, key: str) -> Picker:
    if key == "backspace":
        query = picker.query[:-1]
    elif key == "clear" or (key == "/" and not picker.query):  # by habit, to begin a filter
        query = ""
    else:
        query = picker.query + key if len(key) == 1 else picker.query
    return picker if query == picker.query else _listed(picker._replace(query=query, diff=None))


# What is listed


def _listed(picker: Picker) -> Picker:
    """The same with the rows that match, and the cursor at the first that can be chosen."""
    found = tuple(_matching(picker))
    at = next((at for at, option in enumerate(found) if option.id), 0)
    return picker._replace(found=found, at=at)


def _matching(picker: Picker) -> Iterator[Option]:
    """Rows that have all words of the query; without one, all but the steps of closed prompts. A
    session's heading stands above the first row that is listed of it."""
    wanted = picker.query.casefold().split()
    heading: Option | None = None
    for option in picker.options:
        if option.level == "session":
            heading = option
            continue
        if wanted:
            is_listed = bool(option.id) and all(word in option.searched for word in wanted)
        else:
            is_listed = not option.under or option.under in picker.opened
        if is_listed:
            if heading is not None:
                yield heading
                heading = None
            yield option


def _at_key(picker: Picker, key: str) -> Picker:
    at = next((at for at, option in enumerate(picker.found) if option.key == key), None)
    return picker if at is None else picker._replace(at=at)
