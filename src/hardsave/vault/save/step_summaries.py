"""Fills in what a checkpoint's summary tells, from what a save has at hand.

Nothing is read for it but the row of the head, if the handle did not write that itself, and
directories that differ from the head's.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hardsave.errors import Corrupt
from hardsave.logs import log
from hardsave.objects.growth import Growth
from hardsave.objects.hashing import Hash
from hardsave.objects.levels import Out
from hardsave.objects.reader import Reader
from hardsave.objects.records import CheckpointRecord, Id, filled
from hardsave.objects.view import plain, view
from hardsave.timeline import step_summary
from hardsave.timeline.step_summary import BRIEF, LINE, PATHS, FileCounts, StepSummary, line
from hardsave.tuples import NamedTuple
from hardsave.values import messages
from hardsave.vault.context import Context
from hardsave.vault.save.request import SaveRequest

if TYPE_CHECKING:
    from hardsave.vault.save.capturing import Taken
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


Grown = tuple[Growth | None, Hash | None]
"""What grows with the appends of a handle, and the state that it began with."""


class Summaries:
    """The summaries of what one handle saves. It remembers what the one before tells."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._told: tuple[Id, Told] | None = None  # of the checkpoint that was saved or read last
        self.row: CheckpointRecord | None = None  # of the head, as it was looked up last

    def forget(self) -> None:
        self._told = self.row = None

    def saved(self, id: Id, told: Told | None) -> None:
        """The checkpoint was committed: the next one stands on it, as a rule."""
        self._told = None if told is None else (id, told)

    def of(
        self,
        request: SaveRequest,
        on: Id | None,
        grown: Grown,
        out: Out,
        heard: Heard,
        files: "Taken | None",
    ) -> tuple[bytes | None, Told | None]:
        """The summary of a checkpoint, and what the next one has to know of it. A state is any
        data: one that cannot be told of is saved all the same."""
        if request.form == "copied":
            return None, None  # it has that of its source
        try:
            before = self._before(on)
            news = self._news(request, before, grown, out, heard)
            if files is None and request.step is None:
                return brief(news)
            return summed(news, request.step, before, files, self._context.objects.fetch)
        except (Corrupt, LookupError, TypeError, ValueError, AttributeError, RecursionError):
            log(__name__).warning("a checkpoint is saved without its summary", exc_info=True)
            return None, None

    def _before(self, on: Id | None) -> Told:
        """What the summary of the parent tells."""
        if on is None:
            return NOTHING
        if self._told is None or self._told[0] != on:
            row = self.row
            if row is None or row.id != on:
                row = self._context.history.at(on)
            self._told = on, told_by(row, self._context.objects.reader_of(row))
        return self._told[1]

    def _news(
        self, request: SaveRequest, before: Told, grown: Grown, out: Out, heard: Heard
    ) -> News:
        """What is new in the conversation of a state."""
        form, state = request.form, request.state
        limit = LINE if form == "parts" or request.step is not None else BRIEF
        if form == "whole":
            items = of_state(state)
            if items is None:
                return News()
            count = len(items)
            new = count - (before.messages or 0)
            return News(count, new, *last_of(items, new, limit, self._plain))
        if form == "grown":
            heard.note(state)
        growth, grown_on = grown
        if heard.key is None or growth is None:
            return News(before.messages, 0, before.said, "", before.tools)
        count = growth.length(heard.key, out) or 0
        goes_on = form == "grown" or state.goes_on
        new = heard.new if goes_on else count - (before.messages or 0)
        said, prompt, tools = last_of(heard.items, heard.new, limit, self._plain)
        if not said and goes_on:
            called = before.tools if before.tools is not None else self._tools_of(grown_on)
            said = f"after {called}" if called else before.said
        return filled(News, (count, new, said, prompt, tools))

    def _tools_of(self, root: Hash | None) -> str:
        """The tools that the last message of a state calls, whose results are all that is new."""
        items = None if root is None else of_state(view(self._context.objects.reader, root))
        return last_of([plain(items[-1])], 0, LINE, self._plain).tools if items else ""

    def _plain(self, message: Any) -> Any:
        """A message as it is read again, without secrets."""
        objects = self._context.objects
        if objects.codec.redaction is None and isinstance(message, dict | str):
            return message
        return objects.as_saved(message)


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
