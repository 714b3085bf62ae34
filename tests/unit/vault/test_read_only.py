"""A store opened to be looked at: no file is made, locked or written."""

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import hardsave
from hardsave import Misuse, NotFound, Unavailable, Vault, aio


def picture(folder: Path) -> list[tuple[str, int, int]]:
    """Every file, its size and when it was written."""
    files = sorted(each for each in folder.rglob("*"))
    return [(str(each), each.stat().st_size, each.stat().st_mtime_ns) for each in files]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store that no process has open, with a workspace beside it."""
    folder = tmp_path / "store"
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one")
    with hardsave.open(f"sqlite:///{folder}/runs.db") as vault:
        line = vault.timeline("main")
        for turn in range(3):
            line.append({"messages": [{"role": "user", "content": f"turn {turn}"}]})
        line.save({"files": True}, workspace=work)
        line.rewind("@~1", what="state")
        vault.tasks.add("t")
    return folder


def read_only(store: Path) -> Vault:
    return hardsave.open(f"sqlite:///{store}/runs.db", read_only=True)


def test_everything_can_be_read_and_nothing_is_made(store: Path, tmp_path: Path) -> None:
    before = picture(store)
    with read_only(store) as vault:
        line = vault.timeline("main")
        assert line.head is not None
        assert line.load()["messages"][0]["content"] == "turn 0"
        assert len(line.checkpoints()) == 4
        assert [each.kind for each in vault.operations()] == ["rewind"]
        assert [each.timeline for each in vault.sessions()] == ["main"]
        assert vault.search("turn")
        files = line.get(":4").files
        assert files is not None
        assert files.read("a.txt") == b"one"
        assert vault.diff(line.get(":1").id, line.get(":3").id)
        assert vault.store.verify().ok
        assert vault.store.stats().checkpoints == 4
        assert [task.id for task in vault.tasks.find()] == ["t"]
        assert not [*vault.jobs.find()]
        assert next(vault.follow(0)).kind == "checkpoint_saved"
        (tmp_path / "work" / "a.txt").write_text("two")
        assert vault.workspace(tmp_path / "work").status(":4").files.changed == ("a.txt",)
        assert line.rewind(":4", what="files", dry_run=True, workspace=tmp_path / "work").files
        assert picture(store) == before
    assert picture(store) == before


def test_every_write_is_refused_with_the_next_step(store: Path, tmp_path: Path) -> None:
    before = picture(store)
    with read_only(store) as vault:
        line = vault.timeline("main")
        calls: list[Callable[[], object]] = [
            lambda: line.save({}),
            lambda: vault.timeline("new").append({"messages": []}),
            lambda: line.save_files(tmp_path / "work"),
            lambda: line.rewind("@~1"),
            lambda: line.fork(name="other"),
            lambda: vault.workspace(tmp_path / "work").fork("main:4", tmp_path / "new"),
            line.undo,
            line.clear,
            vault.store.gc,
            vault.store.compact,
            lambda: vault.tasks.add("new"),
            lambda: vault.tasks.cancel("t"),
            lambda: vault.tasks.claim("t"),
            lambda: vault.jobs.add("job", "Fix"),
        ]
        for number, call in enumerate(calls):
            with pytest.raises(Unavailable, match=r"read_only=True: .*open it without read_only"):
                call()
            assert picture(store) == before, number
    assert (tmp_path / "work" / "a.txt").read_text() == "one"
    assert not (tmp_path / "new").exists()


def test_an_export_without_a_pin_says_what_to_do_if_it_is_ended(
    store: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with read_only(store) as vault:
        vault.export_file(tmp_path / "all.hardsave")
    (said,) = [each.getMessage() for each in caplog.records if "without a pin" in each.getMessage()]
    assert "export again" in said
    assert "open it without" not in said


def test_a_store_that_is_missing_is_not_made(tmp_path: Path) -> None:
    for path in (tmp_path / "gone.db", tmp_path / "no" / "folder" / "runs.db"):
        with pytest.raises(NotFound, match=r"there is no store at .*open it without read_only"):
            hardsave.open(f"sqlite:///{path}", read_only=True)
    assert os.listdir(tmp_path) == []
    with pytest.raises(Misuse, match="leave read_only=True out"):
        hardsave.open("memory://", read_only=True)


def test_a_store_without_its_mark_is_compared_with_its_backup_and_nothing_is_made(
    store: Path,
) -> None:
    (store / "runs.db-mark").unlink()
    before = picture(store)
    with read_only(store) as vault:
        assert len(vault.timeline("main")) == 4
    assert picture(store) == before


def test_what_is_no_store_is_refused_untouched(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database " * 1000)
    before = picture(tmp_path)
    with pytest.raises(hardsave.HardsaveError):
        hardsave.open(f"sqlite:///{tmp_path}/text", read_only=True)
    with pytest.raises(Misuse):
        hardsave.open(f"sqlite:///{tmp_path}", read_only=True)
    assert picture(tmp_path) == before


def test_what_another_vault_commits_is_seen(store: Path) -> None:
    with read_only(store) as looking:
        assert len(looking.timeline("main")) == 4
        with hardsave.open(f"sqlite:///{store}/runs.db") as writing:
            writing.timeline("main").append({"more": 1})
            assert len(looking.timeline("main")) == 5
            writing.timeline("main").append({"more": 2})
            assert looking.timeline("main").load()["more"] == 2
        assert len(looking.timeline("main")) == 6


def test_a_store_is_read_beside_a_writer_that_never_pauses(store: Path) -> None:
    stop = threading.Event()

    def write() -> None:
        with hardsave.open(f"sqlite:///{store}/runs.db") as vault:
            line = vault.timeline("busy")
            line.append({"messages": ["first"]})
            begun.set()
            while not stop.is_set():
                line.append({"messages": ["more"]})

    begun = threading.Event()
    writer = threading.Thread(target=write)
    writer.start()
    assert begun.wait(30)
    try:
        with read_only(store) as vault:
            line, seen = vault.timeline("busy"), 0
            for _ in range(50):
                now = len(line)
                assert now >= seen
                seen = now
                assert len(line.load()["messages"]) >= seen
            with pytest.raises(Unavailable, match="read_only=True"):
                line.save({})
    finally:
        stop.set()
        writer.join()
    with read_only(store) as vault:
        assert len(vault.timeline("busy")) >= seen


def test_users_of_a_store_that_is_only_read(store: Path) -> None:
    with read_only(store) as vault, pytest.raises(NotFound, match="nothing is stored"):
        vault.as_user("ada")


def test_a_project_without_a_store_gets_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARDSAVE_STORE", f"sqlite:///{tmp_path}/named.db")
    with pytest.raises(NotFound):
        hardsave.open(read_only=True)
    assert os.listdir(tmp_path) == []


def test_coroutines_open_it_too(store: Path) -> None:
    async def scene() -> None:
        before = picture(store)
        async with aio.open(f"sqlite:///{store}/runs.db", read_only=True) as vault:
            line = await vault.timeline("main")
            assert await line.count() == 4
            with pytest.raises(Unavailable):
                await line.save({})
        assert picture(store) == before

    asyncio.run(scene())
