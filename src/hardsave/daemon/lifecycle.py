"""When the daemon ends, and why.

The daemon of a `hardsave run` ends with its agent, and with the processes that the agent has left
running. One that a hook has left behind ends with its agents and their sessions, when it is idle,
and at every doubt: a hook that finds no daemon does the work itself, so to end costs no data.
"""

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue

from hardsave.daemon.processes import ProcessHandle
from hardsave.defaults import DAEMON_IDLE_SECONDS
from hardsave.errors import Misuse
from hardsave.stores.host.processes import Process, started
from hardsave.tuples import NamedTuple

CHECK_SECONDS = 5.0  # between two looks whether store, workspace and code are those that they were


class Facts(NamedTuple):
    """What decides whether the daemon stays."""

    agents: int  # that have asked for something, and live
    sessions: int  # of theirs that have not ended
    idle_seconds: float
    is_in_place: bool = True  # the store, the workspace and the lock are those that they were
    is_current: bool = True  # the code that is installed is the code that runs
    is_wanted: bool = True
    has_failed: bool = False
    told: str = ""  # why it was told to end
    has_run: bool = False  # whether it saves for a `hardsave run`: then that alone decides


def why_unfit(facts: Facts) -> str:
    """Why not even one more hook is answered; empty if it is."""
    if facts.has_run:
        return ""
    if facts.has_failed:
        return "it could not save, so each hook does it by itself"
    if not facts.is_in_place:
        return "the store or the workspace is not the one that it was"
    if not facts.is_current:
        return "hardsave has been installed anew"
    if not facts.is_wanted:
        return "it was switched off"
    return ""


def why_end(facts: Facts) -> str:
    """Why the daemon ends now; empty if it stays."""
    if facts.told or facts.has_run:
        return facts.told
    if unfit := why_unfit(facts):
        return unfit
    if not facts.agents:
        return "its agents have ended"
    if not facts.sessions:
        return "the sessions of its agents have ended"
    if facts.idle_seconds >= DAEMON_IDLE_SECONDS:
        return f"no hook has asked for anything for {DAEMON_IDLE_SECONDS / 60:.0f} minutes"
    return ""


class Sessions:
    """The agents that live, each with its sessions that have not ended."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._lock = threading.Lock()
        self._sessions: dict[tuple[int, int], set[str]] = {}
        self.agent_ended: Callable[[str], None] = lambda session: None
        """Told the sessions that an agent had when it ended."""

    def add(self, agent: Process, session: str) -> None:
        """A session of an agent, perhaps seen before."""
        key = (agent.pid, agent.began)
        with self._lock:
            is_new = key not in self._sessions
            self._sessions.setdefault(key, set()).add(session)
        if is_new:
            threading.Thread(target=self._wait, args=key, daemon=True).start()

    def end(self, session: str) -> None:
        """A session has ended, whichever agent's it was."""
        with self._lock:
            for sessions in self._sessions.values():
                sessions.discard(session)
        self._changed()

    def has_others(self, session: str) -> bool:
        """Whether there are sessions beside this one."""
        with self._lock:
            return any(sessions - {session} for sessions in self._sessions.values())

    def counts(self) -> tuple[int, int]:
        """Agents, and sessions."""
        with self._lock:
            return len(self._sessions), len(set().union(*self._sessions.values()))

    def _wait(self, pid: int, began: int) -> None:
        process = ProcessHandle(pid)
        if started(pid) == began:  # or its number is another's by now
            process.wait()
        with self._lock:
            left = self._sessions.pop((pid, began))
        for session in left:
            self.agent_ended(session)
        self._changed()


class SameFiles:
    """What paths led to when this was made."""

    def __init__(self, paths: Sequence[str], *, by_time: bool = False) -> None:
        self._by_time = by_time  # to notice, too, what was written anew in its place
        self._known = {path: self._identity(path) for path in paths}

    def are_the_same(self) -> bool:
        return all(
            known is not None and self._identity(path) == known
            for path, known in self._known.items()
        )

    def _identity(self, path: str) -> tuple[int, ...] | None:
        try:
            found = os.stat(path)
        except OSError:
            return None
        return (found.st_dev, found.st_ino, found.st_mtime_ns if self._by_time else 0)


class Lifecycle:
    """Keeps the daemon until there is a reason to end."""

    def __init__(
        self,
        *,
        is_in_place: Callable[[], bool] = lambda: True,
        is_current: Callable[[], bool] = lambda: True,
        is_wanted: Callable[[], bool] = lambda: True,
        has_run: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.has_run = has_run
        self._told = ""
        self._wake: Callable[[], None] | None = None
        self._is_in_place = is_in_place
        self._is_current = is_current
        self._is_wanted = is_wanted
        self._clock = clock
        self._nudges: SimpleQueue[None] = SimpleQueue()
        self._asked_at = clock()
        self._has_failed = False
        self.calls = 0
        self.sessions = Sessions(self.nudge)

    def nudge(self) -> None:
        """Look now whether it is time to end. For any thread, and the handler of a signal: so no
        lock is taken."""
        self._nudges.put(None)
        if self._wake is not None:
            with suppress(Misuse):  # the watch is closed by now
                self._wake()

    def wakes(self, wake: Callable[[], None]) -> None:
        """What to call to be looked at anew, beside `wait`."""
        self._wake = wake

    def end(self, why: str) -> None:
        """Told from outside. For any thread, and the handler of a signal."""
        self._told = self._told or why
        self.nudge()

    @property
    def is_told_to_end(self) -> bool:
        return bool(self._told)

    def asked(self, agent: Process, session: str) -> None:
        """A session of an agent wants something."""
        self._asked_at = self._clock()
        self.calls += 1
        self.sessions.add(agent, session)

    def failed(self) -> None:
        """No hook is answered any more, unless there is a run to save for."""
        self._has_failed = True
        self.nudge()

    def why_unfit(self) -> str:
        return why_unfit(self._facts())

    def why_end(self) -> str:
        return why_end(self._facts())

    def wait(self, seconds: float = CHECK_SECONDS) -> None:
        """Until it is nudged, or for so long."""
        with suppress(Empty):
            self._nudges.get(timeout=seconds)

    def _facts(self) -> Facts:
        agents, sessions = self.sessions.counts()
        return Facts(
            agents,
            sessions,
            self._clock() - self._asked_at,
            is_in_place=self._is_in_place(),
            is_current=self._is_current(),
            is_wanted=self._is_wanted(),
            has_failed=self._has_failed,
            told=self._told,
            has_run=self.has_run,
        )
