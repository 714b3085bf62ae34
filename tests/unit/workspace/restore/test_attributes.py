"""What a snapshot does not hold stays with a file whose content is replaced."""

import errno
import os
import sys
from pathlib import Path

import pytest

from hardsave.workspace.restore.file_writer import copy_attributes
from tests.unit.workspace.room import Room

linux = pytest.mark.skipif(sys.platform != "linux", reason="attributes are read on Linux")


@pytest.fixture
def room(tmp_path: Path) -> Room:
    (tmp_path / "work").mkdir()
    return Room(tmp_path / "work")


def changed(room: Room, mode: int = 0o640) -> Path:
    """A file that is as it was again."""
    file = room.root / "file"
    file.write_text("old")
    file.chmod(mode)
    target = room.snapshot().root
    prepare(file)
    file.write_text("new")
    room.restore(target)
    assert file.read_text() == "old"
    return file


def prepare(file: Path) -> None:
    if sys.platform == "linux":
        os.setxattr(file, "user.note", b"kept")
    if os.geteuid() == 0:
        os.chown(file, 12_345, 54_321)


@linux
def test_extended_attributes_stay(room: Room) -> None:
    assert os.getxattr(changed(room), "user.note") == b"kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_owner_and_group_stay(room: Room) -> None:
    status = changed(room).stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (12_345, 54_321, 0o640)


@linux
def test_rights_that_were_given_to_a_program_do_not_pass_to_another(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives such rights")
    for name in ("old", "new"):
        (tmp_path / name).write_text(name)
    rights = bytes.fromhex("0100000200040000000000000000000000000000")
    os.setxattr(tmp_path / "old", "security.capability", rights)
    with (tmp_path / "old").open("rb") as old, (tmp_path / "new").open("r+b") as new:
        copy_attributes(old.fileno(), new.fileno())
    assert "security.capability" not in os.listxattr(tmp_path / "new")


@linux
def test_an_access_control_list_is_bounded_by_the_mode_that_is_restored(room: Room) -> None:
    """A private file stays private, even if it was opened to others later."""
    file = room.root / "file"
    file.write_text("old")
    file.chmod(0o600)
    target = room.snapshot().root
    file.write_text("new")
    entries = [(1, 6, -1), (2, 6, 12_345), (4, 4, -1), (16, 6, -1), (32, 0, -1)]
    acl = b"\2\0\0\0" + b"".join(
        tag.to_bytes(2, "little")
        + rights.to_bytes(2, "little")
        + (who % 2**32).to_bytes(4, "little")
        for tag, rights, who in entries
    )
    try:
        os.setxattr(file, "system.posix_acl_access", acl)
    except OSError as error:
        pytest.skip(f"no access control lists here: {error}")
    room.restore(target)
    assert file.read_text() == "old"
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_process_that_may_not_give_a_file_away_replaces_it_all_the_same(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refused)
    if sys.platform == "linux":
        monkeypatch.setattr(os, "listxattr", refused)
    changed(room)
