"""The hook's side of the protocol: hand one request to the daemon, and wait for its answer.

Like `protocol`, this imports nothing that takes time to load.
"""

import os
import time

from hardsave.daemon.protocol import NOTED, SAVED, TAKEN, TAKEN_SECONDS, is_same_user, short_path
from hardsave.defaults import HOOK_BUDGET_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes longer to load than all of this
    import _socket

_LONGEST_ANSWER = 4096


def ask(path: str, message: bytes, *, seconds: float = HOOK_BUDGET_SECONDS) -> bytes | None:
    """What to print, if the daemon has done it or is at it. None: the caller has to do it."""
    try:
        talk = _connected(path)
    except OSError:
        return None
    try:
        talk.sendall(message)
        answer, rest = _line(talk, b"", TAKEN_SECONDS)
        if answer != TAKEN:
            return None
        try:
            answer, _ = _line(talk, rest, seconds)
        except TimeoutError:
            return b""
        word, _, said = answer.partition(b" ")
        return said if word in (SAVED, NOTED) else None
    except OSError:
        return None
    finally:
        talk.close()


def _connected(path: str) -> "_socket.socket":
    os.stat(path)  # before anything is loaded: there may be no daemon
    import _socket

    talk = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        talk.settimeout(TAKEN_SECONDS)
        short, descriptor = short_path(os.fsencode(path))
        try:
            talk.connect(short)
        finally:
            if descriptor is not None:
                os.close(descriptor)
        if not is_same_user(talk):
            raise PermissionError(f"{path} is served by another user")
    except BaseException:
        talk.close()
        raise
    return talk


def _line(talk: "_socket.socket", read: bytes, seconds: float) -> tuple[bytes, bytes]:
    """One line, and what came after it. Empty if there is none to come."""
    end = time.monotonic() + seconds
    while b"\n" not in read:
        talk.settimeout(max(end - time.monotonic(), 0.001))
        more = talk.recv(_LONGEST_ANSWER)
        if not more or len(read) > _LONGEST_ANSWER:
            return b"", b""
        read += more
    line, _, rest = read.partition(b"\n")
    return line, rest
