"""Nothing is opened outside of a root, with the kernel's help and without."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from hardsave.errors import Unavailable
from hardsave.workspace.filesystem import safe_open
from hardsave.workspace.filesystem.safe_open import RootDirectory, rename_to_nothing


@pytest.fixture(params=["kernel", "few", "walk"])
def root(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RootDirectory]:
    monkeypatch.setattr(RootDirectory, "few", 100 if request.param == "few" else 0)
    if request.param == "walk":
        monkeypatch.setattr(safe_open, "_openat2", lambda: None)
    elif safe_open._openat2() is None:
        pytest.skip("this kernel has no openat2")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_bytes(b"outside")
    (tmp_path / "work/sub").mkdir(parents=True)
    (tmp_path / "work/sub/file").write_bytes(b"inside")
    with RootDirectory(os.fsencode(tmp_path / "work")) as opened:
        yield opened


def read(root: RootDirectory, path: bytes) -> bytes:
    with os.fdopen(root.open(path), "rb") as file:
        return file.read()


def test_what_lies_beneath_is_opened(root: RootDirectory) -> None:
    assert read(root, b"sub/file") == b"inside"
    with root.directory(b"sub") as sub, root.directory(b"") as top:
        assert os.listdir(sub) == ["file"]
        assert os.listdir(top) == ["sub"]


def test_a_file_is_created_with_its_mode(root: RootDirectory) -> None:
    os.close(root.open(b"sub/new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    assert os.stat(b"sub/new", dir_fd=root.fd).st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "path", [b"../outside/file", b"sub/../../outside/file", b"/etc/passwd", b"link/file", b"last"]
)
def test_no_path_leads_outside(root: RootDirectory, path: bytes) -> None:
    os.symlink(b"../outside", b"link", dir_fd=root.fd)
    os.symlink(b"../outside/file", b"last", dir_fd=root.fd)
    with pytest.raises(OSError, match=r"."):
        root.open(path)


def test_a_link_that_stays_inside_is_not_followed_either(root: RootDirectory) -> None:
    os.symlink(b"sub", b"link", dir_fd=root.fd)
    with pytest.raises(OSError, match=r"."):
        root.open(b"link/file")


def test_no_directory_leads_outside(root: RootDirectory) -> None:
    os.symlink(b"../outside", b"link", dir_fd=root.fd)
    os.symlink(b"sub", b"inside", dir_fd=root.fd)
    os.mkdir(b"sub/deep", dir_fd=root.fd)
    os.symlink(b"deep", b"sub/link", dir_fd=root.fd)
    for path in (b"..", b"sub/../../outside", b"/etc", b"link", b"inside", b"inside/deep"):
        with pytest.raises(OSError, match=r"."), root.directory(path):
            pass
    for path in (b"sub/link", b"sub/file", b"none"):
        with pytest.raises(OSError, match=r"."), root.directory(path):
            pass
    with root.directory(b"sub/deep") as deep:
        assert os.listdir(deep) == []


def test_a_few_directories_are_opened_without_what_takes_long_to_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if safe_open._openat2() is None or safe_open._mount(0) is None:
        pytest.skip("this kernel has no openat2, or does not tell of mounts")
    asked: list[bytes] = []
    (tmp_path / "sub").mkdir()

    def kernel(root: int, path: bytes, flags: int, mode: int) -> int:
        asked.append(path)
        return os.open(path, flags, mode, dir_fd=root)

    monkeypatch.setattr(safe_open, "_openat2", lambda: kernel)
    monkeypatch.setattr(RootDirectory, "few", 3)
    for _ in range(2):  # what is loaded by then stays loaded
        with RootDirectory(os.fsencode(tmp_path)) as root:
            for _ in range(4):
                with root.directory(b"sub"):
                    pass
    assert asked == [b"sub"] * 5


def test_who_cannot_open_more_is_told_so_and_nothing_else(root: RootDirectory) -> None:
    with root.directory(b"sub") as free:
        pass
    for most in (free - 1, free, free + 1):
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, limits[1]))
        try:
            os.close(root.open(b"sub", os.O_RDONLY | os.O_DIRECTORY))
        except Unavailable:
            continue
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_no_descriptor_is_left_open(root: RootDirectory) -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for path in (b"sub/file", b"sub/none", b"none/file", b"sub/file/x", b"../x"):
        try:
            os.close(root.open(path))
        except OSError:
            continue
    if before:
        assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("by_kernel", [True, False])
def test_a_rename_to_nothing_replaces_nothing(
    tmp_path: Path, by_kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not by_kernel:
        monkeypatch.setattr(safe_open, "_rename", lambda: None)
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    with RootDirectory(os.fsencode(tmp_path)) as root:
        with pytest.raises(FileExistsError):
            rename_to_nothing(b"a", root.fd, b"b", root.fd)
        rename_to_nothing(b"a", root.fd, b"c", root.fd)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"b": b"b", "c": b"a"}
