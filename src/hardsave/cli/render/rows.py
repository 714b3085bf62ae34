"""A step or a prompt as one row of a list: what a log and a picker show of it."""

from collections.abc import Collection
from datetime import datetime

from rich.text import Text

from hardsave import wording
from hardsave.cli.render import draw, refs, times
from hardsave.timeline.story import Prompt, Step

NARROW, WIDE = 72, 100  # columns: below, and from which on
PROMPT, LEFT, HEAD, BY_HAND, AUTOMATIC = ">×@●○"
STYLES = {PROMPT: "name", LEFT: "quiet", HEAD: "head", BY_HAND: "name", AUTOMATIC: "quiet"}
_SAYS_NOTHING = ("running", "saved", "ended")  # of a status: what was done says more
_LONGEST = 2_000  # characters of a row that goes to a file or a program


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
    return Text((wording.ago if width >= WIDE else times.briefly)(then, now), style="quiet")


def step_text(step: Step) -> Text:
    """What was done: its name, how it ended, the call or what was said."""
    newest, text = step.newest, Text()
    if lost := next((row.lost for row in step.rows if row.lost), ""):
        text.append(f"! {wording.shown(lost)}; ", style="warning")
    if newest.name:
        text.append(f"{wording.shown(newest.name)} ", style="name")
    if newest.status not in _SAYS_NOTHING:
        text.append(f"[{wording.shown(newest.status)}] ", style="changed")
    said = wording.line(refs.in_text(step.text), _LONGEST)
    return text.append(said, style="quiet" if step.is_left else "")


def prompt_text(prompt: Prompt) -> Text:
    """What the user said."""
    return Text(wording.line(prompt.text, _LONGEST), style="quiet" if prompt.is_left else "name")


def step_files(step: Step) -> Text:
    """What became of files, and how many were left out."""
    text = draw.tally(step.files)
    if step.newest.not_captured:
        text.append(" " if text else "").append(f"!{step.newest.not_captured:,}", style="warning")
    return text
