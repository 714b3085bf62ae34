"""The walk over a workspace: which names there are, and which files have to be read.

Directories are listed only if their own stamp, or the rules above them, have changed since
the last scan; every name that was captured is looked at by `lstat`. Symlinks and mount points
are never crossed.

Not in here: what is left out and why (`capture_policy`), what the last scan saw (`cache`).
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from hardsave.defaults import IGNORE_FILES
from hardsave.errors import Misuse
from hardsave.progress import meter
from hardsave.tuples import NamedTuple
from hardsave.workspace.entries import IGNORED, NotCaptured, joined, parent
from hardsave.workspace.filesystem.exhaustion import refuse_if_disk_fails
from hardsave.workspace.filesystem.safe_open import RootDirectory
from hardsave.workspace.git.nested_repository import UNREADABLE, NestedRepository
from hardsave.workspace.ignore.rules import RootRules, Rules
from hardsave.workspace.scan.cache import NO_STAMP, Cache, CachedDirectory, Linked
from hardsave.workspace.scan.capture_policy import Exempt, Policy
from hardsave.workspace.scan.changed_paths import Changed
from hardsave.workspace.scan.directory_rules import DirectoryRules
from hardsave.workspace.scan.result import (
    FoundDirectory,
    Scan,
    as_known,
    changed_since,
    directory_stamp,
    entry_stamps,
    linked_of,
    links_of,
    to_read,
    without,
)
from hardsave.workspace.scan.secret_names import is_worth_noting

_MAX_PATTERNS = 1 << 22  # of an ignore file, in bytes


class WalkInput(NamedTuple):
    """What a walk starts with."""

    root_dir: RootDirectory
    start_ns: int
    rules: RootRules
    tracked: Callable[[], frozenset[bytes]]
    cache: Cache
    policy: Policy
    changed: Changed | None = None
    tracked_key: bytes = b""  # the same key, the same paths
    is_strict: bool = True  # rules that are not as they were end the walk


class _SortedNames:
    """The names of one directory, sorted by what becomes of them."""

    __slots__ = (
        "below",
        "directories",
        "exempt",
        "files",
        "ignored",
        "left_out",
        "status",
    )

    def __init__(self) -> None:
        self.files: list[bytes] = []
        self.status: list[os.stat_result] = []
        self.directories: list[bytes] = []
        self.below: list[os.stat_result] = []
        self.ignored: list[bytes] = []
        self.exempt: list[bytes] = []
        self.left_out: list[bytes] = []


class Walk:
    """One full walk, with an explicit stack: a tree may be deeper than Python's recursion limit."""

    def __init__(self, given: WalkInput) -> None:
        self._given = given
        self._root_dir = given.root_dir
        self._prefix = given.root_dir.root.rstrip(b"/") + b"/"
        self._start_ns = given.start_ns
        self._rules = given.rules
        self._exempt = Exempt(given.tracked, given.policy.includes)
        self._nested: dict[bytes, NestedRepository] = {}  # repositories inside, by path
        self._cache = given.cache
        self._policy = given.policy
        self._changed = given.changed
        self._watcher = None if given.changed is None else given.changed.watcher
        self._found: list[FoundDirectory] = []
        self._not_captured: list[NotCaptured] = []
        self._linked: dict[bytes, tuple[Linked, ...]] = {}
        self._total = 0
        self._meter = meter("looking", "files")
        self._stack: list[tuple[bytes, os.stat_result, DirectoryRules, bytes]] = []

    def run(self, full_scan_reason: str = "") -> Scan:
        """Look at all of it; `full_scan_reason` says why, if it is known what changed."""
        status = os.fstat(self._root_dir.fd)
        self._stack.append((b"", status, self._top_rules(), self._top_key()))
        self._walk()
        is_too_large = self._total > self._policy.max_total_bytes
        if is_too_large:
            self._drop_the_largest()
        return Scan(
            self._root_dir.root,
            self._start_ns,
            self._policy,
            self._cache,
            self._found,
            [*self._not_captured, *self._unreadable()],
            links_of(self._linked),
            self._total,
            tracked=self._given.tracked,
            tracked_key=self._given.tracked_key,
            nested=self._nested_keys(),
            linked=self._linked,
            full_scan_reason=full_scan_reason,
            # Which files are the largest is a question about all of them.
            is_capped=is_too_large,
            mark=None if self._changed is None else self._changed.mark,
        )

    def _top_rules(self) -> DirectoryRules:
        return DirectoryRules(lambda sources: self._rules(self._patterns(b"", sources)))

    def _top_key(self) -> bytes:
        return self._rules(()).key + self._policy.key

    def _walk(self) -> None:
        while self._stack:
            self._visit(*self._stack.pop())

    def _visit(
        self, path: bytes, status: os.stat_result, rules: DirectoryRules, inherited: bytes
    ) -> None:
        if self._watcher is not None and self._watcher.arm(path):
            # No event tells what happened to it between that look and the watch.
            try:
                status = os.lstat(self._prefix + path) if path else os.fstat(self._root_dir.fd)
            except OSError as error:
                self._not_readable(path, error)
                return
        if status.st_dev != self._root_dir.device:
            self._leave_out(path, "a mount point")
            return
        known = self._cache.get(path)
        stamp = directory_stamp(status, self._start_ns)
        if (
            known is None
            or not known.stamp == stamp != NO_STAMP
            or known.inherited != inherited
            or not self._look_again(path, known, rules)
        ):
            self._list(path, known, stamp, rules, inherited)

    # Repositories inside

    def _enter_repository(self, path: bytes, known: CachedDirectory | None) -> None:
        """From here on, no ignore rule counts for what a nested repository tracks."""
        if path not in self._nested:
            nested = self._nested[path] = NestedRepository(self._prefix + path)
            self._exempt.add(path, nested.tracked)

    def _nested_keys(self) -> dict[bytes, bytes]:
        return {path: each.key for path, each in self._nested.items()}

    def _unreadable(self) -> list[NotCaptured]:
        return [
            NotCaptured(joined(path, b".git/index"), UNREADABLE + each.problem)
            for path, each in self._nested.items()
            if each.problem
        ]

    # A directory whose list of names is as it was

    def _look_again(self, path: bytes, known: CachedDirectory, rules: DirectoryRules) -> bool:
        """Take the list of names from the cache, and compare stamps. False if the directory has to
        be listed after all; then nothing of it was noted."""
        if path and (b".git" in known.left_out or b".git" in known.ignored):
            self._enter_repository(path, known)
        if (known.exempt or known.ignored) and not self._is_tracked_as_before(path, known):
            return False
        if not set(IGNORE_FILES).isdisjoint(known.left_out):
            return False  # too large to be captured: no stamp says whether it is the same
        prefix = self._prefix + path + b"/" if path else self._prefix
        try:
            left = [(name, os.lstat(prefix + name)) for name in known.left_out]
            status = [os.lstat(prefix + name) for name in known.files]
            below = [os.lstat(prefix + name) for name in known.directories]
        except OSError:
            return False
        reasons = [self._reason(joined(path, name), at) for name, at in left]
        stamps = entry_stamps(status, below)
        changed = changed_since(known, stamps) if stamps != known.entry_stamps else []
        if None in reasons or not all(
            self._is_still_a_file(path, known.files[at], status[at]) for at in changed
        ):
            return False
        self._not_captured += [reason for reason in reasons if reason is not None]
        self._note_ignored(path, known.ignored)
        self._note_linked(path, known.left_out, [at for _, at in left], is_captured=False)
        self._note(path, known.files, status)
        found = as_known(path, known)
        found.entry_stamps, found.changed = stamps, changed
        if self._given.is_strict:
            rules.expected = known.rules_key
        self._add(found, below, rules)
        return True

    def _reason(self, path: bytes, status: os.stat_result) -> NotCaptured | None:
        """Why a path that was left out is left out again; None if it is not."""
        reason = self._policy.objection(path, status.st_mode, status.st_size)
        return None if reason is None else NotCaptured(path, reason)

    def _is_tracked_as_before(self, path: bytes, known: CachedDirectory) -> bool:
        """Whether git tracks the same of the names that rules match."""
        return all(self._exempt.holds(joined(path, name)) for name in known.exempt) and not any(
            self._exempt.holds(joined(path, name)) for name in known.ignored
        )

    def _is_still_a_file(self, path: bytes, name: bytes, status: os.stat_result) -> bool:
        """Whether a changed file is no directory now, may be captured, and is no ignore file."""
        mode = status.st_mode
        return (
            name not in IGNORE_FILES
            and not stat.S_ISDIR(mode)
            and self._policy.objection(joined(path, name), mode, status.st_size) is None
        )

    # A directory that is listed

    def _list(
        self,
        path: bytes,
        known: CachedDirectory | None,
        stamp: bytes,
        rules: DirectoryRules,
        inherited: bytes,
    ) -> None:
        try:
            status, is_sure = self._looked_at(path)
        except OSError as error:
            self._not_readable(path, error)
            return
        if path and b".git" in status:
            self._enter_repository(path, known)
        # After a look at them: if one changes later, its stamp is not what it was then.
        rules.sources = [name for name in IGNORE_FILES if name in status]
        names_of = _SortedNames()
        for name, at in status.items():
            self._sort(names_of, joined(path, name), name, at, rules)
        stamps = entry_stamps(names_of.status, names_of.below)
        found = FoundDirectory(
            path,
            known,
            stamp if is_sure else NO_STAMP,
            inherited,
            rules.key,
            names_of.files,
            names_of.directories,
            names_of.ignored,
            names_of.exempt,
            names_of.left_out,
            stamps,
            to_read(known, names_of.files, stamps),
        )
        self._note_ignored(path, names_of.ignored)
        self._note(path, names_of.files, names_of.status)
        self._add(found, names_of.below, rules)

    def _looked_at(self, path: bytes) -> tuple[dict[bytes, os.stat_result], bool]:
        """The status of each name in a directory, and whether all of them could be looked at."""
        status: dict[bytes, os.stat_result] = {}
        is_sure = True
        with self._root_dir.directory(path) as directory:
            listed = os.fsencode("\0".join(os.listdir(directory))).split(b"\0")
            for name in sorted(listed):
                if not name or (name == b".git" and not path):
                    continue  # `git_context` reads it: it is not left out silently
                try:
                    status[name] = os.stat(name, dir_fd=directory, follow_symlinks=False)
                except FileNotFoundError:
                    continue  # it was there a moment ago
                except OSError as error:
                    self._not_readable(joined(path, name), error)
                    is_sure = False
        return status, is_sure

    def _sort(
        self,
        into: "_SortedNames",
        path: bytes,
        name: bytes,
        at: os.stat_result,
        rules: DirectoryRules,
    ) -> None:
        """Decide what becomes of a name."""
        is_dir = stat.S_ISDIR(at.st_mode)
        if self._is_ignored(name, is_dir, rules):
            if not self._exempt.holds(path):
                into.ignored.append(name)
                return
            into.exempt.append(name)
        reason = self._policy.objection(path, at.st_mode, at.st_size)
        if reason is not None:
            into.left_out.append(name)
            self._leave_out(path, reason)
            self._note_linked(parent(path), [name], [at], is_captured=False)
        elif is_dir:
            into.directories.append(name)
            into.below.append(at)
        else:
            into.files.append(name)
            into.status.append(at)

    def _is_ignored(self, name: bytes, is_dir: bool, rules: DirectoryRules) -> bool:
        """Ignore files are captured even if they ignore themselves: so a snapshot tells which
        rules held in it."""
        if name in IGNORE_FILES:
            return False
        return rules.inside_ignored or rules.made().match(name, is_dir)

    def _add(
        self, found: FoundDirectory, below: list[os.stat_result], rules: DirectoryRules
    ) -> None:
        self._found.append(found)
        self._meter.add(len(found.files))
        if self._watcher is not None:
            self._watcher.scanned(found.path, found.ignored)
        for name, at in zip(found.directories, below, strict=True):
            path = joined(found.path, name)
            child = self._rules_below(rules, name, path, found.exempt)
            inherited = found.rules_key + child.suffix + self._policy.key
            if self._enters(path, at, inherited):
                self._stack.append((path, at, child, inherited))

    def _enters(self, path: bytes, status: os.stat_result, inherited: bytes) -> bool:
        """Whether to go on into a directory."""
        return True

    def _rules_below(
        self, above: DirectoryRules, name: bytes, path: bytes, exempt: Sequence[bytes]
    ) -> DirectoryRules:
        inside = above.inside_ignored or name in exempt
        return DirectoryRules(partial(self._enter, above, name, path), inside_ignored=inside)

    def _enter(
        self, above: DirectoryRules, name: bytes, path: bytes, sources: Sequence[bytes]
    ) -> Rules:
        return above.made().enter(name, self._patterns(path, sources))

    def _patterns(self, path: bytes, sources: Sequence[bytes]) -> list[bytes]:
        return [self._read(joined(path, name)) for name in sources]

    def _read(self, path: bytes) -> bytes:
        """An ignore file; one that is a symlink counts as none, as it does for git."""
        try:
            descriptor = self._root_dir.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return b""
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return b""  # a directory of that name, or a pipe
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read(_MAX_PATTERNS)
        except OSError:
            return b""
        finally:
            os.close(descriptor)

    def _note(self, path: bytes, files: Sequence[bytes], status: Sequence[os.stat_result]) -> None:
        """Count bytes, and remember which names may be one file."""
        self._total += sum([at[stat.ST_SIZE] for at in status])
        self._note_linked(path, files, status)

    def _note_linked(
        self,
        path: bytes,
        files: Sequence[bytes],
        status: Sequence[os.stat_result],
        *,
        is_captured: bool = True,
    ) -> None:
        if linked := linked_of(files, status, is_captured=is_captured):
            self._linked[path] = (*self._linked.get(path, ()), *linked)

    def _leave_out(self, path: bytes, reason: str) -> None:
        self._not_captured.append(NotCaptured(path, reason))

    def _note_ignored(self, path: bytes, ignored: Iterable[bytes]) -> None:
        """Name what is missed if it is gone: a restore cannot bring it back, and says so."""
        noted = [joined(path, name) for name in ignored if is_worth_noting(name)]
        for each in noted:
            if self._policy.is_own(each):
                continue  # the store has git ignore its files
            try:
                status = os.lstat(self._prefix + each)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode):
                self._leave_out(each, IGNORED)

    def _not_readable(self, path: bytes, error: OSError) -> None:
        if not path:
            refuse_if_disk_fails(self._root_dir.root, error)
            where = os.fsdecode(self._root_dir.root)
            raise Misuse(f"the workspace {where!r} cannot be listed: {error}") from error
        if error.errno != errno.ENOENT:
            self._leave_out(path, f"cannot be read: {os.strerror(error.errno or 0)}")

    def _drop_the_largest(self) -> None:
        """Leave out as few files as possible, the largest first, until the rest fits."""
        sizes = [
            (found.file_stamp(at).size, found, at)
            for found in self._found
            for at in range(len(found.files))
        ]
        sizes.sort(key=lambda each: (-each[0], joined(each[1].path, each[1].files[each[2]])))
        dropped: dict[int, set[int]] = {}
        for size, found, at in sizes:
            if self._total <= self._policy.max_total_bytes:
                break
            self._total -= size
            dropped.setdefault(id(found), set()).add(at)
            cap = self._policy.max_total_bytes
            reason = f"the snapshot would be larger than its cap of {cap} bytes"
            self._leave_out(joined(found.path, found.files[at]), reason)
        for found in self._found:
            if id(found) in dropped:
                without(found, dropped[id(found)])
                linked = self._linked.pop(found.path, ())
                self._linked[found.path] = tuple(x for x in linked if x.name in found.files)
