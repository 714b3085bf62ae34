"""A walk that looks only where something may have changed, and takes the rest from the cache.

Its outcome is that of a full walk, object for object. For that, these are looked at beside what
a watch has named: directories whose stamps proved nothing the last time; files with several
names, because the event names only one of them; directories on the way to what git began or
ceased to track. A directory whose rules changed is walked through with everything beneath it.
"""

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from hardsave.workspace.entries import NotCaptured, joined, parent
from hardsave.workspace.scan.cache import NO_STAMP, CachedDirectory, LastScan, Linked
from hardsave.workspace.scan.changed_paths import Changed, Mark
from hardsave.workspace.scan.changed_paths import Names as Some
from hardsave.workspace.scan.directory_rules import DirectoryRules
from hardsave.workspace.scan.result import (
    FoundDirectory,
    Scan,
    as_known,
    bytes_of,
    directory_stamp,
    file_stamp,
    linked_of,
    links_of,
)
from hardsave.workspace.scan.walk import Walk, WalkInput


class FullWalkNeeded(Exception):
    """The cache is not enough: a full walk is needed. Its text says why."""


def objection(changed: Changed, last_scan: LastScan | None, identity: tuple[int, int]) -> str:
    """Why a full walk is needed; empty if an incremental one is enough."""
    if changed.full_scan_reason:
        return changed.full_scan_reason
    if last_scan is None or (changed.mark and not _is_of_one_watch(last_scan.mark, changed.mark)):
        return "nothing is known from an earlier scan"
    if changed.identity != identity:
        return "the workspace is another directory than a moment ago"
    return ""


def _is_of_one_watch(before: Mark | None, now: Mark) -> bool:
    return before is not None and before.watch == now.watch


def above_what_differs(before: Some, now: Some) -> set[bytes]:
    """The directories above paths that git began or ceased to track: rules may count there now."""
    if before is now or before == now:
        return set()
    differing = before ^ now
    if any(path.endswith(b"/") for path in differing):
        raise FullWalkNeeded("git tracks other directories as a whole")
    return _all_above(differing)


def _all_above(paths: Iterable[bytes]) -> set[bytes]:
    """The directories that these lie in, up to the root."""
    found: set[bytes] = set()
    for path in paths:
        above = parent(path)
        while above not in found:
            found.add(above)
            above = parent(above)
    return found


