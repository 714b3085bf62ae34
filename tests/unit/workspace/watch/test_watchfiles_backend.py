"""Where there is no inotify: a library tells what changed, in the same words."""

import builtins
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from hardsave.workspace.watch import inotify, watchfiles_backend
from hardsave.workspace.watch.inotify import Event
from hardsave.workspace.watch.watchfiles_backend import Watchfiles
from tests.unit.moments import another_moment
from tests.unit.workspace.churn import Churn
from tests.unit.workspace.room import WatchedRoom

NUMBERS = {b"/w": 1, b"/w/sub": 2, b"/c": 9}


@pytest.mark.parametrize(
    ("path", "kind", "is_dir", "told"),
    [
        (b"/w/a", "modified", False, [Event(1, inotify.MODIFY, b"a")]),
        (b"/w/a", "added", False, [Event(1, inotify.CREATE, b"a")]),
        (b"/w/a", "deleted", False, [Event(1, inotify.CREATE, b"a")]),
        (b"/w/new", "added", True, [Event(1, inotify.CREATE | inotify.IS_DIR, b"new")]),
        (
            b"/w/sub",
            "deleted",
            False,
            [
                Event(2, inotify.ATTRIB),
                Event(1, inotify.CREATE | inotify.IS_DIR, b"sub"),
            ],
        ),
        (b"/w", "modified", True, [Event(1, inotify.ATTRIB)]),
        # In a directory that is not watched: it is ignored, or too new.
        (b"/w/build/deep/x", "added", False, [Event(1, inotify.ATTRIB | inotify.IS_DIR, b"build")]),
        (b"/w/sub/new/x", "modified", False, [Event(2, inotify.ATTRIB | inotify.IS_DIR, b"new")]),
        (b"/elsewhere/x", "modified", False, []),
        (b"/c/cookie", "added", False, [Event(9, inotify.CREATE, b"cookie")]),
    ],
)
def test_a_change_of_a_path_is_told_to_the_nearest_directory(
    path: bytes, kind: str, is_dir: bool, told: list[Event]
) -> None:
    assert list(watchfiles_backend.events(path, kind, is_dir=is_dir, numbers=NUMBERS)) == told


@pytest.fixture
def room(tmp_path: Path) -> Iterator[WatchedRoom]:
    for name in ("work", "outside", "cookies"):
        (tmp_path / name).mkdir()
    paths = [str(tmp_path / name).encode() for name in ("work", "cookies")]
    with WatchedRoom(
        tmp_path / "work", tmp_path / "cookies", source=partial(Watchfiles, *paths)
    ) as room:
        room.now_ns = 10**9
        yield room


def test_settled_states_are_what_a_full_scan_finds(room: WatchedRoom, tmp_path: Path) -> None:
    churn = Churn(room.root, tmp_path / "outside", 1)
    for number in range(25):
        another_moment()
        churn.steps(3)
        made, anew = room.snapshot(), room.anew()
        said = f"round {number}: {churn.done}"
        assert (made.root, made.not_captured) == (anew.root, anew.not_captured), said
    assert room.incremental > 20, room.reasons
    assert list((tmp_path / "cookies").iterdir()) == []


def test_waiting_ends_when_something_changed(room: WatchedRoom) -> None:
    room.snapshot()
    assert not room.watch.wait(timeout=0.01)
    (room.root / "a").write_bytes(b"x")
    assert room.watch.wait(quiet=0.01, timeout=60)


def test_a_library_that_ends_means_a_look_at_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("work", "cookies"):
        (tmp_path / name).mkdir()
    paths = [str(tmp_path / name).encode() for name in ("work", "cookies")]
    sources: list[Watchfiles] = []

    def source() -> Watchfiles:
        sources.append(Watchfiles(*paths))
        return sources[-1]

    with WatchedRoom(tmp_path / "work", tmp_path / "cookies", source=source) as room:
        room.snapshot()
        sources[0]._stop.set()
        sources[0]._thread.join()
        room.snapshot()
        assert "can tell" in room.reasons[-1]
        room.snapshot()
        assert (room.incremental, len(sources)) == (1, 2)


def test_without_the_library_everything_is_looked_at(
    room: WatchedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: object, **named: object) -> object:
        if name == "watchfiles":
            raise ImportError(name)
        return real(name, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", missing)
    room.snapshot()
    assert "watchfiles is not installed" in room.reasons[-1]
