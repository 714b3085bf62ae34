"""What lies at a path is told as it is, not as it was when reading it began."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hardsave.workspace.restore import execution, steps
from hardsave.workspace.snapshot import content
from tests.unit.workspace.room import Room


def test_what_is_written_while_a_file_is_read_is_not_overlooked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program writes at the beginning of a large file while its end is compared."""
    (tmp_path / "work").mkdir()
    room = Room(tmp_path / "work")
    file = room.root / "large"
    file.write_bytes(b"a" * content.PART_BYTES * 3)
    target = room.snapshot().root
    file.write_bytes(b"b" * content.PART_BYTES * 3)
    made = room.plan(target)
    real, readings = content.parts, -1

    def busy(opened: int, size: int) -> Iterator[bytes]:
        nonlocal readings
        readings += readings >= 0
        for number, part in enumerate(real(opened, size)):
            if number == 1 and readings == 2:
                os.pwrite(writing, b"another's work", 0)
            yield part

    monkeypatch.setattr(content, "parts", busy)
    written = execution.begin(os.fsencode(room.root), made, room.journal, id=b"\1")
    writing = os.open(file, os.O_WRONLY)
    with execution.prepared(written, room.fetch, room.journal) as attempt:
        readings = 0  # of two that come, the second is the last look before it goes for good
    done = attempt.restored
    os.close(writing)
    assert readings == 3  # with that of the new one, which went instead
    assert done.conflicts == (steps.Conflict(b"large", "changed after the present was saved"),)
    assert file.read_bytes().startswith(b"another's work")
