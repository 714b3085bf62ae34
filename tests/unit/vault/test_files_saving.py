"""A checkpoint holds state and files together, or it does not exist."""

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.errors import Conflict, Misuse, NotFound, Unavailable
from hardsave.timeline.diff import FileDiff
from hardsave.vault.ahead import Ahead
from hardsave.vault.save import capturing
from hardsave.vault.vault import Vault
from hardsave.workspace.scan import walk
from hardsave.workspace.snapshot import builder as snapshots
from hardsave.workspace.snapshot.file_reader import FileReader
from tests.unit.vault.desk import Desk, put, refusal
from tests.unit.vault.stage import Watched


def names(checkpoint: hardsave.Checkpoint) -> list[str]:
    assert checkpoint.files is not None
    return [file.path for file in checkpoint.files.list()]


def test_state_and_files_are_one_commit(desk: Desk, store: Watched) -> None:
    desk.write(a_txt="one", sub__b_txt="two")
    saved = desk.line.save({"turn": 1}, workspace=desk.work)
    assert len(store.batches) == 1
    assert saved.state["turn"] == 1
    assert names(saved) == ["a.txt", "sub", "sub/b.txt"]
    assert saved.files is not None
    assert saved.files.read("sub/b.txt") == b"two"
    assert saved.files.workspace == str(desk.work)
    assert saved.not_captured == ()


