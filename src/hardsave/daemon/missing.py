"""What the process beside an agent could not save: noted where the notes of hooks are.

The note is there from the first save on and removed at the end, so that one that was killed leaves
it behind without having to do anything for it. It names the agent: while that goes on with nobody
beside it, no save of anybody else's ends the note.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hardsave.daemon import spool
from hardsave.errors import Unavailable
from hardsave.logs import log
from hardsave.stores.processes import started


class RunMisses:
    """Of one `hardsave run`. What cannot even be noted is logged."""

    def __init__(self, place: Path, timeline: str = "", agent: int | None = None) -> None:
        self._place = place
        self._timeline = timeline
        self._agent = [] if agent is None else [agent, started(agent)]
        self._name = f"{time.time_ns()}-run"
        self._tries = 0
        self._told: list[spool.Note] = []

    def about(self) -> Mapping[str, Any]:
        """What the next checkpoint tells: what anybody has missed here."""
        with _logged():
            self._told = spool.to_tell(self._place, self._timeline)
        return spool.listed(self._told)

    def saved(self, checkpoint: str) -> None:
        """A checkpoint has told it. From here on we are at work on the next."""
        told, self._told = self._told, []
        self._tries = 0
        for note in told:
            with _logged():
                spool.end(note)
        self._begun()

    def failed(self, why: str) -> None:
        self._tries += 1
        with _logged():
            spool.fail(self._begun(), why)

    def ended(self) -> None:
        """Nothing more is to come. What failed last stays noted."""
        if self._tries == 0:
            with _logged():
                spool.end(self._begun())

    def _begun(self) -> spool.Note:
        about = {
            "hook": spool.RUN,
            "at": time.time(),
            "timeline": self._timeline,
            "agent_process": self._agent,
        }
        tries = {"count": self._tries} if self._tries else {}
        return spool.begin(self._place, self._name, {**about, **tries})


@contextmanager
def _logged() -> Iterator[None]:
    """Notes that cannot be written or read are no reason to stop saving."""
    try:
        yield
    except OSError as error:
        log(__name__).warning("what was saved cannot be noted: %s", error)


class NoMisses:
    """Of one whose user has no home to keep notes in."""

    def about(self) -> Mapping[str, Any]:
        return {}

    def saved(self, checkpoint: str) -> None:
        pass

    def failed(self, why: str) -> None:
        pass

    def ended(self) -> None:
        pass


def of_a_run(
    environment: Mapping[str, str], project: Path, timeline: str, agent: int
) -> RunMisses | NoMisses:
    """For the process beside an agent that works in a project."""
    try:
        return RunMisses(spool.folder(environment, project), timeline, agent)
    except Unavailable:
        return NoMisses()
