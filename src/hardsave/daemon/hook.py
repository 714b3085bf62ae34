"""`hardsave-hook`: the program that an agent's hooks call. Asks the daemon, or saves by itself.

The agent must not notice it: it exits 0 in every case (2 would forbid the agent its tool), and
returns within its budget. What a hook prints may go to the model, so it prints nothing, but for a
warning to the user that nothing is saved (`save.warning`).

Without a daemon the work is done by a child, which is forked before anything that works is loaded:
the parent, for which the agent waits, is then small enough to be copied and to end in no time.
"""

import os
import select
import sys
import time

from hardsave.daemon import client, protocol
from hardsave.defaults import HOOK_BUDGET_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes longer to load than all of this
    from collections.abc import Callable
    from typing import NoReturn

    Job = Callable[[Callable[[bytes], None]], None]

_AT_ONCE = 1 << 20
_MANY_OBJECTS = 50_000  # more than modules bring along, among which there is no garbage


def main() -> None:
    """Take one call of a hook, and end. Nothing is left to be tidied up."""
    try:
        take()
    finally:
        os._exit(0)


def take() -> None:
    """One call of a hook, of the agent that the first argument names."""
    origin = os.getppid(), os.getsid(0)
    id, at = protocol.new_id(), time.time_ns()
    end = time.monotonic() + HOOK_BUDGET_SECONDS
    data = _read_input(end)
    said = _ask_daemon(id, at, data)
    if said is None:
        words = sys.argv[1:]
        seconds = max(end - time.monotonic(), 0)
        said = detached(
            lambda let_go: _save_alone(data, words, id, at, origin, let_go), seconds=seconds
        )
    if said:
        os.write(1, said + b"\n")


def _read_input(end: float) -> bytes:
    """What stands on the standard input, as far as it comes in time: the agent may keep it open."""
    try:
        stream = sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):
        return b""  # there is none
    parts: list[bytes] = []
    left = protocol.LARGEST_INPUT
    while left and select.select([stream], [], [], max(end - time.monotonic(), 0))[0]:
        part = os.read(stream, min(left, _AT_ONCE))
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _ask_daemon(id: str, at: int, data: bytes) -> bytes | None:
    """What the daemon lets us print; None if there is none, or it refuses."""
    path = os.environ.get(protocol.SOCKET_VARIABLE) or protocol.rendezvous(
        os.environ, protocol.working_directory()
    )
    if not path:
        return None
    return client.ask(path, protocol.request(id, at, sys.argv[1:], data))


def _save_alone(
    data: bytes,
    words: "list[str]",
    id: str,
    at: int,
    origin: tuple[int, int],
    let_go: "Callable[[bytes], None]",
) -> None:
    from hardsave.daemon import standalone  # what does the work is loaded by the child alone

    standalone.work(data, words, id, at, origin, let_go)


def detached(job: "Job", *, seconds: float) -> bytes | None:
    """Let a child do a job; what it says, or None if it was not done in time. The job is given a
    function to call, with a line to say, once it has done all that its hook should wait for.
    """
    while (nothing := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # a stream that the agent has closed; else the pipe would get its number
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        _run(job, nothing, writes)
    os.close(nothing)
    os.close(writes)
    try:
        if not select.select([reads], [], [], seconds)[0]:
            return None
        said = b""
        while b"\n" not in said:  # it is written in one go
            more = os.read(reads, 4096)
            if not more:
                os.waitpid(child, 0)
                break
            said += more
        return said.partition(b"\n")[0]
    finally:
        os.close(reads)


def _run(job: "Job", nothing: int, writes: int) -> "NoReturn":
    """In the child: it holds none of the agent's files, and gets none of its signals."""
    import gc  # the parent needs none of it

    from hardsave.daemon.processes import close_inherited

    try:
        os.setsid()
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        close_inherited(writes)
        gc.set_threshold(_MANY_OBJECTS)
        job(lambda said: _let_go(writes, said))
    finally:
        os._exit(0)  # what not even a note could be written about cannot be told


def _let_go(writes: int, said: bytes) -> None:
    """End the hook's waiting, if it still waits."""
    from contextlib import suppress  # the parent needs none of it

    with suppress(BrokenPipeError):
        os.write(writes, said + b"\n")


if __name__ == "__main__":
    main()
