"""Where the picker's rows and previews come from: store and disk, read in the background."""

from collections.abc import Callable, Iterator
from typing import Literal

from rich.text import Text

from hardsave import wording
from hardsave.cli.moments import Moments
from hardsave.cli.picker import preview, screen
from hardsave.cli.picker.background import Latest, Pages
from hardsave.cli.picker.frame import Facts, Preview
from hardsave.cli.picker.options import Listing, Names, Since, listing, since
from hardsave.cli.picker.preview import Planner
from hardsave.cli.picker.state import Chosen, Picker, What, begun, with_options
from hardsave.cli.session import Session
from hardsave.errors import NotFound
from hardsave.timeline import story
from hardsave.vault.checkpoint import record_of

FIRST = 240  # checkpoints that are read before anything is shown; each page after that is larger
_LARGEST = 20_000

Key = tuple[Literal["facts", "diff"], str, What]


def choose(session: Session, what: What, plan: Planner) -> Chosen | None:
    """What the user chose; None if nothing."""
    with session.out.busy("reading"):
        pages = _pages(session, _moments(session))
        first = next(pages)
    if not first.options:
        raise NotFound(_nothing_saved(session))
    picker = begun(first.options, what=what, is_whole=first.is_whole)
    return screen.pick(picker, Feed(session, first, pages, plan))


def _moments(session: Session) -> Moments:
    """Those of all sessions here, unless one was named."""
    name = session.timeline_given
    if name is None:
        return session.moments()
    named = session.timelines.state_of(name)
    return session.moments_of([] if named is None else [named], with_origin=True)


def _nothing_saved(session: Session) -> str:
    return (
        session.deleted_hint()
        or f"nothing was saved in {str(session.directory)!r} yet; 'hardsave save' saves the files "
        "here"
    )


def _pages(session: Session, moments: Moments) -> Iterator[Listing]:
    """All that was read so far, again and again with more of it. Each page is three times as large
    as all before it, because the story is told anew with each."""
    names = Names(
        lambda one: _title(session, one),
        lambda row: record_of(moments.checkpoints[row.id]).snapshot is not None,
    )
    has_more, known, count = True, 0, FIRST
    while has_more:
        has_more = moments.read(count)
        if known == 0:  # of older versions, whose states have to be read: of thousands, for long
            moments.count({row.id for row in moments.rows})
        known = len(moments.rows)
        yield listing(moments.story(), names, session.now, is_whole=not has_more)
        count = min(3 * known, _LARGEST)


def _title(session: Session, one: story.Session) -> Text:
    """The name that is typed for a session, and its first prompt."""
    name = wording.shown(session.shown_name(one.timeline))
    return Text.assemble((name, "head"), f"  {wording.line(one.title, 200)}", style="quiet")


class Feed:
    """Reads further pages while they are wanted, and what the row under the cursor means."""

    def __init__(
        self, session: Session, first: Listing, pages: Iterator[Listing], plan: Planner
    ) -> None:
        self._session = session
        self._listing = first
        self._since: dict[str, Since] = {}  # by the keys of rows; what is read later is older
        self._pages = Pages(pages)
        self._plan = plan
        self._looking: Latest[Key, Facts | list[Text]] = Latest(self._looked)

    def begin(self, wake: Callable[[], None]) -> None:
        self._pages.begin(wake)
        self._looking.begin(wake)

    def end(self) -> None:
        self._looking.end()
        self._pages.end()

    def look(self, picker: Picker) -> tuple[Picker, Preview]:
        page = self._pages.take(more=picker.wants_more)
        if page is not None:
            self._listing = page
            picker = with_options(picker, page.options, is_whole=page.is_whole)
            self._pages.take(more=picker.wants_more)
        option = picker.current
        if option is None:
            return picker, Preview()
        what: What = picker.what if option.has_files else "state"
        if picker.shows_diff:
            found = self._looking.ask(("diff", option.id, what))
            return picker._replace(diff=found if isinstance(found, list) else None), Preview()
        facts = self._looking.ask(("facts", option.id, what))
        known = self._known(option.key, what)
        return picker, known._replace(facts=facts if isinstance(facts, Facts) else None)

    def _known(self, key: str, what: What) -> Preview:
        """What is known of a row without a look at the disk."""
        moment = self._listing.moments[key]
        happened = self._since.get(key) or since(self._listing.story, moment)
        self._since[key] = happened
        return Preview(
            f"{self._session.ref(moment.row)}, {moment.way}",
            moment.said,
            tuple(preview.notes(happened, self._session.shown_name, what)),
        )

    def _looked(self, key: Key) -> Facts | list[Text]:
        kind, id, what = key
        return (preview.facts if kind == "facts" else preview.diff)(self._plan, id, what)
