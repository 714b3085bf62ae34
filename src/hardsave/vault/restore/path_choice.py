"""Which paths a restore may touch: what was asked for, less what is other sessions'.

An undo touches what its operation has changed, and, if the head goes back with it, what was
saved on the timeline since; nothing else. What was edited elsewhere in the meantime, and never
saved, is not its business. A timeline that shares its workspace takes back what is its own,
everything, or refuses; what others have changed too is kept and told. Where the files are as the
target has them already, there is nothing to refuse. Where it is not known whose
a change is (see `authorship`), it refuses to take back its own. Sessions share what their
workspaces have in common, also if one of these lies in the other.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Any, Literal

from hardsave.errors import Conflict, NotFound
from hardsave.objects.hashing import Hash
from hardsave.objects.records import CheckpointRecord, Id
from hardsave.record import Record
from hardsave.timeline.refs import to_text
from hardsave.tuples import NamedTuple
from hardsave.vault import operations
from hardsave.vault.context import Context
from hardsave.vault.operations import Entry, FilesMove
from hardsave.vault.restore import authorship, sessions
from hardsave.vault.restore.authorship import Saying
from hardsave.vault.restore.sessions import Brought, Doubt, Saved, Shares
from hardsave.vault.workspaces.place import Place
from hardsave.workspace.entries import DIRECTORY, above, joined, lies_in
from hardsave.workspace.snapshot import capture, compare
from hardsave.workspace.snapshot.content import Fetch
from hardsave.workspace.snapshot.directory import read_snapshot

Scope = Literal["mine", "everyone"]

_PAGE = 1_000
_SHOWN = 10
_HOOK, _CALL = "hook", "tool_use_id"  # in the metadata of a hook's checkpoint
_BEFORE, _AFTER = "PreToolUse", "PostTool"
_NOT_SAVED = "it was changed since, and no timeline has saved that yet"

_Move = tuple[int, str, FilesMove]
"""The number of an operation's commit, its timeline, and what it did to files."""


class Kept(Record):
    """A path that was left as it is, and why."""

    path: str
    reason: str


class RestoreRequest(NamedTuple):
    """What a caller wants to be restored, and for what."""

    kind: str
    timeline: str
    target: CheckpointRecord
    paths: tuple[bytes, ...] | None = None
    scope: Scope | None = None
    only: frozenset[bytes] | None = None  # of an undo: what the operation had changed
    like: tuple[Id, Id] | None = None  # of an undo: the checkpoints that this is read from
    since: int | None = None  # of an undo: its operation's commit; what others did before is past
    git: bool = False
    brought: tuple[bytes, ...] = ()  # of an undo: what its operation brought although ignored
    took: tuple[bytes, ...] = ()
    after: Id | None = None  # of an undo: the checkpoint that its operation brought files from


class Sides(NamedTuple):
    """The snapshots of the present and of the target."""

    now: Hash
    then: Hash
    fetch: Fetch

    def have(self, path: bytes) -> bool:
        """Whether one of them has a path: what is ignored in both is not restored."""
        tops = [read_snapshot(each, self.fetch).top for each in (self.now, self.then)]
        return any(compare.find(top, path, self.fetch) is not None for top in tops)


class Chosen(NamedTuple):
    """`paths` with all that lies in them, None for everything; of these `only` some, exactly.

    `others` says which timeline has changed what is not among these, or why that is not known. A
    path may be left out that this timeline has changed, too: so all that is left is told.
    """

    paths: tuple[bytes, ...] | None
    only: frozenset[bytes] | None = None
    others: Mapping[bytes, str] = MappingProxyType({})

    def kept(self, paths: Iterable[bytes]) -> list[Kept]:
        """Words on paths that are left as they are, though the checkpoint has them otherwise."""
        return [
            Kept(os.fsdecode(path), _whose(self.others.get(path, ""))) for path in sorted(paths)
        ]


