"""What passes between a process and the disk, one event each, kept as lines of a file.

The recorder writes them, the kill points are counted on them, and the replay of a power
loss builds disks from them. Paths are relative to the folder under test.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

Kind = Literal[
    "open",  # a file that was there
    "create",  # a file that was not
    "write",
    "truncate",
    "sync",
    "delete",
    "rename",  # its data is the new path
    "mkdir",
    "sync folder",
    "lock",
    "note",  # no call: what the process told about itself
]


@dataclass(frozen=True, slots=True)
class Event:
    """One call, or a note. `call` counts from 1; 0 is what happens inside another call."""

    kind: Kind
    path: str
    call: int = 0
    offset: int = 0  # of a write; the new size, of a truncate
    data: bytes = b""

    def line(self) -> bytes:
        return json.dumps({**asdict(self), "data": self.data.hex()}).encode() + b"\n"


class Journal:
    """A file of events. Each is written at once, so a killed process leaves whole lines."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def add(self, event: Event) -> None:
        os.write(self._file, event.line())


def read(path: Path) -> list[Event]:
    """The events of a journal, in order."""
    found = []
    for line in path.read_bytes().splitlines():
        fields = json.loads(line)
        found.append(Event(**{**fields, "data": bytes.fromhex(fields["data"])}))
    return found


def calls(events: list[Event]) -> list[Event]:
    """Those at which a process can be struck."""
    return [event for event in events if event.call]


def notes(events: list[Event]) -> list[str]:
    return [event.path for event in events if event.kind == "note"]
