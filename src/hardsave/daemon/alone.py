"""A hook that finds no resident does its work by itself, in a child; and may leave one behind.

The hook waits for the child no longer than its budget, and is let go as soon as its checkpoint is
there, if somebody buries the child then (`daemon.orphans`): to close the store takes as long as
to open it. From there on, the child belongs to nobody.
"""

import os
import signal
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType

from hardsave.agents import registry
from hardsave.daemon import handover, hook, orphans
from hardsave.daemon.handover import here
from hardsave.daemon.hook import Outcome
from hardsave.errors import Unavailable
from hardsave.logs import log
from hardsave.stores.processes import Process

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
    agent, called = registry.of_hook(words), hook.Called(Path(here()), at, id, origin[0])
    caller: Process | None = None

    def at_once() -> None:
        nonlocal caller
        if handover.meeting(os.environ, here()) is not None:
            from hardsave.daemon import parentage  # for those who may stay

            # The shell that runs the hook ends with it, and nobody could be found behind it.
            began = parentage.Origin(*origin)
            caller = parentage.agent_of(os.getpid(), agent.program, began)
        if orphans.may_be_one(os.environ):
            let_go(b"")

    def afterwards(done: Outcome) -> None:
        if not done.is_saved:
            let_go(done.warning)
        if done.event.status == "ended":
            _keep_up(done.project)
        elif done.is_saved:
            signal.alarm(0)
            from hardsave.daemon import leaving  # for which hardly anybody waits any more

            stays = partial(let_go, b"")
            leaving.leave(done.event.session, called.directory, done.project, caller, stays)

    hook.work(data, os.environ, agent, called, at_once=at_once, afterwards=afterwards)


def _give_up(number: int, frame: FrameType | None) -> None:
    raise Unavailable(f"not saved within {LIMIT_SECONDS} s")


def _keep_up(project: Path) -> None:
    """Once a day, after a session has ended, when nobody waits any more."""

    def upkeep() -> None:
        if not hook.has_store(os.environ, project):
            return  # nothing was ever asked here
        with hook.own_vault(project, os.environ) as vault:
            vault.store.upkeep()

    if why := hook.tried(upkeep):  # it is tried again when another session ends
        log(__name__).warning("the store of %s could not be kept up: %s", project, why)
