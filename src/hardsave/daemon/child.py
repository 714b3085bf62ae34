"""A process of its own, for work that an agent waits for, but not for ever.

It is forked before anything that works is loaded: the parent, for which the agent waits, is then
small enough to be copied and to end in no time.
"""

import gc
import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes longer to load than all of this
    from collections.abc import Callable
    from typing import NoReturn

    Job = Callable[[Callable[[bytes], None]], None]

_AT_ONCE = 4096
_MANY_OBJECTS = 50_000  # more than modules bring along, among which there is no garbage


def detached(job: "Job", *, seconds: float) -> bytes | None:
    """Let a process of its own do a job; what it says, or None if it was not done in time. A job
    is given what it may call once it has done all that anybody should wait for, with a line to say.
    """
    while (nothing := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # a stream that somebody has closed; else the pipe would get its number
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        _do(job, nothing, writes)
    os.close(nothing)
    os.close(writes)
    try:
        if not select.select([reads], [], [], seconds)[0]:
            return None
        said = b""
        while b"\n" not in said:  # it is written in one go
            more = os.read(reads, _AT_ONCE)
            if not more:
                os.waitpid(child, 0)
                break
            said += more
        return said.partition(b"\n")[0]
    finally:
        os.close(reads)


def _do(job: "Job", nothing: int, writes: int) -> "NoReturn":
    """In the child: nobody's files are held open, and nobody's signals are ours."""
    from hardsave.daemon import inherited  # the parent needs none of it

    try:
        os.setsid()
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        inherited.close_all_but(writes)
        gc.set_threshold(_MANY_OBJECTS)
        job(lambda said: _let_go(writes, said))
    finally:
        os._exit(0)  # what even a note could not be written about has nobody left to be told


def _let_go(writes: int, said: bytes) -> None:
    """Whoever waits, if anybody still does."""
    from contextlib import suppress  # the parent needs none of it

    with suppress(BrokenPipeError):
        os.write(writes, said + b"\n")
