"""A workspace to oneself: locked, and with nothing in it left half done.

A restore that was interrupted there is first finished or taken back (see `recovering`): a capture
in the middle of one would save a mixture of two states.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from hardsave.vault.context import Context
from hardsave.vault.save.capturing import Taking, taking
from hardsave.vault.workspaces.place import Place


@contextmanager
def settled(context: Context, place: Place, *, only_looks: bool = False) -> Iterator[Taking]:
    """`only_looks`: nothing is going to be committed."""
    with taking(context, place, only_looks=only_looks) as files:
        if place.journal.exists():
            from hardsave.vault.restore.recovery import (
                recover,  # most captures find nothing to recover
            )

            recover(context, place)
        yield files
