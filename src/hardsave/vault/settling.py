"""Alone with a workspace, after what was interrupted there has been dealt with."""

from collections.abc import Iterator
from contextlib import contextmanager

from hardsave.vault.capturing import Taking, taking
from hardsave.vault.context import Context
from hardsave.vault.place import Place


@contextmanager
def settled(context: Context, place: Place) -> Iterator[Taking]:
    with taking(context, place) as files:
        if place.journal.exists():
            from hardsave.vault.recovering import recover  # most captures find nothing to recover

            recover(context, place)
        yield files
