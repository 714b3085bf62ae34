"""Which projects have changed, for a client that looks at all of them."""

from collections.abc import Callable, Mapping

from hardsave.server.live import ids, sse
from hardsave.server.live.asked import Asked
from hardsave.values.text import dumps

Stamps = Callable[[], Mapping[str, object]]


class ProjectChanges:
    """A source; see `feed.Source`. `stamps` is called in threads: for each project something that
    is another one after a change."""

    quickest_seconds = 1.0
    slowest_seconds = 1.0

    def __init__(self, stamps: Stamps) -> None:
        self._stamps = stamps
        self._last: Mapping[str, object] = {}
        self._changes: dict[str, int] = {}  # by project: the round of its last change
        self._frames: dict[int, bytes] = {}
        self.round = 0

    def __str__(self) -> str:
        return "the list of projects"

    def open(self) -> None:
        self._last = dict(self._stamps())

    def look(self) -> Callable[[], bool]:
        now = dict(self._stamps())
        return lambda: self._take(now)

    def close(self) -> None:
        """There is nothing to let go."""

    def _take(self, now: Mapping[str, object]) -> bool:
        changed = changes(self._last, now)
        self._last = now
        if changed:
            self.round += 1
            self._changes.update(dict.fromkeys(changed, self.round))
            self._frames.clear()
        return bool(changed)

    async def joined(self, asked: Asked) -> "ProjectsReader":
        return ProjectsReader(self, asked.user, comes_again=bool(asked.cursor))

    def frame(self, seen: int) -> bytes:
        """The message for a client that has been told all up to a round, which is not the last."""
        if seen not in self._frames:
            changed = sorted(id for id, round in self._changes.items() if round > seen)
            self._frames[seen] = sse.items("projects", (dumps(id).encode() for id in changed))
        return self._frames[seen]


class ProjectsReader:
    """A client's place in the changes; see `feed.Reader`. What happened before it came is not
    known: a client that comes again reads its list anew."""

    def __init__(self, source: ProjectChanges, user: str | None, *, comes_again: bool) -> None:
        self._source = source
        self._id = ids.encode(None, user, 0)
        self._missed = comes_again
        self._seen = source.round

    def hello(self, heartbeat_seconds: float) -> bytes:
        about = {"project": None, "heartbeat_seconds": heartbeat_seconds}
        return sse.message("hello", about, id=self._id)

    def next(self) -> bytes:
        if self._missed:
            self._missed = False
            return sse.reload("unknown_id", id=self._id)
        if self._seen == self._source.round:
            return b""
        frame = self._source.frame(self._seen)
        self._seen = self._source.round
        return frame

    def heartbeat(self) -> bytes:
        return sse.heartbeat()


def changes(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """The projects that are new, gone or changed."""
    nothing = object()
    return sorted(
        id for id in before.keys() | now.keys() if before.get(id, nothing) != now.get(id, nothing)
    )
