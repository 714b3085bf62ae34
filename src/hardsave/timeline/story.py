"""The checkpoints of a directory as a story: sessions, what the user said, and what was done. Pure.

    session   a timeline; its title is the first prompt
    prompt    what the user said. To go back to it is to go back to before it was answered
    step      one thing that was done: a call of a tool with its result, an answer, a save by hand.
              One or more checkpoints; to go back to it is to go back to the newest of them

How checkpoints become these: `timeline.telling`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, cast

from hardsave.timeline.step_summary import SAFETY, StepSummary
from hardsave.tuples import NamedTuple

Phase = Literal["", "prompt", "before", "during", "after", "answer", "end", "safety"]
"""Where in a turn a checkpoint was made: at a prompt, at a call of a tool, at the end; or because
an operation was about to write."""

Counts = Mapping[str, int]
"""Files by what became of them: `+`, `~`, `-`; those of a first snapshot stand under no sign."""


EMPTY = "(empty prompt)"
"""What stands for a prompt in which nothing was said."""

_ENDS: Mapping[str, Phase] = {"answered": "answer", "session ended": "end"}


class Told(NamedTuple):
    """What a checkpoint tells of the turn that it was made in."""

    prompt: str = ""
    call: str = ""  # `Bash(rm src/b.py)`
    call_id: str = ""
    phase: Phase = ""


class Row(NamedTuple):
    """A checkpoint, as far as a story needs it."""

    id: str
    timeline: str
    seq: int
    number: int  # of its commit
    created_at: datetime
    parent: str | None = None
    kind: str = "automatic"
    name: str | None = None
    status: str = "running"
    description: str = ""
    told: Told = Told()
    said: str = ""  # the beginning of its last message
    messages: int | None = None
    new_messages: int = 0
    files: Counts | None = None
    paths: tuple[str, ...] = ()
    capture: bytes | None = None  # equal ones have the same files
    state: bytes | None = None  # equal ones have the same state; None of an agent's conversation
    outside: tuple[str, ...] = ()  # what its call did beyond the files of this machine
    not_captured: int = 0
    lost: str = ""
    is_counted: bool = False  # whether it is known what it has added: else its counts say nothing

    @property
    def is_by_hand(self) -> bool:
        return self.kind != "automatic" or bool(self.name)

    @property
    def has_news(self) -> bool:
        """Whether it adds anything to the one before it; True if that is not known."""
        return not self.is_counted or self.new_messages != 0 or any((self.files or {}).values())

    @property
    def is_safety(self) -> bool:
        """Whether it was saved for an operation alone."""
        return self.told.phase == SAFETY


class Step(NamedTuple):
    """One thing that was done. Its checkpoints stand in the order in which they were made."""

    rows: tuple[Row, ...]
    text: str  # what was done
    is_left: bool = False  # behind, by a rewind
    is_head: bool = False  # whether its timeline stands here

    @property
    def newest(self) -> Row:
        """What it is gone back to."""
        return self.rows[-1]

    @property
    def is_by_hand(self) -> bool:
        return self.newest.is_by_hand

    @property
    def files(self) -> Counts | None:
        return total(row.files for row in self.rows)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(path for row in self.rows for path in row.paths))

    @property
    def outside(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each for row in self.rows for each in row.outside))

    @property
    def new_messages(self) -> int:
        return sum(row.new_messages for row in self.rows)


class Prompt(NamedTuple):
    """What a user said, and the steps that followed, newest first. Without a text: steps that
    followed no prompt, or one that is older than all that was read."""

    timeline: str
    text: str
    before: Row | None  # what it is gone back to; None if that is not known
    created_at: datetime
    steps: tuple[Step, ...]
    is_left: bool = False  # behind, with all its steps
    is_head: bool = False  # whether its timeline stands at the prompt itself, before all steps

    @property
    def number(self) -> int:
        """Of the newest commit that belongs to it."""
        return max(row.number for row in self._ends)

    @property
    def files(self) -> Counts | None:
        return total(step.files for step in self.steps)

    @property
    def changed_before(self) -> Counts | None:
        """What became of files before it was typed, since the step before: by hand, mostly. None if
        no checkpoint was made then, or it was the first."""
        one = self.before
        if one is None or one.told.prompt != self.text or "" in (one.files or {}):
            return None
        return one.files

    @property
    def _ends(self) -> Iterator[Row]:
        if self.before is not None and self.before.timeline == self.timeline:
            yield self.before
        yield from (step.newest for step in self.steps)


class Session(NamedTuple):
    """A timeline: its prompts, newest first."""

    timeline: str
    title: str
    agent: str
    prompts: tuple[Prompt, ...]

    @property
    def newest(self) -> Row:
        rows = [step.newest for prompt in self.prompts for step in prompt.steps]
        rows += [prompt.before for prompt in self.prompts if prompt.before is not None]
        return max(rows, key=lambda row: (row.timeline == self.timeline, row.number))

    @property
    def step_count(self) -> int:
        return sum(len(prompt.steps) for prompt in self.prompts)


class Head(NamedTuple):
    """Where a timeline stands."""

    id: str
    number: int  # of the commit of that checkpoint


class Story(NamedTuple):
    """All sessions, the one that saved last first."""

    sessions: tuple[Session, ...]

    @property
    def prompts(self) -> list[Prompt]:
        """Of all sessions, newest first."""
        found = [prompt for session in self.sessions for prompt in session.prompts]
        return sorted(found, key=lambda prompt: -prompt.number)

    @property
    def steps(self) -> list[Step]:
        """Of all sessions, newest first."""
        found = [step for prompt in self.prompts for step in prompt.steps]
        return sorted(found, key=lambda step: -step.newest.number)


def total(counts: Iterable[Counts | None]) -> Counts | None:
    """The sum of what became of files; None if there were none."""
    found: dict[str, int] = {}
    known = [each for each in counts if each is not None]
    for each in known:
        for sign, number in each.items():
            found[sign] = found.get(sign, 0) + number
    return found if known else None


# What checkpoints tell


def counts(kept: StepSummary, *, is_first: bool) -> Counts | None:
    """What was kept of a checkpoint's files. Of a first snapshot all are new, and none is named."""
    files = kept.files
    if files is None:
        return None
    if not kept.paths and (files.added or is_first):
        return {"": files.total}
    return {"+": files.added, "~": files.changed, "-": files.removed}


