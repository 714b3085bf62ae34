"""The socket that a resident listens at.

A hook that may stay as a resident makes it while its agent still waits for it: only then is it
known whether it can stay at all. So this imports next to nothing, like `handover`.
"""

import _socket
import os

from hardsave.daemon.handover import reachable

ENDING = ".sock"
_BACKLOG = 64


def new_path(beside: str) -> str:
    """Where a resident may listen: nobody else's, and beside its store."""
    return f"{beside}{os.urandom(4).hex()}{ENDING}"


def listen(path: str) -> int:
    """A descriptor of a socket at a path, of which the other side is this user's alone."""
    listening = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        short, descriptor = reachable(os.fsencode(path))
        try:
            listening.bind(short)
            os.chmod(path, 0o600)  # before it listens: until then, everybody is refused
        finally:
            if descriptor is not None:
                os.close(descriptor)
        listening.listen(_BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening.detach()
