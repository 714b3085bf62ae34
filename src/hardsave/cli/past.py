"""The past of this directory, over all its sessions: the checkpoint that `rewind --before` and
`--status` mean, and what going back does not take back.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import chain

from hardsave import Checkpoint, wording
from hardsave.cli.current_timeline import TimelineState, of_directory
from hardsave.cli.render import times
from hardsave.cli.render.rewind_plan import RewindOptions
from hardsave.cli.session import Session
from hardsave.errors import NotFound
from hardsave.page import every
from hardsave.timeline import as_of
from hardsave.timeline.as_of import Done, Saved
from hardsave.timeline.refs import to_text
from hardsave.vault.checkpoint import record_of

_LEAST = timedelta(microseconds=1)
_PAGE = 100
_FARTHEST = 5000  # checkpoints that are read for what calls did: some tenths of a second
_LISTED = 4  # sessions in a message


def target(session: Session, status: str | None, before: str | None) -> Checkpoint:
    """The checkpoint to go back to, for a status and a time as they were typed. With --timeline, of
    that and of what led to it; else of all sessions of this directory."""
    moment = None if before is None else times.moment(before, session.now)
    if session.timeline_given is not None:
        plan = session.line.rewind(status=status, before=moment, what="state", dry_run=True)
        return plan.target
    found = _last_saved(session, status, moment)
    if found is not None and status is None and moment is not None:
        id = as_of.as_of(moment, _saved(found), _done(session), lambda n: _saved_before(session, n))
        found = found if id in (None, found.id) else session.vault.get(id or "")
    if found is None:
        raise NotFound(session.saved_above or _none(session, status, before))
    return found


def _last_saved(session: Session, status: str | None, before: datetime | None) -> Checkpoint | None:
    """By time, not by the order of commits: what was imported is older than that."""
    until = None if before is None else before - _LEAST
    lines = [each for each in session.timelines.every if each.newest]  # any may be that old
    is_without = all(each.workspace is None for each in of_directory(lines, session.directory))
    found = (_newest(session, each, status, until, is_without=is_without) for each in lines)
    known = [one for one in found if one is not None]
    return max(known, key=lambda one: (one.created_at, record_of(one).number), default=None)


def _newest(
    session: Session,
    line: TimelineState,
    status: str | None,
    until: datetime | None,
    *,
    is_without: bool,
) -> Checkpoint | None:
    """The newest of a timeline that has files of this directory; where no timeline has any, the
    newest without."""
    handle, after = session.vault.timeline(line.name), None
    limit = 1
    while True:
        page = handle.checkpoints(status=status, until=until, limit=limit, after=after)
        for one in page:
            if record_of(one).workspace is None and is_without:
                return one
            files = one.files
            if files is not None and session.where(files) == str(session.directory):
                return one
        if page.next is None:
            return None
        after, limit = page.next, _PAGE


def _saved(one: Checkpoint) -> Saved:
    return Saved(one.id, record_of(one).number, one.created_at)


def _done(session: Session) -> Iterator[Done]:
    """The operations on timelines of this directory."""
    here = {each.name for each in of_directory(session.timelines.every, session.directory)}
    for each in every(lambda after: session.vault.operations(limit=_PAGE, after=after)):
        if each.timeline in here:
            to = each.about.get("to", b"")
            id = to_text(to) if isinstance(to, bytes) and to else ""
            yield Done(each.kind, each.timeline, each.number, each.created_at, id)


def _saved_before(session: Session, number: int) -> str | None:
    """The newest checkpoint of this directory before some commit."""
    moments = session.moments()
    while moments.read(_PAGE):
        if moments.rows[-1].number < number:
            break
    return next((row.id for row in moments.rows if row.number < number), None)


def _none(session: Session, status: str | None, before: str | None) -> str:
    what = " and ".join(
        [
            *([] if status is None else [f"with the status {status!r}"]),
            *([] if before is None else [f"from before {before}"]),
        ]
    )
    return (
        f"this directory has no checkpoint {what}; 'hardsave log --prompts' shows how far it goes"
    )


# Whose files go back


def whole_directory(
    session: Session, options: RewindOptions, target: Checkpoint, *, is_named: bool
) -> tuple[RewindOptions, str]:
    """A moment of a directory is gone back to as a whole: what other sessions have done since goes
    back, too. It stays saved; the text that is returned tells whose it is, if files change. A
    moment that `is_named` by a ref is one of the directory if its session was over before the
    others began; else they were at work together, and the user may not know of them."""
    is_about_files = options.what != "state" and target.files is not None
    if not is_about_files or options.scope is not None or session.timeline_given is not None:
        return options, ""
    here = session.timelines_here
    others = [
        each
        for each in here
        if each.name != target.timeline and each.newest > record_of(target).number
    ]
    own = next((each for each in here if each.name == target.timeline), None)
    is_together = own is None or any(each.created_at <= own.worked_at for each in others)
    if not others or (is_named and is_together):
        return options, ""
    return options._replace(scope="everyone"), _told(session, others)


def _told(session: Session, others: Iterable[TimelineState]) -> str:
    ordered = sorted(others, key=lambda each: -each.newest)
    names = [session.shown_name(each.name) for each in ordered]
    more = [f"{len(names) - _LISTED} more"] if len(names) > _LISTED else []
    listed = ", ".join(chain(map(wording.shown, names[:_LISTED]), more))
    return f"what these have changed here since goes back, too, and stays saved: {listed}"


# What stays done


def reached_outside(session: Session, target: Checkpoint) -> list[tuple[str, int]]:
    """What calls have done since a checkpoint beyond the files of this machine, and how often."""
    name, number = session.timeline_given, record_of(target).number
    named = None if name is None else session.timelines.state_of(name)
    moments = session.moments() if named is None else session.moments_of([named])
    while moments.read(_PAGE):
        if moments.rows[-1].number <= number or len(moments.rows) >= _FARTHEST:
            break
    steps = (step for step in moments.story().steps if step.newest.number > number)
    return list(Counter(phrase for step in steps for phrase in step.outside).items())