def told(description: str, kept: StepSummary, metadata: Callable[[], Mapping[str, Any]]) -> Told:
    """What a checkpoint tells, of which a summary was kept. Metadata are asked for only if it was
    made while a tool ran: to decode them takes longer than all the rest."""
    if kept.phase in ("before", "after", SAFETY):
        return Told(kept.prompt, kept.call, kept.call_id, cast(Phase, kept.phase))
    if description.startswith("during ") and not kept.prompt:
        return _of_files(description, metadata())
    is_asked = description.startswith("before: ") or "; before: " in description
    if kept.prompt:
        return Told(kept.prompt, kept.call, kept.call_id, "prompt" if is_asked else "")
    if description.rpartition("; ")[2].strip() == "before:":
        return Told(EMPTY, kept.call, kept.call_id, "prompt")
    return Told("", kept.call, kept.call_id, _ENDS.get(description.rpartition("; ")[2], ""))


def read(description: str, metadata: Mapping[str, Any]) -> Told:
    """What hooks and the daemon have written into a checkpoint, of which nothing else is kept."""
    hook, tool = metadata.get("hook"), _text(metadata.get("tool"))
    id = _text(metadata.get("tool_use_id"))
    if hook == "UserPromptSubmit":
        return Told(prompt=_behind("before: ", description), phase="prompt")
    if hook == "PreToolUse":
        return Told("", as_call(tool + _behind(f"before {tool}", description)), id, "before")
    if hook in ("PostToolUse", "PostToolBatch"):
        return Told("", as_call(tool + _behind(f"after {tool}", description)), id, "after")
    if hook in ("Stop", "SessionEnd"):
        return Told(phase="answer" if hook == "Stop" else "end")
    return _of_files(description, metadata)


def _of_files(description: str, metadata: Mapping[str, Any]) -> Told:
    """A checkpoint of files alone, which the daemon has made while a tool ran."""
    if not description.startswith("during "):
        return Told()
    told = metadata.get("changed_by")
    calls = {
        _text(call.get("tool_use_id")): None
        for each in (told if isinstance(told, Sequence) else ())
        if isinstance(each, Mapping)
        for call in each.get("calls", ())
        if isinstance(call, Mapping)
    }
    if len(calls) != 1:
        return Told(phase="during")
    return Told("", as_call(description.removeprefix("during ")), next(iter(calls)), "during")


def _behind(opening: str, description: str) -> str:
    """What stands behind some words, with which a description begins, or its second part: the
    first may say what has changed before."""
    if description.startswith(opening):
        return description.removeprefix(opening)
    return description.partition(f"; {opening}")[2]


def as_call(text: str) -> str:
    """`Bash: rm src/b.py` as `Bash(rm src/b.py)`."""
    tool, colon, target = text.partition(": ")
    return f"{tool}({target})" if colon else tool


def _text(found: object) -> str:
    return found if isinstance(found, str) else ""
