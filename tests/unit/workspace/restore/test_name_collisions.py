"""Names that are one to some file systems: what is made is not taken for what goes.

On a file system that is really like that: this one, if it is; else one of our own.
"""

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hardsave.errors import Unavailable
from hardsave.workspace.entries import DIRECTORY, FILE, Entry
from hardsave.workspace.restore import execution, journal
from hardsave.workspace.restore.name_collisions import collisions, folded
from hardsave.workspace.restore.plan import Groups, Step, arrange
from hardsave.workspace.restore.steps import Steps
from hardsave.workspace.snapshot.compare import Difference
from tests.unit.workspace import caseless
from tests.unit.workspace.room import Room, leftovers, picture

_DETACH = 2


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A directory in which `A` and `a` are the same."""
    (tmp_path / "probe").touch()
    if (tmp_path / "PROBE").exists():
        yield tmp_path
        return
    if sys.platform != "linux" or os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        pytest.skip("needs a file system without case, or root and FUSE to make one")
    place = tmp_path / "caseless"
    place.mkdir()
    command = [sys.executable, caseless.__file__, str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        assert server.stdout is not None
        if server.stdout.readline() != b"ready\n":
            pytest.skip("no file system can be mounted here")
        try:
            yield place
        finally:
            ctypes.CDLL(None).umount2(os.fsencode(place), _DETACH)
            server.wait(60)


@pytest.fixture
def room(folder: Path) -> Room:
    (folder / "work").mkdir()
    return Room(folder / "work")


def put(path: Path, text: str = "x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def recase(path: Path, name: str) -> Path:
    """By way of another name: to rename a file to itself does nothing."""
    return path.rename(path.with_name("between")).rename(path.with_name(name))


def a_file(root: Path) -> None:
    recase(root / "readme.md", "README.md")


def a_file_and_its_content(root: Path) -> None:
    recase(root / "readme.md", "README.md").write_text("other")


def a_directory(root: Path) -> None:
    recase(root / "src", "Src")


def a_directory_and_what_is_in_it(root: Path) -> None:
    recase(root / "src" / "lib", "LIB")
    into = recase(root / "src", "Src")
    (into / "a").unlink()
    put(into / "new")
    put(into / "LIB/b", "other")


def a_file_for_a_directory(root: Path) -> None:
    (root / "readme.md").unlink()
    put(root / "README.md" / "in")


def two_for_each_other(root: Path) -> None:
    (root / "readme.md").rename(root / "between")
    (root / "notes").rename(root / "README.md")
    (root / "between").rename(root / "NOTES")


CHANGES = [
    *(a_file, a_file_and_its_content, a_directory, a_directory_and_what_is_in_it),
    *(a_file_for_a_directory, two_for_each_other),
]


def began(room: Room) -> dict[bytes, object]:
    put(room.root / "readme.md", "read me")
    put(room.root / "notes", "notes")
    for name in ("a", "lib/b"):
        put(room.root / "src" / name, name)
    return picture(room.root)


@pytest.mark.parametrize("change", CHANGES)
def test_what_has_another_case_comes_back(room: Room, change: Callable[[Path], None]) -> None:
    before = began(room)
    target = room.snapshot().root
    change(room.root)
    present, after = room.snapshot().root, picture(room.root)
    assert after != before
    for wanted, then in ((target, before), (present, after), (target, before)):
        assert room.restore(wanted).conflicts == ()
        assert picture(room.root) == then


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("back", [False, True])
def test_interrupted_anywhere_it_is_finished_or_taken_back(
    room: Room, change: Callable[[Path], None], back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = began(room)
    target = room.snapshot().root
    change(room.root)
    present, after = room.snapshot().root, picture(room.root)
    made = room.plan(target, present)
    real = Steps._guarded
    for strike in range(1, 2 * len(made.steps)):
        left = strike

        def struck(self: Steps, number: int, step: Step, do: Callable[[int, Step], None]) -> None:
            nonlocal left
            left -= 1
            if not left:
                raise Unavailable("the power is gone")
            real(self, number, step, do)

        monkeypatch.setattr(Steps, "_guarded", struck)
        monkeypatch.setattr(Steps, "abandon", lambda _: None)
        monkeypatch.setattr(journal, "remove", lambda _: None)
        with suppress(Unavailable):
            room.carry_out(made)
        monkeypatch.undo()
        done = execution.recover(room.journal, room.fetch, back=back)
        assert done is not None
        assert done.conflicts == ()
        assert leftovers(room.root) == []
        assert picture(room.root) == (after if back else before)
        room.restore(present)
        assert picture(room.root) == after


def test_a_directory_that_keeps_something_keeps_its_name_and_gets_its_files(room: Room) -> None:
    began(room)
    put(room.root / ".gitignore", "ignored\n")
    target = room.snapshot().root
    into = recase(room.root / "src", "Src")
    put(into / "ignored", "precious")
    put(into / "a", "other")
    assert room.restore(target).kept == (b"Src",)
    assert {name: (into / name).read_text() for name in ("a", "lib/b", "ignored")} == {
        "a": "a",
        "lib/b": "lib/b",
        "ignored": "precious",
    }


# Decided over plain data


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"README.md", b"readme.MD"),
        ("Straße".encode(), b"STRASSE"),
        ("\u00e9t\u00e9".encode(), "E\u0301te\u0301".encode()),
    ],
)
def test_names_that_may_be_taken_for_each_other_fold_to_one(one: bytes, other: bytes) -> None:
    assert folded(one) == folded(other)


def test_names_that_are_no_text_fold_to_themselves() -> None:
    assert folded(b"\xff\xfe") == b"\xff\xfe"
    assert folded(b"a") != folded(b"b")


def test_a_collision_is_between_one_that_goes_and_one_that_is_made() -> None:
    assert collisions([b"src", b"src/a", b"x"], [b"Src", b"Src/a", b"y"]) == {b"src", b"Src"}
    assert collisions([b"d/a"], [b"d/A"]) == {b"d/a", b"d/A"}
    assert collisions([b"a", b"A"], []) == frozenset()
    assert collisions([b"same"], [b"same"]) == frozenset()


def test_what_goes_by_another_case_goes_first() -> None:
    file, directory = Entry(FILE, 0o644, 1, b"1" * 20), Entry(DIRECTORY, 0o755, 0, b"3" * 20)
    changes = [
        Difference(b"Src", directory, None),
        Difference(b"Src/a", file, None),
        Difference(b"src", None, directory),
        Difference(b"src/a", None, file),
        Difference(b"z", file, None),
    ]
    done = [(step.do, step.path, step.via) for step in arrange(changes, {}, Groups())]
    assert done == [
        ("remove", b"Src/a", b""),
        ("rmdir", b"Src", b""),
        ("mkdir", b"src", b""),
        ("write", b"src/a", b""),  # staged above, where there is a directory already
        ("remove", b"z", b""),
        ("close", b"src", b""),
    ]
