"""Files that no export makes: right in their checksums, wrong in what they say."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from hardsave.objects.codec import Codec
from hardsave.objects.envelope import VALUE, seal
from hardsave.objects.frames import Counts, FrameReader, FrameWriter, Section
from hardsave.objects.hashing import Hash, digest
from hardsave.objects.types import Types

ENCODE = Codec(Types()).encode
MOMENT = 1_700_000_000_000_000

STATE = seal(VALUE, [], ENCODE({"turn": 1}))


def name(number: int) -> bytes:
    """An id."""
    return bytes([number]) * 12


def timeline(**changed: Any) -> list[Any]:
    fields = {
        "name": "main",
        "head": name(1),
        "last_seq": 1,
        "created_at": MOMENT,
        "origin": None,
        "is_deleted": False,
    }
    return list((fields | changed).values())


def checkpoint(**changed: Any) -> list[Any]:
    fields = {
        "id": name(1),
        "timeline": "main",
        "seq": 1,
        "parent": None,
        "created_at": MOMENT,
        "name": None,
        "kind": "automatic",
        "status": "running",
        "description": "",
        "metadata": b"\x80",
        "root": digest(STATE),
        "snapshot": None,
        "workspace": None,
        "is_hidden": False,
    }
    return list((fields | changed).values())


def tombstone(**changed: Any) -> list[Any]:
    fields = {"id": name(2), "timeline": "main", "seq": 2, "parent": None}
    return list((fields | changed).values())


class Forgery(NamedTuple):
    """What goes into a file; each part may be whatever encodes, or bytes as they are."""

    objects: Iterable[bytes] = (STATE,)
    timelines: Iterable[Any] = (timeline(),)
    history: Iterable[Any] = (checkpoint(),)
    counts: Counts | None = None
    more_objects: int = 0  # than there are, says the trailer

    def write(self, path: Path) -> None:
        counts = self.counts
        history = list(self.history)
        if counts is None:
            stones = sum(isinstance(each, list) and len(each) == 4 for each in history)
            counts = Counts(len(list(self.timelines)), len(history) - stones, stones)
        with path.open("wb") as file:
            writer = FrameWriter(lambda data: (file.write(data), None)[1], counts)
            for data in self.objects:
                writer.add(Section.OBJECTS, data)
            for line in self.timelines:
                writer.add(Section.TIMELINES, _bytes(line))
            for each in history:
                writer.add(Section.HISTORY, _bytes(each))
            writer._objects += self.more_objects
            writer.finish()


def _bytes(record: Any) -> bytes:
    return record if isinstance(record, bytes) else ENCODE(record)


def objects_of(path: Path) -> dict[Hash, bytes]:
    """The objects of an export, in their order."""
    data = path.read_bytes()
    reader = FrameReader(lambda size, at: data[at : at + size], str(path))
    records = reader.records(dict.fromkeys(Section, 1 << 30))
    return {digest(each): each for section, each in records if section is Section.OBJECTS}
