"""Choosing a checkpoint of a timeline from a list, with a preview of what going back means."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice

from rich.text import Text

from hardsave import Checkpoint
from hardsave.cli.log_query import Log, pick_list
from hardsave.cli.picker import screen
from hardsave.cli.picker.state import Chosen, Option, Picker, What
from hardsave.cli.render import changed_files, draw, messages, rows, wording
from hardsave.cli.render.summary import Summaries, Summary
from hardsave.cli.session import Session
from hardsave.errors import NotFound
from hardsave.vault.files import difference

OFFERED = 200
PREVIEWED = 6  # messages


def choose(session: Session, what: What) -> Chosen | None:
    """What the user chose; None if nothing."""
    line = session.line
    with session.out.busy("reading"):
        log = pick_list(line, OFFERED)
        options = _options(session, log)
    if not options:
        raise NotFound(
            session.deleted_hint(line.name)
            or f"nothing was saved on timeline {line.name!r} yet; 'hardsave save' saves the files "
            "here"
        )
    by_id = {each.id: each for each in log.checkpoints}
    head = line.head

    @cache
    def preview(id: str, what: What) -> Sequence[Text]:
        return list(islice(previewed(head, by_id[id], what), 200))

    title = f"rewind {wording.shown(line.name)} to"
    picker = Picker(title, tuple(options), what=what, has_more=log.has_more)
    return screen.pick(picker, preview)


def _options(session: Session, log: Log) -> list[Option]:
    summaries = Summaries(session.vault, log.checkpoints)
    looked = [(one, summaries.of(one)) for one in log.checkpoints]
    lines = draw.columns([_cells(session, log, summary, one) for one, summary in looked])
    return [
        Option(one.id, line, f"{line.plain} {one.description} {summary.last}", _has_files(one))
        for (one, summary), line in zip(looked, lines, strict=True)
    ]


def _has_files(one: Checkpoint) -> bool:
    return one.files is not None


def _cells(session: Session, log: Log, summary: Summary, one: Checkpoint) -> tuple[Text, ...]:
    mark = rows.mark(one, log.heads.get(one.id, []), session.line.name)
    above = rows.long_name(session.line)
    narrow = session.out.messages.width < rows.NARROW  # which is drawn on
    cells = rows.cells(summary, one, log.heads, session.now, above, narrow=narrow)
    return (Text(mark), *cells)


def previewed(head: Checkpoint | None, one: Checkpoint, what: What) -> Iterator[Text]:
    """What its files have that the head's have not, and what was last said; of what goes back."""
    now, then = None if head is None else head.files, one.files
    if what != "state" and now is not None and then is not None:
        listed = changed_files.signed(difference(now, then))
        yield draw.line(
            (f"{wording.count(len(listed), 'file')} ", "name"),
            "would change, from what the head has",
        )
        yield from draw.paths(listed, limit=5)
    found = messages.of(one.state) if what != "files" else None
    if found is not None:
        _, items = found
        yield draw.line((f"{wording.count(len(items), 'message')}", "name"), ", the last ones")
        for item in items[-PREVIEWED:]:
            yield from draw.message_lines(messages.read(item))