class IncrementalWalk(Walk):
    """One incremental scan. `FullWalkNeeded` and `RulesChanged` ask for a full one."""

    def __init__(self, given: WalkInput, changed: Changed, last_scan: LastScan) -> None:
        super().__init__(given)
        self._reported = changed
        self._last_scan = last_scan
        self._deep = set(changed.trees)  # everything beneath may have changed
        self._index: dict[bytes, FoundDirectory] = {}
        self._partly: set[bytes] = set()  # of these, only some names were looked at
        self._gone: set[bytes] = set()  # directories of the cache, each with all beneath
        self._at: dict[bytes, DirectoryRules] = {}
        for path in last_scan.nested:
            super()._enter_repository(path, None)

    def run(self, full_scan_reason: str = "") -> Scan:
        if self._nested_keys() != self._last_scan.nested:
            raise FullWalkNeeded("a repository inside tracks other files than the last time")
        self._look(self._to_check())
        self._look_for_other_names()
        self._total = self._last_scan.total_bytes + self._difference()
        if self._total > self._policy.max_total_bytes:
            raise FullWalkNeeded("the snapshot would be larger than its cap")
        linked = self._all_linked()
        return Scan(
            self._root_dir.root,
            self._start_ns,
            self._policy,
            self._cache,
            self._with_those_above(),
            [*self._not_captured_before(), *self._not_captured],
            links_of(linked),
            self._total,
            tracked=self._given.tracked,
            tracked_key=self._given.tracked_key,
            nested=self._nested_keys(),
            linked=linked,
            is_incremental=True,
            gone=frozenset(self._gone),
            mark=self._reported.mark,
        )

    # Where to look

    def _to_check(self) -> dict[bytes, Some | None]:
        """Directories to look at, each with the names in question; None: all names."""
        to_check = dict(self._reported.directories)
        for path, some in self._linked_that_differ().items():
            if to_check.get(path, some) is not None:
                to_check[path] = some | (to_check.get(path) or frozenset())
        everywhere = self._above_what_git_tracks_anew() | self._last_scan.unproven
        known = self._known(b"")
        if known.inherited != self._top_key():
            everywhere.add(b"")
        return {**to_check, **dict.fromkeys(everywhere)}

    def _above_what_git_tracks_anew(self) -> set[bytes]:
        last_scan, given = self._last_scan, self._given
        if last_scan.tracked_key == given.tracked_key:
            return set()
        if last_scan.tracked is None:
            raise FullWalkNeeded("git's index is another one than the last time")
        return above_what_differs(last_scan.tracked(), given.tracked())

    def _linked_that_differ(self) -> dict[bytes, Some]:
        """Files with several names are looked at every time: an event about another name names
        another directory, or one that is not watched."""
        differ: dict[bytes, Some] = {}
        for path, linked in self._last_scan.linked.items():
            known = self._known(path)
            stamps = {name: known.file_stamp(at) for at, name in enumerate(known.files)}
            some = [each.name for each in linked if not self._is_as(path, each.name, stamps)]
            if some:
                differ[path] = frozenset(some)
        return differ

    def _is_as(self, path: bytes, name: bytes, stamps: dict[bytes, bytes]) -> bool:
        try:
            status = os.lstat(self._prefix + joined(path, name))
        except OSError:
            return False
        return stamps.get(name) == file_stamp(status)

    def _known(self, path: bytes) -> CachedDirectory:
        known = self._cache.get(path)
        if known is None:
            raise FullWalkNeeded("the cache does not have all that it should")
        return known

    # Looking

    def _look(self, to_check: dict[bytes, Some | None]) -> None:
        for path in sorted(to_check):  # what is above comes first
            known = self._cache.get(path)
            if known is None or path in self._gone or self._was_looked_at(path):
                continue
            some = to_check[path]
            if some is None or not self._check_names(path, known, some):
                self._look_at(path, known)

    def _was_looked_at(self, path: bytes) -> bool:
        return path in self._index and path not in self._partly

    def _look_at(self, path: bytes, known: CachedDirectory) -> None:
        try:
            status = os.lstat(self._prefix + path) if path else os.fstat(self._root_dir.fd)
        except OSError as error:
            self._not_readable(path, error)
            self._leave(path)
            return
        inherited = known.inherited if path else self._top_key()
        self._at.pop(path, None)  # its ignore files are read after they have been looked at
        self._stack.append((path, status, self._rules_at(path), inherited))
        self._walk()

    def _visit(
        self, path: bytes, status: os.stat_result, rules: DirectoryRules, inherited: bytes
    ) -> None:
        if path in self._index:
            self._forget_first_look(path)
        count = len(self._found)
        super()._visit(path, status, rules, inherited)
        if len(self._found) == count:
            self._leave(path)

    def _enter_repository(self, path: bytes, known: CachedDirectory | None) -> None:
        if path not in self._nested and known is not None:
            # What lies there was sorted without knowing what it tracks.
            raise FullWalkNeeded("a repository began inside")
        super()._enter_repository(path, known)

    def _forget_first_look(self, path: bytes) -> None:
        """Drop what was noted of a directory: from some names only, or by other rules."""
        self._linked.pop(path, None)
        self._not_captured = [x for x in self._not_captured if parent(x.path) != path]

    def _add(
        self, found: FoundDirectory, below: list[os.stat_result], rules: DirectoryRules
    ) -> None:
        path = found.path
        self._index[path] = found
        self._partly.discard(path)
        self._gone.discard(path)
        self._at[path] = rules
        if path in self._deep:
            self._deep.update([joined(path, name) for name in found.directories])
        for name in set(found.known.directories if found.known else ()) - set(found.directories):
            self._leave(joined(path, name))
        super()._add(found, below, rules)

    def _leave(self, path: bytes) -> None:
        """A directory is not captured any more, nor is anything in it."""
        todo = [path]
        while todo:
            here = todo.pop()
            known = self._cache.get(here)
            if known is not None:
                self._gone.add(here)
                todo += [joined(here, name) for name in known.directories]
        if self._watcher is not None:
            self._watcher.forget(path)

    def _enters(self, path: bytes, status: os.stat_result, inherited: bytes) -> bool:
        if self._was_looked_at(path):
            return self._index[path].inherited != inherited
        known = self._cache.get(path)
        return (
            known is None
            or path in self._deep
            or path in self._gone
            or known.inherited != inherited
            or known.stamp != directory_stamp(status, self._start_ns)
        )

    def _check_names(self, path: bytes, known: CachedDirectory, some: Some) -> bool:
        """Look at some names of a directory. False if all of it has to be looked at."""
        places = [(bisect_left(known.files, name), name) for name in sorted(some)]
        captured = [(at, name) for at, name in places if known.files[at : at + 1] == (name,)]
        if (
            known.stamp == NO_STAMP
            or len(some) != len(captured) + len(some.intersection(known.ignored))
            or (self._watcher is not None and self._watcher.arm(path))
        ):
            return False
        try:
            status = [os.lstat(self._prefix + joined(path, name)) for _, name in captured]
        except OSError:
            return False
        if not all(
            self._is_still_a_file(path, name, at)
            for (_, name), at in zip(captured, status, strict=True)
        ):
            return False
        self._note_names(path, known, [at for at, _ in captured], status)
        return True

    def _note_names(
        self, path: bytes, known: CachedDirectory, numbers: list[int], status: list[os.stat_result]
    ) -> None:
        changed, stamps = [], known.entry_stamps
        for number, at in zip(numbers, status, strict=True):
            stamp = file_stamp(at)
            if stamp != known.file_stamp(number):
                changed.append(number)
                stamps = stamps[: number * len(stamp)] + stamp + stamps[(number + 1) * len(stamp) :]
        seen = [known.files[number] for number in numbers]
        others = [each for each in self._last_scan.linked.get(path, ()) if each.name not in seen]
        if linked := (*others, *linked_of(seen, status)):
            self._linked[path] = linked
        found = as_known(path, known)
        found.entry_stamps, found.changed = stamps, changed
        self._index[path] = found
        self._partly.add(path)

    def _rules_at(self, path: bytes) -> DirectoryRules:
        """The rules of a directory, also if the directories above it were not looked at."""
        if path not in self._at:
            self._at[path] = self._top_rules() if not path else self._rules_from_above(path)
        return self._at[path]

    def _rules_from_above(self, path: bytes) -> DirectoryRules:
        above, name = parent(path), path.rpartition(b"/")[2]
        rules = self._rules_at(above)
        if self._was_looked_at(above):
            return self._rules_below(rules, name, path, self._index[above].exempt)
        rules.expected = self._known(above).rules_key
        return self._rules_below(rules, name, path, self._known(above).exempt)

    # Files with several names

    def _look_for_other_names(self) -> None:
        """A file that has several names now, and had one: no event says which one. If it was left
        out, the cache does not know its inode."""
        before = {each.inode for linked in self._last_scan.linked.values() for each in linked}
        while new := {each.inode for some in self._linked.values() for each in some} - before:
            before |= new
            holding = [path for _, inode in new for path in self._cache.holding(inode)]
            self._look(dict.fromkeys([*holding, *self._last_scan.not_captured]))

    def _all_linked(self) -> dict[bytes, tuple[Linked, ...]]:
        kept = self._last_scan.linked.items()
        linked = {path: some for path, some in kept if path not in self._index} | self._linked
        return {path: some for path, some in linked.items() if path not in self._gone}

    # What is handed on

    def _with_those_above(self) -> list[FoundDirectory]:
        """Directories that were looked at, and those above a change, which get new trees."""
        found = {path: each for path, each in self._index.items() if path not in self._gone}
        changed = [path for path, each in found.items() if not each.is_as_known]
        for path in _all_above([*changed, *self._gone]) - found.keys() - self._gone:
            found[path] = as_known(path, self._known(path))
        return [found[path] for path in sorted(found)]

    def _not_captured_before(self) -> Iterator[NotCaptured]:
        for path, reasons in self._last_scan.not_captured.items():
            if not self._was_looked_at(path) and path not in self._gone:
                yield from reasons

    def _difference(self) -> int:
        """By how many bytes the workspace has grown since the last scan."""
        now = [each for path, each in self._index.items() if path not in self._gone]
        before = [each.known for each in now] + [self._cache.get(path) for path in self._gone]
        return sum([bytes_of(each.entry_stamps, len(each.files)) for each in now]) - sum(
            [bytes_of(each.entry_stamps, len(each.files)) for each in before if each is not None]
        )
