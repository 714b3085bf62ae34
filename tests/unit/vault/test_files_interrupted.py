"""A restore that was interrupted is settled by whoever comes next, wherever that is."""

import logging
import os
import shutil
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import hardsave
from hardsave.errors import Corrupt, Misuse, Unavailable
from hardsave.objects.codec import Codec
from hardsave.objects.hashing import digest
from hardsave.stores.base import Batch
from hardsave.workspace.restore import journal, steps, swap
from tests.unit.vault.desk import Desk, put, refusal
from tests.unit.vault.stage import Watched
from tests.unit.workspace.room import leftovers, picture


class Stop(BaseException):
    """As Ctrl-C would."""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store/store.db"


@pytest.fixture
def work(tmp_path: Path, url: str) -> Path:
    work = tmp_path / "work"
    with hardsave.open(url) as vault:
        line = vault.timeline("main")
        for turn in (1, 2):
            put(work, "a.txt", f"text {turn}")
            put(work, "sub/b.txt", f"text {turn}")
            put(work, f"new/{turn}", "n")
            line.save({"turn": turn}, workspace=work)
    return work


def interrupt(
    url: str, monkeypatch: pytest.MonkeyPatch, where: str, error: BaseException | None = None
) -> None:
    """A rewind that ends there, and leaves everything as it is."""

    def stop(*given: object, **named: object) -> None:
        raise error or Stop

    monkeypatch.setattr(steps.Steps, where, stop)
    vault = hardsave.open(url)
    with pytest.raises(BaseException):  # noqa: B017, PT011 # whichever it was
        vault.timeline("main").rewind("main:1")
    monkeypatch.undo()
    vault.close()


def journals(work: Path) -> list[Path]:
    return list((work.parent / "store").glob("*-journal"))


@pytest.mark.parametrize(
    ("where", "turn"), [("prepare", 2), ("_stage", 2), ("take", 1), ("_move", 1), ("_remove", 1)]
)
def test_the_next_to_open_the_store_settles_it(
    url: str, work: Path, monkeypatch: pytest.MonkeyPatch, where: str, turn: int
) -> None:
    """Before the operation was committed it is taken back, after that it is finished."""
    interrupt(url, monkeypatch, where)
    assert journals(work)
    with hardsave.open(url) as vault:
        assert vault.timeline("main").load() == {"turn": turn}
        assert (work / "a.txt").read_text() == f"text {turn}"
        assert (work / "new/2").exists() == (turn == 2)
        assert (journals(work), leftovers(work)) == ([], [])
        line = vault.timeline("main")
        if turn == 1:
            line.undo()
        assert (line.load(), (work / "sub/b.txt").read_text()) == ({"turn": 2}, "text 2")


