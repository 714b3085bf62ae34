"""`hardsave-hook`: what an agent's hooks call. Hands its work to a resident, or else does it.

The agent must not notice us: this exits 0 whatever happens (2 would forbid the agent its tool), and
returns within its budget. What a hook prints may go to the model, so it prints nothing, but for a
warning to the user that nothing is saved (`daemon.warning`). What does the work is loaded only if
nobody else does it, and by a child of its own.
"""

import os
import select
import sys
import time

from hardsave.daemon import handover

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_AT_ONCE = 1 << 20


def main() -> None:
    """Take one call of a hook, and end. Nothing is left to be tidied up, nor anybody to be told."""
    try:
        take()
    finally:
        os._exit(0)


def take() -> None:
    """One call of a hook, of the agent that the first argument names."""
    origin = os.getppid(), os.getsid(0)
    id, at, end = handover.new_id(), time.time_ns(), time.monotonic() + handover.BUDGET_SECONDS
    data = _heard(end)
    said = _handed_over(id, at, data)
    if said is None:
        from hardsave.daemon import child

        words = sys.argv[1:]
        seconds = max(end - time.monotonic(), 0)
        said = child.detached(
            lambda let_go: _alone(data, words, id, at, origin, let_go), seconds=seconds
        )
    if said:
        os.write(1, said + b"\n")


def _heard(end: float) -> bytes:
    """What stands on the standard input, as far as it comes in time: somebody may keep it open."""
    try:
        stream = sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):
        return b""  # there is none
    parts: list[bytes] = []
    left = handover.LARGEST_INPUT
    while left and select.select([stream], [], [], max(end - time.monotonic(), 0))[0]:
        part = os.read(stream, min(left, _AT_ONCE))
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _handed_over(id: str, at: int, data: bytes) -> bytes | None:
    """What a resident lets us say; None if there is none, or he does not want to."""
    path = os.environ.get(handover.VARIABLE) or handover.meeting(os.environ, handover.here())
    if not path:
        return None
    return handover.hand_over(path, handover.request(id, at, sys.argv[1:], data))


def _alone(
    data: bytes,
    words: "list[str]",
    id: str,
    at: int,
    origin: tuple[int, int],
    let_go: "Callable[[bytes], None]",
) -> None:
    from hardsave.daemon import alone

    alone.work(data, words, id, at, origin, let_go)


if __name__ == "__main__":
    main()
