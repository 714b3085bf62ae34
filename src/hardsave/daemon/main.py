"""The daemon: the process that stays beside agents, hears their hooks and saves.

It has no parent that waits for it and no terminal, so it cannot take the agent down, and the agent
cannot take it along: not by Ctrl-C, not by its death. What goes wrong here is written to a log
beside the store.

    hardsave run → forks away `python -m hardsave.daemon.main` → waits until it is ready → becomes
                   the agent
    a hook       → its child has saved, and stays: `stay_for_hooks`
"""

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import hardsave
from hardsave import config
from hardsave.daemon import election, processes, protocol, recorder, server, transcripts
from hardsave.daemon.election import Address
from hardsave.daemon.handler import EvictableHandler, HookHandler
from hardsave.daemon.launch import READY, Task
from hardsave.daemon.lifecycle import Lifecycle, SameFiles
from hardsave.daemon.processes import ProcessHandle, Running
from hardsave.daemon.recorder import NO_CONVERSATION, Conversation, Recorder
from hardsave.daemon.server import RequestHandler, Server
from hardsave.defaults import LEFT_RUNNING_SECONDS
from hardsave.errors import HardsaveError
from hardsave.logs import log
from hardsave.stores.processes import Process
from hardsave.stores.registry import sqlite_path
from hardsave.stores.sqlite.daemon_lock import DaemonLock

_REOPEN_SECONDS = 1.0  # before a lost store is opened anew, and twice as long after each failure
_LONGEST_REOPEN_SECONDS = 60.0
_LONGEST_REASON = 2000  # bytes, which a pipe takes at once
_LARGEST_LOG = 1 << 20
_log = logging.getLogger(__name__)


# Started by `hardsave run`


