"""Errors that mean that this process or this machine has run out of something.

They say nothing about the file at hand: to leave it out, and all others after it, would make an
empty snapshot of a workspace that is whole.
"""

import errno
import os

from hardsave.errors import Unavailable

_EXHAUSTED = {
    errno.EMFILE: "close some of this process, or raise its limit (ulimit -n)",
    errno.ENFILE: "close some on this machine, or raise fs.file-max",
    errno.ENOMEM: "free some memory",
}


def refuse_if_exhausted(error: OSError) -> None:
    """Raise `Unavailable` if an error is of this kind."""
    if error.errno in _EXHAUSTED:
        raise Unavailable(
            f"the files cannot be read now: {os.strerror(error.errno)}; "
            f"{_EXHAUSTED[error.errno]}, then repeat"
        ) from error
