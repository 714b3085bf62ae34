"""A step, a prompt or a checkpoint as one row of a list: what a log and a picker show of it."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from rich.text import Text

from hardsave import Checkpoint, Timeline
from hardsave.cli.render import draw, times, wording
from hardsave.cli.render.summary import Summary
from hardsave.timeline.story import Prompt, Step

LONG = 20  # letters of a timeline's name
NARROW = 60  # columns of a terminal
WIDE = 100
PROMPT, LEFT, HEAD, BY_HAND, AUTOMATIC = ">×@●○"
STYLES = {PROMPT: "name", LEFT: "quiet", HEAD: "head", BY_HAND: "name", AUTOMATIC: "quiet"}
_SAYS_NOTHING = ("running", "saved", "ended")  # of a status: what was done says more
_LONGEST = 2_000  # characters of a row that goes to a file or a program


# Steps and prompts


def step_mark(step: Step, ended: Collection[str] = ()) -> str:
    """What stands for a step: the head of its session, unless that has `ended`; one that a rewind
    has left behind; one that a user saved or named; any other."""
    if step.is_head and step.newest.timeline not in ended:
        return HEAD
    return LEFT if step.is_left else BY_HAND if step.is_by_hand else AUTOMATIC


def prompt_mark(prompt: Prompt) -> str:
    return HEAD if prompt.is_head else PROMPT


def age(then: datetime, now: datetime, width: int) -> Text:
    """In as many letters as there is room for."""
    return Text((times.ago if width >= WIDE else times.briefly)(then, now), style="quiet")


def step_text(step: Step) -> Text:
    """What was done: its name, how it ended, the call or what was said."""
    newest, text = step.newest, Text()
    if lost := next((row.lost for row in step.rows if row.lost), ""):
        text.append(f"! {wording.shown(lost)}; ", style="warning")
    if newest.name:
        text.append(f"{wording.shown(newest.name)} ", style="name")
    if newest.status not in _SAYS_NOTHING:
        text.append(f"[{wording.shown(newest.status)}] ", style="changed")
    return text.append(wording.line(step.text, _LONGEST), style="quiet" if step.is_left else "")


def prompt_text(prompt: Prompt) -> Text:
    """What the user said."""
    return Text(wording.line(prompt.text, _LONGEST), style="quiet" if prompt.is_left else "name")


def step_files(step: Step) -> Text:
    """What became of files, and how many were left out."""
    text = draw.tally(step.files)
    if step.newest.not_captured:
        text.append(" " if text else "").append(f"!{step.newest.not_captured:,}", style="warning")
    return text


# Checkpoints


def mark(one: Checkpoint, head_of: Sequence[str], current: str | None) -> str:
    """What stands for a checkpoint: a head, of the `current` timeline or of any; one that
    a user saved; an automatic one."""
    if current in head_of if current is not None else head_of:
        return "@"
    return "○" if one.kind == "automatic" and not one.name else "●"


def long_name(line: Timeline | None) -> str | None:
    """The name of a timeline that is so long that it stands above its list, and not in each row:
    an agent's session is known by 36 letters, and what was said would not fit beside them."""
    return line.name if line is not None and len(line.name) > LONG else None


def cells(
    summary: Summary,
    one: Checkpoint,
    heads: Mapping[str, Sequence[str]],
    now: datetime,
    above: str | None = None,
    *,
    narrow: bool = False,
) -> tuple[Text, ...]:
    """Which it is, how old, its messages, its files, and what it is called. The timeline's name
    is left out if it stands above; where there is little room, so are the messages."""
    ref = Text(f":{one.seq}", style="ref") if one.timeline == above else draw.ref(one)
    for name in heads.get(one.id, []):
        if name != one.timeline:
            ref.append(f" ← {wording.shown(name)}", style="head")
    return (
        ref,
        Text((times.briefly if narrow else times.ago)(one.created_at, now), style="quiet"),
        Text() if narrow else _messages(summary),
        _files(summary),
        _title(summary, one),
    )


def _messages(summary: Summary) -> Text:
    if summary.messages is None:
        return Text()
    text = Text(wording.count(summary.messages, "message"))
    if summary.new_messages and summary.new_messages != summary.messages:
        text.append(f" {summary.new_messages:+,}", style="quiet")
    return text


def _files(summary: Summary) -> Text:
    """What became of them, and how many were left out."""
    text = draw.tally(summary.files)
    if summary.not_captured:
        text.append(" " if text else "").append(f"!{summary.not_captured:,}", style="warning")
    return text


def _title(summary: Summary, one: Checkpoint) -> Text:
    """Its name, and what it says of itself; else its last message, or which files it changed."""
    text = Text()
    if summary.lost:
        text.append(f"! {wording.shown(summary.lost)};", style="warning")
    if one.name:
        text.append(" " if text else "").append(wording.shown(one.name), style="name")
    if one.status not in ("running", "saved"):
        text.append(f"{' ' if text else ''}[{wording.shown(one.status)}]", style="changed")
    said = wording.line(one.description or summary.last or ", ".join(summary.paths), 72)
    return text.append(f"{' ' if text else ''}{said}" if said else "", style="quiet")
