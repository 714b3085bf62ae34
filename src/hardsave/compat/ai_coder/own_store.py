"""Where a manager keeps jobs that was given no vault: on the server that `REDIS_URL` names, as the
original does, or else in this project's own store.

`HARDSAVE_STORE`, which is about us alone, says more than `REDIS_URL`. On a server all of it expires
`ttl` after the last save. On the disk nothing is written then but caches, which can be made anew.
"""

import logging
import os
from datetime import timedelta

import hardsave
from hardsave import config
from hardsave.stores.host.cache_folder import cache_folder
from hardsave.stores.registry import shown

REDIS_VARIABLE = "REDIS_URL"

_log = logging.getLogger(__name__)


def open_own(ttl: timedelta) -> hardsave.Vault:
    url = os.environ.get(REDIS_VARIABLE)
    if not url or os.environ.get(config.STORE_VARIABLE):
        return hardsave.open()
    vault = hardsave.open(_expiring(url, ttl), durability="process")
    _log.info(
        "jobs are kept at %s, for %s after the last save; a failover loses %s. On this disk "
        "nothing is written but caches, in %s",
        shown(url),
        ttl,
        vault.store.failover(),
        cache_folder() or "memory",
    )
    return vault


def _expiring(url: str, ttl: timedelta) -> str:
    if "ttl_seconds=" in url:
        return url
    seconds = max(1, int(ttl.total_seconds()))
    return f"{url}{'&' if '?' in url else '?'}ttl_seconds={seconds}"
