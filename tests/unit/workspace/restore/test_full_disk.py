"""A real disk that is really full."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hardsave.errors import Unavailable
from tests.unit.workspace.room import Room, leftovers, picture

KIB = 1024


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount")
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_noticed_before_anything_changes_and_a_repeat_completes(
    small_disk: Path,
) -> None:
    room = Room(small_disk / "work")
    room.root.mkdir()
    for number in range(4):
        (room.root / str(number)).write_bytes(os.urandom(90 * KIB))
    target, then = room.snapshot().root, picture(room.root)
    for number in range(4):
        (room.root / str(number)).write_bytes(os.urandom(80 * KIB))
    (small_disk / "ballast").write_bytes(bytes(450 * KIB))
    made, before = room.plan(target), picture(room.root)
    with pytest.raises(Unavailable, match=r"No space left.*no file was changed.*then repeat"):
        room.carry_out(made)
    assert picture(room.root) == before
    assert leftovers(room.root) == []
    assert not room.journal.exists()
    (small_disk / "ballast").unlink()
    assert room.carry_out(made).conflicts == ()
    assert picture(room.root) == then
