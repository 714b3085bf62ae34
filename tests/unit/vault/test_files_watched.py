"""A vault that watches a workspace captures what one that looks at everything would."""

import os
import sys
import time

import pytest

from hardsave.errors import Misuse
from tests.unit.vault.desk import Desk, put

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


def looks(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Which paths in the workspace `lstat` is asked about from now on."""
    real = os.lstat
    looked: list[bytes] = []

    def lstat(path: str | bytes, *, dir_fd: int | None = None) -> os.stat_result:
        inside = os.fsencode(path).removeprefix(os.fsencode(desk.work) + b"/")
        if dir_fd is not None or inside not in (os.fsencode(path), b".git"):
            looked.append(inside)
        return real(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "lstat", lstat)
    return looked


def age() -> None:
    """Make every stamp old enough to prove something: the time of a change cannot be set."""
    time.sleep(0.03)


def test_a_watched_workspace_is_looked_at_where_it_changed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write(a_txt="one", sub__b_txt="two", sub__deep__c_txt="three", other__d_txt="four")
    with desk.vault.workspace(desk.work).watch():
        age()
        desk.save(1)
        looked = looks(desk, monkeypatch)
        desk.save(2)
        assert looked == []
        desk.write(sub__b_txt="changed")
        age()
        desk.save(3)
        assert looked == [b"sub/b.txt"]
    before, after = desk.line.get("main:2"), desk.line.get("main:3")
    assert before.files is not None
    assert after.files is not None
    assert before.files.read("sub/b.txt") == b"two"
    assert after.files.read("sub/b.txt") == b"changed"


def test_a_look_that_finds_nothing_new_is_one_to_build_on(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when watching begins after the last save."""
    desk.write(a_txt="one", sub__b_txt="two")
    age()
    desk.save(1)
    workspace = desk.vault.workspace(desk.work)
    with workspace.watch():
        assert not workspace.status().files
        looked = looks(desk, monkeypatch)
        desk.write(a_txt="changed")
        age()
        assert workspace.status().files.changed == ("a.txt",)
        desk.save(2)
        assert set(looked) == {b"a.txt"}
    files = desk.line.get().files
    assert files is not None
    assert files.read("a.txt") == b"changed"


def test_what_a_rewind_writes_is_found_by_the_next_capture(desk: Desk) -> None:
    desk.write(a_txt="one", sub__b_txt="two")
    with desk.vault.workspace(desk.work).watch() as eyes:
        desk.save(1)
        put(desk.work, "new/deep/file", "x")
        desk.write(a_txt="changed")
        desk.save(2)
        desk.line.rewind("main:1")
        assert eyes.wait(quiet=0.01, timeout=60)
        status = desk.vault.workspace(desk.work).status()
        assert (desk.read("a.txt"), list(desk.work.glob("new/deep/*"))) == ("one", [])
        desk.save(3)
    last = desk.line.head
    assert last is not None
    assert last.files == desk.line.get("main:1").files
    assert status.not_captured == ()


def test_a_save_that_failed_loses_nothing_of_what_was_told(desk: Desk) -> None:
    desk.write(a_txt="one")
    with desk.vault.workspace(desk.work).watch():
        desk.save(1)
        desk.write(a_txt="changed", sub__b_txt="new")
        desk.vault.workspace(desk.work).status()  # a look that nothing is built on
        desk.save(2)
    head = desk.line.head
    assert head is not None
    assert head.files is not None
    assert head.files.read("a.txt") == b"changed"
    assert "sub/b.txt" in head.files


def test_one_watch_is_enough(desk: Desk) -> None:
    workspace = desk.vault.workspace(desk.work)
    with workspace.watch(), pytest.raises(Misuse, match="already"), workspace.watch():
        pass
    with workspace.watch():
        desk.save(1)
