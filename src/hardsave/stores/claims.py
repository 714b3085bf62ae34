"""What a store does not claim to do: refused by name, with the next step, and never half done.

A store that is made to expire has no second copy, is not rewritten, is not searched, and takes no
large workspaces. Callers ask here before they begin.
"""

from typing import Literal

from hardsave.errors import Misuse
from hardsave.tuples import NamedTuple

Claim = Literal["search", "compact", "backup"]
CLAIMS: tuple[Claim, ...] = ("search", "compact", "backup")


class Claims(NamedTuple):
    """For each of them why it is not claimed, with the next step; empty if it is. A workspace may
    be as large as the settings allow, or no larger than the store says."""

    search: str = ""
    compact: str = ""
    backup: str = ""
    max_workspace_bytes: int | None = None


EVERYTHING = Claims()


class NotClaimed(Misuse):
    """The store says that it does not do this."""


def check(claims: Claims, what: Claim) -> None:
    reason: str = getattr(claims, what)
    if reason:
        raise NotClaimed(f"{what} is not for this store: {reason}")


def check_workspace(claims: Claims, size: int) -> None:
    """Before anything of a workspace of this many bytes is stored."""
    most = claims.max_workspace_bytes
    if most is not None and size > most:
        raise NotClaimed(
            f"a workspace of {size} bytes is not for this store, which takes up to {most}: have "
            "more of it ignored, save the state without files, or use a store on SQLite or "
            "PostgreSQL; for more on this one, name max_workspace_bytes in its URL"
        )
