"""Real mounts in a workspace: what is mounted there is not captured, an overlay's own files are."""

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hardsave.workspace.filesystem.safe_open import RootDirectory
from tests.unit.workspace.room import Room, WatchedRoom, paths_of
from tests.unit.workspace.scan.test_scanner import captured

Mount = Callable[..., Path]


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """Mounts something at a place; all of it goes again."""
    mounted: list[Path] = []

    def mount(place: Path, *how: str) -> Path:
        try:
            done = subprocess.run(
                ["mount", *how, str(place)], capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            pytest.skip("there is no mount")
        if done.returncode:
            pytest.skip(f"this cannot be mounted here: {done.stderr.strip()}")
        mounted.append(place)
        return place

    yield mount
    for place in reversed(mounted):
        subprocess.run(["umount", str(place)], check=True)


def made(place: Path) -> Path:
    place.mkdir(parents=True)
    return place


def test_an_overlay_shows_files_of_several_devices_and_all_are_captured(
    tmp_path: Path, mount: Mount
) -> None:
    lower = mount(made(tmp_path / "lower"), "-t", "tmpfs", "tmpfs")
    upper = mount(made(tmp_path / "upper"), "-t", "tmpfs", "tmpfs")
    (made(lower / "sub") / "old").write_bytes(b"from the image")
    layers = f"lowerdir={lower},upperdir={made(upper / 'up')},workdir={made(upper / 'work')}"
    room = Room(mount(made(tmp_path / "root"), "-t", "overlay", "-o", layers, "overlay"))
    (room.root / "sub" / "new").write_bytes(b"written here")
    devices = {(room.root / "sub" / name).stat().st_dev for name in ("old", "new")}
    assert len(devices) == 2
    taken = room.snapshot()
    assert paths_of(taken) == []
    assert captured(room, taken) == {b"sub", b"sub/new", b"sub/old"}


def test_a_file_that_is_mounted_over_another_is_none_of_ours(tmp_path: Path, mount: Mount) -> None:
    disk = mount(made(tmp_path / "disk"), "-t", "tmpfs", "tmpfs")
    (disk / "file").write_bytes(b"elsewhere")
    room = Room(made(tmp_path / "root"))
    for name in ("own", "over"):
        (room.root / name).write_bytes(b"here")
    mount(room.root / "over", "--bind", str(disk / "file"))
    taken = room.snapshot()
    assert paths_of(taken) == [b"over"]
    assert captured(room, taken) == {b"own"}


@pytest.mark.parametrize("few", [0, 100])
def test_a_directory_that_is_mounted_from_the_same_disk_is_not_entered(
    tmp_path: Path, mount: Mount, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(RootDirectory, "few", few)
    (made(tmp_path / "other") / "file").write_bytes(b"elsewhere")
    made(tmp_path / "other" / "deep")
    mount(made(tmp_path / "root" / "sub"), "--bind", str(tmp_path / "other"))
    assert (tmp_path / "root" / "sub").stat().st_dev == (tmp_path / "root").stat().st_dev
    with RootDirectory(os.fsencode(tmp_path / "root")) as root:
        for path in (b"sub", b"sub/deep"):
            with pytest.raises(OSError, match=r".") as caught, root.directory(path):
                pass
            assert caught.value.errno == errno.EXDEV


def test_what_is_mounted_or_goes_again_wakes_who_waits(tmp_path: Path, mount: Mount) -> None:
    """The directory below was not watched meanwhile: there are no events for what is done in it."""
    place = made(tmp_path / "work" / "place")
    with WatchedRoom(tmp_path / "work", made(tmp_path / "cookies")) as room:
        room.snapshot()
        mount(made(tmp_path / "elsewhere"), "-t", "tmpfs", "tmpfs")
        assert not room.watch.wait(timeout=0.1)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(place)], check=True)
        try:
            assert room.watch.wait(quiet=0.01, timeout=5)
            assert captured(room, room.snapshot()) == set()
            assert not room.watch.wait(timeout=0.1)
        finally:
            subprocess.run(["umount", str(place)], check=True)
        (place / "below").write_bytes(b"new")
        assert room.watch.wait(quiet=0.01, timeout=5)
        assert captured(room, room.snapshot()) == {b"place", b"place/below"}
