"""The moments of a directory as rows to choose from, and what is known of each at once. Pure: a
story in, rows out."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from rich.text import Text

from hardsave import wording
from hardsave.cli.picker.state import Option
from hardsave.cli.render import draw, rows, times
from hardsave.timeline.story import Counts, Prompt, Row, Session, Step, Story
from hardsave.tuples import NamedTuple


class Moment(NamedTuple):
    """What is known of a row before anything is read for it."""

    row: Row  # that it goes back to
    prompt: Prompt
    step: Step | None = None  # None: the prompt itself

    @property
    def way(self) -> str:
        """Where choosing it leads."""
        return "before this prompt was answered" if self.step is None else "after this step"

    @property
    def said(self) -> list[tuple[str, str]]:
        """What was asked, what was done, and what was said then; each with what it is."""
        if self.step is None:
            found = {"prompt": self.prompt.text, "answer": _answer(self.prompt)}
        else:
            asked, done, said = self.prompt.text, self.step.text, self.row.said
            is_told = said in (asked, done) or _is_about_call(self.row)
            found = {"prompt": asked, "step": done, "said": "" if is_told else said}
        return [(label, text) for label, text in found.items() if text]


class Names(NamedTuple):
    """What rows need that no story has."""

    title: Callable[[Session], Text]
    has_files: Callable[[Row], bool]


class Listing(NamedTuple):
    """All that was read so far."""

    options: tuple[Option, ...]
    moments: dict[str, Moment]  # by the keys of options
    story: Story
    is_whole: bool


class Since(NamedTuple):
    """What has happened in a directory after a moment."""

    outside: tuple[tuple[str, int], ...] = ()  # what calls did that stays done, and how often
    others: tuple[str, ...] = ()  # timelines that have saved files, but for the moment's own


def listing(story: Story, names: Names, now: datetime, *, is_whole: bool = True) -> Listing:
    """Rows for all sessions, newest first. A single session needs no heading."""
    making = _Making(names, now)
    for session in story.sessions:
        if len(story.sessions) > 1:
            making.add_heading(session)
        for number, prompt in enumerate(session.prompts):
            making.add_prompt(f"{session.timeline} {number}", prompt)  # which older ones keep
    return Listing(tuple(making.options), making.moments, story, is_whole)


class _Making:
    """Rows, one after the other."""

    def __init__(self, names: Names, now: datetime) -> None:
        self._names, self._now = names, now
        self.options: list[Option] = []
        self.moments: dict[str, Moment] = {}

    def add_heading(self, session: Session) -> None:
        title = self._names.title(session)
        age = times.briefly(session.newest.created_at, self._now)
        self.options.append(Option(session.timeline, "", "session", title, "", age, Text(), ""))

    def add_prompt(self, key: str, prompt: Prompt) -> None:
        if prompt.text and prompt.before is not None:
            self._add_prompt(key, prompt, prompt.before)
        for step in prompt.steps:
            self._add_step(step, prompt, key if prompt.text and prompt.before else "")

    def _add_prompt(self, key: str, prompt: Prompt, before: Row) -> None:
        text = wording.line(prompt.text, _LONGEST)
        self.options.append(
            Option(
                key,
                before.id,
                "prompt",
                Text(text, style="quiet" if prompt.is_left else "name"),
                f":{before.seq}",
                times.briefly(prompt.created_at, self._now),
                draw.tally(prompt.files),
                _searched(prompt.text, f":{before.seq}"),
                self._names.has_files(before),
                mark=_mark(prompt),
                has_steps=bool(prompt.steps),
            )
        )
        self.moments[key] = Moment(before, prompt)

    def _add_step(self, step: Step, prompt: Prompt, under: str) -> None:
        row, text = step.newest, rows.step_text(step)
        self.options.append(
            Option(
                row.id,
                row.id,
                "step",
                text,
                f":{row.seq}",
                times.briefly(row.created_at, self._now),
                draw.tally(step.files),
                _searched(
                    text.plain,
                    row.said,
                    row.description,
                    " ".join(step.paths),
                    " ".join(step.outside),
                    f":{row.seq}",
                ),
                self._names.has_files(row),
                mark=rows.step_mark(step),
                under=under,
            )
        )
        self.moments[row.id] = Moment(row, prompt, step)


_ABOUT_CALL = re.compile(r"after [\w.-]+(?:, [\w.-]+)*|[\w.-]+\(.*")  # as a summary has it
_LONGEST = 300  # characters of a row; terminals are cut to what they show


def _mark(prompt: Prompt) -> str:
    """Where a session stands, and what a rewind left behind; prompts are known by their arrow."""
    return rows.HEAD if prompt.is_head else rows.LEFT if prompt.is_left else " "


def _answer(prompt: Prompt) -> str:
    """What was said last before the next prompt."""
    newest = (step.newest for step in prompt.steps)
    return next((row.said for row in newest if row.said and not _is_about_call(row)), "")


def _is_about_call(row: Row) -> bool:
    """Whether nothing was said, and a description of the call stands for it."""
    return bool(row.told.call and _ABOUT_CALL.fullmatch(row.said))


def _searched(*texts: str) -> str:
    return " ".join(texts).casefold()


def since(story: Story, moment: Moment) -> Since:
    """What has happened after a moment, of all that was read: that is all that is newer."""
    outside: Counter[str] = Counter()
    others: dict[str, None] = {}
    for row, phrases, files in _newer(story, moment.row.number):
        outside.update(phrases)
        has_changed = any(number for sign, number in (files or {}).items() if sign)
        if row.timeline != moment.row.timeline and has_changed:
            others[row.timeline] = None
    return Since(tuple(outside.items()), tuple(others))


def _newer(story: Story, number: int) -> Iterator[tuple[Row, Sequence[str], Counts | None]]:
    """Steps, and what was saved when a prompt was typed."""
    for session in story.sessions:
        for prompt in session.prompts:
            if prompt.number <= number:
                continue
            if prompt.before is not None and prompt.before.number > number:
                yield prompt.before, (), prompt.before.files
            for step in prompt.steps:
                if step.newest.number > number:
                    yield step.newest, step.outside, step.files
