"""A hook that finds no resident does its work by itself, in a child; and may leave one behind.

The hook waits for the child no longer than its budget. Then, or as soon as it is let go, the child
belongs to nobody.
"""

import os
import signal
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType

from hardsave.adapters import hook, leaving
from hardsave.adapters.hook import Outcome
from hardsave.errors import Unavailable
from hardsave.logs import log
from hardsave.runtime import parentage
from hardsave.runtime.handover import here
from hardsave.runtime.parentage import Origin

LIMIT_SECONDS = 300  # then even a first capture of a large workspace is given up


def work(
    data: bytes,
    words: Sequence[str],
    id: str,
    at: int,
    origin: tuple[int, int],
    let_go: Callable[[bytes], None],
) -> None:
    """Do it without a resident. Even a first capture of a large workspace ends some time.

    `origin` is the process that has called the hook, and its session; `let_go` ends its waiting,
    and tells it what to say.
    """
    signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(LIMIT_SECONDS)
    agent, called = hook.agent_of(words), hook.Called(Path(here()), at, id, origin[0])

    def afterwards(done: Outcome) -> None:
        if done.event.status == "ended":
            let_go(done.warning)
            _keep_up(done.project)
        elif done.is_saved:
            signal.alarm(0)
            caller = parentage.agent_of(os.getpid(), agent.program, Origin(*origin))
            alone = partial(let_go, b"")
            leaving.leave(done.event.session, called.directory, done.project, caller, alone)
        else:
            let_go(done.warning)

    hook.work(data, os.environ, agent, called, afterwards=afterwards)


def _give_up(number: int, frame: FrameType | None) -> None:
    raise Unavailable(f"not saved within {LIMIT_SECONDS} s")


def _keep_up(project: Path) -> None:
    """Once a day, after a session has ended, when nobody waits any more."""

    def upkeep() -> None:
        with hook.own_vault(project) as vault:
            vault.upkeep()

    if why := hook.tried(upkeep):  # it is tried again when another session ends
        log(__name__).warning("the store of %s could not be kept up: %s", project, why)
