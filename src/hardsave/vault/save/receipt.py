"""A save that is made for a caller who may be gone before it is: a coroutine that was cancelled."""

from contextvars import ContextVar

from hardsave.objects.records import Id


class Receipt:
    """Caller and save each set their own mark first, and then look at the other's."""

    def __init__(self, *, doubts: bool) -> None:
        self.id: Id | None = None  # of the checkpoint, once it is made
        self.is_refused = False  # the caller is not there any more to get it
        self.doubts = doubts  # whether to ask for it again would double it


class Unwanted(BaseException):
    """A save was not begun: its caller is gone, and may have saved something newer."""


receipt: ContextVar[Receipt | None] = ContextVar("hardsave_receipt", default=None)


def wanted() -> Receipt | None:
    """Before a save is begun, and while no other thread can save in between. The receipt is for
    this save alone, and not for those of a handler that is told of it."""
    waiting = receipt.get()
    if waiting is None:
        return None
    receipt.set(None)
    if waiting.is_refused:
        raise Unwanted
    return waiting
