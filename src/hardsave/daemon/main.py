"""The daemon: the process in the background that hears hooks, watches files and reads transcripts.

It has no parent that waits for it and no terminal, so it cannot take the agent down, and the agent
cannot take it along: not by Ctrl-C, not by its death. What goes wrong here is written to a log
beside the store.

    hardsave run → forks away `python -m hardsave.daemon.main` → waits until it is ready → becomes
                   the agent. This daemon has a recorder: it also saves by itself, and nothing but
                   the end of its agent ends it. A store that is lost is opened anew.
    a hook       → its child has saved, and stays: `stay_for_hooks`. This daemon saves what hooks
                   ask for, and is evictable: it ends at every doubt (`lifecycle`).
"""

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import hardsave
from hardsave import config
from hardsave.agents.spec import AgentSpec
from hardsave.daemon import election, processes, protocol, recorder, server, transcripts
from hardsave.daemon.access import Access
from hardsave.daemon.calls import CallLog
from hardsave.daemon.election import Address
from hardsave.daemon.handler import HookHandler
from hardsave.daemon.launch import READY, Task
from hardsave.daemon.lifecycle import Lifecycle, SameFiles
from hardsave.daemon.processes import ProcessHandle, Running
from hardsave.daemon.recorder import NO_CONVERSATION, Conversation, Recorder
from hardsave.daemon.server import RequestHandler, Server
from hardsave.defaults import LEFT_RUNNING_SECONDS
from hardsave.errors import HardsaveError
from hardsave.stores.host.processes import Process
from hardsave.stores.local.daemon_lock import DaemonLock
from hardsave.stores.registry import file_path, is_on_server, shown

_REOPEN_SECONDS = 1.0  # before a lost store is opened anew, and twice as long after each failure
_SEARCH_SECONDS = 0.2  # of the processor, for the search index, whenever it looks around
_LONGEST_REOPEN_SECONDS = 60.0
_LONGEST_REASON = 2000  # bytes, which a pipe takes at once
_LARGEST_LOG = 1 << 20
_log = logging.getLogger(__name__)


class Daemon:
    """One daemon, from when it is ready to hear hooks until there is a reason to end."""

    def __init__(
        self,
        address: Address,
        lifecycle: Lifecycle,
        calls: CallLog,
        recording: Recorder | None = None,
        timeline: str | None = None,
        *,
        access: Access | None = None,
    ) -> None:
        """Without `access` the store is a file."""
        self._address = address
        self._access = access or Access(os.environ, Path(address.workspace), address.url)
        self._lifecycle = lifecycle
        self._calls = calls
        self._recording = recording
        self._timeline = timeline

    def serve(
        self,
        vault: hardsave.Vault,
        lock: AbstractContextManager[object],
        *,
        listening: int | None = None,
        is_ready: Callable[[], None] = lambda: None,
    ) -> bool:
        """Hear hooks and watch files until there is a reason to end. Whether to the end: if not,
        the store was lost."""
        shared = (self._address, self._lifecycle, self._calls, self._timeline)
        handler = HookHandler(vault, *shared, lost=self._why_lost)
        path = Path(self._address.socket)
        with lock, _serving(path, handler, listening), self._access.looking(self._answers):
            self._stay(vault, is_ready)
        if self._recording is not None and self._recording.has_lost_store:
            return False
        if self._access.is_away:
            return True  # of an outbox nothing may go before it was delivered
        if self._recording is not None or handler.has_seen_an_end:
            _keep_up(vault)
        return True

    def _why_lost(self) -> str:
        """Why nothing can be saved here any more. Then a run goes on in the outbox."""
        why = self._access.why_lost()
        if why and self._recording is not None:
            self._recording.has_lost_store = True
        return why

    def _answers(self) -> None:
        """The server is back: a run goes on in the store, the next hook leaves a new daemon."""
        if self._recording is None:
            self._lifecycle.end("the server of its store answers again")
        else:
            self._recording.has_lost_store = True
            self._lifecycle.nudge()

    def _stay(self, vault: hardsave.Vault, is_ready: Callable[[], None]) -> None:
        workspace = vault.workspace(self._address.workspace)
        if self._recording is not None:
            self._recording.begin()
        with workspace.watch() as eyes:
            self._lifecycle.wakes(eyes.wake)
            if self._address.link:
                election.publish(self._address.link, self._address.socket)
            if self._recording is None:
                workspace.status()  # from here on it is known what changes
            else:
                self._recording.save_changes()
            is_ready()
            _log.info("%s is known", self._address.workspace)
            self._wait(vault, eyes)
        if self._recording is not None and self._lifecycle.is_told_to_end:
            self._recording.end()

    def _wait(self, vault: hardsave.Vault, eyes: hardsave.Watching) -> None:
        recording, lifecycle = self._recording, self._lifecycle
        while not (why := lifecycle.why_end()):
            if recording is None:
                lifecycle.wait()
                if not lifecycle.why_end():
                    _update_search(vault)
            elif recording.has_lost_store:
                return
            else:
                recording.wait_and_save(eyes, lambda: lifecycle.is_told_to_end)
        _log.info("%d calls; it ends, because %s", lifecycle.calls, why)


