"""What ends because this process or this machine has no more of something.

No fault of the file that was just looked at: to leave it out, and all others after it, would make
an empty snapshot of a workspace that is whole.
"""

import errno
import os

from hardsave.errors import Unavailable

_SPENT = {
    errno.EMFILE: "close some of this process, or raise its limit (ulimit -n)",
    errno.ENFILE: "close some on this machine, or raise fs.file-max",
    errno.ENOMEM: "free some memory",
}


def refuse_if_spent(error: OSError) -> None:
    """`Unavailable` if an error is of this kind."""
    if error.errno in _SPENT:
        raise Unavailable(
            f"the files cannot be read now: {os.strerror(error.errno)}; "
            f"{_SPENT[error.errno]}, then repeat"
        ) from error
