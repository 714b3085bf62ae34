"""A checkpoint saver such as graph frameworks ask for, on the public names of Hardsave alone.

A thread's namespaces are timelines `thread/THREAD/NAMESPACE`. The framework's checkpoint ids become
ids of checkpoints, its pending writes notes, and the metadata that it filters by labels. What a
thread deletes stays deleted: an id that comes again gets another generation.
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import hardsave

SPECIAL = {"__error__": -1, "__interrupt__": -3, "__resume__": -4}  # replaced, where others stay


class Where(NamedTuple):
    """A place in a thread; without an id the newest."""

    thread: str
    namespace: str = ""
    id: str | None = None


class Write(NamedTuple):
    task: str
    channel: str
    value: Any


class Saved(NamedTuple):
    """What `get_tuple` gives."""

    where: Where
    state: Any
    metadata: Mapping[str, Any]
    parent: str | None
    writes: list[Write]


class ThreadSaver:
    def __init__(self, vault: hardsave.Vault) -> None:
        self._vault = vault
        self._lines: dict[str, hardsave.Timeline] = {}
        self._early: dict[Where, dict[str, Any]] = {}  # writes whose checkpoint is still to come
        self._lock = threading.RLock()

    def put(
        self,
        where: Where,
        id: str,
        state: Any,
        metadata: Mapping[str, Any],
        files: "hardsave.CapturedFiles | None" = None,
    ) -> Where:
        """`where` names the checkpoint that it stands on."""
        place = where._replace(id=id)
        parent = None if where.id is None else self._find(where)
        with self._lock:
            line = self._line(where)
            line.save(
                state,
                metadata={"id": id, "parent": where.id, "metadata": dict(metadata)},
                labels=_labels(metadata),
                notes=self._early.get(place),
                workspace=files,
                parent=parent,
                id=self._id(place),
                expect=hardsave.ANY_HEAD,
            )
            self._early.pop(place, None)
        return place

    def put_writes(
        self, where: Where, writes: Sequence[tuple[str, Any]], task: str, path: str = ""
    ) -> None:
        notes = {
            f"{task} {(place := SPECIAL.get(channel, at))}": (path, task, place, channel, value)
            for at, (channel, value) in enumerate(writes)
        }
        replaces = all(channel in SPECIAL for channel, _ in writes)
        with self._lock:
            found = self._find(where)
            if found is not None:
                self._vault.put_notes(found, notes, replace=replaces)
                return
            early = self._early.setdefault(where, {})
            self._early[where] = early | notes if replaces else notes | early

    def get_tuple(self, where: Where) -> Saved | None:
        if where.id is not None:
            found = self._find(where)
        else:
            found = next(iter(self._line(where).checkpoints(limit=1)), None)
        return None if found is None else _saved(found)

    def list(
        self,
        where: Where | None,
        *,
        filter: Mapping[str, Any] | None = None,
        before: str | None = None,
        limit: int = 1_000,
    ) -> Iterator[Saved]:
        """Newest first; of all threads if none is named. `before` is an id: only older ones."""
        labels = _labels(filter or {})
        if where is None:
            found = iter(self._vault.checkpoints(labels=labels, limit=limit))
        else:
            found = iter(self._line(where).checkpoints(labels=labels, limit=limit))
        older = (each for each in found if before is None or each.metadata["id"] < before)
        return map(_saved, older)

    def copy_thread(self, source: str, target: str) -> None:
        """All checkpoints, in the order in which they were saved, with their writes and parents."""
        for line in self._vault.timelines(prefix=_prefix(source)):
            namespace = unquote(line.name.removeprefix(_prefix(source)))
            for one in reversed(line.checkpoints(limit=10_000)):
                place = Where(target, namespace, one.metadata["id"])
                above = one.metadata["parent"]
                parent = None if above is None else self._find(place._replace(id=above))
                self._line(place).copy(
                    one, id=self._id(place), parent=parent, expect=hardsave.ANY_HEAD
                )

    def delete_thread(self, thread: str) -> None:
        with self._lock:
            for line in list(self._vault.timelines(prefix=_prefix(thread))):
                line.delete()
            for place in [place for place in self._early if place.thread == thread]:
                del self._early[place]
            self._lines.clear()

    def _line(self, where: Where) -> hardsave.Timeline:
        """One handle a namespace: it remembers what it saved last."""
        name = _prefix(where.thread) + quote(where.namespace, safe="")
        return self._lines.setdefault(name, self._vault.timeline(name))

    def _find(self, where: Where) -> hardsave.Checkpoint | None:
        try:
            return self._vault.get(self._id(where))
        except hardsave.NotFound:
            return None

    def _id(self, where: Where) -> str:
        """That of the checkpoint in this place, or of the next one that is saved there."""
        thread, namespace, named = where
        assert named is not None
        for generation in count():
            id = hardsave.checkpoint_id(thread, namespace, named, str(generation))
            if not self._vault.knows(id):
                return id
            try:
                self._vault.get(id)
            except hardsave.NotFound:
                continue  # deleted: it is not to come back
            return id
        raise AssertionError


def _prefix(thread: str) -> str:
    return f"thread/{quote(thread, safe='')}/"


def _labels(metadata: Mapping[str, Any]) -> dict[str, str]:
    return {key: json.dumps(value, sort_keys=True) for key, value in metadata.items()}


def _saved(found: hardsave.Checkpoint) -> Saved:
    thread, _, namespace = found.timeline.removeprefix("thread/").partition("/")
    said = found.metadata
    notes = sorted(found.notes.values(), key=lambda note: note[:3])
    writes = [Write(task, channel, value) for _, task, _, channel, value in notes]
    where = Where(unquote(thread), unquote(namespace), said["id"])
    return Saved(where, found.read(), said["metadata"], said["parent"], writes)