@contextmanager
def _serving(path: Path, handler: RequestHandler, listening: int | None) -> Iterator[None]:
    """Hear hooks. Where that cannot be, each of them saves by itself."""
    try:
        here = Server(path, handler, listening=listening)
    except OSError as error:
        _log.warning("no socket could be made, so hooks save by themselves: %s", error)
        yield
        return
    try:
        yield
    finally:
        here.close()


def _update_search(vault: hardsave.Vault) -> None:
    """A small step at a time: a hook may come."""
    try:
        vault.store.update_search(seconds=_SEARCH_SECONDS)
    except (HardsaveError, OSError) as error:
        _log.warning("the search index could not be brought up to date: %s", error)


def _keep_up(vault: hardsave.Vault) -> None:
    """Once a day, now that no agent waits."""
    try:
        if done := vault.store.upkeep():
            _log.info("%s", done.retained)
    except (HardsaveError, OSError) as error:  # as of a workspace that may not be looked into
        _log.warning("the store could not be kept up: %s", error)


def _begin(log: str) -> None:
    """Under a name of its own in lists of processes, with a log that is this user's alone."""
    with suppress(OSError), open("/proc/self/comm", "w") as file:
        file.write(election.PROCESS_NAME)
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb") as file:
        if os.path.getsize(log) > _LARGEST_LOG:
            file.truncate(0)
    logging.basicConfig(
        filename=log,
        level=logging.INFO,
        format="%(asctime)s %(process)d %(levelname)s %(message)s",
    )


# Started by `hardsave run`


def main(argv: Sequence[str]) -> int:
    with open(0, "rb", closefd=False) as told:
        task = Task.load(argv[0], told.read())
    _begin(task.log)
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
    store = election.host_path(os.environ, task.store)
    access = Access(os.environ, Path(task.workspace), task.store)
    address = election.address_of(task.store, store, task.workspace, task.socket)
    lifecycle = Lifecycle(has_run=True)
    calls = CallLog(os.path.realpath(task.workspace), task.timeline)
    with access.opened() as vault:
        recording = _recorder(task, vault, calls, access)
        daemon = Daemon(address, lifecycle, calls, recording, task.timeline, access=access)
        _end_with_agent(task, recording, lifecycle)
        ready = partial(_tell, task.ready, READY)
        is_over = daemon.serve(vault, election.elected(address), is_ready=ready)
    seconds = _REOPEN_SECONDS
    while not is_over:
        lifecycle.wait(seconds)
        is_last = lifecycle.is_told_to_end
        is_over = _reopen(task, address, recording, daemon, access) or is_last
        seconds = min(2 * seconds, _LONGEST_REOPEN_SECONDS)
    access.settle()
    _log.info("%d saves, %d failed", recording.saves, recording.failed_saves)