def main(argv: Sequence[str]) -> int:
    with open(0, "rb", closefd=False) as told:
        task = Task.load(argv[0], told.read())
    os.close(os.open(task.log, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))  # ours alone
    logging.basicConfig(
        filename=task.log, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    try:
        _run(task)
    except BaseException as error:  # noqa: BLE001 # no other process will hear of it
        _log.exception("the daemon of %s gives up", task.workspace)
        _tell(task.ready, f"{type(error).__name__}: {error}".encode()[:_LONGEST_REASON])
        return 1
    finally:
        os.close(task.ready)
    return 0


def _run(task: Task) -> None:
    with _opened(task.store) as vault:
        missed = recorder.missed_saves(os.environ, Path(task.workspace), task.timeline, task.agent)
        recording = Recorder(
            vault.timeline(task.timeline),
            vault.workspace(task.workspace),
            task.command,
            missed,
            _conversation(task),
            files=(sqlite_path(task.store),),
        )
        look = partial(processes.with_variable, protocol.SOCKET_VARIABLE, task.socket)
        signal.signal(signal.SIGTERM, lambda *_: recording.end(look()))
        ours = (ProcessHandle(task.agent), look, recording)
        threading.Thread(target=_end_with, args=ours, daemon=True).start()
        is_over = _record(task, vault, recording, lambda: _tell(task.ready, READY))
    seconds = _REOPEN_SECONDS
    while not is_over:
        is_last = recording.is_told_to_end(within_seconds=seconds)
        is_over = _reopen(task, recording) or is_last
        seconds = min(2 * seconds, _LONGEST_REOPEN_SECONDS)


def _record(
    task: Task, vault: hardsave.Vault, recording: Recorder, is_ready: Callable[[], None]
) -> bool:
    """Whether to the end; if not, the store was lost."""
    lock = election.lock_path(sqlite_path(task.store), task.workspace)
    handler = HookHandler(vault, task.store, task.workspace, task.socket)
    with _serving(Path(task.socket), handler), election.elected(lock, task.socket):
        is_over = recording.stay(is_ready)
    if is_over:
        _log.info("%d saves, %d failed", recording.saves, recording.failed_saves)
        _keep_up(vault)
    return is_over


def _reopen(task: Task, recording: Recorder) -> bool:
    """The same with a store that is opened anew. Other processes that have it open go first."""
    try:
        config.make_folder(Path(sqlite_path(task.store)).parent)
        with _opened(task.store) as vault:
            recording.move(vault.timeline(task.timeline), vault.workspace(task.workspace))
            _log.info("%s was opened anew", task.store)
            return _record(task, vault, recording, lambda: None)
    except (HardsaveError, OSError):
        _log.warning("%s cannot be opened anew", task.store, exc_info=True)
        return False


@contextmanager
def _opened(store: str) -> Iterator[hardsave.Vault]:
    """A store that is lost, or out of reach, may not even be closed in order: no reason to end."""
    vault = hardsave.open(store)
    try:
        yield vault
    finally:
        try:
            vault.close()
        except (HardsaveError, OSError):
            _log.warning("%s could not be closed in order", store, exc_info=True)


def _conversation(task: Task) -> Conversation:
    """Before the agent is started: what is said is known by what is new from here on."""
    try:
        workspace = Path(task.workspace)
        return transcripts.of_a_run(os.environ, task.command, workspace, task.agent)
    except Exception:  # noqa: BLE001 # ours; files are saved all the same
        _log.exception("only files are saved")
        return NO_CONVERSATION


def _keep_up(vault: hardsave.Vault) -> None:
    """Once a day, now that no agent waits."""
    try:
        if done := vault.store.upkeep():
            _log.info("%s", done.retained)
    except (HardsaveError, OSError):  # as of a workspace that may not be looked into any more
        _log.warning("the store could not be kept up", exc_info=True)


@contextmanager
def _serving(path: Path, handler: RequestHandler) -> Iterator[None]:
    """Hear the agent's hooks. Where that cannot be, each of them saves by itself."""
    try:
        here = Server(path, handler)
    except OSError as error:
        _log.warning("no socket could be made, so hooks save by themselves: %s", error)
        yield
        return
    try:
        yield
    finally:
        here.close()


def _end_with(
    agent: ProcessHandle, look: Callable[[], Sequence[Running]], recording: Recorder
) -> None:
    """With the agent, and with the processes that it has left running: they may still write."""
    agent.wait()
    if left := look():
        _log.info("the agent has ended; %s", recorder.told(left))
        left = processes.wait_for_end(look, LEFT_RUNNING_SECONDS)
        _log.info("%s", recorder.told(left) or "what it had left running has ended, too")
    recording.end(left)


def _tell(descriptor: int, what: bytes) -> None:
    """The process that has started this one: that it is ready, or why it never will be."""
    try:
        os.write(descriptor, what)
    except OSError:
        _log.warning("the process that has started this one is gone")


# Left behind by a hook


def stay_for_hooks(
    address: Address, lock: DaemonLock, listening: int, agent: Process, session: str
) -> None:
    """Holds no directory, and ends at once when it is sent a signal."""
    server.remove_stale_sockets(Path(f"{address.store}{protocol.SOCKET_INFIX}"))
    signal.signal(signal.SIGTERM, lambda *_: _end_at_once(address))
    _call_ourselves(election.PROCESS_NAME)
    _log_to(f"{address.store}-hooks.log")
    place = SameFiles((address.store, address.workspace))
    code = SameFiles((protocol.__file__,), by_time=True)
    lifecycle = Lifecycle(
        is_in_place=lambda: place.are_the_same() and lock.is_in_place(),
        is_current=code.are_the_same,
        is_wanted=lambda: _is_wanted(address),
    )
    lifecycle.asked(agent, session)
    log(__name__).info("standing by for %s, called by %s", address.workspace, agent.words[:1])
    try:
        with hardsave.open(address.url) as vault:
            os.chdir("/")
            handler = EvictableHandler(vault, address.url, address.workspace, lifecycle)
            why = _answer(vault, address, handler, lifecycle, listening)
            log(__name__).info("%d calls; it ends, because %s", lifecycle.calls, why)
            lock.close()
            if handler.has_seen_an_end:
                vault.store.upkeep()
    except Exception:  # noqa: BLE001 # no other process will hear of it
        log(__name__).exception("the daemon of %s gives up", address.workspace)


def _answer(
    vault: hardsave.Vault,
    address: Address,
    handler: RequestHandler,
    lifecycle: Lifecycle,
    listening: int,
) -> str:
    workspace = vault.workspace(address.workspace)
    with workspace.watch():
        here = Server(Path(address.socket), handler, listening=listening)
        try:
            election.publish(address.link, address.socket)
            workspace.status()  # from here on it is known what changes
            log(__name__).info("%s is known", address.workspace)
            return lifecycle.stay()
        finally:
            here.close()


def _is_wanted(address: Address) -> bool:
    try:
        return config.leaves_daemon(os.environ, Path(address.workspace))
    except HardsaveError:
        return False


def _end_at_once(address: Address) -> None:
    """A hook that waits for an answer does the work itself; the store drops what is half done."""
    try:
        address.remove()
    finally:
        os._exit(0)


def _call_ourselves(name: str) -> None:
    with suppress(OSError), open("/proc/self/comm", "w") as file:
        file.write(name)


def _log_to(path: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb") as file:
        if os.path.getsize(path) > _LARGEST_LOG:
            file.truncate(0)
    logging.basicConfig(
        filename=path,
        level=logging.INFO,
        format="%(asctime)s %(process)d %(levelname)s %(message)s",
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
