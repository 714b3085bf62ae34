"""Collecting through the front door: what was dropped goes, and its room with it."""

import os
import random
import threading
import time
from pathlib import Path

import pytest

import hardsave
from hardsave.errors import NotFound
from hardsave.objects.records import LogRecord
from hardsave.stores.base import Batch, Changes
from hardsave.vault.line import Timeline
from hardsave.vault.vault import Vault
from tests.unit.stores.processes import eventually
from tests.unit.vault.stage import Watched, messages

MIB = 1024 * 1024


def drop(vault: Vault, *checkpoints: hardsave.Checkpoint) -> None:
    event = LogRecord(0, os.urandom(12), None, "drop", 0, b"\x80")
    changes = Changes(drop=[checkpoint._record.id for checkpoint in checkpoints])
    vault._context.store.commit(Batch(vault.user, event, changes=changes))


def test_what_a_dropped_checkpoint_alone_held_goes(
    vault: Vault, line: Timeline, store: Watched
) -> None:
    old = line.save({"messages": messages(50)})
    line.save({"messages": messages(50, start=25)})
    before = len(store.objects)
    assert vault.store.gc().objects == 0
    drop(vault, old)
    done = vault.store.gc()
    assert 25 <= done.objects < before - 25
    assert len(store.objects) == before - done.objects
    assert line.load() == {"messages": messages(50, start=25)}
    assert vault.store.verify().ok


def test_what_was_deleted_can_be_brought_back_after_collecting(
    vault: Vault, line: Timeline
) -> None:
    line.save({"messages": messages(30)})
    line.delete()
    assert vault.store.gc().objects == 0
    line.undo()
    assert line.load() == {"messages": messages(30)}


def test_a_handle_goes_on_after_what_it_remembers_was_collected(tmp_path: Path) -> None:
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        line = vault.timeline("main")
        state = {"messages": messages(40)}
        old = line.save(state)
        vault.timeline("main").save({"messages": []})
        drop(vault, old)
        assert vault.store.gc().objects > 40
        line.save(state, expect=hardsave.ANY_HEAD)  # it remembers having stored all of it
        assert line.load() == state
        assert vault.store.verify().ok


def test_an_append_to_a_head_that_is_gone_is_a_conflict(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with hardsave.open(url) as vault, hardsave.open(url) as beside:
        line = vault.timeline("main")
        old = line.save({"messages": messages(40)})
        beside.timeline("main").save({"messages": []})
        drop(beside, old)
        beside.store.gc()
        with pytest.raises(hardsave.Conflict, match="dropped meanwhile"):
            line.append({"messages": messages(1)})
        line.append({"messages": messages(1)}, expect=hardsave.ANY_HEAD)
        assert line.load() == {"messages": messages(1)}


@pytest.mark.parametrize("how", ["dropped", "purged"])
def test_whoever_holds_on_to_what_is_gone_is_told_so_and_not_of_damage(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "file").write_text("a secret text")
    with hardsave.open(url) as other, hardsave.open(url) as vault:
        line = other.timeline("main")
        line.save({"messages": [*messages(40), "a secret text"]}, workspace=workspace)
        held = vault.get("main:1")
        snapshot = held.files
        assert snapshot is not None
        line.save({})
        if how == "purged":
            other.store.purge(text="a secret text")
        else:
            drop(other, held)
            other.store.gc()
        for read in (lambda: held.state, held.read, lambda: snapshot.read("file")):
            with pytest.raises(NotFound, match="dropped or purged since it was looked up"):
                read()
    assert caplog.text == ""
    assert not Path(f"{tmp_path}/store.db-suspect").exists()


def test_compacting_leaves_everything_as_it_was(tmp_path: Path) -> None:
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        line = vault.timeline("main")
        for turn in range(60):
            line.append({"messages": messages(2, start=2 * turn)})
        vault.store.compact()
        assert line.load() == {"messages": messages(120)}
        assert line.load("main:30") == {"messages": messages(60)}
        line.append({"messages": messages(1)})
        assert vault.store.verify().ok


# The files become smaller, and never much larger on the way


class Scale:
    """Watches how much room files take."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.before = self.peak = self.now

    @property
    def now(self) -> int:
        files = [Path(f"{self._path}{suffix}") for suffix in ("", "-wal", "-shm", "-journal")]
        return sum(file.stat().st_size for file in files if file.exists())

    def _watch(self) -> None:
        while not self._done.is_set():
            self.peak = max(self.peak, self.now)
            time.sleep(0.0005)

    def __enter__(self) -> "Scale":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


def copied_bytes(path: Path) -> int:
    """How long the backup is."""
    try:
        return path.with_name(path.name + "-backup").stat().st_size
    except FileNotFoundError:
        return 0  # not there yet, or being replaced


def shrinks(path: Path, size: int, *, alternating: bool) -> None:
    """Fill a store, drop nine tenths of it, and collect."""
    draw = random.Random(1)
    with hardsave.open(f"sqlite:///{path}", durability="process") as vault:
        lines = [vault.timeline(f"line {number}") for number in range(10)]
        saved: list[hardsave.Checkpoint] = []
        each = size // 200 if alternating else size // 60
        while path.stat().st_size < size:
            line = lines[len(saved) % 10]
            saved.append(line.save([draw.randbytes(5_000) for _ in range(each // 5_000)]))
        kept = saved[::10] if alternating else saved[: len(saved) // 10]
        for line in lines:
            line.save(None)
        assert eventually(lambda: copied_bytes(path) > 0.9 * size, seconds=120)
        drop(vault, *[checkpoint for checkpoint in saved if checkpoint not in kept])
        with Scale(path) as scale:
            vault.store.gc()
        assert eventually(lambda: 0 < copied_bytes(path) <= 0.2 * scale.before, seconds=120)
        assert eventually(lambda: scale.now <= 0.2 * scale.before, seconds=60)
        assert scale.peak <= 1.1 * scale.before + 32 * MIB  # which a WAL takes, however large it is
        assert vault.store.verify().ok
        assert vault.store.stats().checkpoints == len(kept) + 10


def test_after_nine_tenths_of_a_store_are_dropped_its_files_are_a_fifth(tmp_path: Path) -> None:
    shrinks(tmp_path / "store.db", 64 * MIB, alternating=True)


@pytest.mark.torture
@pytest.mark.parametrize("alternating", [True, False])
def test_after_nine_tenths_of_a_large_store_are_dropped_its_files_are_a_fifth(
    tmp_path: Path, alternating: bool
) -> None:
    shrinks(tmp_path / "store.db", 1024 * MIB, alternating=alternating)
