"""A list to choose a checkpoint from: keys in, lines out. Pure: no terminal, no store.

picker = press(picker, "down")        a picker, or `Chosen`, or `Cancelled`
lines = frame(picker, preview, size)  what to show, as many lines as there is room for
"""

from collections.abc import Sequence
from typing import Literal

from rich.text import Text

from hardsave.tuples import NamedTuple

What = Literal["all", "state", "files"]
WHATS: tuple[What, ...] = ("all", "state", "files")
SAID = {"all": "state and files", "state": "only the state", "files": "only the files"}


class Option(NamedTuple):
    """One checkpoint to choose."""

    id: str
    line: Text  # how it looks in the list
    text: str  # what a filter looks at
    has_files: bool


class Size(NamedTuple):
    """Of a terminal."""

    width: int
    height: int


class Picker(NamedTuple):
    """What is on the screen."""

    title: str
    options: tuple[Option, ...]
    query: str = ""
    at: int = 0  # in what matches
    what: What = "all"
    has_more: bool = False  # than are offered

    @property
    def matching(self) -> tuple[Option, ...]:
        """Those that have all words of the query."""
        wanted = self.query.casefold().split()
        return tuple(
            option
            for option in self.options
            if all(word in option.text.casefold() for word in wanted)
        )

    @property
    def current(self) -> Option | None:
        found = self.matching
        return found[self.at] if found else None


class Chosen(NamedTuple):
    """The user has pressed Enter."""

    id: str
    what: What


class Cancelled(NamedTuple):
    """The user has left without a choice."""


PAGE = 10


def press(picker: Picker, key: str) -> Picker | Chosen | Cancelled:
    """What comes of a key."""
    if key == "enter":
        return _choose(picker)
    if key in ("escape", "interrupt"):
        return Cancelled()
    if key in ("tab", "back tab"):
        step = 1 if key == "tab" else -1
        return picker._replace(what=WHATS[(WHATS.index(picker.what) + step) % len(WHATS)])
    if key in _MOVES:
        return _moved(picker, _MOVES[key])
    return _typed(picker, key)


_MOVES = {
    "up": -1,
    "down": 1,
    "page up": -PAGE,
    "page down": PAGE,
    "home": -(1 << 31),
    "end": 1 << 31,
}


def _choose(picker: Picker) -> Picker | Chosen:
    option = picker.current
    if option is None:
        return picker
    return Chosen(option.id, picker.what if option.has_files else "state")


def _moved(picker: Picker, step: int) -> Picker:
    last = max(0, len(picker.matching) - 1)
    return picker._replace(at=min(max(picker.at + step, 0), last))


def _typed(picker: Picker, key: str) -> Picker:
    if key == "backspace":
        return picker._replace(query=picker.query[:-1], at=0)
    if key == "clear":
        return picker._replace(query="", at=0)
    return picker._replace(query=picker.query + key, at=0) if len(key) == 1 else picker


# The screen


_NOTHING = "nothing matches; backspace takes letters back"
_NOTHING_OFFERED = "none of these matches; 'hardsave search' looks at older ones, too"


def frame(picker: Picker, preview: Sequence[Text], size: Size) -> list[Text]:
    """Title, list, preview and keys, never more lines than there are rows."""
    rows = max(size.height, 4)
    room = max(1, (rows - 3) // 2)
    found = picker.matching
    listed = _listed(picker, found, min(room, max(1, len(found))), size.width)
    lines = [_title(picker, len(found)), *listed, Text("─" * size.width, style="quiet")]
    below = max(0, rows - len(lines) - 1)
    lines += [*preview[:below], *[Text()] * max(0, below - len(preview))]
    return [_cut(line) for line in [*lines[: rows - 1], _keys(picker)]]


def _title(picker: Picker, count: int) -> Text:
    asked = Text.assemble((picker.title, "name"), "  ", picker.query, ("▏", "head"))
    asked.append("type to filter" if not picker.query else "", style="quiet")
    more = "; 'hardsave log' has older ones" if picker.has_more else ""
    return asked.append(f"  {count} of {len(picker.options)}{more}", style="quiet")


def _listed(picker: Picker, found: Sequence[Option], room: int, width: int) -> list[Text]:
    """As many options as there is room for, the current one among them."""
    if not found:
        return [Text(f"  {_NOTHING_OFFERED if picker.has_more else _NOTHING}", style="quiet")]
    first = min(max(0, picker.at - room // 2), max(0, len(found) - room))
    lines = []
    for at, option in enumerate(found[first : first + room], first):
        line = Text.assemble("> " if at == picker.at else "  ", option.line)
        if at == picker.at:  # in one colour: its cells' own, turned around, are a patchwork
            line = Text(line.plain, style="chosen")
            line.truncate(width, overflow="ellipsis", pad=True)
        lines.append(line)
    return lines


def _keys(picker: Picker) -> Text:
    option = picker.current
    takes = SAID[picker.what]
    if option is not None and not option.has_files:
        takes = "only the state, it has no files"
    keys = (("↑↓", "move"), ("Tab", takes), ("Enter", "choose"), ("Esc", "leave"))
    return Text("   ").join(Text.assemble((key, "name"), f" {word}") for key, word in keys)


def _cut(line: Text) -> Text:
    line.no_wrap, line.overflow = True, "ellipsis"
    return line
