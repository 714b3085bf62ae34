"""How a picker looks: lines that fill a terminal. Pure.

lines = frame(picker, preview, size)

A wide terminal has the list on its left and the preview on its right; else the preview is below.
"""

from collections.abc import Iterator, Sequence

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from hardsave import wording
from hardsave.cli.picker.state import Option, Picker, Size, What
from hardsave.cli.render import diffstat
from hardsave.cli.render.changed_files import FileStat
from hardsave.tuples import NamedTuple

WIDE = 110  # columns: enough for list and preview beside each other
_SHARE = 0.48  # of a wide terminal, for the list
_BETWEEN = " │ "
_MOST_LINES = 8  # of each thing that was said
TAKES: dict[What, str] = {"all": "both", "state": "state", "files": "files"}


class Facts(NamedTuple):
    """What would happen if a row were chosen, and what would not come back."""

    lines: Sequence[Text] = ()
    stats: Sequence[FileStat] = ()  # of files that would change, against the disk
    more: int = 0  # files that are not among these


class Preview(NamedTuple):
    """What is shown of the current row."""

    about: str = ""  # where choosing it leads; empty: there is no row
    said: Sequence[tuple[str, str]] = ()  # what it is, and its text: a prompt, an answer
    notes: Sequence[Text] = ()  # what has happened since
    facts: Facts | None = None  # None: not known yet


def frame(picker: Picker, preview: Preview, size: Size) -> list[Text]:
    """As many lines as the terminal has rows: title, list, preview and keys."""
    rows = max(size.height, 4)
    if picker.shows_diff:
        lines = _diff(picker, rows - 1, size.width)
    elif size.width >= WIDE:
        lines = _beside(picker, preview, Size(size.width, rows - 1))
    else:
        lines = _below(picker, preview, Size(size.width, rows - 1))
    return [_fitted(line, size.width) for line in (*lines, _keys(picker, size.width))]


