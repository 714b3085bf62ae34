"""What a restore would do, decided before anything is done.

The present is a snapshot taken a moment ago, never the disk itself: so the plan is pure, can
be shown, and can be written down for the process that has to finish it. Each step knows what it
expects to find and what it leaves, and is skipped if neither is there.

The order of steps: directories are opened for writing and made; (contents are staged;) what
stands in the way is cleared; files, symlinks and links are put in their places; files go;
directories go if they are empty; directories get their modes.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from hardsave.objects.hashing import Hash
from hardsave.tuples import NamedTuple
from hardsave.workspace.entries import DIRECTORY, SYMLINK, Entry, above, lies_in, parent
from hardsave.workspace.ignore.rules import RootRules
from hardsave.workspace.restore import hard_links
from hardsave.workspace.restore.hard_links import Linking
from hardsave.workspace.restore.left_alone import (
    NOTHING_MISSED,
    Missed,
    RestoreFilter,
    Seen,
    Side,
    patterns,
)
from hardsave.workspace.restore.name_collisions import collisions
from hardsave.workspace.restore.requested_paths import RequestedPaths, checked, in_any, selected
from hardsave.workspace.scan.capture_policy import Exempt, IncludePatterns
from hardsave.workspace.snapshot import compare, directory
from hardsave.workspace.snapshot.compare import Difference
from hardsave.workspace.snapshot.content import Fetch

Verb = Literal["open", "mkdir", "remove", "rmdir", "write", "symlink", "link", "chmod", "close"]

_WRITABLE = 0o300
_OPENED = 0o700


class Step(NamedTuple):
    """One thing to do. `before` is what has to be there, `after` what will be."""

    do: Verb
    path: bytes
    before: Entry | None = None
    after: Entry | None = None
    to: bytes = b""  # link: the path that it becomes one file with
    apart: tuple[bytes, ...] = ()  # write: paths that it is no longer one file with
    via: bytes = b""  # write: the directory that the content is staged in


class Plan(NamedTuple):
    """The way from one snapshot to another, and back."""

    present: Hash
    target: Hash
    steps: tuple[Step, ...]
    back: tuple[Step, ...]
    unsaved: Mapping[bytes, Entry] = MappingProxyType({})
    """What the target has where something lies that the present could not capture, or that its
    rules ignore. It is left alone, for nothing could bring it back."""
    spared: frozenset[bytes] = frozenset()
    """What the target has where something of another kind is, which its own rules ignore."""
    obstructed: Mapping[bytes, bytes] = MappingProxyType({})
    """What was asked for and cannot be put in its place: a path above it, this one, is no
    directory now, and was not asked for."""
    meant: frozenset[bytes] = frozenset()
    """What the target has although rules ignore it. If something lies there, it was not saved."""
    matched: frozenset[bytes] = frozenset()
    """What the target has, and rules would ignore if it were not tracked by git or asked for."""
    held: frozenset[bytes] = frozenset()
    """Directories that would go, or make room, and stay: they hold what is in no snapshot, or was
    not asked for. Only the disk tells."""


def plan(
    present: Hash,
    target: Hash,
    fetch: Fetch,
    *,
    rules: RootRules,
    present_tracked: frozenset[bytes] = frozenset(),
    target_tracked: frozenset[bytes] = frozenset(),
    paths: Sequence[bytes] | None = None,
) -> Plan:
    """From the `present`, captured just now, to the `target`; with `paths`, only these and what
    lies in them. All that snapshots can tell: a vault looks at the disk, too."""
    asked = RequestedPaths(None if paths is None else checked(paths))
    found = compared(
        *(present, target, fetch),
        rules=rules,
        present_tracked=present_tracked,
        target_tracked=target_tracked,
        paths=asked.paths,
    )
    return arranged(found, choose(found, asked), fetch)


# What differs


class Compared(NamedTuple):
    """What differs between the present and the target, and neither side's rules leave alone."""

    present: Hash
    target: Hash
    old: directory.Snapshot
    new: directory.Snapshot
    differences: Sequence[Difference]
    seen: Seen


