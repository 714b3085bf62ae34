"""A hook that finds no daemon does its work by itself, in a child; which may stay as the daemon.

The hook waits for the child no longer than its budget, and is let go as soon as its checkpoint is
there, if process 1 waits for orphans (`may_be_orphaned`): to close the store takes as long as to
open it. From there on, the child has no parent that waits for it. It has everything loaded that
the next hooks need: so it stays as the daemon, unless something speaks against it.
"""

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType

from hardsave import config
from hardsave.agents import registry
from hardsave.agents.spec import AgentSpec
from hardsave.daemon import protocol, save
from hardsave.daemon.save import Outcome
from hardsave.defaults import HOOK_SAVE_SECONDS
from hardsave.errors import Unavailable
from hardsave.logs import log
from hardsave.stores.host import processes
from hardsave.stores.host.processes import Process
from hardsave.tuples import NamedTuple

MOST_ORPHANS = 32  # one after the other that process 1 has not waited for
_LAST_ORPHAN = "last-orphan"
_LARGEST = 64


def work(
    data: bytes,
    words: Sequence[str],
    id: str,
    at: int,
    origin: tuple[int, int],
    let_go: Callable[[bytes], None],
) -> None:
    """Do it without a daemon. Even a first capture of a large workspace ends some time.

    `origin` is the process that has called the hook, and its session; `let_go` ends the hook's
    waiting, and tells it what to print.
    """
    signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(HOOK_SAVE_SECONDS)
    agent = registry.of_hook(words)
    called = save.Called(Path(protocol.working_directory()), at, id, origin[0])
    caller: Process | None = None

    def at_once() -> None:
        nonlocal caller
        if protocol.rendezvous(os.environ, protocol.working_directory()) is not None:
            from hardsave.daemon.processes import Origin, agent_of  # for a child that may stay

            # The shell that runs the hook ends with it, and then leads to no agent any more.
            caller = agent_of(os.getpid(), agent.program, Origin(*origin))
        if may_be_orphaned(os.environ):
            let_go(b"")

    def afterwards(done: Outcome) -> None:
        if not done.is_saved:
            let_go(done.warning)
        if done.event.status == "ended":
            _keep_up(done.project)
        elif done.is_saved:
            signal.alarm(0)
            if caller is not None:
                stays = partial(let_go, b"")
                heard = Heard(agent, done.event.session, done.event.transcript)
                _stay(heard, called.directory, done.project, caller, stays)

    save.work(data, os.environ, agent, called, at_once=at_once, afterwards=afterwards)


def _give_up(number: int, frame: FrameType | None) -> None:
    raise Unavailable(f"not saved within {HOOK_SAVE_SECONDS} s")


def _keep_up(project: Path) -> None:
    """Once a day, after a session has ended, when the agent does not wait any more."""

    def upkeep() -> None:
        if not save.has_store(os.environ, project):
            return  # nothing was ever saved here
        access = save.own_access(project, os.environ)
        with access.opened() as vault:
            if not access.is_away:  # of an outbox nothing may go before it was delivered
                vault.store.upkeep()

    if why := save.tried(upkeep):  # it is tried again when another session ends
        log(__name__).warning("the store of %s could not be kept up: %s", project, why)


class Heard(NamedTuple):
    """Of which session a hook was called, and where its calls stand."""

    agent: AgentSpec
    session: str
    transcript: str | None


def _stay(
    heard: Heard, directory: Path, project: Path, agent: Process, let_go: Callable[[], None]
) -> None:
    """Stay as the daemon of a workspace, if there is none and nothing speaks against it.

    A hook of a session was called in `directory` by an agent, and its work is done. The agent does
    not wait any more once `let_go` was called; before that, there is next to nothing to wait for.
    """
    from hardsave.daemon import election  # for which hardly any agent waits any more

    address = election.address_for(os.environ, directory, project)
    if address is None or election.are_too_many_zombies():
        return
    with suppress(OSError):  # a disk or a sandbox that does not allow it: then there is no daemon
        lock = election.candidate(address, let_go)
        if lock is None:
            return
        try:
            socket = election.listen(address.socket)
            let_go()
            from hardsave.daemon import main  # which takes a while, and no agent waits any more

            main.stay_for_hooks(address, lock, socket, agent, *heard)
        finally:
            address.remove()
            lock.close()


# Whether process 1 waits for a child that its hook has not waited for. In some containers it never
# does: then each would stay a zombie, one for each tool. So a child that lets its hook go leaves
# its number, and the next one looks whether it is still a zombie.


def may_be_orphaned(environment: Mapping[str, str]) -> bool:
    """Whether this process may outlive its hook. If so, it is the last orphan from now on."""
    try:
        path = config.data_directory(environment, sys.platform) / _LAST_ORPHAN
        count = _zombies(path)
        if count >= MOST_ORPHANS:
            return False
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb") as file:
            began = processes.started(os.getpid()) or 0
            file.write(b"%10d %20d %10d" % (os.getpid(), began, count))
    except (OSError, Unavailable):
        return False  # what cannot be noted cannot be looked for either
    return True


def _zombies(path: Path) -> int:
    """How many there were, one after the other, up to the last; none if that one is gone. One
    that lives says nothing: it may stay as the daemon."""
    try:
        with path.open("rb") as file:
            pid, began, before = map(int, file.read(_LARGEST).split())
    except (FileNotFoundError, ValueError):
        return 0
    if processes.is_zombie(pid, began):
        return before + 1
    return before if processes.started(pid) == began else 0
