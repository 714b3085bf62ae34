"""What another program writes at the very moment in which a file is replaced or removed stays."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hardsave.workspace.filesystem import safe_open
from hardsave.workspace.restore import disk_state, execution, swap
from hardsave.workspace.restore.steps import Restored
from tests.unit.workspace.room import Room, leftovers

MINE = "another program's work"


@pytest.fixture
def room(tmp_path: Path) -> Room:
    (tmp_path / "work").mkdir()
    return Room(tmp_path / "work")


def in_place(path: Path) -> None:
    path.write_text(MINE)


def by_a_new_file(path: Path) -> None:
    path.with_name("editor").write_text(MINE)
    path.with_name("editor").rename(path)


def by_a_symlink(path: Path) -> None:
    path.unlink()
    path.symlink_to(MINE)


def by_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "in it").write_text(MINE)


WAYS = (in_place, by_a_new_file, by_a_symlink, by_a_directory)
Way = Callable[[Path], None]


def what_lies_at(path: Path) -> str:
    if path.is_symlink():
        return os.readlink(path)
    return (path / "in it" if path.is_dir() else path).read_text()


def just_before(
    monkeypatch: pytest.MonkeyPatch, call: str, *meddling: Callable[[], object]
) -> None:
    """Let another program write just before each of these calls."""
    real: Callable[..., Any] = getattr(safe_open, call)
    waiting = list(meddling)

    def busy(*names: Any) -> Any:
        if waiting:
            waiting.pop(0)()
        return real(*names)

    monkeypatch.setattr(swap, call, busy)


def reasons(restored: Restored) -> dict[bytes, str]:
    return {each.path: each.reason for each in restored.conflicts}


def replaced(room: Room) -> tuple[Path, Any]:
    """A file, and a plan that gives it other content of the same length."""
    path = room.root / "file"
    path.write_text("what shall be there")
    target = room.snapshot().root
    path.write_text("what is there so fa")
    return path, room.plan(target)


def removed(room: Room) -> tuple[Path, Any]:
    """A file, and a plan that removes it."""
    target = room.snapshot().root
    path = room.root / "file"
    path.write_text("what is there so fa")
    return path, room.plan(target)


@pytest.mark.parametrize("write", WAYS)
@pytest.mark.parametrize(("made", "call"), [(replaced, "exchange"), (removed, "rename_to_nothing")])
def test_what_is_written_in_the_last_moment_stays(
    room: Room, monkeypatch: pytest.MonkeyPatch, made: Any, call: str, write: Way
) -> None:
    path, plan = made(room)
    just_before(monkeypatch, call, lambda: write(path))
    restored = room.carry_out(plan)
    assert reasons(restored) == {b"file": "changed after the present was saved"}
    assert what_lies_at(path) == MINE
    assert leftovers(room.root) == []
    assert not room.journal.exists()


@pytest.mark.parametrize(("made", "call"), [(replaced, "exchange"), (removed, "rename_to_nothing")])
def test_what_goes_in_the_last_moment_does_not_come_back(
    room: Room, monkeypatch: pytest.MonkeyPatch, made: Any, call: str
) -> None:
    path, plan = made(room)
    just_before(monkeypatch, call, path.unlink)
    assert reasons(room.carry_out(plan)).keys() == {b"file"}
    assert list(room.root.iterdir()) == []


@pytest.mark.parametrize(("made", "call"), [(replaced, "exchange"), (removed, "rename_to_nothing")])
def test_what_is_written_twice_in_the_last_moment_is_kept_both_times(
    room: Room, monkeypatch: pytest.MonkeyPatch, made: Any, call: str
) -> None:
    path, plan = made(room)
    just_before(
        monkeypatch, call, lambda: path.write_text("once"), lambda: path.write_text("twice")
    )
    reason = reasons(room.carry_out(plan))[b"file"]
    (aside,) = leftovers(room.root)
    assert aside.name in reason
    assert (path.read_text(), aside.read_text()) == ("twice", "once")


def test_what_was_swapped_gets_its_name_back_where_the_new_one_is_gone_by_then(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, plan = replaced(room)
    just_before(monkeypatch, "exchange", lambda: path.write_text(MINE), path.unlink)
    assert reasons(room.carry_out(plan)).keys() == {b"file"}
    assert path.read_text() == MINE
    assert leftovers(room.root) == []


def test_a_ctrl_c_right_after_the_exchange_loses_nothing(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, plan = replaced(room)

    def interrupted(*names: Any) -> bool:
        path.write_text(MINE)
        safe_open.exchange(*names)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(swap, "exchange", interrupted)
        with pytest.raises(KeyboardInterrupt):
            room.carry_out(plan)
    restored = execution.recover(room.journal, room.fetch)
    assert restored is not None
    assert reasons(restored).keys() == {b"file"}
    assert path.read_text() == MINE
    assert leftovers(room.root) == []


@pytest.mark.parametrize("write", WAYS)
@pytest.mark.parametrize(("made", "call"), [(replaced, "exchange"), (removed, "rename_to_nothing")])
def test_who_recovers_finds_what_was_written_in_the_moment_before_a_death(
    room: Room, monkeypatch: pytest.MonkeyPatch, made: Any, call: str, write: Way
) -> None:
    path, plan = made(room)
    with monkeypatch.context() as patched:
        just_before(patched, call, lambda: write(path))
        patched.setattr(disk_state, "is_entry", _dies_aside)
        with pytest.raises(SystemExit):
            room.carry_out(plan)
    assert leftovers(room.root) != []
    for _ in range(2):  # as often as one likes
        restored = execution.recover(room.journal, room.fetch)
        assert restored is None or reasons(restored).keys() == {b"file"}
        assert what_lies_at(path) == MINE
        assert leftovers(room.root) == []


def test_a_file_system_that_cannot_exchange_names_is_written_all_the_same(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swap, "exchange", lambda *_: False)
    path, plan = replaced(room)
    assert room.carry_out(plan).conflicts == ()
    assert path.read_text() == "what shall be there"
    path, plan = replaced(room)
    path.write_text(MINE.ljust(19))
    assert reasons(room.carry_out(plan)).keys() == {b"file"}
    assert path.read_text() == MINE.ljust(19)
    assert leftovers(room.root) == []


_is_entry = disk_state.is_entry


def _dies_aside(name: bytes, directory: int, entry: Any) -> bool:
    if name.endswith(b"-aside"):
        raise SystemExit
    return _is_entry(name, directory, entry)


def test_a_file_that_may_not_be_replaced_stays_and_nothing_is_left_beside_it(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that is immutable: the kernel refuses every call that would give its name away."""
    path, plan = replaced(room)
    real = os.rename

    def refused(source: bytes, target: bytes, **directories: int) -> None:
        if target == b"file":
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        real(source, target, **directories)

    monkeypatch.setattr(swap, "exchange", lambda *names: False)
    monkeypatch.setattr(os, "rename", refused)
    done = room.carry_out(plan)
    monkeypatch.undo()
    assert reasons(done) == {b"file": "it cannot be restored: Operation not permitted"}
    assert path.read_text() == "what is there so fa"
    assert leftovers(room.root) == []