def compared(
    present: Hash,
    target: Hash,
    fetch: Fetch,
    *,
    rules: RootRules,
    target_rules: RootRules | None = None,
    present_tracked: frozenset[bytes] = frozenset(),
    target_tracked: frozenset[bytes] = frozenset(),
    include: Iterable[bytes] = (),
    paths: Sequence[bytes] | None = None,
    missed: Missed = NOTHING_MISSED,
) -> Compared:
    """Walk both snapshots once. What either side has `missed` is left alone, and all that does not
    meet `paths`. The ignore files that `rules` are made of are in the snapshots; `target_rules` are
    others only if rules from outside have changed."""
    chosen = IncludePatterns(include)
    old, new = directory.read_snapshot(present, fetch), directory.read_snapshot(target, fetch)
    ours = Side(rules(patterns(old.top, fetch)), Exempt(lambda: present_tracked, chosen))
    then = (target_rules or rules)(patterns(new.top, fetch))
    theirs = Side(then, Exempt(lambda: target_tracked, chosen))
    seen = Seen({}, {}, set(), set(), set())
    tree_filter = RestoreFilter(ours, theirs, fetch, paths, missed, seen)
    differences = list(compare.differences(old.top, new.top, fetch, tree_filter))
    return Compared(present, target, old, new, differences, seen)


# What of it is to be done


class Choice(NamedTuple):
    """The differences that are to be undone, and what is left alone though it was asked for. The
    caller adds what only the disk can tell."""

    asked: RequestedPaths
    found: Sequence[Difference]
    obstructed: Mapping[bytes, bytes]
    unsaved: Mapping[bytes, Entry]  # in the place of these lies what the present does not have
    held: frozenset[bytes] = frozenset()

    def to_make(self) -> set[bytes]:
        """Where nothing is now, as far as the present knows."""
        return {each.path for each in self.found if each.old is None and each.new is not None}

    def directories_to_make(self) -> set[bytes]:
        found = self.found
        return {each.path for each in found if _becomes(each, DIRECTORY) and not _stays(each)}

    def to_go(self) -> set[bytes]:
        """What goes for good, or for something of another kind."""
        return {each.path for each in self.found if _goes(each)}

    def directories_to_go(self) -> set[bytes]:
        return {each.path for each in self.found if _goes(each) and _was(each, DIRECTORY)}

    def without(self, taken: Collection[bytes], standing: Collection[bytes]) -> "Choice":
        """Something lies in some places that are `taken`, and some directories are `standing`."""
        if not taken and not standing:
            return self
        lost = {each.path: each.new for each in self.found if each.path in taken and each.new}
        return self._replace(
            found=[
                each
                for each in self.found
                if each.path not in standing
                and lost.keys().isdisjoint((each.path, *above(each.path)))
            ],
            unsaved={**self.unsaved, **lost},
        )

    def holding(self, held: frozenset[bytes]) -> "Choice":
        """These directories would go, and stay: they hold what is not to go."""
        if not held:
            return self
        found = [each for each in self.found if each.path not in held]
        return self._replace(found=found, held=held)

    def with_besides(self, besides: Iterable[Difference]) -> "Choice":
        """What is to be done besides is in neither of the two snapshots."""
        known = {each.path for each in self.found}
        more = [each for each in besides if each.path not in known]
        return self._replace(found=[*self.found, *more]) if more else self


def choose(found: Compared, asked: RequestedPaths) -> Choice:
    """Of what differs, what was asked for."""
    chosen, obstructed = selected([*found.differences], asked)
    return Choice(asked, chosen, obstructed, found.seen.unsaved)


