"""Who has changed a file, where several agents work in one directory. Pure: over plain data.

Checkpoints of hooks and of the daemon say, under `evidence` in their metadata, which calls of tools
ran when and on which timeline, and when each path was changed last. A change belongs

    to the timeline whose edit is known to have made exactly this change; else
    to the timelines whose calls edit files and name this one, if no other runs commands; else
    to the one timeline whose calls may have made it: those that ran between the capture before,
    which does not have the change, and the moment of the change.

If calls of several timelines may have made it, or none, that is said: no guess is made.
A program that saves by itself, without hooks, says with the save that the change is its own; so it
is one of those that may have made it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from hardsave.tuples import NamedTuple
from hardsave.workspace.entries import above, joined, lies_in

KEY = "evidence"
_SCAN_SECONDS = 2.0  # after it was begun, in which a capture has looked at a file
_MOST_CALLS = 50
_MOST_CHANGES = 200
_MOST_CHARACTERS = 20_000  # of their paths: all metadata of a checkpoint take 64 KiB
_MOST_PATHS = 50  # of a call that edits

Does = Literal["edits", "runs", "touches"]
"""What a call does: it edits the files that it names; it may change any file; it names files, and
perhaps only reads them."""


class CallSpan(NamedTuple):
    """A call of a tool: when it ran, and on which timeline."""

    timeline: str
    session: str
    id: str
    does: Does = "runs"
    paths: frozenset[bytes] = frozenset()  # that it names
    began: float | None = None  # in seconds since 1970; None: not known
    ended: float | None = None  # None: it was running when this was said

    def names(self, path: bytes) -> bool:
        """A directory that has come or gone with a file counts as its path."""
        return any(lies_in(each, path) for each in self.paths)


class Changed(NamedTuple):
    """The last change of a path was made at some moment between two."""

    after: float
    before: float


class Evidence(NamedTuple):
    """What one checkpoint says."""

    at: float
    """When it was looked: what was changed later is not in it."""
    files: str
    """The id of the files that were looked at: moments hold for a capture of the same files."""
    calls: tuple[CallSpan, ...] = ()
    changed: Mapping[str, Changed] = {}
    made: Mapping[str, tuple[str, str]] = {}
    """By path: the session and the id of the edit that makes it what it is out of what the capture
    before has. Nothing else has changed it."""


class Authors(NamedTuple):
    """The timelines that have changed a path; or, if it is not known, that may have."""

    timelines: frozenset[str]
    is_known: bool


# As it stands in metadata


def metadata(told: Evidence) -> dict[str, Any]:
    """For a checkpoint. What is left out makes less known, and nothing wrong."""
    calls = [
        {
            "timeline": each.timeline,
            "session": each.session,
            "id": each.id,
            "does": each.does if len(each.paths) <= _MOST_PATHS else "runs",
            "paths": sorted(_text(path) for path in each.paths)[:_MOST_PATHS],
            "began": _rounded(each.began),
            "ended": _rounded(each.ended),
        }
        for each in told.calls[-_MOST_CALLS:]
    ]
    about: dict[str, Any] = {"at": _rounded(told.at), "calls": calls}
    if told.changed:
        about |= {"files": told.files, "changed": _listed(told.changed)}
    if told.made:
        about["made"] = [[path, *call] for path, call in list(told.made.items())[:_MOST_PATHS]]
    return {KEY: about}


def _listed(changed: Mapping[str, Changed]) -> list[list[Any]]:
    found: list[list[Any]] = []
    left = _MOST_CHARACTERS
    for path, (after, before) in list(changed.items())[:_MOST_CHANGES]:
        left -= len(path)
        if left >= 0 and path.isprintable():
            found.append([path, _rounded(after), _rounded(before)])
    return found


def read(about: Mapping[str, Any]) -> Evidence | None:
    """What the metadata of a checkpoint say; None if they say nothing that is understood: those of
    an import may be anything."""
    told = about.get(KEY)
    if not isinstance(told, Mapping):
        return None
    try:
        return Evidence(
            float(told["at"]),
            str(told.get("files", "")),
            tuple(_call(each) for each in told["calls"]),
            {str(path): Changed(float(a), float(b)) for path, a, b in told.get("changed", ())},
            {str(path): (str(who), str(id)) for path, who, id in told.get("made", ())},
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _call(told: Mapping[str, Any]) -> CallSpan:
    does: Does = told["does"] if told["does"] in ("edits", "touches") else "runs"
    paths = frozenset(_bytes(str(path)) for path in told["paths"])
    began, ended = (None if told[key] is None else float(told[key]) for key in ("began", "ended"))
    return CallSpan(
        str(told["timeline"]), str(told["session"]), str(told["id"]), does, paths, began, ended
    )


def _rounded(moment: float | None) -> float | None:
    return None if moment is None else round(moment, 3)


def _text(path: bytes) -> str:
    return path.decode(errors="replace")


def _bytes(path: str) -> bytes:
    return path.encode(errors="replace")


# What several checkpoints say


class Saying(NamedTuple):
    """The evidence of a checkpoint, and where it stands."""

    timeline: str
    moment: float  # when its save was begun
    root: bytes  # the workspace that its paths are seen from
    evidence: Evidence | None
    is_of_call: bool = False  # whether the hook of a call that has ended has saved it
    upcoming: tuple[str, str] | None = None  # the session and id of a call that waits for the save


NOTHING_SAID = Saying("", 0.0, b"", None)


def spans(sayings: Sequence[Saying]) -> list[CallSpan]:
    """All calls that these tell of, oldest checkpoint first, each once. Paths begin with the
    workspace. What a session says of its own call counts for whose it is; one that was never seen
    to end ran as long as it was seen to run."""
    found: dict[tuple[str, str], CallSpan] = {}
    last: dict[str, float] = {}  # by timeline: its checkpoint before
    for each in sayings:
        before = last.get(each.timeline)
        if each.evidence is None and each.is_of_call:
            key = (each.timeline, f"@{each.moment}")
            found[key] = CallSpan(each.timeline, *key, began=before, ended=each.moment)
        for call in () if each.evidence is None else each.evidence.calls:
            known = found.get((call.session, call.id))
            at = each.evidence.at if each.evidence is not None else each.moment
            placed = call._replace(paths=frozenset(joined(each.root, p) for p in call.paths))
            if placed.began is None and call.timeline == each.timeline:
                placed = placed._replace(began=before)
            found[call.session, call.id] = _merged(known, placed, at, each.timeline)
        last[each.timeline] = each.moment
    return list(found.values())


def _merged(known: CallSpan | None, told: CallSpan, at: float, by: str) -> CallSpan:
    """`ended` of one that runs is when it was last seen to."""
    told = told._replace(ended=at if told.ended is None else told.ended)
    if known is None:
        return told
    own = told if told.timeline == by else known
    began = [each.began for each in (known, told) if each.began is not None]
    return own._replace(
        paths=known.paths | told.paths,
        began=min(began, default=None),
        ended=max(known.ended or 0.0, told.ended or 0.0),
    )


# Deciding


def authors(
    path: bytes, since: float, changed: Changed, calls: Iterable[CallSpan], claimed_by: str | None
) -> Authors:
    """Of the last change of a path, which a capture at `since` does not have. `claimed_by` is a
    timeline whose program saved it by itself. A call that has ended before the last change may
    have changed the path, too: so it counts from the capture before."""
    ran = [each for each in calls if _ran(each, since, changed.before)]
    if claimed_by is not None:
        ran.append(CallSpan(claimed_by, "", ""))
    named = [each for each in ran if each.does == "edits" and each.names(path)]
    edited = {each.timeline for each in named if each.ended is None or each.ended >= changed.after}
    may = {each.timeline for each in ran if each.does == "runs"}
    if edited and may <= edited:
        return Authors(frozenset(edited), is_known=True)
    may |= edited
    may = may or {each.timeline for each in ran if each.does == "touches" and each.names(path)}
    return Authors(frozenset(may), is_known=len(may) == 1)


def _ran(call: CallSpan, since: float, before: float) -> bool:
    is_begun = call.began is None or call.began <= before
    return is_begun and (call.ended is None or call.ended > since)


def of_capture(
    news: Mapping[bytes, float],
    saying: Saying,
    files: str,
    calls: Sequence[CallSpan],
    claimed_by: str | None = None,
) -> dict[bytes, Authors]:
    """Who has changed what is new in a capture: `news` has paths, each with the moment of the
    capture before. `files` is the id of what was captured. A directory that has come or gone with
    what lies in it was made by those that have made that."""
    told = saying.evidence
    latest, moments = saying.moment + _SCAN_SECONDS, dict[bytes, Changed]()
    edited: dict[bytes, Authors] = {}
    if told is not None and told.files == files:  # nothing was changed after it was looked
        latest = told.at
        moments = {
            joined(saying.root, _bytes(path)): Changed(at.after, min(at.before, latest))
            for path, at in told.changed.items()
        }
        whose = {(call.session, call.id): call.timeline for call in calls}
        edited = {
            joined(saying.root, _bytes(path)): Authors(frozenset({whose[call]}), is_known=True)
            for path, call in told.made.items()
            if call in whose
        }
    ran = [each for each in calls if (each.session, each.id) != saying.upcoming]
    found = {
        path: authors(path, since, moments.get(path, Changed(since, latest)), ran, claimed_by)
        for path, since in news.items()
    }
    found |= {path: made for path, made in edited.items() if path in news}
    return {**found, **_directories(found)}


def _directories(found: Mapping[bytes, Authors]) -> dict[bytes, Authors]:
    within: dict[bytes, list[Authors]] = {}
    holding = {over for path in found for over in above(path)}
    for path in found.keys() - holding:
        for over in above(path):
            if over in found:
                within.setdefault(over, []).append(found[path])
    return {path: _together(made) for path, made in within.items()}


def _together(made: Sequence[Authors]) -> Authors:
    names = frozenset[str]().union(*(each.timelines for each in made))
    return Authors(names, all(each.is_known for each in made))
