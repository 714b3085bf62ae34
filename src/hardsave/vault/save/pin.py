"""A pin on what is stored ahead of the commit that will point at it."""

import time
from collections.abc import Mapping

from hardsave.errors import HardsaveError, Unavailable
from hardsave.logs import log
from hardsave.objects import envelope
from hardsave.objects.hashing import Hash
from hardsave.vault.context import Context

PIN_SECONDS = 3600.0
KEEP_SECONDS = 60.0
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # goes on while a laptop sleeps


class Pin:
    """Keeps what was put, and what is there, from being collected, as long as puts follow each
    other."""

    def __init__(self, context: Context, what: str) -> None:
        self._context = context
        self._what = what
        self._pin = context.new_id()
        self._last: float | None = None

    def put(self, objects: Mapping[Hash, bytes]) -> None:
        now = time.clock_gettime(_CLOCK)
        if self._last is not None and now - self._last > PIN_SECONDS / 2:
            # A suspended process: what it had put may have been collected.
            raise Unavailable(f"the {self._what} was interrupted for too long; repeat it")
        store, user = self._context.store, self._context.user
        store.put(user, objects, pin=self._pin, seconds=PIN_SECONDS)
        self._last = now

    @property
    def is_held(self) -> bool:
        """Whether something was put, and it was not given back."""
        return self._last is not None

    def keep(self) -> None:
        """Hold on, where nothing is put for a while: costs a write now and then."""
        if self._last is None or time.clock_gettime(_CLOCK) - self._last > KEEP_SECONDS:
            self.put({})

    def give_back(self, *, is_given_up: bool = False) -> None:
        """`is_given_up`: no commit will point at what was put, and its room is free again."""
        if self._last is None:
            return
        refs = envelope.refs if is_given_up else None
        try:
            self._context.store.unpin(self._context.user, self._pin, given_up=refs)
        except HardsaveError as error:  # it ends by itself; what was done, or failed, stands
            log(__name__).info("a pin could not be given back: %s", error)
        self._last = None