def choose(
    context: Context, place: Place, request: RestoreRequest, goal: Hash, sides: Sides
) -> Chosen:
    """Decide for the workspace at `place`; `goal` is the snapshot to be restored."""
    if request.only is None and request.scope == "everyone":
        return Chosen(request.paths)  # who changed what is not asked: it is read from every save
    base = _base(context, place.id, request.target)
    after = _number(base) if request.since is None else request.since - 1
    around, is_undo = _around(context, place, sides), request.only is not None
    found = _shares(context, around, request.timeline, base, after, counts_operations=is_undo)
    others = {} if found is None else _perhaps_others(found, request.timeline)
    if request.only is not None:  # paths have been seen to
        return Chosen(None, request.only - others.keys(), others)
    if found is None:
        return Chosen(request.paths)
    if request.scope is None:
        if asked := {path: others[path] for path in _to_change(others, request, sides)}:
            raise Conflict(_refusal(asked))
        return Chosen(request.paths)
    mine = found.mine
    if base is not None and base != request.target:  # what happened elsewhere comes with it
        mine |= set(changed(context.objects.fetch, snapshot_of(context, base), goal))
    if request.kind != "guard" and (unsure := _in_doubt(found, request, sides)):
        raise Conflict(_doubts(unsure, request.timeline))
    return Chosen(request.paths, mine - others.keys() - found.unsure.keys(), others)


def _perhaps_others(found: Shares, timeline: str) -> dict[bytes, str]:
    """What other timelines have changed, or may have. A change that was made while no call ran
    counts as that of the timeline that saved it."""
    perhaps = {
        path: " or ".join(sorted(why.timelines)) or why.saved_by
        for path, why in found.unsure.items()
        if (why.timelines or {why.saved_by}) - {timeline}
    }
    return {**perhaps, **found.others}


def _in_doubt(found: Shares, request: RestoreRequest, sides: Sides) -> dict[bytes, Doubt]:
    """Of what is asked for and would be changed, that of which the author is not known."""
    return {path: found.unsure[path] for path in _to_change(found.unsure, request, sides)}


def _to_change(paths: Collection[bytes], request: RestoreRequest, sides: Sides) -> Iterator[bytes]:
    """Of some paths, those that are asked for and are not yet as the target has them."""
    if paths:
        for path in changed(sides.fetch, sides.now, sides.then):
            if path in paths and _is_asked(path, request.paths):
                yield path


def turned(context: Context, entry: Entry, move: FilesMove, kind: str) -> RestoreRequest:
    """What takes the files of an operation back to what they were before it."""
    before = context.store.checkpoint(context.user, move.before)
    if before is None or entry.timeline is None:
        raise NotFound(
            f"the files from before this {entry.kind} are gone: their checkpoint was dropped"
        )
    only = _brought(context, move)
    since = _saved_since(context, entry, move) if only is not None else frozenset()
    is_listed = move.only is not None or bool(since)
    return RestoreRequest(
        kind,
        entry.timeline,
        before,
        move.paths,
        only=None if only is None else only | since,
        like=None if is_listed else move.like or (move.before, move.after),
        since=entry.number,
        git=move.git,
        brought=move.brought,
        took=move.took,
        after=move.after,
    )


def _saved_since(context: Context, entry: Entry, move: FilesMove) -> frozenset[bytes]:
    """What saves have changed since an operation that moved the head: they are left with it."""
    after = context.store.checkpoint(context.user, move.after)
    if not entry.effects.moves or after is None:
        return frozenset()
    safety = _safety(_moves(context, [move.workspace], entry.number))
    saved = [
        row
        for row in _captures(context, move.workspace, entry.number)
        if row.timeline == entry.timeline and row.id not in safety
    ]
    if not saved:
        return frozenset()
    snapshots = [snapshot_of(context, each) for each in (after, saved[-1])]
    return frozenset(changed(context.objects.fetch, *snapshots))


# What is known of checkpoints


def capture_of(context: Context, record: CheckpointRecord) -> capture.Capture:
    if record.snapshot is None:
        raise NotFound(
            f"checkpoint {to_text(record.id)} ({record.timeline}:{record.seq}) was saved without "
            "files; choose one that has a snapshot"
        )
    return capture.read(record.snapshot, context.objects.fetch)


def snapshot_of(context: Context, record: CheckpointRecord) -> Hash:
    return capture_of(context, record).snapshot


def changed(fetch: Fetch, old: Hash, new: Hash) -> list[bytes]:
    """Paths that differ between two snapshots. A directory does if it is new, gone, or has
    another mode; files do, too, if they are one in only one of them."""
    return [path for paths in compare.diff(old, new, fetch) for path in paths]


# Who has changed what


def _base(context: Context, id: bytes, target: CheckpointRecord) -> CheckpointRecord | None:
    """The target, if it was captured here; else, of what led to it, what was."""
    line = (target, *islice(context.history.ancestors(target), _PAGE))
    return next((each for each in line if each.workspace == id), None)


def _number(base: CheckpointRecord | None) -> int:
    return 0 if base is None else base.number