def arranged(found: Compared, choice: Choice, fetch: Fetch) -> Plan:
    """The plan, forward and back."""
    changes, asked, seen = choice.found, choice.asked, found.seen
    known = {each.path for each in changes} | choice.held
    groups = _groups(found.old, found.new, fetch, changes, asked)
    turned = [Difference(each.path, each.new, each.old) for each in changes]

    def is_left(path: bytes) -> bool:
        return (asked.holds(path) or asked.lies_in(path)) and path not in known

    return Plan(
        found.present,
        found.target,
        arrange(changes, _modes(changes, seen.modes), groups),
        arrange(turned, _modes(turned, seen.modes), groups.turned()),
        {path: entry for path, entry in choice.unsaved.items() if is_left(path)},
        frozenset(filter(is_left, seen.spared)),
        choice.obstructed,
        meant=frozenset(seen.meant),
        matched=frozenset(seen.matched),
        held=choice.held,
    )


def _modes(found: Iterable[Difference], modes: Mapping[bytes, int]) -> dict[bytes, int]:
    """The modes of directories that are there before the steps are taken."""
    there = dict(modes)
    for each in found:
        there.pop(each.path, None)
        if each.old is not None and each.old.type == DIRECTORY:
            there[each.path] = each.old.mode
    return there


class Groups(NamedTuple):
    """Files that are one now, and that shall be; those that must not be touched."""

    present: Sequence[hard_links.Group] = ()
    wanted: Sequence[hard_links.Group] = ()
    fixed: Collection[bytes] = ()
    entries: Mapping[bytes, Entry] = MappingProxyType({})  # of those that do not change

    def turned(self) -> "Groups":
        return self._replace(present=self.wanted, wanted=self.present)


def _groups(
    old: directory.Snapshot,
    new: directory.Snapshot,
    fetch: Fetch,
    found: Iterable[Difference],
    asked: RequestedPaths,
) -> Groups:
    """The groups that matter: a group that both have, and in which nothing changes, is left out. A
    file that was not asked for is not touched; others are linked to it if the target has it so."""
    changed = {each.path for each in found}
    both = {
        group for group in {*old.links} & {*new.links} if not any(path in changed for path in group)
    }
    ours = [group for group in old.links if group not in both]
    theirs = [group for group in new.links if group not in both]
    others = {path for group in (*ours, *theirs) for path in group if path not in changed}
    held = {path: compare.find(old.top, path, fetch) for path in others}
    as_then = {path for path in others if held[path] == compare.find(new.top, path, fetch)}
    same = {path for path in as_then if asked.holds(path)}
    anchors = hard_links.anchors(ours, theirs, as_then - same, others)
    wanted = hard_links.effective(ours, theirs, changed | same | anchors)
    entries = {path: entry for path, entry in held.items() if entry is not None}
    return Groups(ours, wanted, others - same, entries)


# The order of things


def arrange(
    changes: Sequence[Difference], modes: Mapping[bytes, int], groups: Groups
) -> tuple[Step, ...]:
    """Steps in the order in which they are safe. `modes` are those of present directories."""
    changed = {each.path: each for each in changes}
    linking = hard_links.linking(groups.present, groups.wanted, changed.keys(), groups.fixed)
    linked = {path for group in (*groups.present, *groups.wanted) for path in group}
    colliding = collisions(
        [each.path for each in changes if each.new is None],
        [each.path for each in changes if each.old is None],
    )
    blocked = sorted(
        each.path
        for each in changes
        if _becomes(each, DIRECTORY) and (_goes(each) or each.path in colliding)
    )
    emptied = {each.path for each in changes if _was(each, DIRECTORY) and each.new and _goes(each)}
    going = sorted((each for each in changes if _goes(each)), reverse=True)
    made = sorted(each for each in changes if _becomes(each, DIRECTORY) and not _stays(each))
    opened, closed = _opened(changes, modes)
    cleared = emptied | colliding
    first, last = _split(going, lambda each: bool(each.new) or in_any(each.path, cleared))
    late, early = _split(made, lambda each: in_any(each.path, blocked))
    return (
        *opened,
        *[_made(each) for each in early],
        *[_gone(each) for each in first],
        *[_made(each) for each in late],
        *_put(changes, linking, linked, blocked, emptied),
        *_relinked(linking, changed, groups.entries),
        *[_gone(each) for each in last],
        *closed,
    )