def test_a_snapshot_on_what_the_handle_saved_asks_for_no_head(
    desk: Desk, store: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.save(1)
    for question in ("timeline", "checkpoint"):
        monkeypatch.setattr(store, question, lambda *_: pytest.fail("it knows the head"))
    desk.write(a_txt="one")
    saved = desk.line.save_files(desk.work)
    assert (saved.seq, saved.state["turn"]) == (2, 1)


def test_a_snapshot_goes_on_top_of_what_another_handle_saved(desk: Desk, store: Watched) -> None:
    desk.save(1)
    other = desk.vault.timeline("main")
    between = other.save({"turn": 2})
    desk.write(a_txt="one")
    saved = desk.line.save_files(desk.work)
    assert (saved.seq, saved.state["turn"], saved.parent) == (3, 2, between.id)


def test_a_snapshot_without_a_status_has_that_of_what_it_stands_on(
    desk: Desk, store: Watched
) -> None:
    """Not that of the head which somebody saw before: its agent may have ended since."""
    desk.save(1)
    desk.vault.timeline("main").save({"turn": 2}, status="ended")
    desk.write(a_txt="one")
    assert desk.line.save_files(desk.work, status=None).status == "ended"
    assert desk.vault.timeline("new").save_files(desk.work, status=None).status == "running"
    with pytest.raises(Misuse, match="status"):
        desk.line.save_files(desk.work, status="")


def test_a_save_that_fails_leaves_neither(desk: Desk, store: Watched) -> None:
    desk.write(a_txt="one")
    store.before_commit = Unavailable("the disk is full")
    with pytest.raises(Unavailable):
        desk.save(1)
    assert desk.line.head is None
    assert desk.vault.workspace(desk.work).last is None
    desk.save(2)
    assert [each.state["turn"] for each in desk.line.checkpoints()] == [2]


@pytest.mark.parametrize("name", ["a:1", "a\nb", "", "@", "x" * 201, 7])
def test_files_are_saved_on_no_timeline_that_could_not_be_named(desk: Desk, name: Any) -> None:
    desk.write(a_txt="one")
    with pytest.raises(Misuse, match="a timeline's name"):
        desk.vault.workspace(desk.work).save_files(timeline=name)
    assert list(desk.vault.timelines()) == []


@pytest.mark.parametrize("given", ["*.env", b"*.env", None, 7, [7], ["\ud800"]], ids=ascii)
@pytest.mark.parametrize("what", ["include", "leave_out"])
def test_one_pattern_alone_is_not_taken_for_its_letters(desk: Desk, what: str, given: Any) -> None:
    """`*` among them would capture every secret that there is, or nothing at all."""
    with pytest.raises(Misuse, match=f"^{what} "):
        desk.vault.workspace(desk.work, **{what: given})


def test_files_of_no_workspace_cannot_be_saved(desk: Desk) -> None:
    nowhere: Any = None
    with pytest.raises(Misuse, match="workspace is the directory"):
        desk.line.save_files(nowhere)


def test_a_conflicting_save_writes_no_files_either(desk: Desk) -> None:
    desk.write(a_txt="one")
    other = desk.vault.timeline("main")
    other.save({"turn": 1})
    with pytest.raises(Conflict):
        desk.save(2)
    assert desk.vault.workspace(desk.work).last is None


def test_what_is_large_is_stored_ahead_and_shows_only_with_its_checkpoint(
    desk: Desk, store: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots._Batches, "__init__", _small_batches)
    for number in range(50):
        put(desk.work, f"file-{number}", f"{number} " * 3_000)
    store.before_commit = Unavailable("no")
    with pytest.raises(Unavailable):
        desk.save(1)
    assert desk.vault.store.stats().checkpoints == 0
    assert not store._tenant(None).pins
    assert desk.vault.store.gc().objects > 0
    assert store.objects == {}
    saved = desk.line.save({"turn": 2}, workspace=desk.work)
    assert len(names(saved)) == 50
    assert not store._tenant(None).pins
    assert desk.vault.store.verify().faults == ()


def test_what_cannot_be_stored_ahead_fails_the_save(
    desk: Desk, store: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots._Batches, "__init__", _small_batches)
    for number in range(50):
        put(desk.work, f"file-{number}", f"{number} " * 3_000)
    real, puts = store.put, []

    def full(user: str | None, objects: Any, **pin: Any) -> None:
        puts.append(len(objects))
        if len(puts) == 4:
            raise Unavailable("the disk is full")
        real(user, objects, **pin)

    with monkeypatch.context() as patch:
        patch.setattr(store, "put", full)
        with pytest.raises(Unavailable, match="full"):
            desk.save(1)
    assert len(puts) == 4, "nothing goes on behind what has failed"
    assert not store._tenant(None).pins
    assert desk.line.head is None
    assert len(names(desk.line.save({"turn": 2}, workspace=desk.work))) == 50
    assert desk.vault.store.verify().faults == ()


def test_nothing_is_stored_behind_the_back_of_a_save_that_was_interrupted(
    desk: Desk, store: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots._Batches, "__init__", _small_batches)
    for number in range(50):
        put(desk.work, f"file-{number}", f"{number} " * 3_000)
    real, under_way = store.put, threading.Event()

    def slow(*given: Any, **pin: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            under_way.set()
            time.sleep(0.05)
        real(*given, **pin)

    def interrupted(ahead: Ahead) -> None:
        under_way.wait()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store, "put", slow)
        patch.setattr(Ahead, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            desk.save(1)
    assert not [each for each in threading.enumerate() if isinstance(each, Ahead)]
    assert not store._tenant(None).pins


def test_what_is_stored_already_is_not_stored_again_by_another_vault(
    desk: Desk, store: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no cache, so all that it finds is new to it; what is new to the store as well is
    asked for no further."""
    monkeypatch.setattr(snapshots._Batches, "__init__", _small_batches)
    for number in range(50):
        put(desk.work, f"file-{number}", f"{number} " * 3_000)
    asked, sizes = [], []
    real, really_put = store.missing, store.put

    def missing(user: str | None, hashes: Any) -> Any:
        asked.append(len(hashes))
        return real(user, hashes)

    def keep(user: str | None, objects: Any, **pin: Any) -> None:
        sizes.append(len(objects))
        really_put(user, objects, **pin)

    monkeypatch.setattr(store, "missing", missing)
    monkeypatch.setattr(store, "put", keep)
    first = desk.line.save({}, workspace=desk.work)
    assert len([each for each in asked if each > 1]) == 1
    assert len(sizes) > 5
    assert 0 not in sizes[1:]  # the first one only holds
    sizes.clear()
    found = names(first)
    with Vault(store) as other:
        again = other.timeline("other").save({}, workspace=desk.work)
        assert len(sizes) > 5
        assert not any(sizes)
        assert names(again) == found


def _small_batches(self: Any, put: Any, limit: int) -> None:
    self._put, self._limit, self._batch, self._bytes, self.made = put, 50_000, {}, 0, set()


def test_append_and_snapshot_take_files_along(desk: Desk) -> None:
    desk.write(a_txt="one")
    desk.line.append({"messages": ["hello"]}, workspace=desk.work)
    desk.write(a_txt="two")
    second = desk.line.append({"messages": ["again"]}, workspace=desk.work)
    desk.write(a_txt="three")
    third = desk.line.save_files(desk.work, name="by hand")
    assert third.read() == {"messages": ["hello", "again"]}
    assert third.kind == "manual"
    assert [c.files.read("a.txt") for c in (second, third) if c.files] == [b"two", b"three"]
    assert desk.line.append({"messages": ["without"]}).files is None


def test_a_snapshot_needs_no_state(desk: Desk) -> None:
    desk.write(a_txt="one")
    taken = desk.vault.workspace(desk.work).save_files()
    assert (taken.timeline, taken.read()) == ("main", None)
    assert names(taken) == ["a.txt"]


def test_an_unchanged_workspace_is_not_read_again(desk: Desk, store: Watched) -> None:
    for number in range(20):
        file = put(desk.work, f"file-{number}", f"{number}")
        os.utime(file, (1, 1))
    desk.save(1)
    count = len(store.objects)
    desk.save(1)
    assert len(store.objects) == count


def test_what_the_cache_speaks_of_may_be_collected(desk: Desk) -> None:
    desk.write(a_txt="one", b_txt="two")
    desk.save(1)
    desk.vault.store.purge(timeline="main")
    saved = desk.vault.timeline("other").save({}, workspace=desk.work)
    assert saved.files is not None
    assert saved.files.read("a.txt") == b"one"
    assert desk.vault.store.verify().faults == ()


def test_secrets_fifos_and_sockets_are_left_out_and_listed(desk: Desk) -> None:
    desk.write(a_txt="one", _env="TOKEN=1", sub__id_rsa="key")
    put(desk.work, "sub/id_rsa", "key")
    os.mkfifo(desk.work / "fifo")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(desk.work / "socket"))
    listener.close()
    saved = desk.line.save({}, workspace=desk.work)
    left_out = {each.path: each.reason for each in saved.not_captured}
    assert left_out["fifo"] == "a FIFO"
    assert left_out["socket"] == "a socket"
    assert "secret" in left_out[".env"]
    assert "secret" in left_out["sub/id_rsa"]
    assert not {".env", "sub/id_rsa", "fifo", "socket"} & {*names(saved)}


def test_include_asks_for_what_looks_secret_or_is_ignored(desk: Desk) -> None:
    desk.write(_env="TOKEN=1", _gitignore="build/\n", build__kept="yes", build__other="no")
    assert ".env" not in names(desk.line.save({}, workspace=desk.work))
    workspace = desk.vault.workspace(desk.work, include=[".env", "build/kept"])
    found = names(desk.line.save({}, workspace=workspace))
    assert {".env", "build/kept"} <= {*found}
    assert "build/other" not in found


@pytest.mark.parametrize("asked", ["build", "build/"])
def test_include_asks_for_a_directory_with_all_that_is_in_it(desk: Desk, asked: str) -> None:
    desk.write(_gitignore="build/\nother/\n", build__a="a", build__deep__b="b", other__c="c")
    put(desk.work, "build/deep/.env", "TOKEN=1")
    before = desk.line.save({}, workspace=desk.work)
    workspace = desk.vault.workspace(desk.work, include=[asked])
    found = desk.line.save({}, workspace=workspace)
    assert "build/a" not in names(before)
    assert {*names(found)} - {*names(before)} == {"build", "build/a", "build/deep", "build/deep/b"}
    assert [each.path for each in found.not_captured] == ["build/deep/.env"]


def test_caps_leave_out_and_say_so(desk: Desk) -> None:
    desk.write(small="x", large="x" * 1_000)
    workspace = desk.vault.workspace(desk.work, max_file_bytes=100)
    saved = workspace.save_files()
    assert names(saved) == ["small"]
    assert [(each.path, "cap" in each.reason) for each in saved.not_captured] == [("large", True)]
    again = desk.vault.workspace(desk.work).save_files()
    assert names(again) == ["large", "small"]


def test_a_cap_on_the_whole_leaves_out_and_says_so(desk: Desk) -> None:
    desk.write(one="x" * 60, two="x" * 60)
    saved = desk.vault.workspace(desk.work, max_total_bytes=100).save_files()
    assert len(names(saved)) == 1
    assert ["cap" in each.reason for each in saved.not_captured] == [True]


def test_the_stores_own_files_are_never_captured(tmp_path: Path) -> None:
    with hardsave.open(f"sqlite:///{tmp_path}/kept/store.db") as vault:
        put(tmp_path, "a.txt", "one")
        line = vault.timeline("main")
        first = line.save({"turn": 1}, workspace=tmp_path)
        put(tmp_path, "a.txt", "two")
        line.save({"turn": 2}, workspace=tmp_path)
        assert names(first) == ["a.txt", "kept"]
        line.rewind(first.id)
        assert (tmp_path / "a.txt").read_text() == "one"
        line.undo()
        assert line.load() == {"turn": 2}
        assert vault.store.verify().faults == ()


def test_files_that_are_called_like_the_store_are_captured(tmp_path: Path) -> None:
    for name in ("data.csv", "database.py", "data2/x", "sub/data"):
        put(tmp_path, name, "mine")
    put(tmp_path, "data.damaged-20260101T000000", "of the store, set aside")
    with hardsave.open(f"sqlite:///{tmp_path}/data") as vault:
        saved = vault.timeline("main").save({}, workspace=tmp_path)
        left_out = {each.path for each in saved.not_captured}
        found = names(saved)
    assert found == ["data.csv", "data2", "data2/x", "database.py", "sub", "sub/data"]
    assert {"data", "data-wal", "data-lock", "data.damaged-20260101T000000"} <= left_out


@pytest.mark.parametrize("path", ["/", "~"])
def test_everything_and_a_home_are_refused_unless_somebody_is_sure(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    put(home, "a.txt", "one")
    monkeypatch.setenv("HOME", str(home))
    with Vault(Watched()) as vault:
        line = vault.timeline("main")
        with pytest.raises(Misuse, match="home directory"):
            line.save({}, workspace=os.path.expanduser(path))
        assert line.head is None
        if path == "~":
            line.save({}, workspace=vault.workspace(home, sure=True))


def test_a_workspace_that_is_not_there_is_an_error(desk: Desk, tmp_path: Path) -> None:
    file = put(tmp_path, "file", "x")
    for wrong in (tmp_path / "nowhere", file):
        assert "is no directory" in str(refusal(desk.line.save, {}, workspace=wrong))


def test_another_users_files_cannot_be_seen(tmp_path: Path) -> None:
    store = Watched()
    work = tmp_path / "work"
    put(work, "a.txt", "hers")
    with Vault(store, user="ada") as ada, Vault(store, user="bob") as bob:
        saved = ada.timeline("main").save({}, workspace=work)
        assert bob.workspace(work).last is None
        line = bob.timeline("main")
        line.save({})
        for wrong in (saved.id, "main:1"):
            error = refusal(line.rewind, wrong, what="files", workspace=work)
            assert isinstance(error, NotFound)
        with pytest.raises(NotFound):
            bob.workspace(work).fork(saved.id, tmp_path / "stolen")
        assert not (tmp_path / "stolen").exists()


def test_status_says_what_has_changed_and_saves_nothing(desk: Desk, store: Watched) -> None:
    desk.write(a_txt="one", sub__b_txt="two", gone="x", _env="TOKEN=1")
    workspace = desk.vault.workspace(desk.work)
    first = workspace.status()
    assert (first.last, first.files.added) == (None, ("a.txt", "gone", "sub", "sub/b.txt"))
    assert [each.path for each in first.not_captured] == [".env"]
    desk.save(1)
    assert not workspace.status().files
    desk.write(a_txt="other", new="n")
    (desk.work / "gone").unlink()
    count = len(store.batches)
    found = workspace.status()
    assert found.last is not None
    assert found.files == FileDiff(("new",), ("gone",), ("a.txt",))
    assert len(store.batches) == count
    assert desk.seen()[b"a.txt"] != "one"


def test_what_one_vault_has_seen_another_builds_on(tmp_path: Path) -> None:
    put(tmp_path, "work/a.txt", "one")
    url = f"sqlite:///{tmp_path}/store.db"
    for turn in range(3):
        with hardsave.open(url) as vault:
            line = vault.timeline("main")
            line.save({"turn": turn}, workspace=tmp_path / "work")
            assert vault.store.verify().faults == ()
    with hardsave.open(url) as vault:
        put(tmp_path, "work/a.txt", "two")
        assert vault.workspace(tmp_path / "work").status().files.changed == ("a.txt",)


def test_files_differ_between_two_checkpoints(desk: Desk) -> None:
    desk.write(a_txt="one", gone="x")
    one = desk.save(1)
    desk.write(a_txt="two", new="y")
    (desk.work / "gone").unlink()
    two = desk.save(2)
    assert desk.vault.diff(one, two).files == FileDiff(("new",), ("gone",), ("a.txt",))
    three = desk.line.save({"turn": 3})
    assert not desk.vault.diff(two, three).files


def test_a_capture_that_fails_is_an_error_never_an_empty_snapshot(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write(a_txt="one")
    desk.save(1)
    desk.write(b_txt="new: the directory has to be listed")

    def failing(path: Any = ".") -> Any:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "scandir", failing)
    monkeypatch.setattr(os, "listdir", failing)
    error = refusal(desk.vault.workspace(desk.work).save_files, timeline="other")
    monkeypatch.undo()
    assert "Input/output" in str(error)
    assert [line.name for line in desk.vault.timelines()] == ["main"]


@pytest.mark.parametrize("when", ["between", "looking", "reading"])
@pytest.mark.parametrize("how", ["moved", "replaced", "removed"])
def test_a_workspace_that_goes_under_a_capture_is_an_error_never_an_empty_snapshot(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, when: str, how: str
) -> None:
    desk.write(a_txt="one", sub__b="b")
    places = {
        "looking": (walk.Walk, "_list"),
        "between": (capturing, "snapshot"),
        "reading": (FileReader, "read"),
    }
    where, name = places[when]
    real = getattr(where, name)

    def go(*given: Any) -> Any:
        if desk.work.exists() and any(desk.work.iterdir()):
            desk.work.rename(away := desk.work.with_name("away"))
            if how == "replaced":
                desk.work.mkdir()
            if how == "removed":
                shutil.rmtree(away)
        return real(*given)

    monkeypatch.setattr(where, name, go)
    error = refusal(desk.vault.workspace(desk.work).save_files)
    assert isinstance(error, Unavailable)
    assert "while it was being captured" in str(error)
    assert list(desk.vault.timelines()) == []


SPENT = r"""
import os, resource, sys
from pathlib import Path
import hardsave

work = Path(sys.argv[1], "work")
def write(text):
    for n in range(40):
        (work / f"d{n % 8}").mkdir(parents=True, exist_ok=True)
        (work / f"d{n % 8}/f{n}").write_text(f"{text} {n}")
    (work / ".gitignore").write_text(f"# {text}\n*.log\n")
    (work / "d0/a.log").write_text("ignored")

write("first")
with hardsave.open(f"sqlite:///{sys.argv[1]}/s.db") as vault:
    line = vault.timeline("main")
    line.save_files(work)
    used = len(os.listdir("/proc/self/fd"))
    for spare in range(16):
        write(spare)
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + spare, 4096))
        try:
            saved = line.save_files(work)
        except hardsave.Unavailable as error:
            assert "oo many open files" in str(error), error
            print("refused", end=" ")
        else:
            assert not saved.not_captured, saved.not_captured[:3]
            assert len(list(saved.files.list())) == 49, list(saved.files.list())
            print("saved", end=" ")
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors in /proc")
def test_a_process_with_too_many_open_files_saves_all_of_them_or_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SPENT, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    assert (words[0], words[-1]) == ("refused", "saved")


def test_a_capture_needs_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the interpreter shuts down, or a process may have no more of them."""

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    put(tmp_path / "work", "file", "content")
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
            saved = vault.timeline("main").save({}, workspace=tmp_path / "work")
            assert saved.files is not None
            assert saved.files.read("file") == b"content"