Roots = Mapping[bytes, bytes]
"""Workspaces by their ids, each with its path; all of them of one host."""


def _around(context: Context, place: Place, sides: Sides) -> Roots:
    """A workspace, and those of its host that have something in common with it: they lie in each
    other."""
    store, user, host = context.store, context.user, context.places.host
    found = {place.id: place.root}
    for path in above(place.root):
        over = store.workspace_at(user, host, path)
        if over is not None:
            found[over.id] = over.path
    inside = place.root + b"/"
    after = (host, inside, b"")
    while rows := store.workspaces(user, after, _PAGE):
        inner = [row for row in rows if row.host == host and row.path.startswith(inside)]
        found |= {row.id: row.path for row in inner if sides.have(row.path[len(inside) :])}
        if len(inner) < len(rows):
            break
        after = (host, rows[-1].path, rows[-1].id)
    return found


def _shares(
    context: Context,
    roots: Roots,
    timeline: str,
    base: CheckpointRecord | None,
    after: int,
    *,
    counts_operations: bool,
) -> Shares | None:
    """Who has changed what in a workspace, the first of `roots`, after some commit before which it
    was as a checkpoint has it, or as its first capture; None if no other timeline was there."""
    captures = [_captures(context, id, after) for id in roots]
    saved = sorted(row for rows in captures for row in rows)  # by number
    moves = list(_moves(context, roots, after))
    calls = authorship.spans([_saying(context, row, roots) for row in saved])
    here = {*(row.timeline for row in saved), *(name for _, name, _ in moves)}
    if here.union(call.timeline for call in calls) <= {timeline}:
        return None
    since = base or next(iter([*captures[0], *saved]), None)
    if since is None:
        return None
    happened = _happened(context, saved, moves, roots)
    between = partial(_between, context.objects.fetch)
    found = sessions.shares(
        _saved(context, since, roots),
        happened,
        timeline,
        between,
        calls,
        counts_operations=counts_operations,
    )
    return _inside(found, next(iter(roots.values())))


def _inside(found: Shares, root: bytes) -> Shares:
    """The paths of one workspace, as they are seen from it."""
    own = len(root) + 1
    return Shares(
        frozenset(path[own:] for path in found.mine if path.startswith(root + b"/")),
        {path[own:]: who for path, who in found.others.items() if path.startswith(root + b"/")},
        {path[own:]: why for path, why in found.unsure.items() if path.startswith(root + b"/")},
    )


def _between(fetch: Fetch, old: Saved | Brought | None, new: Saved) -> list[bytes] | None:
    """What `sessions.Changed` asks for."""
    if old is None:
        everything = compare.differences(None, _tree_at(new, new.root, fetch), fetch)
        return [joined(new.root, each.path) for each in everything]
    if old.root == new.root:
        if old.snapshot == new.snapshot:
            return []
        return [joined(new.root, path) for path in changed(fetch, old.snapshot, new.snapshot)]
    inner = max(old.root, new.root, key=len)
    before, after = (_tree_at(each, inner, fetch) for each in (old, new))
    if before is None or after is None:
        return None
    return [joined(inner, each.path) for each in compare.differences(before, after, fetch)]


def _tree_at(seen: Saved | Brought, path: bytes, fetch: Fetch) -> Hash | None:
    """A directory, as a capture has it; None if it does not."""
    top = read_snapshot(seen.snapshot, fetch).top
    if path == seen.root:
        return top
    entry = compare.find(top, path[len(seen.root) + 1 :], fetch)
    return entry.hash if entry is not None and entry.type == DIRECTORY else None


def _saved(context: Context, row: CheckpointRecord, roots: Roots) -> Saved:
    """A save without a hook and without evidence is that of a program that saves by itself."""
    saying = _saying(context, row, roots)
    is_claimed = saying.evidence is None and _HOOK not in _metadata(context, row)
    snapshot = snapshot_of(context, row)
    return Saved(row.timeline, snapshot, _root(row, roots), saying, is_claimed)


def _root(row: CheckpointRecord, roots: Roots) -> bytes:
    return b"" if row.workspace is None else roots[row.workspace]


def _saying(context: Context, row: CheckpointRecord, roots: Roots) -> Saying:
    about = _metadata(context, row)
    hook, call = str(about.get(_HOOK, "")), about.get(_CALL)
    return Saying(
        row.timeline,
        row.created_at / 1e6,
        _root(row, roots),
        authorship.read(about),
        is_of_call=hook.startswith(_AFTER),
        upcoming=(str(about.get("session")), str(call)) if hook == _BEFORE else None,
    )


