"""How things look on a terminal: rich texts made of what was found. Prints nothing."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from hardsave import wording
from hardsave.cli.render import changed_files, phrases, refs
from hardsave.cli.render.console import Verbatim
from hardsave.values.messages import Message
from hardsave.wording import in_our_words

if TYPE_CHECKING:  # they take longer to import than all that draws
    from hardsave.vault.files import LeftOut
    from hardsave.vault.restore.git_position import GitChanges
    from hardsave.vault.restore.plan import FileChanges
    from hardsave.vault.restore.task_rollback import RolledBack

SIGNS = {"+": "added", "~": "changed", "-": "removed"}
FOLDED = 100  # characters of a tool's arguments or result, unless all is asked for
LISTED = 20  # paths, unless all are asked for


def ref(one: "refs.Checkpoint") -> Text:
    """A checkpoint as people type it."""
    return Text(wording.shown(refs.ref(one)), style="ref")


def timeline(name: str) -> Text:
    """A timeline as people type it."""
    return Text(wording.shown(refs.timeline(name)), style="name")


def line(*parts: Text | str | tuple[str, str], cut: bool = False) -> Text:
    """Parts on one line; `cut` it where the terminal ends, rather than wrap it."""
    text = Text.assemble(*parts)
    if cut:
        text.no_wrap, text.overflow = True, "ellipsis"
    return text


def columns(rows: Sequence[Sequence[Text]], gap: int = 2, *, cut: bool = True) -> list[Text]:
    """Cells below each other, all but the last column as wide as its widest cell.

    `cut` where the terminal ends; else a path can be copied as a whole.
    """
    widths = [max(cell_len(cell.plain) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        text = Text(no_wrap=True, overflow="ellipsis" if cut else "ignore")
        for cell, width in zip(row, widths, strict=True):
            text.append_text(cell)
            text.append(" " * (width - cell_len(cell.plain) + gap if width else 0))
        text.rstrip()
        lines.append(text)
    return lines


def fields(pairs: Mapping[str, Text | str | None]) -> list[Text]:
    """Names and values below each other; without those that have none."""
    rows = [
        (
            Text(name, style="quiet"),
            value if isinstance(value, Text) else Text(wording.shown(value)),
        )
        for name, value in pairs.items()
        if value
    ]
    return columns(rows, cut=False)


def tally(counts: Mapping[str, int] | None) -> Text:
    """`+2 ~1 -3` in its colours; a plain number of files for a first snapshot."""
    text = Text()
    for sign, number in (counts or {}).items():
        if sign == "":
            text.append(wording.count(number, "file"), style="quiet")
        elif number:
            text.append(" " if text else "").append(f"{sign}{number:,}", style=SIGNS[sign])
    return text


# Messages


_NARROW = 20  # columns, too few to read text in
_INDENT = 4


class Hanging:
    """A text that goes on below where it began, not at the edge of the terminal."""

    def __init__(self, lead: Text, text: Text) -> None:
        self._lead = lead
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        indent = cell_len(self._lead.plain)
        lead = self._lead
        if " " not in self._text.plain.strip():  # a path, to be copied as a whole
            yield Text.assemble(lead, self._text, no_wrap=True, overflow="ignore")
            return
        if options.max_width - indent < _NARROW:  # too little to go on there: below, then
            yield Text(lead.plain.rstrip(), style=lead.style, spans=lead.spans)
            indent = min(indent, _INDENT)
            lead = Text(" " * indent)
        for part in self._text.wrap(console, max(1, options.max_width - indent)):
            yield Text.assemble(lead, part)
            lead = Text(" " * indent)


def message(one: Message, *, full: bool = False, sign: str = "") -> Iterator[Hanging]:
    """Who said what; tools in one line each, unless all is asked for."""
    for lead, text in _with_leads(one, full=full, sign=sign):
        yield Hanging(lead, text)


def message_lines(one: Message, *, sign: str = "") -> Iterator[Text]:
    """The same, each cut to one line."""
    for lead, text in _with_leads(one, full=False, sign=sign):
        yield line(lead, text, cut=True)


def _with_leads(one: Message, *, full: bool, sign: str) -> Iterator[tuple[Text, Text]]:
    start = f"{sign or ' '} "
    role = f"{wording.line(one.role, 12) or 'message':<10} "
    lead = Text.assemble((start, SIGNS.get(sign, "")), (role, "role"))
    for text in _said(one, full=full):
        yield lead, text
        lead = Text(" " * len(lead))


def _said(one: Message, *, full: bool) -> Iterator[Text]:
    if one.text.strip():
        for text in wording.passage(one.text).strip().splitlines() if full else [_short(one.text)]:
            yield Text(text)
    for call in one.calls:
        given = wording.passage(call.arguments) if full else wording.line(call.arguments, FOLDED)
        yield Text.assemble(
            ("▸ ", "tool"), (wording.line(call.tool), "tool"), (f" {given}", "quiet")
        )
    for result in one.results:
        shown = wording.passage(result) if full else wording.line(result, FOLDED)
        yield Text.assemble(("◂ ", "tool"), (shown, "quiet"))
    if not one.text.strip() and not one.calls and not one.results:
        yield Text("(empty)", style="quiet")


def _short(text: str) -> str:
    return wording.line(text, 400)


# Tasks


def rolled_back(found: "Sequence[RolledBack]", *, limit: int | None = LISTED) -> Iterator[Text]:
    """Tasks that a rewind takes back, each with the steps whose effects outside are still done."""
    for one in found[:limit]:
        text = f" {wording.line(one.text, 60)}" if one.text and one.text != one.id else ""
        was = (f"  was {one.state}", "quiet")
        yield line("    ", (wording.shown(one.id), "name"), text, was, cut=True)
        if one.effects:
            steps = ", ".join(wording.shown(step) for step in one.effects)
            yield line(("      still done outside: ", "warning"), steps, cut=True)
        if one.elsewhere:
            names = ", ".join(wording.shown(name) for name in one.elsewhere)
            yield line(("      still saved on: ", "warning"), names, cut=True)
    if limit is not None and len(found) > limit:
        yield Text(f"    and {len(found) - limit:,} more", style="quiet")


# Files


def paths(
    found: Sequence[tuple[str, str]], *, limit: int | None = LISTED, indent: str = "  "
) -> Iterator[Text]:
    """Paths with their signs, and how many more there are."""
    for sign, path in found[:limit]:
        yield Text.assemble((f"{indent}{sign} ", SIGNS[sign]), wording.shown(path))
    if limit is not None and len(found) > limit:
        yield Text(f"{indent}  and {len(found) - limit:,} more", style="quiet")


def not_captured(found: "Sequence[LeftOut]", *, limit: int | None = LISTED) -> Iterator[Text]:
    """What is not in a snapshot, and why."""
    yield from lost(found)
    found = [each for each in found if not each.is_loss]
    if not found:
        return
    yield Text(f"{wording.count(len(found), 'path')} not captured", style="warning")
    for each in found[:limit]:
        why = wording.shown(in_our_words(each.reason))
        yield Text.assemble("  ! ", wording.shown(each.path), (f"  {why}", "quiet"))
    if limit is not None and len(found) > limit:
        yield Text(f"    and {len(found) - limit:,} more", style="quiet")


def lost(found: "Sequence[LeftOut]") -> Iterator[Text]:
    """That a rule has left most files out of a snapshot."""
    for each in found:
        if each.is_loss:
            yield Text(f"! {wording.shown(each.reason)}", style="warning")


def git_changes(found: "GitChanges", *, limit: int | None = LISTED) -> Iterator[Text]:
    """Where a repository goes, and which commits only we will hold."""
    way = Text.assemble(("    ~ ", "changed"), "git, from ", phrases.git(found.before))
    yield way.append(f" to {phrases.git(found.after)}")
    if not found.left_behind:
        return
    count = wording.count(len(found.left_behind), "commit")
    more = "" if found.is_all else " or more"
    yield Text(f"      {count}{more} on no branch then, kept below refs/hardsave/:", style="quiet")
    for each in found.left_behind[:limit]:
        yield line(("      ", ""), (each.id[:12], "quiet"), f" {wording.shown(each.subject)}")
    if limit is not None and len(found.left_behind) > limit:
        yield Text(f"      and {len(found.left_behind) - limit:,} more", style="quiet")


class Patch(Verbatim):
    """A file's change: in its colours, or as `git apply` reads it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from patch(self.text)


