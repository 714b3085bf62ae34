"""The walk over a workspace: which names there are, and which files have to be read.

Directories are listed only if their own stamp, or the rules above them, have changed since
the last scan; every name that was captured is looked at by `lstat`. Symlinks and mount points
are never crossed.

Kept out of here: what is left out and why (`policy`), what the last scan saw (`cache`).
"""

import errno
import os
import stat
from collections.abc import Callable, Sequence
from functools import partial

from hardsave.errors import Misuse
from hardsave.workspace import names
from hardsave.workspace.beneath import Beneath
from hardsave.workspace.cache import NO_STAMP, Cache, Folder
from hardsave.workspace.entries import NotCaptured, joined
from hardsave.workspace.found import (
    Found,
    Scan,
    changed_since,
    keys_of,
    stamp_of,
    to_read,
    without,
)
from hardsave.workspace.policy import Exempt, Policy, RootRules, Rules

_MAX_PATTERNS = 1 << 22  # of an ignore file, in bytes


class _Rules:
    """The rules of a directory, put together only if some name has to be matched."""

    __slots__ = ("_made", "_make", "inside_ignored", "key")

    def __init__(self, make: Callable[[], Rules], *, inside_ignored: bool = False) -> None:
        self._make = make
        self._made: Rules | None = None
        self.inside_ignored = inside_ignored
        self.key = b""

    def made(self) -> Rules:
        if self._made is None:
            self._made = self._make()
        return self._made


