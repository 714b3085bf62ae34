"""Fills in what a checkpoint's summary tells, from what a save has at hand.

Nothing is read for it but the row of the head, if the handle did not write that itself, and
directories that differ from the head's.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hardsave.objects.hashing import Hash
from hardsave.objects.levels import Out
from hardsave.objects.reader import Reader
from hardsave.objects.records import CheckpointRecord, filled
from hardsave.objects.view import view
from hardsave.timeline import step_summary
from hardsave.timeline.step_summary import PATHS, FileCounts, StepSummary, line
from hardsave.tuples import NamedTuple
from hardsave.values import messages

if TYPE_CHECKING:
    from hardsave.vault.capturing import Taken
    from hardsave.workspace.snapshot.content import Fetch

Append = Callable[[dict[Any, Any]], tuple[Hash, Out]]

_LAST = 3  # messages among which the last that says something is looked for
_MANY = 50  # new messages among which the prompt is looked for


class Told(NamedTuple):
    """What the next save has to know of the summary before it."""

    messages: int | None = None
    said: str = ""
    files: int | None = None  # how many; None: not known
    snapshot: bytes | None = None  # the capture that they are in
    tools: str | None = None  # that the last message calls; None: not known


NOTHING = Told(tools="")


class News(NamedTuple):
    """What is new in a conversation."""

    messages: int | None = None
    new: int = 0
    said: str = ""
    prompt: str = ""
    tools: str | None = ""  # that the last message calls; None: not known


class Spoken(NamedTuple):
    """What the last messages say."""

    said: str
    prompt: str
    tools: str


class Heard:
    """The messages that are added by one append, or by several that make one checkpoint."""

    def __init__(self) -> None:
        self.key: str | None = None  # of the list that grows; None: none does
        self.new = 0
        self.items: Sequence[Any] = ()  # the last of them

    def note(self, delta: Mapping[Any, Any]) -> None:
        for key in messages.KEYS:
            if key in delta:
                found = delta[key]
                if isinstance(found, list):
                    self.key = key
                    self.new += len(found)
                    self.items = [*self.items, *found][-_MANY:] if self.items else found
                return

    def by(self, append: Append) -> Append:
        """The same append, overheard."""

        def heard(delta: dict[Any, Any]) -> tuple[Hash, Out]:
            self.note(delta)
            return append(delta)

        return heard


def told_by(row: CheckpointRecord, reader: Reader) -> Told:
    """What the row of a head tells; of one from before there were summaries, its state is asked
    how many messages it has."""
    if row.summary is None:
        items = of_state(view(reader, row.root))
        return Told(None if items is None else len(items), "", None, row.snapshot)
    found = step_summary.decode(row.summary)
    total = None if found.files is None else found.files.total
    return Told(found.messages, found.said, total, row.snapshot)


def of_state(state: Any) -> Sequence[Any] | None:
    """The messages of a state that may be an object; None if it has none."""
    if isinstance(state, Mapping):
        found = messages.of(state)
        return None if found is None else found[1]
    for key in messages.KEYS:
        found = getattr(state, key, None)
        if isinstance(found, list | tuple):
            return found
    return None


def last_of(items: Sequence[Any], new: int, limit: int, plain: Callable[[Any], Any]) -> Spoken:
    """What was said last, the last prompt among so many new messages, both on one line, and which
    tools the last message calls. `plain` makes data of messages that are objects, and takes secrets
    out of them."""
    last = plain(items[-1]) if items else None
    if type(last) is dict and len(last) == 2:  # nearly always, and a search takes ten times as long
        role, text = last.get("role"), last.get("content")
        if type(text) is str and (role == "user" or (role == "assistant" and new <= 1)):
            said = line(text, limit)
            if said:
                return filled(Spoken, (said, said if role == "user" and new > 0 else "", ""))
    return _searched(items, new, limit, plain)


def _searched(items: Sequence[Any], new: int, limit: int, plain: Callable[[Any], Any]) -> Spoken:
    said = prompt = tools = ""
    has_result = False
    last = len(items) - 1
    for at in range(last, max(len(items) - max(min(new, _MANY), _LAST), 0) - 1, -1):
        item = items[at]
        is_recent, is_new = last - at < _LAST and not said, last - at < new
        if not is_recent and (prompt or not is_new):
            break
        read = _read(plain(item))
        if read is None:
            continue
        if at == last and read.calls:
            tools = _tools(read)
        if is_recent:
            said = line(_said(read, has_result), limit)
            has_result = has_result or bool(read.results)
        if is_new and not prompt and read.role == "user":
            prompt = line(read.text, limit)
    return Spoken(said, prompt, tools)


def _tools(read: messages.Message) -> str:
    return ", ".join(call.tool for call in read.calls)


def _read(item: Any) -> messages.Message | None:
    return messages.read(item) if isinstance(item, Mapping | str) else None


def _said(read: messages.Message, has_result: bool) -> str:
    """Results of tools say little but whose they are."""
    if has_result and read.calls:
        return f"after {_tools(read)}"
    if read.text.strip():
        return read.text
    if read.calls:
        return f"{read.calls[-1].tool}({read.calls[-1].arguments})"
    return ""


# Files


def of_files(taken: "Taken", before: Told, fetch: "Fetch") -> tuple[FileCounts, tuple[str, ...]]:
    """What a capture has that the one of the head has not, and the first paths of these."""
    if before.snapshot is None:
        total = taken.file_count()
        return FileCounts(added=total, total=total), ()
    old = taken.known.get(before.snapshot)
    if old is None:
        from hardsave.workspace.snapshot import capture

        old = capture.read(before.snapshot, fetch).snapshot
    signs, more = ({}, 0) if old == taken.snapshot else _differences(taken, old, fetch)
    total = taken.file_count() if before.files is None else before.files + more
    counts = [*signs.values()]
    return (
        FileCounts(counts.count(1), counts.count(0), counts.count(-1), total),
        tuple(os.fsdecode(path) for path in sorted(signs)[:PATHS]),
    )


def _differences(taken: "Taken", old: Hash, fetch: "Fetch") -> tuple[dict[bytes, int], int]:
    """Paths that differ from a snapshot: 1 is added, 0 changed, -1 removed; and how many files
    there are more than in it."""
    from hardsave.workspace.entries import DIRECTORY, parent
    from hardsave.workspace.snapshot import compare, content, directory

    near = content.overlay(taken.objects, fetch)
    then, now = directory.read_snapshot(old, near), directory.read_snapshot(taken.snapshot, near)
    found = list(compare.differences(then.top, now.top, near))
    above = {parent(each.path) for each in found}  # a new directory is its files
    relinked = {path for group in {*then.links} ^ {*now.links} for path in group}
    signs = dict.fromkeys(relinked, 0) | {
        each.path: (each.old is None) - (each.new is None)
        for each in found
        if each.path not in above
    }
    files = [
        (each.new is not None and each.new.type != DIRECTORY)
        - (each.old is not None and each.old.type != DIRECTORY)
        for each in found
    ]
    return signs, sum(files)


def brief(news: News) -> tuple[bytes, Told]:
    """The same as `summed` for a save without files, of which its caller tells nothing: most saves
    of a program."""
    messages, new, said, prompt, tools = news
    told = filled(Told, (messages, said, None, None, tools))
    return step_summary.packed([messages, new, said, prompt]), told


def summed(
    news: News, given: StepSummary | None, before: Told, taken: "Taken | None", fetch: "Fetch"
) -> tuple[bytes, Told]:
    """The bytes of the row, and what the next save has to know of them."""
    given = given if given is not None else StepSummary(prompt=news.prompt)
    if taken is None:
        summary = _spoken(given, news)
        return step_summary.encode(summary), Told(news.messages, news.said, tools=news.tools)
    counts, paths = of_files(taken, before, fetch)
    summary = _spoken(given, news).replace(
        files=counts,
        paths=paths,
        not_captured=len(taken.not_captured),
        lost=taken.lost,
    )
    told = Told(news.messages, news.said, counts.total, taken.address, news.tools)
    return step_summary.encode(summary), told


def _spoken(given: StepSummary, news: News) -> StepSummary:
    return given.replace(messages=news.messages, new_messages=news.new, said=news.said)
