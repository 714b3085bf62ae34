"""Files of a workspace, captured between two steps of a graph, for the put that comes later.

With LangGraph's default durability a put runs beside the next step, whose tools write already. But
the versions of a step's channels are made after its last task has ended and before the next begins,
and the put of that step names them: so files are captured with a version, and committed with the
put that has it.
"""

import threading
from collections.abc import Iterable

import hardsave

_WAITING = 256  # captures whose put is still to come; a step that is never put leaves its own


class Captures:
    """Captured files by the version they were captured with."""

    def __init__(self, workspace: hardsave.Workspace) -> None:
        self.workspace = workspace
        self._lock = threading.Lock()
        self._taken: dict[str, hardsave.CapturedFiles] = {}

    def take(self, version: str) -> None:
        captured = self.workspace.capture()
        with self._lock:
            self._taken[version] = captured
            over = list(self._taken)[:-_WAITING]
            late = [self._taken.pop(each) for each in over]
        for each in late:
            each.close()

    def of(self, versions: Iterable[object]) -> hardsave.CapturedFiles:
        """The last one of these versions. Without any, no step lies between: as they are now."""
        with self._lock:
            named = set(versions)
            found = [each for each in self._taken if each in named]
            captured = [self._taken.pop(each) for each in found]
        for each in captured[:-1]:
            each.close()
        return captured[-1] if captured else self.workspace.capture()