def _recorder(task: Task, vault: hardsave.Vault, calls: CallLog, access: Access) -> Recorder:
    missed = recorder.missed_saves(os.environ, Path(task.workspace), task.timeline, task.agent)
    return Recorder(
        vault.timeline(task.timeline),
        vault.workspace(task.workspace),
        task.command,
        missed,
        _conversation(task, calls),
        files=() if is_on_server(task.store) else (file_path(task.store),),
        calls=calls,
        why_lost=access.why_lost,
    )


def _reopen(
    task: Task, address: Address, recording: Recorder, daemon: Daemon, access: Access
) -> bool:
    """The same with a store that is opened anew. Other processes that have it open go first."""
    try:
        config.make_folder(Path(address.store).parent)
        with access.opened() as vault:
            recording.move(vault.timeline(task.timeline), vault.workspace(task.workspace))
            _log.info("%s was opened anew", shown(task.store))
            return daemon.serve(vault, election.elected(address))
    except (HardsaveError, OSError):
        _log.warning("%s cannot be opened anew", shown(task.store), exc_info=True)
        return False


def _conversation(task: Task, calls: CallLog) -> Conversation:
    """Before the agent is started: what is said is known by what is new from here on."""
    try:
        return transcripts.of_a_run(os.environ, task.command, task.agent, calls)
    except Exception:  # noqa: BLE001 # ours; files are saved all the same
        _log.exception("only files are saved")
        return NO_CONVERSATION


def _end_with_agent(task: Task, recording: Recorder, lifecycle: Lifecycle) -> None:
    """End with the agent, and with the processes that it has left running: they may still write."""
    look = partial(processes.with_variable, protocol.SOCKET_VARIABLE, task.socket)
    agent = ProcessHandle(task.agent)

    def end(left: Sequence[Running]) -> None:
        recording.left = left
        lifecycle.end("its agent has ended")

    def wait() -> None:
        agent.wait()
        left: Sequence[Running] = look()
        if left:
            _log.info("the agent has ended; %s", recorder.told(left))
            left = processes.wait_for_end(look, LEFT_RUNNING_SECONDS)
            _log.info("%s", recorder.told(left) or "what it had left running has ended, too")
        end(left)

    signal.signal(signal.SIGTERM, lambda *_: end(look()))
    threading.Thread(target=wait, daemon=True).start()


def _tell(descriptor: int, what: bytes) -> None:
    """The process that has started this one: that it is ready, or why it never will be."""
    try:
        os.write(descriptor, what)
    except OSError:
        _log.warning("the process that has started this one is gone")


# Left behind by a hook


def stay_for_hooks(
    address: Address,
    lock: DaemonLock,
    listening: int,
    agent: Process,
    spec: AgentSpec,
    session: str,
    transcript: str | None,
) -> None:
    """For an agent and its session, whose calls stand in a transcript, and for those that come.
    Holds no directory, and ends at once when it is sent a signal."""
    server.remove_stale_sockets(Path(f"{address.store}{protocol.SOCKET_INFIX}"))
    signal.signal(signal.SIGTERM, lambda *_: _end_at_once(address))
    _begin(f"{address.store}-hooks.log")
    files = () if is_on_server(address.url) else (address.store,)
    place = SameFiles((*files, address.workspace))
    code = SameFiles((protocol.__file__,), by_time=True)
    lifecycle = Lifecycle(
        is_in_place=lambda: place.are_the_same() and lock.is_in_place(),
        is_current=code.are_the_same,
        is_wanted=lambda: _is_wanted(address),
    )
    lifecycle.asked(agent, session)
    _log.info("the daemon of %s, called by %s", address.workspace, agent.words[:1])
    try:
        access = Access(os.environ, Path(address.workspace), address.url)
        with access.opened() as vault:
            os.chdir("/")
            calls = CallLog(address.workspace)
            calls.source(spec, session, transcript)
            daemon = Daemon(address, lifecycle, calls, access=access)
            daemon.serve(vault, closing(lock), listening=listening)
        access.settle()
    except Exception:  # noqa: BLE001 # no other process will hear of it
        _log.exception("the daemon of %s gives up", address.workspace)


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
