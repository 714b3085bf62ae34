"""The threads of a saver in a vault: where their checkpoints are, and which is the newest."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from itertools import count

import hardsave
from hardsave.adapters.langgraph import names
from hardsave.adapters.langgraph.lines import Line, Lines
from hardsave.adapters.langgraph.place import Place

_PAGE = 100


class Threads:
    """A thread is a timeline whose name begins with a prefix."""

    def __init__(self, vault: hardsave.Vault, prefix: str) -> None:
        self.vault = vault
        self._prefix = prefix
        self.lines = Lines(vault)

    def timeline(self, thread: str) -> str:
        return names.timeline(self._prefix, thread)

    def all(self) -> Iterator[hardsave.Timeline]:
        return self.vault.timelines(prefix=self._prefix)

    def has(self, found: hardsave.Checkpoint) -> bool:
        return found.timeline.startswith(self._prefix) and "id" in found.metadata

    def thread_of(self, found: hardsave.Checkpoint) -> str:
        thread = names.thread(self._prefix, found.timeline)
        return str(found.metadata["thread"]) if thread is None else thread

    def about(self, place: Place, parent: str | None, metadata: object) -> dict[str, object]:
        """The metadata of a checkpoint in the vault: what its names do not tell."""
        said = {"id": place.id, "parent": parent, "metadata": metadata}
        said |= {"ns": place.namespace} if place.namespace else {}
        if names.thread(self._prefix, self.timeline(place.thread)) is None:
            said["thread"] = place.thread
        return said

    def at(self, place: Place) -> AbstractContextManager[Line]:
        return self.lines.at(self.timeline(place.thread), place.namespace)

    def known(self, line: Line, place: Place) -> hardsave.Checkpoint | None:
        """The same as `find`; what was put last needs no look."""
        last = line.last
        return last[1] if last is not None and last[0] == place.id else self.find(place)

    def find(self, place: Place) -> hardsave.Checkpoint | None:
        return self._generation(place)[1]

    def id(self, place: Place) -> str:
        """That of the checkpoint in this place, or of the next one that is saved there."""
        return self._generation(place)[0]

    def _generation(self, place: Place) -> tuple[str, hardsave.Checkpoint | None]:
        assert place.id is not None
        timeline = self.timeline(place.thread)
        for generation in count():
            id = hardsave.checkpoint_id(timeline, place.namespace, place.id, str(generation))
            if not self.vault.knows(
                id
            ):  # first: `get` looks much further for one that is not there
                return id, None
            with suppress(hardsave.NotFound):  # deleted: it is not to come back
                return id, self.vault.get(id)
        raise AssertionError

    def rows(
        self, line: hardsave.Timeline, name: str | None = None
    ) -> Iterator[hardsave.Checkpoint]:
        """The checkpoints that a graph has put, the last one first."""
        after: str | None = None
        while True:
            page = line.checkpoints(name=name, limit=_PAGE, after=after)
            yield from (each for each in page if "id" in each.metadata)
            if page.next is None:
                return
            after = page.next

    def latest(self, place: Place) -> tuple[hardsave.Checkpoint | None, int | None]:
        """The newest of a namespace, and the era of its writes if the timeline was taken back."""
        with self.at(place) as line:
            rows = self.rows(line.line, names.checkpoint(place.namespace))
            newest = next(rows, None)
            head = None if newest is None else line.line.head
            if newest is None or head is None or newest.seq <= head.seq:
                return newest, None
            found = next((each for each in rows if each.seq <= head.seq), None)
            if found is not None:
                line.eras[id_of(found)] = newest.seq
            return found, newest.seq


def id_of(found: hardsave.Checkpoint) -> str:
    """The id by which LangGraph knows it."""
    return str(found.metadata["id"])