def _split(
    changes: Iterable[Difference], is_first: Callable[[Difference], bool]
) -> tuple[list[Difference], list[Difference]]:
    both: tuple[list[Difference], list[Difference]] = ([], [])
    for each in changes:
        both[0 if is_first(each) else 1].append(each)
    return both


def _was(each: Difference, type: int) -> bool:
    return each.old is not None and each.old.type == type


def _becomes(each: Difference, type: int) -> bool:
    return each.new is not None and each.new.type == type


def _stays(each: Difference) -> bool:
    """A directory that is one before and after."""
    return _was(each, DIRECTORY) and _becomes(each, DIRECTORY)


def _goes(each: Difference) -> bool:
    """Whether a name has to be free: for good, or for something of another kind."""
    if each.old is None or _stays(each):
        return False
    return each.new is None or DIRECTORY in (each.old.type, each.new.type)


def _made(each: Difference) -> Step:
    return Step("mkdir", each.path, None, each.new)


def _gone(each: Difference) -> Step:
    return Step("rmdir" if _was(each, DIRECTORY) else "remove", each.path, each.old)


def _put(
    changes: Sequence[Difference],
    linking: Linking,
    linked: Collection[bytes],
    blocked: Sequence[bytes],
    emptied: Collection[bytes],
) -> list[Step]:
    """What gets new content, a new target or a new mode."""
    steps: list[Step] = []
    for path, old, new in sorted(changes, key=lambda each: each.path):
        if new is None or new.type == DIRECTORY or path in linking.to:
            continue
        before = None if old is not None and path in emptied else old
        is_mode = old is not None and old._replace(mode=new.mode) == new and path not in linked
        if new.type == SYMLINK:
            steps.append(Step("symlink", path, before, new))
        elif is_mode:
            steps.append(Step("chmod", path, before, new))
        else:
            via = next((parent(each) for each in blocked if lies_in(path, each)), parent(path))
            steps.append(Step("write", path, before, new, via=via))
    return steps


def _relinked(
    linking: Linking, changed: Mapping[bytes, Difference], entries: Mapping[bytes, Entry]
) -> list[Step]:
    """Files that are parted from others, then those that are joined."""
    steps: list[Step] = []
    for path, others in sorted(linking.apart.items()):
        entry = entries[path]
        steps.append(Step("write", path, entry, entry, apart=others, via=parent(path)))
    for path, to in sorted(linking.to.items()):
        each = changed.get(path)
        before = each.old if each is not None else entries[path]
        after = each.new if each is not None else entries[path]
        if before is not None and before.type == DIRECTORY:
            before = None  # it has been cleared away
        steps.append(Step("link", path, before, after, to=to))
    return steps


def _opened(
    changes: Sequence[Difference], modes: Mapping[bytes, int]
) -> tuple[list[Step], list[Step]]:
    """Directories that have to be writable for a while, and the modes they get in the end."""
    final = {each.path: each.new.mode for each in changes if each.new and _becomes(each, DIRECTORY)}
    opened: list[Step] = []
    touched = {parent(each.path) for each in changes}
    for path in sorted(touched & modes.keys()):
        mode = modes[path]
        if path and mode & _WRITABLE != _WRITABLE:
            loose = Entry(DIRECTORY, mode | _OPENED)
            opened.append(Step("open", path, Entry(DIRECTORY, mode), loose))
            final.setdefault(path, mode)
    before = {each.path: each.old.mode for each in changes if each.old and _stays(each)}
    closed = [
        Step("close", path, Entry(DIRECTORY, before.get(path, mode)), Entry(DIRECTORY, mode))
        for path, mode in sorted(final.items(), reverse=True)
    ]
    return opened, closed
