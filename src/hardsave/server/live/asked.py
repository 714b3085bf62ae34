"""What a client of a stream asks for. Pure."""

from hardsave.server.live.backlog import Wanted
from hardsave.tuples import NamedTuple


class Asked(NamedTuple):
    """Of one project as one user, or which projects change."""

    project: str | None  # its id; None: which projects change
    user: str | None
    token: str  # the name of the caller's token
    cursor: str = ""  # the id that the client has seen last; empty: from now on
    wanted: Wanted = Wanted()
