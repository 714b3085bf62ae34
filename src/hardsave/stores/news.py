"""What some stores offer beside polling: a hint that another process may have committed.

A hint may come late, twice or never. What it is about is read as always; a follower that gets none
looks by itself after a while.
"""

import threading
from typing import Protocol, runtime_checkable


@runtime_checkable
class TellsNews(Protocol):
    """A store whose server passes hints on."""

    def listen(self, wake: threading.Event) -> None:
        """Set the event at each hint, for as long as a caller holds it and the store is open."""
