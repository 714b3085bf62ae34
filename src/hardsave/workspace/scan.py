"""Looking at a workspace: what lies there, and which files have to be read.

A scan describes and reads no content. How it goes through the directories is the business of
`walk`; reading files and making objects that of `snapshot`.
"""

import os
import time
from collections.abc import Callable

from hardsave.errors import Misuse
from hardsave.workspace import cache as caches
from hardsave.workspace import policy
from hardsave.workspace.beneath import Beneath
from hardsave.workspace.cache import Cache
from hardsave.workspace.found import Scan
from hardsave.workspace.policy import Policy, RootRules
from hardsave.workspace.walk import Walk


def scan(
    root: bytes | str | os.PathLike[str],
    *,
    rules: RootRules,
    tracked: frozenset[bytes] = frozenset(),
    cache: Cache = caches.EMPTY,
    policy: Policy = policy.DEFAULT,
    sure: bool = False,
    clock: Callable[[], int] = time.time_ns,
) -> Scan:
    """Look at everything beneath `root`. `/` and a home directory need `sure=True`."""
    real = os.path.realpath(os.fsencode(root))
    if not sure:
        _refuse(real)
    try:
        beneath = Beneath(real)
    except OSError as error:
        raise Misuse(f"the workspace {os.fsdecode(real)!r} cannot be opened: {error}") from error
    with beneath:
        return Walk(beneath, clock(), rules, tracked, cache, policy).run()


def _refuse(root: bytes) -> None:
    policy.refuse_what_is_too_wide(root, os.path.realpath(os.path.expanduser(b"~")))
