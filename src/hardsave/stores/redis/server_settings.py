"""What a commit survives, as the server tells: a pure judgement of its settings."""

from collections.abc import Mapping

from hardsave.stores.base import Survives
from hardsave.tuples import NamedTuple

ASKED = ("appendonly", "appendfsync", "no-appendfsync-on-rewrite", "maxmemory-policy")
FAILOVER = (
    "the commits that had not reached the replica that takes over: replication is asynchronous, "
    "also with appendfsync always and min-replicas-to-write; what is lost was acknowledged"
)
_NO_FILE = (
    "appendonly is {}: a crash of the server loses all since its last snapshot (RDB), and "
    "everything if there is none"
)
_UNKNOWN = "unknown (the server does not tell)"


class ServerSettings(NamedTuple):
    """As CONFIG GET tells them."""

    appendonly: str
    appendfsync: str
    no_appendfsync_on_rewrite: str
    maxmemory_policy: str

    @classmethod
    def of(cls, told: Mapping[str, str]) -> "ServerSettings":
        """A hosted server may not tell: then nothing is taken for granted."""
        return cls._make(told.get(name, _UNKNOWN) for name in ASKED)


def survives(settings: ServerSettings) -> Survives:
    """A power loss of the server's host, or only the death of a client."""
    return "process" if faults(settings) else "power"


def faults(settings: ServerSettings) -> list[str]:
    """What of the settings lets the server's end take acknowledged commits."""
    if settings.appendonly != "yes":
        return [_NO_FILE.format(settings.appendonly)]
    found = []
    if settings.appendfsync != "always":
        found.append(
            f"appendfsync is {settings.appendfsync}: a power loss takes the last second or more"
        )
    if settings.no_appendfsync_on_rewrite != "no":
        found.append(
            f"no-appendfsync-on-rewrite is {settings.no_appendfsync_on_rewrite}: nothing is synced "
            "while the server rewrites its file"
        )
    return found


def eviction(settings: ServerSettings) -> str | None:
    """What the server may remove by itself; None if nothing."""
    if settings.maxmemory_policy == "noeviction":
        return None
    return (
        f"maxmemory-policy is {settings.maxmemory_policy}: when its memory is full the server may "
        "remove what was saved, a part of it or all; set noeviction"
    )


def refusal(settings: ServerSettings) -> str:
    """Why a caller that wants to survive a power loss does not get this store."""
    return (
        f"durability='power' cannot be had: {'; '.join(faults(settings))}. Set appendonly yes and "
        "appendfsync always on the server, or accept the loss with durability='process' or, in "
        "the URL, ?durability=process"
    )


def warning(settings: ServerSettings) -> str | None:
    """What to tell a caller that accepts the loss."""
    evicted = eviction(settings)
    found = [*faults(settings), *([] if evicted is None else [evicted])]
    return "; ".join(found) or None