def test_the_same_process_goes_on(url: str, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hardsave.open(url) as vault:
        line = vault.timeline("main")

        def stop(self: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(steps.Steps, "take", stop)
        with pytest.raises(KeyboardInterrupt):
            line.rewind("main:1")
        monkeypatch.undo()
        vault.workspace(work).status()  # whoever looks at the workspace first, settles it
        assert line.load() == {"turn": 1}
        assert (work / "a.txt").read_text() == "text 1"
        line.undo()
        assert (work / "a.txt").read_text() == "text 2"


def test_what_decides_about_it_is_not_forgotten_before_it_is_settled(
    url: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log says whether it is to be finished; retention and purges shorten the log."""

    def retain(vault: hardsave.Vault) -> None:
        policy = hardsave.Policy(undo_window=timedelta(0))
        assert vault.retention.apply(vault.retention.plan(policy)).forgotten

    def purge(vault: hardsave.Vault) -> None:
        vault.store.purge(text=str(work))

    for shorten in (retain, purge):
        with hardsave.open(url) as vault:
            line = vault.timeline("main")
            line.rewind("main:2")
            monkeypatch.setattr(steps.Steps, "take", _interrupted)
            with pytest.raises(KeyboardInterrupt):
                line.rewind("main:1")
            monkeypatch.undo()
            shorten(vault)
            vault.workspace(work).status()
            assert (line.load(), (work / "a.txt").read_text()) == ({"turn": 1}, "text 1")


def _interrupted(self: object) -> None:
    raise KeyboardInterrupt


def test_files_that_were_edited_in_between_are_kept_and_told(
    url: str, work: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    interrupt(url, monkeypatch, "take")
    put(work, "a.txt", "edited after the crash")
    with hardsave.open(url) as vault:
        assert "'a.txt' was kept" in caplog.text
        assert (work / "a.txt").read_text() == "edited after the crash"
        assert (work / "sub/b.txt").read_text() == "text 1"
        assert leftovers(work) == []
        line = vault.timeline("main")
        line.undo()
        assert (work / "sub/b.txt").read_text() == "text 2"
        line.redo()
        assert (work / "a.txt").read_text() == "edited after the crash"


def test_a_workspace_that_is_gone_or_another_stops_nobody_from_opening_the_store(
    url: str, work: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    interrupt(url, monkeypatch, "take")
    moved = work.rename(work.with_name("moved"))
    for _ in range(2):
        with caplog.at_level(logging.ERROR), hardsave.open(url) as vault:
            assert vault.timeline("main").load() == {"turn": 1}
        assert "interrupted" in caplog.text
        work.mkdir(exist_ok=True)
    with hardsave.open(url) as vault:
        error = refusal(vault.timeline("main").save, {}, workspace=work)
        assert "not the directory" in str(error)
    work.rmdir()
    moved.rename(work)
    with hardsave.open(url) as vault:
        assert (work / "a.txt").read_text() == "text 1"
        assert journals(work) == []


def test_another_user_is_not_troubled(
    url: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(url, monkeypatch, "take")
    with hardsave.open(url, user="bob") as bob:
        bob.timeline("main").save({}, workspace=work)
        assert journals(work)
    with hardsave.open(url):
        assert journals(work) == []


def test_a_commit_that_fails_leaves_it_open_which_way_it_went(desk: Desk, store: Watched) -> None:
    for when in ("before_commit", "after_commit"):
        desk.write(a_txt="one", b_txt="b")
        one = desk.save(1)
        desk.write(a_txt="two")
        desk.save(2)
        setattr(store, when, Unavailable("the disk fails; try again"))
        assert isinstance(refusal(desk.line.rewind, one), Unavailable)
        is_done = when == "after_commit"
        desk.vault.workspace(desk.work).status()
        assert desk.read("a.txt") == ("one" if is_done else "two")
        assert desk.line.load() == {"turn": 1 if is_done else 2}
        assert desk.seen()


def test_threads_that_save_and_rewind_one_workspace_take_turns(desk: Desk) -> None:
    desk.write(a_txt="0")
    desk.save(0)
    for name in ("ada", "bob"):  # what is not saved yet belongs to whoever is first to save it
        put(desk.work, f"{name}/file", "begun")
        desk.save(0, desk.vault.timeline(name))
    errors: list[BaseException] = []

    def saving(name: str) -> None:
        try:
            line = desk.vault.timeline(name)
            for turn in range(8):
                put(desk.work, f"{name}/file", str(turn))
                saved = line.save({"turn": turn}, workspace=desk.work)
                assert saved.files is not None
                assert saved.files.read(f"{name}/file") == str(turn).encode()
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=saving, args=(name,)) for name in ("ada", "bob")]
    for thread in threads:
        thread.start()
    for turn in range(5):
        put(desk.work, "a.txt", f"{turn + 1}")
        desk.save(turn + 1)
        desk.line.rewind("main:1", scope="mine")
        desk.line.undo()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [desk.read(f"{name}/file") for name in ("ada", "bob")] == ["7", "7"]
    assert desk.vault.store.verify().faults == ()


def test_a_store_in_the_workspace_behind_a_symlink_is_not_captured(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "inside").mkdir(parents=True)
    (tmp_path / "way-in").symlink_to(work / "inside")
    put(work, "a.txt", "one")
    with hardsave.open(f"sqlite:///{tmp_path}/way-in/store.db") as vault:
        line = vault.timeline("main")
        for turn in range(2):
            saved = line.save({"turn": turn}, workspace=work)
            assert saved.files is not None
            assert [file.path for file in saved.files.list()] == ["a.txt", "inside"]
        put(work, "a.txt", "two")
        line.rewind("main:1")
        assert (work / "a.txt").read_text() == "one"
        assert os.path.exists(work / "inside/store.db")


def test_a_fork_that_was_cut_off_is_gone_with_its_directory(
    url: str,
    work: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def stop(self: object) -> None:
        raise Stop

    vault = hardsave.open(url)
    monkeypatch.setattr(steps.Steps, "prepare", stop)
    with pytest.raises(Stop):
        vault.workspace(work).fork("main:1", tmp_path / "try")
    monkeypatch.undo()
    vault.close()
    shutil.rmtree(tmp_path / "try")
    caplog.clear()
    with hardsave.open(url) as vault:
        assert not any(record.levelno >= logging.ERROR for record in caplog.records)
        assert not journals(work)
        fork = vault.workspace(work).fork("main:1", tmp_path / "again")
        assert picture(fork.workspace.path)[b"a.txt"]


def test_after_a_power_loss_devices_may_have_other_numbers(
    url: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(url, monkeypatch, "_move")
    (path,) = journals(work)
    written = journal.read(path)
    assert written is not None
    journal.write(path, written._replace(device=written.device + 1))
    with hardsave.open(url) as vault:  # in the same boot it is another directory
        assert isinstance(refusal(vault.timeline("main").save_files, work), Misuse)
    journal.write(path, written._replace(device=written.device + 1, boot=b"earlier"))
    with hardsave.open(url) as vault:
        assert vault.timeline("main").load() == {"turn": 1}
    assert (work / "a.txt").read_text() == "text 1"
    assert (journals(work), leftovers(work)) == ([], [])


def test_another_directory_is_another_one_after_a_power_loss_too(
    url: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(url, monkeypatch, "_move")
    (path,) = journals(work)
    written = journal.read(path)
    assert written is not None
    journal.write(path, written._replace(boot=b"earlier"))
    shutil.copytree(work, work.with_name("copy"))
    work.rename(work.with_name("away"))
    work.with_name("copy").rename(work)
    before = picture(work)
    with hardsave.open(url) as vault:
        assert isinstance(refusal(vault.timeline("main").save_files, work), Misuse)
    assert picture(work) == before


def test_a_journal_of_the_first_version_is_settled(
    url: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(url, monkeypatch, "_move")
    (path,) = journals(work)
    codec, data = Codec(), path.read_bytes()
    body = codec.encode(codec.decode(data[25:])[:9])
    path.write_bytes(b"HSRJ\x01" + digest(body) + body)
    with hardsave.open(url) as vault:
        assert vault.timeline("main").load() == {"turn": 1}
    assert (work / "a.txt").read_text() == "text 1"


def rewrite_note(path: Path, change: Callable[[list[object]], object]) -> None:
    """What a vault says in a journal, as another version would have said it."""
    codec = Codec()
    body = codec.decode(path.read_bytes()[25:])
    body[4] = codec.encode(change(codec.decode(body[4])))
    sealed = codec.encode(body)
    path.write_bytes(b"HSRJ\x02" + digest(sealed) + sealed)


@pytest.mark.parametrize(
    "rest",
    [[], [bytes(12), bytes(12), False], [bytes(12), bytes(12), True]],
    ids=["without git", "git stays", "git comes along"],
)
def test_a_journal_of_an_earlier_vault_is_settled(
    url: str, work: Path, monkeypatch: pytest.MonkeyPatch, rest: list[object]
) -> None:
    interrupt(url, monkeypatch, "_move")
    (path,) = journals(work)
    rewrite_note(path, lambda said: [*said[:2], *rest])
    with hardsave.open(url) as vault:
        assert vault.timeline("main").load() == {"turn": 1}
    assert (work / "a.txt").read_text() == "text 1"


def test_a_journal_of_a_vault_that_is_not_understood_stops_nobody_from_opening_the_store(
    url: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(url, monkeypatch, "_move")
    (path,) = journals(work)
    rewrite_note(path, lambda said: [*said, "more"])
    before = picture(work)
    with hardsave.open(url) as vault:
        assert vault.timeline("main").load() == {"turn": 1}
        error = refusal(vault.timeline("main").save_files, work)
    assert isinstance(error, Unavailable)
    assert "another hardsave" in str(error)
    assert (picture(work), journals(work)) == (before, [path])


def test_a_journal_of_a_later_version_is_left_to_it(
    url: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(url, monkeypatch, "_move")
    (path,) = journals(work)
    data = path.read_bytes()
    path.write_bytes(data[:4] + b"\x7f" + data[5:])
    before = picture(work)
    with hardsave.open(url) as vault:
        assert "newer hardsave" in str(refusal(vault.timeline("main").save_files, work))
    assert (picture(work), journals(work)) == (before, [path])


def test_a_journal_that_cannot_be_read_is_an_error_of_ours(tmp_path: Path) -> None:
    with Desk(tmp_path / "work").vault as vault:
        workspace = vault.workspace(tmp_path / "work")
        workspace._place.journal.mkdir()
        assert isinstance(refusal(workspace.save_files), Unavailable)


def test_a_child_that_was_forked_during_a_save_does_not_hold_the_workspace(
    url: str, work: Path
) -> None:
    """As when one thread saves while another starts a pool of processes."""
    with hardsave.open(url) as vault, hardsave.open(url) as other:
        with vault.workspace(work)._place.locked():
            reads, writes = os.pipe()
            child = os.fork()
            if not child:  # pragma: no cover # it ends when its parent has looked
                os.close(writes)
                os.read(reads, 1)
                os._exit(0)
            os.close(reads)
        is_busy = other.workspace(work)._place.is_busy()
        os.close(writes)
        os.waitpid(child, 0)
    assert not is_busy


def test_nothing_is_replaced_before_its_copy_would_survive_a_power_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who opens a store with durability="process" gives up the newest saves, and no files."""
    url, work = f"sqlite:///{tmp_path}/store.db", tmp_path / "work"
    put(work, "a.txt", "one")
    happened: list[str] = []
    with hardsave.open(url, durability="process") as vault:
        line = vault.timeline("main")
        line.save({"turn": 1}, workspace=work)
        put(work, "a.txt", "not saved, and on the disk for hours")
        put(work, "b.txt", "not saved either")
        wal = os.stat(f"{tmp_path}/store.db-wal").st_ino
        real_sync, real_commit = os.fsync, vault._context.store.commit

        def sync(file: int) -> None:
            real_sync(file)
            if os.fstat(file).st_ino == wal:
                happened.append("synced")

        def commit(batch: Batch) -> int:
            happened.append("committed")
            return real_commit(batch)

        def told(what: str, real: Callable[..., None]) -> Callable[..., None]:
            def call(*given: object) -> None:
                happened.append(what)
                real(*given)

            return call

        monkeypatch.setattr(os, "fsync", sync)
        monkeypatch.setattr(vault._context.store, "commit", commit)
        for name in ("replace", "take_away"):
            monkeypatch.setattr(swap, name, told(name, getattr(swap, name)))
        line.rewind("main:1")
        monkeypatch.undo()
    assert happened == ["committed", "committed", "synced", "replace", "take_away"]


def test_repair_sets_a_damaged_journal_aside_and_the_workspace_can_be_used(
    url: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(url, monkeypatch, "_move")
    (path,) = journals(work)
    path.write_bytes(path.read_bytes()[:-1])
    with hardsave.open(url) as vault:
        line = vault.timeline("main")
        for call in (lambda: line.save_files(work), lambda: line.rewind("main:1")):
            refused = refusal(call)
            assert isinstance(refused, Corrupt)
            assert "'hardsave store repair' sets the journal aside" in str(refused)
    found = hardsave.repair(url)
    assert not found.ok
    assert "rewind again" in found.faults[-1]
    assert journals(work) == []
    assert len(list(path.parent.glob("*-journal-damaged-*"))) == 1
    with hardsave.open(url) as vault:
        vault.timeline("main").rewind("main:2")
        assert (work / "a.txt").read_text() == "text 2"
    assert hardsave.repair(url).ok
