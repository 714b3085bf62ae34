"""A scan of a workspace: what lies there, and which files have to be read.

It describes, and reads no content but that of ignore files. How it goes through the directories is
in `walk` and `incremental_walk`; `snapshot` reads files and makes objects.
"""

import os
import time
from collections.abc import Callable
from functools import lru_cache

from hardsave.errors import Misuse
from hardsave.objects.hashing import digest
from hardsave.workspace.entries import lies_in
from hardsave.workspace.filesystem.exhaustion import refuse_if_disk_fails
from hardsave.workspace.filesystem.safe_open import RootDirectory, refuse_what_went
from hardsave.workspace.ignore.rules import RootRules
from hardsave.workspace.scan import incremental_walk
from hardsave.workspace.scan.cache import EMPTY, Cache
from hardsave.workspace.scan.capture_policy import DEFAULT_POLICY, Policy
from hardsave.workspace.scan.changed_paths import Changed
from hardsave.workspace.scan.directory_rules import RulesChanged
from hardsave.workspace.scan.incremental_walk import FullWalkNeeded, IncrementalWalk
from hardsave.workspace.scan.result import Scan
from hardsave.workspace.scan.stat_check import compare_stats
from hardsave.workspace.scan.walk import Walk, WalkInput

_FEW = 64  # directories that are always looked at one by one
_ATTEMPTS = 3  # with rules that keep changing, the last one goes by what it reads


def scan(
    root: bytes | str | os.PathLike[str],
    *,
    rules: RootRules,
    tracked: Callable[[], frozenset[bytes]] = frozenset,
    tracked_key: bytes | None = None,
    cache: Cache = EMPTY,
    policy: Policy = DEFAULT_POLICY,
    sure: bool = False,
    clock: Callable[[], int] = time.time_ns,
    changed: Changed | None = None,
) -> Scan:
    """Look at everything beneath `root`. `/` and a home directory need `sure=True`.

    With `changed`, from a watch that was asked about this very cache, only what may have
    changed is looked at, if that is enough; without it, only what has other stamps than in the
    cache is looked at closely. The outcome is the same. `tracked` returns the paths that git
    tracks, and is called if they are needed; the same `tracked_key` stands for the same paths.
    """
    path = os.fsencode(root)
    if not sure:
        refuse_home_directory(path)
    try:
        root_dir = RootDirectory(path)
    except OSError as error:
        refuse_if_disk_fails(path, error)
        raise Misuse(f"the workspace {os.fsdecode(path)!r} cannot be opened: {error}") from error
    key = digest(b"\0".join(sorted(tracked()))) if tracked_key is None else tracked_key
    with root_dir:
        found = _walked(WalkInput(root_dir, clock(), rules, tracked, cache, policy, changed, key))
        refuse_what_went(root_dir, root_dir.identity)
        return found._replace(identity=root_dir.identity)


def _walked(given: WalkInput) -> Scan:
    try:
        outcome = _walked_incrementally(given)
    except RulesChanged:
        outcome = "an ignore file changed while it was relied upon"
    if isinstance(outcome, Scan):
        return outcome
    for _ in range(_ATTEMPTS):
        try:
            return Walk(given).run(outcome)
        except RulesChanged:
            continue
    return Walk(given._replace(is_strict=False)).run(outcome)


def _walked_incrementally(given: WalkInput) -> Scan | str:
    """A scan of what may have changed, or why that is not enough."""
    last_scan = given.cache.last_scan
    top = os.fstat(given.root_dir.fd)
    changed = given.changed or _stat_check(given, top)
    if changed is None:
        return ""
    reason = incremental_walk.objection(changed, last_scan, (top.st_dev, top.st_ino))
    if reason or last_scan is None:
        return reason
    try:
        return IncrementalWalk(given, changed, last_scan).run()
    except FullWalkNeeded as why:
        return str(why)


def _stat_check(given: WalkInput, top: os.stat_result) -> Changed | None:
    """What has other stamps than in the cache; None if a full walk would be as fast."""
    cache = given.cache
    if cache.last_scan is None:
        return None
    changed = compare_stats(cache, given.root_dir.fd, top, given.start_ns)
    count = len(cache.folders) + len(cache.packed)
    return changed if 4 * len(changed.directories) < count + _FEW else None


def refuse_home_directory(root: bytes) -> None:
    """Raise `Misuse` if it holds this user's home, or everything."""
    _refuse(root, os.path.expanduser(b"~"))


@lru_cache(maxsize=64)  # a process that stays asks again and again
def _refuse(root: bytes, home: bytes) -> None:
    """A snapshot of a whole home, or of everything, is hardly ever meant."""
    is_known = os.path.isabs(home)  # a user without one gets the tilde back
    own = os.path.realpath(home) if is_known else b"/"
    top = os.path.realpath(root)
    if lies_in(own.strip(b"/"), top.strip(b"/")):
        raise Misuse(
            f"the workspace {os.fsdecode(top)!r} holds a whole home directory; "
            "name a project's directory, or say that you are sure with sure=True"
        )
