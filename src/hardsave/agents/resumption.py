"""How to go on from a checkpoint: what every adapter answers when a conversation was rewound."""

from hardsave.tuples import NamedTuple


class Resumption(NamedTuple):
    """How to go on from a checkpoint."""

    agent: str
    command: str | None
    """What to type; None if the conversation could not be brought back."""
    session: str | None = None
    why: str = ""
    """What stands in the way; or, with a command, what is worth knowing."""
    directory: str | None = None
    """Where to type it: agents look for their conversations by where they are started. None if that
    is not known, or not there any more."""
