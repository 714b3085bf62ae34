"""Looking at a workspace: what lies there, and which files have to be read.

A scan describes and reads no content. How it goes through the directories is the business of
`walk`; reading files and making objects that of `snapshot`.
"""

import os
import time
from collections.abc import Callable
from functools import lru_cache

from hardsave.errors import Misuse
from hardsave.objects.hashing import digest
from hardsave.workspace.filesystem.safe_open import Beneath, refuse_what_went
from hardsave.workspace.ignore.rules import RootRules
from hardsave.workspace.scan import cache as caches
from hardsave.workspace.scan import capture_policy as policy
from hardsave.workspace.scan import incremental_walk
from hardsave.workspace.scan.cache import Cache
from hardsave.workspace.scan.capture_policy import Policy
from hardsave.workspace.scan.changed_paths import Changed
from hardsave.workspace.scan.directory_rules import RulesChanged
from hardsave.workspace.scan.incremental_walk import NarrowWalk, TooWide
from hardsave.workspace.scan.result import Scan
from hardsave.workspace.scan.stat_check import glance
from hardsave.workspace.scan.walk import Given, Walk

_FEW = 64  # directories that are always looked at one by one
_ATTEMPTS = 3  # with rules that keep changing, the last one goes by what it reads


def scan(
    root: bytes | str | os.PathLike[str],
    *,
    rules: RootRules,
    tracked: Callable[[], frozenset[bytes]] = frozenset,
    tracked_key: bytes | None = None,
    cache: Cache = caches.EMPTY,
    policy: Policy = policy.DEFAULT,
    sure: bool = False,
    clock: Callable[[], int] = time.time_ns,
    changed: Changed | None = None,
) -> Scan:
    """Look at everything beneath `root`. `/` and a home directory need `sure=True`.

    With `changed`, from a watch that was asked about this very cache, only what may have
    changed is looked at, if that is enough; without it, only what has other stamps than in the
    cache is looked at closely. The outcome is the same. The paths that git has `tracked` are
    asked for if need be; whoever names a `tracked_key` has the same ones whenever it is the same.
    """
    path = os.fsencode(root)
    if not sure:
        refuse_what_is_too_wide(path)
    try:
        beneath = Beneath(path)
    except OSError as error:
        raise Misuse(f"the workspace {os.fsdecode(path)!r} cannot be opened: {error}") from error
    key = digest(b"\0".join(sorted(tracked()))) if tracked_key is None else tracked_key
    with beneath:
        found = _walked(Given(beneath, clock(), rules, tracked, cache, policy, changed, key))
        refuse_what_went(beneath, beneath.identity)
        return found._replace(identity=beneath.identity)


def _walked(given: Given) -> Scan:
    try:
        outcome = _narrowly(given)
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


def _narrowly(given: Given) -> Scan | str:
    """A scan of what may have changed, or why that is not enough."""
    memory = given.cache.memory
    top = os.fstat(given.beneath.fd)
    changed = given.changed or _glance(given, top)
    if changed is None:
        return ""
    reason = incremental_walk.objection(changed, memory, (top.st_dev, top.st_ino))
    if reason or memory is None:
        return reason
    try:
        return NarrowWalk(given, changed, memory).run()
    except TooWide as why:
        return str(why)


def _glance(given: Given, top: os.stat_result) -> Changed | None:
    """What has other stamps than in the cache; None if it is so much that nothing is won."""
    cache = given.cache
    if cache.memory is None:
        return None
    changed = glance(cache, given.beneath.fd, top, given.start_ns)
    count = len(cache.folders) + len(cache.packed)
    return changed if 4 * len(changed.directories) < count + _FEW else None


def refuse_what_is_too_wide(root: bytes) -> None:
    """`Misuse` if it holds this user's home, or everything."""
    _refuse(root, os.path.expanduser(b"~"))


@lru_cache(maxsize=64)  # a process that stays asks again and again
def _refuse(root: bytes, home: bytes) -> None:
    is_known = os.path.isabs(home)  # who has none gets the tilde back
    policy.refuse_what_is_too_wide(
        os.path.realpath(root), os.path.realpath(home) if is_known else b"/"
    )