class _Sorted:
    """The names of one directory, each where it belongs."""

    __slots__ = (
        "below",
        "directories",
        "exempt",
        "files",
        "ignored",
        "is_unsure",
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
        self.is_unsure = False


class Walk:
    """One scan, with an explicit stack: a tree may be deeper than Python's."""

    def __init__(
        self,
        beneath: Beneath,
        start_ns: int,
        rules: RootRules,
        tracked: frozenset[bytes],
        cache: Cache,
        policy: Policy,
    ) -> None:
        self._beneath = beneath
        self._prefix = beneath.root.rstrip(b"/") + b"/"
        self._start_ns = start_ns
        self._rules = rules
        self._exempt = Exempt(tracked, policy.chosen)
        self._cache = cache
        self._policy = policy
        self._found: list[Found] = []
        self._not_captured: list[NotCaptured] = []
        self._inodes: dict[tuple[int, int], list[bytes]] = {}
        self._total = 0
        self._stack: list[tuple[bytes, os.stat_result, _Rules, bytes]] = []

    def run(self) -> Scan:
        status = os.fstat(self._beneath.fd)
        self._device = status.st_dev
        root = _Rules(lambda: self._rules(self._patterns(b"")))
        self._stack.append((b"", status, root, self._rules(()).key + self._policy.key))
        while self._stack:
            self._visit(*self._stack.pop())
        if self._total > self._policy.max_total_bytes:
            self._drop_the_largest()
        links = [paths for paths in self._inodes.values() if len(paths) > 1]
        return Scan(
            self._beneath.root,
            self._start_ns,
            self._policy,
            self._cache,
            self._found,
            self._not_captured,
            links,
            self._total,
        )

    def _visit(self, path: bytes, status: os.stat_result, rules: _Rules, inherited: bytes) -> None:
        if status.st_dev != self._device:
            self._leave_out(path, "a mount point")
            return
        known = self._cache.get(path)
        stamp = stamp_of(status, self._start_ns)
        if known is not None and known.stamp == stamp != NO_STAMP and known.inherited == inherited:
            rules.key = known.key
            if self._look_again(path, known, rules):
                return
        self._list(path, known, stamp, rules, inherited)

    # A directory whose list of names is as it was

    def _look_again(self, path: bytes, known: Folder, rules: _Rules) -> bool:
        """False if it has to be listed after all; then nothing of it was noted."""
        if (known.exempt or known.ignored) and not self._is_tracked_as_before(path, known):
            return False
        if not set(names.IGNORE_FILES).isdisjoint(known.left_out):
            return (
                False  # too large to be captured, so no stamp says whether its rules are the same
            )
        prefix = self._prefix + path + b"/" if path else self._prefix
        try:
            left = [(name, os.lstat(prefix + name)) for name in known.left_out]
            status = [os.lstat(prefix + name) for name in known.files]
            below = [os.lstat(prefix + name) for name in known.directories]
        except OSError:
            return False
        reasons = [self._reason(joined(path, name), at) for name, at in left]
        keys = keys_of(status, below)
        changed = changed_since(known, keys) if keys != known.keys else []
        if None in reasons or not all(
            self._is_still_a_file(path, known.files[at], status[at]) for at in changed
        ):
            return False
        self._not_captured += [reason for reason in reasons if reason is not None]
        self._note(path, known.files, status)
        found = Found(
            path,
            known,
            known.stamp,
            known.inherited,
            known.key,
            known.files,
            known.directories,
            known.ignored,
            known.exempt,
            known.left_out,
            keys,
            changed,
        )
        self._add(found, below, rules)
        return True

    def _reason(self, path: bytes, status: os.stat_result) -> NotCaptured | None:
        """Why something is left out, today as before."""
        reason = self._policy.objection(path, status.st_mode, status.st_size)
        return None if reason is None else NotCaptured(path, reason)

    def _is_tracked_as_before(self, path: bytes, known: Folder) -> bool:
        """What rules and git's index together decided is decided in the same way today."""
        return all(self._exempt.holds(joined(path, name)) for name in known.exempt) and not any(
            self._exempt.holds(joined(path, name)) for name in known.ignored
        )

    def _is_still_a_file(self, path: bytes, name: bytes, status: os.stat_result) -> bool:
        """Changed, but of the kind that it was, small enough, and no source of rules."""
        mode = status.st_mode
        return (
            name not in names.IGNORE_FILES
            and not stat.S_ISDIR(mode)
            and self._policy.objection(joined(path, name), mode, status.st_size) is None
        )

    # A directory that is listed

    def _list(
        self,
        path: bytes,
        known: Folder | None,
        stamp: bytes,
        rules: _Rules,
        inherited: bytes,
    ) -> None:
        try:
            with self._beneath.directory(path) as directory:
                listed = sorted(os.fsencode(name) for name in os.listdir(directory))
        except OSError as error:
            self._not_readable(path, error)
            return
        names_of = _Sorted()
        if path == b"" and b".git" in listed:
            listed.remove(b".git")  # its position is read by somebody else: no secret omission
        # Before they are read: if one changes after that, its stamp is not what it was here.
        sources = {
            name: self._status(names_of, joined(path, name))
            for name in names.IGNORE_FILES
            if name in listed
        }
        for name in listed:
            at = sources[name] if name in sources else self._status(names_of, joined(path, name))
            if at is not None:
                self._sort(names_of, joined(path, name), name, at, rules)
        rules.key = rules.made().key + (b"!" if rules.inside_ignored else b"")
        keys = keys_of(names_of.status, names_of.below)
        found = Found(
            path,
            known,
            NO_STAMP if names_of.is_unsure else stamp,
            inherited,
            rules.key,
            names_of.files,
            names_of.directories,
            names_of.ignored,
            names_of.exempt,
            names_of.left_out,
            keys,
            to_read(known, names_of.files, keys),
        )
        self._note(path, names_of.files, names_of.status)
        self._add(found, names_of.below, rules)

    def _status(self, into: "_Sorted", path: bytes) -> os.stat_result | None:
        try:
            return os.lstat(self._prefix + path)
        except FileNotFoundError:
            return None  # it was there a moment ago
        except OSError as error:
            self._not_readable(path, error)
            into.is_unsure = True
            return None

    def _sort(
        self,
        into: "_Sorted",
        path: bytes,
        name: bytes,
        at: os.stat_result,
        rules: _Rules,
    ) -> None:
        """Put a name where it belongs."""
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
        elif is_dir:
            into.directories.append(name)
            into.below.append(at)
        else:
            into.files.append(name)
            into.status.append(at)

    def _is_ignored(self, name: bytes, is_dir: bool, rules: _Rules) -> bool:
        """The files that rules come from are captured whatever they say: so a snapshot tells
        which rules held in it."""
        if name in names.IGNORE_FILES:
            return False
        return rules.inside_ignored or rules.made().match(name, is_dir)

    def _add(self, found: Found, below: list[os.stat_result], rules: _Rules) -> None:
        self._found.append(found)
        exempt = found.exempt
        for name, at in zip(found.directories, below, strict=True):
            path = joined(found.path, name)
            inside = rules.inside_ignored or name in exempt
            child = _Rules(partial(self._enter, rules, name, path), inside_ignored=inside)
            self._stack.append((path, at, child, found.rules_key + (b"!" if inside else b"")))

    def _enter(self, above: _Rules, name: bytes, path: bytes) -> Rules:
        return above.made().enter(name, self._patterns(path))

    def _patterns(self, path: bytes) -> list[bytes]:
        return [self._read(joined(path, name)) for name in names.IGNORE_FILES]

    def _read(self, path: bytes) -> bytes:
        """An ignore file; one that is a symlink counts as none, as it does for git."""
        try:
            descriptor = self._beneath.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return b""
        try:
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read(_MAX_PATTERNS)
        except OSError:
            return b""  # a directory of that name
        finally:
            os.close(descriptor)

    def _note(self, path: bytes, files: Sequence[bytes], status: Sequence[os.stat_result]) -> None:
        """Count bytes, and remember which names may be one file."""
        self._total += sum([at[stat.ST_SIZE] for at in status])
        for number in [n for n, at in enumerate(status) if at[stat.ST_NLINK] > 1]:
            at = status[number]
            if stat.S_ISREG(at.st_mode):
                one = self._inodes.setdefault((at.st_dev, at.st_ino), [])
                one.append(joined(path, files[number]))

    def _leave_out(self, path: bytes, reason: str) -> None:
        self._not_captured.append(NotCaptured(path, reason))

    def _not_readable(self, path: bytes, error: OSError) -> None:
        if not path:
            where = os.fsdecode(self._beneath.root)
            raise Misuse(f"the workspace {where!r} cannot be listed: {error}") from error
        if error.errno != errno.ENOENT:
            self._leave_out(path, f"cannot be read: {os.strerror(error.errno or 0)}")

    def _drop_the_largest(self) -> None:
        """Leave out as few files as possible, the largest first, until the rest fits."""
        sizes = [
            (found.key(at).size, found, at)
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
