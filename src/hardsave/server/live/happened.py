"""The same events for a client that asks again and again."""

from hardsave import Vault
from hardsave.errors import Misuse
from hardsave.server.live import ids
from hardsave.server.live.events import read
from hardsave.vault.checkpoint import Checkpoint
from hardsave.vault.history.follow import Event
from hardsave.vault.vault import generation


def page(
    vault: Vault, project: str, user: str | None, cursor: str, limit: int
) -> tuple[list[Event[Checkpoint]], str]:
    """What happened behind an id, up to so many events, and the id to go on from, which a stream
    takes, too. An empty cursor is now. `Misuse` if the id is not one of this project and user."""
    latest, era = vault.follow().after, generation(vault)
    number = ids.decode(project, user, cursor, era) if cursor else latest
    if number is None or number > latest:
        raise Misuse(
            "this cursor is none of these events: it is of another project or user, or the store "
            "was put back to how it was before; begin with an empty one"
        )
    events, position = read(vault, number, limit)
    if len(events) > limit:
        events, position = events[:limit], events[limit - 1].number
    return events, ids.encode(project, user, position, era)
