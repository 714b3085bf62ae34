"""Whether another process lives, whosever child it is."""

import os
import select
import time
from collections.abc import Callable
from contextlib import suppress

from hardsave.stores.processes import UNKNOWN, is_there, started

_POLL_SECONDS = 0.3
_open: Callable[[int], int] | None = getattr(os, "pidfd_open", None)


class Life:
    """A process that is there when this is made. Its number may be given to another later."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._started = started(pid)
        self._descriptor: int | None = None
        # An older kernel, another system, or it is gone: then it is asked for.
        if _open is not None:
            with suppress(OSError):
                self._descriptor = _open(pid)

    def wait(self) -> None:
        """Until it has ended."""
        if self._descriptor is not None:
            select.select([self._descriptor], [], [])
            os.close(self._descriptor)
            return
        while self.is_there():
            time.sleep(_POLL_SECONDS)

    def is_there(self) -> bool:
        return is_there(self._pid) and started(self._pid) in (self._started, UNKNOWN)