def _metadata(context: Context, row: CheckpointRecord) -> Mapping[str, Any]:
    found = context.objects.codec.decode(row.metadata)
    return found if isinstance(found, Mapping) else {}


def _happened(
    context: Context, saved: Iterable[CheckpointRecord], moves: Sequence[_Move], roots: Roots
) -> list[Saved | Brought]:
    """Saves and operations, in the order of their commits."""
    safety = _safety(moves)
    happened: list[tuple[int, Saved | Brought]] = [
        (row.number, _saved(context, row, roots)) for row in saved if row.id not in safety
    ]
    for number, name, move in moves:
        before, after = (
            context.store.checkpoint(context.user, id) for id in (move.before, move.after)
        )
        paths = _brought(context, move)
        if after is not None and paths is not None:
            root = roots[move.workspace]
            there = frozenset(joined(root, path) for path in paths)
            was = b"" if before is None else snapshot_of(context, before)
            one = Brought(name, there, snapshot_of(context, after), root, was)
            happened.append((number, one))
    return [each for _, each in sorted(happened, key=lambda each: each[0])]


def _safety(moves: Iterable[_Move]) -> set[Id]:
    """The checkpoints that were saved only because an operation was about to write: they are
    no timeline's work."""
    return {move.before for _, _, move in moves if move.made}


def _captures(context: Context, id: bytes, after: int) -> list[CheckpointRecord]:
    """Oldest first, those after some commit."""
    saved: list[CheckpointRecord] = []
    before: int | None = None
    while rows := context.store.captured(context.user, id, before, _PAGE):
        saved += [row for row in rows if row.number > after]
        before = rows[-1].number
        if before <= after:
            break
    return saved[::-1]


def _moves(context: Context, ids: Collection[bytes], after: int) -> Iterator[_Move]:
    """Operations that have changed files of these workspaces, after some commit."""
    while rows := context.store.log(context.user, after, _PAGE):
        for row in rows:
            if row.timeline is None or not any(id in row.data for id in ids):
                continue  # most are about something else, and to decode them takes longest
            entry = operations.decode(row)
            files = None if entry is None else entry.effects.files
            if files is not None and files.workspace in ids:
                yield row.number, row.timeline, files
        after = rows[-1].number


def _brought(context: Context, move: FilesMove) -> frozenset[bytes] | None:
    """The paths that an operation was about; None if that cannot be told any more."""
    if move.only is not None:
        return frozenset(move.only)
    ids = move.like or (move.before, move.after)
    found = [context.store.checkpoint(context.user, id) for id in ids]
    snapshots = [snapshot_of(context, each) for each in found if each is not None]
    if len(snapshots) < 2:
        return None
    old, new = snapshots
    diff = compare.diff(old, new, context.objects.fetch)
    asked = {path for paths in diff for path in paths if _is_asked(path, move.paths)}
    above_them = {over for path in asked for over in above(path)}
    return frozenset(asked | above_them.intersection(diff.added))  # these had to be made


def _is_asked(path: bytes, paths: Sequence[bytes] | None) -> bool:
    return paths is None or any(lies_in(path, each.rstrip(b"/")) for each in paths)


# Words


def _whose(who: str) -> str:
    if not who:
        return _NOT_SAVED
    if " or " in who:
        return f"it is not known which timeline has changed it: {who}"
    return f"timeline {who!r} has changed it"


def _refusal(others: Mapping[bytes, str]) -> str:
    return (
        f"other sessions have changed this workspace since: {_listed(others)}; scope='mine' takes "
        "back only what this timeline has changed; scope='everyone' takes back all of it"
    )


def _doubts(unsure: Mapping[bytes, Doubt], timeline: str) -> str:
    """Why nothing is taken back, and the way out."""
    told = {path: _doubt(why, timeline) for path, why in unsure.items()}
    return (
        f"it is not known who has changed: {_listed(told)}; nothing was changed; scope='mine' "
        "takes back what is known to be this timeline's; leave such files out by naming others "
        "with paths=, or take them back for all with scope='everyone'"
    )


def _doubt(why: Doubt, timeline: str) -> str:
    theirs = sorted(why.timelines - {timeline})
    return f"{' or '.join(theirs)}, or this one" if theirs else "while no call ran"


def _listed(told: Mapping[bytes, str]) -> str:
    names = sorted(told)
    shown = ", ".join(f"{os.fsdecode(path)} ({told[path]})" for path in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{shown}{more}"
