"""The threads of a saver in a vault: where their checkpoints are, and which is the newest."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from itertools import chain, count, repeat

import hardsave
from hardsave.adapters.langgraph import names
from hardsave.adapters.langgraph.lines import Line, Lines
from hardsave.adapters.langgraph.place import Place

AFTER = "after"  # of metadata: what was put before, where that is not the parent
_PAGES = (2, 10)  # rows that are read first: mostly the newest is the one
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

    def about(
        self,
        place: Place,
        above: str | None,
        metadata: object,
        parent: hardsave.Checkpoint | None,
        after: str | None,
    ) -> dict[str, object]:
        """The metadata of a checkpoint in the vault: what its names and its parent do not tell."""
        said = {"id": place.id, "parent": above, "metadata": metadata}
        said |= {"ns": place.namespace} if place.namespace else {}
        said |= {AFTER: after} if after not in (None, parent and parent.id) else {}
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
        return self.id_and_found(place)[1]

    def id(self, place: Place) -> str:
        return self.id_and_found(place)[0]

    def id_and_found(self, place: Place) -> tuple[str, hardsave.Checkpoint | None]:
        """The checkpoint in this place, and its id or that of the next one that is saved there."""
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
        return (each for each in _all(line, name) if "id" in each.metadata)

    def latest(self, place: Place) -> tuple[hardsave.Checkpoint | None, str | None]:
        """The newest of a namespace, and the era of its writes if the timeline was taken back."""
        name = names.checkpoint(place.namespace)
        with self.at(place) as line:
            newest = next(self.rows(line.line, name), None)
            head = None if newest is None else line.line.head
            if newest is None or head is None:
                return newest, None
            found = _last_of(name, head, _all(line.line))
            if found is not None and found.id == newest.id:
                return found, None
            if found is not None:
                line.eras[id_of(found)] = id_of(newest)
            return found, id_of(newest)


def _all(line: hardsave.Timeline, name: str | None = None) -> Iterator[hardsave.Checkpoint]:
    """All of a timeline, the last one first."""
    after: str | None = None
    for limit in chain(_PAGES, repeat(_PAGE)):
        page = line.checkpoints(name=name, limit=limit, after=after)
        yield from page
        if page.next is None:
            return
        after = page.next


def _last_of(
    name: str, head: hardsave.Checkpoint, rows: Iterator[hardsave.Checkpoint]
) -> hardsave.Checkpoint | None:
    """The last of a namespace on the way back from the head, put by put: what a timeline was taken
    back behind is not on it. Where one on the way was deleted, the next of the namespace counts."""
    wanted: str | None = head.id
    passed: hardsave.Checkpoint | None = None  # since the last one on the way
    for each in rows:
        is_of_it = each.name == name and "id" in each.metadata
        if each.id == wanted:
            if is_of_it:
                return each
            wanted, passed = each.metadata.get(AFTER, each.parent), None
            if wanted is None:
                return None
        elif passed is None and is_of_it:
            passed = each
    return passed


def id_of(found: hardsave.Checkpoint) -> str:
    """The id by which LangGraph knows it."""
    return str(found.metadata["id"])