def _beside(picker: Picker, preview: Preview, size: Size) -> list[Text]:
    left = int(size.width * _SHARE)
    right = size.width - left - len(_BETWEEN)
    listed = _padded(_listed(picker, size.height - 1, left), size.height - 1)
    shown = [Text(preview.about, style="name"), *_said(preview, right, size.height // 6)]
    shown = _padded([*shown, Text(), *_facts(preview, right)], size.height - 1)
    return [
        _title(picker, size.width),
        *(_joined(one, other, left) for one, other in zip(listed, shown, strict=True)),
    ]


def _below(picker: Picker, preview: Preview, size: Size) -> list[Text]:
    room = max(1, (size.height - 2) // 2)
    listed = _listed(picker, min(room, max(1, len(picker.found))), size.width)
    rule = Text(f"── {preview.about} " if preview.about else "", style="quiet")
    rule.append("─" * max(0, size.width - cell_len(rule.plain)))
    shown = [*_said(preview, size.width, size.height // 14), *_facts(preview, size.width)]
    lines = [_title(picker, size.width), *listed, rule, *shown]
    return _padded(lines, size.height)


def _padded(lines: Sequence[Text], rows: int) -> list[Text]:
    return [*lines[:rows], *(Text() for _ in range(rows - len(lines)))]


def _joined(left: Text, right: Text, width: int) -> Text:
    left.truncate(width, overflow="ellipsis", pad=True)
    return Text.assemble(left, (_BETWEEN, "quiet"), right)


def _fitted(line: Text, width: int) -> Text:
    line.no_wrap, line.overflow = True, "ellipsis"
    line.truncate(width, overflow="ellipsis")
    return line


# The list


def _title(picker: Picker, width: int) -> Text:
    title = Text.assemble(("rewind to", "name"), "  ", picker.query, ("▏", "head"))
    title.append("type to filter" if not picker.query else "", style="quiet")
    count = f"{_counted(picker)}{'' if picker.is_whole else ', reading older ones …'}"
    gap = width - cell_len(title.plain) - cell_len(count)
    return title.append(f"{' ' * max(2, gap)}{count}", style="quiet")


def _counted(picker: Picker) -> str:
    """How many of each there are, or were found."""
    among = picker.found if picker.query else picker.options
    counts = dict.fromkeys(("session", "prompt", "step"), 0)
    for option in among:
        counts[option.level] += 1
    return ", ".join(wording.count(number, level) for level, number in counts.items() if number)


_NOTHING = "nothing matches; backspace takes letters back"


def _listed(picker: Picker, room: int, width: int) -> list[Text]:
    """As many rows as there is room for, the current one among them."""
    if not picker.found:
        return [
            Text("  nothing matches so far" if not picker.is_whole else f"  {_NOTHING}", "quiet")
        ]
    first = min(max(0, picker.at - room // 2), max(0, len(picker.found) - room))
    seen = picker.found[first : first + room]
    refs = max(cell_len(each.ref) for each in seen)
    ages = max(cell_len(each.age) for each in seen)
    files = max(cell_len(each.files.plain) for each in seen)
    lines = []
    for at, option in enumerate(seen, first):
        line = _row(option, width, (files, refs, ages), is_open=option.key in picker.opened)
        if at == picker.at and option.id:  # in one colour: its own, turned around, are a patchwork
            line = Text(f"> {line.plain[2:]}", style="chosen")
        lines.append(line)
    return lines


def _row(option: Option, width: int, widths: tuple[int, int, int], *, is_open: bool) -> Text:
    """What it says, and on the right its files, its ref and its age."""
    files, refs, ages = widths
    sizes = [
        (option.files, files),
        (Text(option.ref, "ref"), refs),
        (Text(option.age, "quiet"), ages),
    ]
    behind = Text("  ").join(_right(cell, size) for cell, size in sizes if size)
    room = max(8, width - cell_len(behind.plain) - 2)
    line = Text.assemble(_lead(option, is_open=is_open), option.text)
    line.truncate(room, overflow="ellipsis", pad=True)
    return Text.assemble(line, "  ", behind)


def _right(cell: Text, size: int) -> Text:
    return Text.assemble(" " * max(0, size - cell_len(cell.plain)), cell)


def _lead(option: Option, *, is_open: bool) -> str:
    if option.level == "session":
        return "  "
    arrow = "" if option.level == "step" and not option.under else "  "
    if option.has_steps:
        arrow = "▾ " if is_open else "▸ "
    return f"  {option.mark} {arrow}"


# The preview


def _said(preview: Preview, width: int, limit: int) -> Iterator[Text]:
    """What was said, each text in a few lines."""
    limit = min(max(limit, 1), _MOST_LINES)
    for label, text in preview.said:
        lead = f"{label:<7} "
        for line in _wrapped(text, width - len(lead), limit):
            yield Text.assemble((lead, "role"), line)
            lead = " " * len(lead)


def _wrapped(text: str, width: int, limit: int) -> list[str]:
    """A text in lines of whole words, cut where there are too many."""
    lines = [""]
    for word in wording.line(text).split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_len(longer) <= width or not lines[-1]:
            lines[-1] = longer
        elif len(lines) == limit:
            lines[-1] = longer  # cut below
            break
        else:
            lines.append(word)
    return [_cut(line, width) for line in lines]


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, max(0, width - 1)) + "…"


def _facts(preview: Preview, width: int) -> Iterator[Text]:
    yield from (line.copy() for line in preview.notes)
    if preview.facts is None:
        if preview.about:
            yield Text("comparing with the disk …", style="quiet")
        return
    yield from (line.copy() for line in preview.facts.lines)
    yield from diffstat.rows(preview.facts.stats, width)
    if preview.facts.more:
        yield Text(f"  and {wording.count(preview.facts.more, 'more file')}", style="quiet")


def _diff(picker: Picker, rows: int, width: int) -> list[Text]:
    """What the files on the disk would lose and gain, from a line of it on."""
    if picker.diff is None:
        return _padded([Text("reading the differences …", style="quiet")], rows)
    lines = picker.diff or [Text("no file would change", style="quiet")]
    last = len(lines)
    shown = _padded([line.copy() for line in lines[picker.top : picker.top + rows - 1]], rows - 1)
    until = min(last, picker.top + rows - 1)
    rule = Text(f"── lines {picker.top + 1:,} to {until:,} of {last:,} ", style="quiet")
    return [*shown, rule.append("─" * max(0, width - cell_len(rule.plain)))]


# The keys


def _keys(picker: Picker, width: int) -> Text:
    """Where there is no room for all, those that are guessed most easily are left out first."""
    keys = dict(_DIFF_KEYS if picker.shows_diff else _list_keys(picker))
    for guessed in ("←→", "↑↓", "^F", "^D", "Tab", "^G"):
        if sum(cell_len(f"{key} {word}") + 2 for key, word in keys.items()) - 2 > width:
            keys.pop(guessed, None)
    return Text("  ").join(Text.assemble((key, "name"), f" {word}") for key, word in keys.items())


_DIFF_KEYS = (("↑↓ Space", "scroll"), ("Enter", "rewind"), ("^G", "go on"), ("Esc", "back"))


def _list_keys(picker: Picker) -> Iterator[tuple[str, str]]:
    option = picker.current
    yield from (("↑↓", "move"), ("←→", "fold"))
    yield "Tab", TAKES[picker.what if option is None or option.has_files else "state"]
    yield from (("^D", "diff"), ("^F", "fork"), ("^G", "go on"))
    yield from (("Enter", "rewind"), ("Esc", "leave"))
