"""Several sessions in one workspace: whose changes are whose. Decided over plain data.

A change is what differs between a capture and the one before it in the same workspace, by
whichever timeline. `authorship` says who made it: by the calls that ran meanwhile, or, where no
call is known and a program saves by itself, the timeline that saved it. What was saved only because
an operation was about to write counts with the capture after it.

What an operation has written was asked for by the user. It is the operation's timeline's own, also
if another one is the next to save it, and to all others it is no session's change: only an undo of
something older leaves it. Whose the contents are that it has brought is as it was when they were
captured: what another session made, and an operation brought back, is that session's.

Workspaces may lie in each other, saved by different sessions. What one of them has seen of a
directory counts for all that have it; paths begin with the workspace that they are seen from.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from hardsave.objects.hashing import Hash
from hardsave.tuples import NamedTuple
from hardsave.vault.restore import authorship
from hardsave.vault.restore.authorship import NOTHING_SAID, Authors, CallSpan, Saying
from hardsave.workspace.entries import lies_in


class Saved(NamedTuple):
    """One capture of a workspace."""

    timeline: str
    snapshot: Hash
    root: bytes = b""
    saying: Saying = NOTHING_SAID
    is_claimed: bool = True  # whether a program saved it by itself: then it says who made it


class Brought(NamedTuple):
    """An operation: these paths became what a snapshot holds."""

    timeline: str
    paths: frozenset[bytes]
    snapshot: Hash
    root: bytes = b""
    before: Hash = b""  # what was there until then


Changed = Callable[[Saved | Brought | None, Saved], Iterable[bytes] | None]
"""The paths that differ between two snapshots, where both see them: in the inner one of their
workspaces. None if the outer one does not have that. All paths, if there is but one snapshot."""


class Shares(NamedTuple):
    """Who has changed what since some checkpoint."""

    mine: frozenset[bytes]
    others: dict[bytes, str]  # which timeline
    unsure: dict[bytes, "Doubt"]  # what this timeline may have changed, or another


class Doubt(NamedTuple):
    """Why it is not known who has changed a path."""

    timelines: frozenset[str]  # whose calls may have; none: it was changed while no call ran
    saved_by: str


def shares(
    since: Saved,
    happened: Sequence[Saved | Brought],
    timeline: str,
    changed: Changed,
    calls: Sequence[CallSpan] = (),
    *,
    counts_operations: bool = False,
) -> Shares:
    """Look at what happened in the order of commits, from a capture on. `counts_operations`: what
    operations of other timelines have brought from before that counts as theirs."""
    known = [since]
    tally = _Tally(timeline, {each.snapshot for each in happened if isinstance(each, Brought)})
    tally.remember(since.snapshot)
    brought: list[Brought] = []  # since the last capture
    for each in happened:
        if isinstance(each, Brought):
            brought.append(each)
            tally.remember(each.before)
            is_known = tally.bring_back(each)
            if each.timeline == timeline or (counts_operations and not is_known):
                own = Authors(frozenset({each.timeline}), is_known=True)
                tally.count(dict.fromkeys(each.paths, own), each.timeline)
            continue
        news, known = _news(known, each, since.root, changed)
        for one in brought:
            news = {path: news[path] for path in news.keys() - _as_brought(one, each, changed)}
        brought = [one for one in brought if not lies_in(one.root, each.root)]
        tally.count(_made(each, news, calls), each.timeline)
        tally.remember(each.snapshot)
    return tally.shares()


class _Tally:
    """Who has changed what, up to some moment."""

    def __init__(self, timeline: str, wanted: Collection[Hash]) -> None:
        """`wanted`: the snapshots that operations bring back."""
        self._timeline = timeline
        self._wanted = wanted
        self._mine: set[bytes] = set()
        self._others: dict[bytes, str] = {}
        self._unsure: dict[bytes, Doubt] = {}
        self._then: dict[Hash, tuple[dict[bytes, str], dict[bytes, Doubt]]] = {}

    def count(self, made: Mapping[bytes, Authors], saved_by: str) -> None:
        for path, (names, is_known) in made.items():
            if not is_known and (not names or self._timeline in names):
                self._unsure[path] = Doubt(names, saved_by)
                continue
            if self._timeline in names:
                self._mine.add(path)
            if theirs := sorted(names - {self._timeline}):
                self._others[path] = " or ".join(theirs)

    def remember(self, snapshot: Hash) -> None:
        if snapshot in self._wanted:
            self._then[snapshot] = (dict(self._others), dict(self._unsure))

    def bring_back(self, one: Brought) -> bool:
        """What was there is gone, and with it who had made it; whether it is known who has made
        what there is now. What is older than all that is looked at was changed by none since."""
        others, unsure = self._then.get(one.snapshot, ({}, {}))
        _replace(self._others, others, one.paths)
        _replace(self._unsure, unsure, one.paths)
        return one.snapshot in self._then

    def shares(self) -> Shares:
        unsure = {path: why for path, why in self._unsure.items() if path not in self._others}
        return Shares(frozenset(self._mine), self._others, unsure)


_Why = TypeVar("_Why")


def _replace(now: dict[bytes, _Why], then: Mapping[bytes, _Why], paths: Iterable[bytes]) -> None:
    for path in paths:
        now.pop(path, None)
        if path in then:
            now[path] = then[path]


def _made(
    each: Saved, news: Mapping[bytes, float], calls: Sequence[CallSpan]
) -> dict[bytes, Authors]:
    claimed_by = each.timeline if each.is_claimed else None
    return authorship.of_capture(news, each.saying, each.snapshot.hex(), calls, claimed_by)


def _news(
    known: Sequence[Saved], each: Saved, root: bytes, changed: Changed
) -> tuple[dict[bytes, float], list[Saved]]:
    """What a capture has that none before had, each path with the moment of the last that had not;
    and what is known after it. A directory in the workspace at `root` that none had is new; one
    around it may have been ignored there."""
    news, start = _against_wider(known, each, changed)
    if news is None:
        is_new = each.root != root and lies_in(each.root, root)
        news = dict.fromkeys(changed(None, each) or () if is_new else (), 0.0)
    after: list[Saved] = []
    for at, one in enumerate(known):
        if one.root == each.root:
            continue
        found = changed(one, each) if lies_in(one.root, each.root) else None
        if found is None:  # each says nothing of it, or only of a part
            after.append(one)
        elif at >= start:
            news = {path: since for path, since in news.items() if not lies_in(path, one.root)}
            news |= dict.fromkeys(found, one.saying.moment)
    return news, [*after, each]


def _against_wider(
    known: Sequence[Saved], each: Saved, changed: Changed
) -> tuple[dict[bytes, float] | None, int]:
    """What differs from the last capture of all that this one is of, if there is any; and from
    where on there are captures of parts."""
    for at in reversed(range(len(known))):
        if lies_in(each.root, known[at].root):
            found = changed(known[at], each)
            if found is not None:
                return dict.fromkeys(found, known[at].saying.moment), at + 1
    return None, 0


def _as_brought(one: Brought, each: Saved, changed: Changed) -> set[bytes]:
    """Paths that a capture has as an operation has brought them."""
    found = changed(one, each)
    if found is None:
        return set()
    inner = max(one.root, each.root, key=len)
    return {path for path in one.paths if lies_in(path, inner)}.difference(found)
