"""What a commit survives, as the server tells: a pure judgement of its settings."""

from hardsave.stores.base import Durability, Survives
from hardsave.tuples import NamedTuple

ASK = """
    SELECT current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on',
           current_setting('synchronous_commit'), current_setting('synchronous_standby_names')
"""


class ServerSettings(NamedTuple):
    """Of the session that commits."""

    fsync: bool
    full_page_writes: bool
    synchronous_commit: str
    synchronous_standby_names: str


def survives(settings: ServerSettings) -> Survives:
    """A power loss of the server's host, or only the death of a client."""
    return "process" if faults(settings) else "power"


def faults(settings: ServerSettings) -> list[str]:
    """What of the settings lets a power loss take acknowledged commits, or more."""
    found = []
    if not settings.fsync:
        found.append("fsync is off: a power loss may damage the whole database")
    if not settings.full_page_writes:
        found.append("full_page_writes is off: a power loss may tear pages")
    if settings.synchronous_commit == "off":
        found.append("synchronous_commit is off: a crash of the server loses the last commits")
    return found


def failover(settings: ServerSettings) -> str:
    """What is lost when a replica takes over from a server that is gone."""
    waits = settings.synchronous_commit not in ("off", "local")
    if settings.synchronous_standby_names and waits:
        return "nothing: a commit waits for a synchronous replica"
    return (
        "the commits that had not reached the replica: none is synchronous; set "
        "synchronous_standby_names on the server, so that a commit waits for one"
    )


def refusal(asked: Durability, settings: ServerSettings) -> str | None:
    """What keeps a store from being opened for more than its server gives: what is acknowledged
    would be lost, and nothing would say so."""
    found = faults(settings)
    if not found or asked != "power":
        return None
    return (
        f"{'; '.join(found)}. Change that on the server, or open the store with "
        "durability='process', which asks for no more"
    )
