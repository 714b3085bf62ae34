"""A reader of exports, written from docs/format.md alone. Nothing of Hardsave is used.

It is small on purpose: it shows that the page says enough. It reads honest files; what it
asserts is what makes a file whole.
"""

import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from blake3 import blake3

from tests.docs.format_reader import States, decoded, opened

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAGIC = bytes.fromhex("89 48 53 58 0d 0a 1a 0a")


class Timeline(NamedTuple):
    name: str
    head: bytes | None
    last: int
    created_at: int
    origin: bytes | None
    is_deleted: bool
    title: str


class Tombstone(NamedTuple):
    id: bytes
    timeline: str
    number: int
    parent: bytes | None


class Checkpoint(NamedTuple):
    id: bytes
    timeline: str
    number: int
    parent: bytes | None
    created_at: int
    name: str | None
    kind: str
    status: str
    description: str
    metadata: dict[str, Any]
    root: bytes
    snapshot: bytes | None
    workspace: bytes | None
    summary: bytes | None
    labels: list[list[str]]
    notes: list[list[Any]]
    is_hidden: bool


def hashed(data: bytes) -> bytes:
    return blake3(data).digest(length=20)


class ExportFile(States):
    """All of an export, in memory."""

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        magic, version, zero, more, *counts = struct.unpack("<8sHHIQQQ", data[:40])
        assert (magic, version, zero, more) == (MAGIC, 2, 0, 0)
        sections: dict[int, bytes] = {1: b"", 2: b"", 3: b"", 4: b""}
        for section, content in frames(data):
            sections[section] += content
        self.objects: dict[bytes, bytes] = {}
        for record in records(sections[1]):
            assert set(opened(record)[1]) <= self.objects.keys()
            self.objects[hashed(record)] = record
        self.timelines = [Timeline(*decoded(each, [])) for each in records(sections[2])]
        self.history = [remembered(decoded(each, [])) for each in records(sections[3])]
        found = [isinstance(each, Checkpoint) for each in self.history]
        assert counts == [len(self.timelines), found.count(True), found.count(False)]
        sizes = [len(each) for each in self.objects.values()]
        assert struct.unpack("<QQ", sections[4]) == (len(sizes), sum(sizes))

    def object(self, address: bytes) -> bytes:
        return self.objects[address]

    @property
    def checkpoints(self) -> list[Checkpoint]:
        return [each for each in self.history if isinstance(each, Checkpoint)]


def frames(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the sections and contents of all frames; the links are right, the trailer is last."""
    link = data[40:60]
    assert link == hashed(data[:40])
    at, section = 60, 0
    while at < len(data):
        assert section != 4
        before = section
        section, size, stored = struct.unpack("<BII", data[at : at + 9])
        assert before <= section <= 4
        assert 1 <= stored <= size <= 1_048_576
        body = data[at + 29 : at + 29 + stored]
        link = hashed(link + data[at : at + 9] + body)
        assert link == data[at + 9 : at + 29]
        yield section, body if stored == size else zstd.decompress(body)
        at += 29 + stored
    assert section == 4


def records(content: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(content):
        size = shift = 0
        while True:
            byte = content[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        assert 0 < size <= len(content) - at
        yield content[at : at + size]
        at += size


def remembered(fields: list[Any]) -> Checkpoint | Tombstone:
    if len(fields) == 4:
        return Tombstone(*fields)
    fields[9] = decoded(fields[9], [])
    if len(fields) == len(Checkpoint._fields) - 2:
        fields[-1:-1] = [[], []]
    for note in fields[-2]:
        note[1] = decoded(note[1], [])
    return Checkpoint(*fields)
