"""Standing by: the resident that a hook leaves behind, so that the next ones need not be alone.

It watches the workspace and does the work of hooks, and saves nothing of its own: its checkpoints
are those that hooks alone would have made. It is a convenience, so it goes at the first doubt,
and whoever finds it gone does the work himself: see `why_end`. To kill it costs nobody anything.
"""

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue

from hardsave.daemon.life import Life
from hardsave.stores.processes import Process, started
from hardsave.tuples import NamedTuple

IDLE_SECONDS = 1800.0
LOOK_SECONDS = 5.0  # between two looks whether everything is where it was


class Facts(NamedTuple):
    """What decides whether it stays."""

    agents: int  # that have asked for something, and live
    sessions: int  # of theirs that have not ended
    idle_seconds: float
    is_in_place: bool = True  # the store, the workspace and the seat are those that they were
    is_current: bool = True  # the code that is installed is the code that runs
    is_wanted: bool = True
    has_failed: bool = False


def why_unfit(facts: Facts) -> str:
    """Why not even one more hook is answered; empty if it is."""
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
    """Why it is time to go; empty if it is not."""
    if unfit := why_unfit(facts):
        return unfit
    if not facts.agents:
        return "its agents have ended"
    if not facts.sessions:
        return "the sessions of its agents have ended"
    if facts.idle_seconds >= IDLE_SECONDS:
        return f"nobody has asked for anything for {IDLE_SECONDS / 60:.0f} minutes"
    return ""


class Callers:
    """The agents that live, each with its sessions that have not ended."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._lock = threading.Lock()
        self._sessions: dict[tuple[int, int], set[str]] = {}

    def meet(self, agent: Process, session: str) -> None:
        """A session of an agent, perhaps seen before."""
        key = (agent.pid, agent.began)
        with self._lock:
            is_new = key not in self._sessions
            self._sessions.setdefault(key, set()).add(session)
        if is_new:
            threading.Thread(target=self._wait, args=key, daemon=True).start()

    def part(self, session: str) -> None:
        """A session has ended, whichever agent's it was."""
        with self._lock:
            for sessions in self._sessions.values():
                sessions.discard(session)
        self._changed()

    def counts(self) -> tuple[int, int]:
        """Agents, and sessions."""
        with self._lock:
            return len(self._sessions), len(set().union(*self._sessions.values()))

    def _wait(self, pid: int, began: int) -> None:
        life = Life(pid)
        if started(pid) == began:  # or its number is another's by now
            life.wait()
        with self._lock:
            del self._sessions[pid, began]
        self._changed()


class Ground:
    """What paths led to when this was made."""

    def __init__(self, paths: Sequence[str], *, by_time: bool = False) -> None:
        self._by_time = by_time  # to notice, too, what was written anew in its place
        self._known = {path: self._identity(path) for path in paths}

    def is_as_it_was(self) -> bool:
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


class Standby:
    """Stays until there is a reason to go."""

    def __init__(
        self,
        *,
        is_in_place: Callable[[], bool],
        is_current: Callable[[], bool],
        is_wanted: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._is_in_place = is_in_place
        self._is_current = is_current
        self._is_wanted = is_wanted
        self._clock = clock
        self._nudges: SimpleQueue[None] = SimpleQueue()
        self._asked_at = clock()
        self._has_failed = False
        self.calls = 0
        self.callers = Callers(self.nudge)

    def nudge(self) -> None:
        """Look now whether it is time to go. For any thread."""
        self._nudges.put(None)

    def asked(self, agent: Process, session: str) -> None:
        """A session of an agent wants something."""
        self._asked_at = self._clock()
        self.calls += 1
        self.callers.meet(agent, session)

    def failed(self) -> None:
        """Nobody is answered any more."""
        self._has_failed = True
        self.nudge()

    def why_unfit(self) -> str:
        return why_unfit(self._facts())

    def stay(self) -> str:
        """Until it is time to go; and why it is."""
        while not (why := why_end(self._facts())):
            with suppress(Empty):
                self._nudges.get(timeout=LOOK_SECONDS)
        return why

    def _facts(self) -> Facts:
        agents, sessions = self.callers.counts()
        return Facts(
            agents,
            sessions,
            self._clock() - self._asked_at,
            is_in_place=self._is_in_place(),
            is_current=self._is_current(),
            is_wanted=self._is_wanted(),
            has_failed=self._has_failed,
        )