def patch(unified: str) -> Iterator[Text]:
    """A unified diff in its colours."""
    found = list(changed_files.by_line(unified))
    ends_alike = len({text.endswith("\r") for text in _ended(found)}) < 2
    for text, is_inside in found:
        shown = text.removesuffix("\r") if is_inside and ends_alike else text
        yield Text(wording.passage(shown), style=_patch_style(text, is_inside=is_inside))


def _ended(found: Sequence[tuple[str, bool]]) -> Iterator[str]:
    """The lines of a file that are ended at all. Where not all of them are ended alike, that is
    perhaps the only difference there is: then it has to be seen."""
    following = [text for text, _ in found[1:]] + [""]
    for (text, is_inside), after in zip(found, following, strict=True):
        if is_inside and text[:1] in "+- " and not after.startswith("\\"):
            yield text


def _patch_style(text: str, *, is_inside: bool) -> str:
    if not is_inside:
        return "hunk" if text.startswith("@@") else "name"
    return {"+": "added", "-": "removed"}.get(text[:1], "")


def file_changes(found: "FileChanges", *, limit: int | None = LISTED) -> Iterator[Text]:
    """What a restore does to files."""
    some = {"+": found.created, "~": found.changed, "-": found.removed}
    signed = [(sign, path) for sign in some for path in some[sign]]
    yield from paths(sorted(signed, key=lambda each: each[1]), limit=limit, indent="    ")
    if found.git is not None:
        yield from git_changes(found.git, limit=limit)
    for each in found.kept[:limit]:
        yield Text.assemble(
            ("    ! ", "warning"),
            wording.shown(each.path),
            (f"  left as it is: {wording.shown(refs.in_text(each.reason))}", "quiet"),
        )
