"""Export and import: what a file holds, and what becomes of it in another store."""

import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.errors import Conflict, Corrupt, Misuse, NotFound, Unavailable
from hardsave.objects.hashing import Hash
from hardsave.objects.records import Id, LogRecord
from hardsave.stores.base import Batch, Changes, Store
from hardsave.stores.memory.store import MemoryStore
from hardsave.stores.sqlite import SqliteStore
from hardsave.testing.batches import an_entry
from hardsave.timeline.policy import Policy
from hardsave.vault import operations
from hardsave.vault.transfer import archive, exporting, importing
from hardsave.vault.transfer.selection import Piece
from hardsave.vault.transfer.transfer import Imported
from hardsave.vault.vault import Vault
from tests.unit.vault.stage import Clock, messages

New = Callable[[], Vault]


@pytest.fixture(params=["memory", "sqlite"])
def new(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[New]:
    """Makes vaults; each must be sound in the end."""
    made: list[Vault] = []

    def make() -> Vault:
        store: Store = MemoryStore()
        if request.param == "sqlite":
            store = SqliteStore(tmp_path / f"{len(made)}.db", durability="process")
        made.append(Vault(store, clock=Clock()))
        return made[-1]

    yield make
    for vault in made:
        assert vault.store.verify().faults == ()
        vault.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "out.hardsave"


def fill(vault: Vault, name: str, count: int, start: int = 1) -> None:
    line = vault.timeline(name)
    for turn in range(start, start + count):
        line.append({"messages": messages(2, start=2 * turn), "turn": turn, "by": name})


def everything(vault: Vault) -> dict[str, Any]:
    """All that people see of a vault but the numbers of commits."""
    seen: dict[str, Any] = {}
    for line in vault.timelines():
        head = line.head
        rows = line.checkpoints(limit=1_000)
        seen[line.name] = (
            None if head is None else (head.id, head.read()),
            [each.id for each in line.ancestors()] if head else [],
            [(each._record._replace(number=0, hidden=0), each.read()) for each in rows],
        )
    return seen


def carried(source: Vault, target: Vault, file: Path) -> Imported:
    source.export_file(file)
    return target.import_file(file)


# There and back


def test_an_import_into_an_empty_store_is_the_same_again(new: New, file: Path) -> None:
    source, target = new(), new()
    fill(source, "main", 40)
    line = source.timeline("main")
    line.save(
        {"odd": ({1, 2}, b"\xff", 1 << 70)},
        name="named",
        kind="feature",
        status="DONE",
        description="two\nlines",
        metadata={"model": "m", "tuple": (1, 2)},
    )
    line.rewind("main:20")
    fill(source, "main", 3, start=100)
    source.timeline("main").fork("main:10", name="fork")
    fill(source, "fork", 5, start=200)
    source.timeline("fork").fork(name="just forked")
    done = carried(source, target, file)
    assert done == Imported(("fork", "just forked", "main"), 49, 0, 0, {})
    assert everything(target) == everything(source)
    assert target.timeline("main").save({}).seq == 45


def test_labels_and_notes_are_exported_with_their_checkpoints(new: New, file: Path) -> None:
    source, target = new(), new()
    line = source.timeline("main")
    for step in range(250):
        labels = {"step": str(step), "source": "loop"} if step % 2 else None
        line.save({"step": step}, labels=labels, notes={"k": [step]} if step % 5 == 0 else None)
    source.put_notes("main:1", {"late": b"x" * 2_000_000, "odd": {1: (2, None)}})
    source.delete("main:3")
    carried(source, target, file)
    assert everything(target) == everything(source)
    for number in (1, 2, 4, 250):
        ours, theirs = (vault.get(f"main:{number}") for vault in (source, target))
        assert (theirs.labels, theirs.notes) == (ours.labels, ours.notes)
    found = [vault.checkpoints(labels={"source": "loop"}, limit=500) for vault in (source, target)]
    assert [each.id for each in found[0]] == [each.id for each in found[1]]
    assert len(found[0]) == 125
    again = file.with_name("again.hardsave")
    target.export_file(again)
    assert again.read_bytes() == file.read_bytes()


def test_files_of_workspaces_are_exported_with_their_paths(
    new: New, file: Path, tmp_path: Path
) -> None:
    source, target = new(), new()
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        (folder / "a.txt").write_text(folder.name)
        saved = source.timeline("main").save_files(folder)
        assert not (saved._record.workspace or b"/").startswith(b"/"), "an id, no path"
    assert carried(source, target, file).checkpoints == 2
    assert everything(target) == everything(source)
    for number, folder in enumerate(folders, start=1):
        files = target.get(f"main:{number}").files
        assert files is not None
        assert (files.workspace, files.read("a.txt")) == (str(folder), folder.name.encode())
    assert source.import_file(file).checkpoints == 0
    source.timeline("main").delete()
    assert source.import_file(file).hidden == 2


@pytest.mark.parametrize("fault", ["timeline", "checkpoint"])
def test_an_export_that_no_import_would_take_is_refused_and_leaves_no_file(
    new: New, file: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    source = new()
    fill(source, "main", 3)
    if fault == "timeline":
        whole = archive.from_timeline
        monkeypatch.setattr(
            archive, "from_timeline", lambda line: whole(line._replace(last_seq=-1))
        )
    else:
        made = archive.from_past

        def wrong(past: archive.Past) -> bytes:
            return made(past._replace(record=past.record._replace(seq=-1)))

        monkeypatch.setattr(archive, "from_past", wrong)
    with pytest.raises(Corrupt, match=f"would refuse the record of {fault} .*nothing was exported"):
        source.export_file(file)
    assert not list(file.parent.glob("out.hardsave*"))


def test_an_export_of_an_import_is_the_same_file(new: New, file: Path, tmp_path: Path) -> None:
    source, target = new(), new()
    fill(source, "main", 30)
    source.timeline("main").fork("main:9", name="a fork")
    fill(source, "other", 3)
    fill(source, "a fork", 4)
    source.timeline("main").rewind("main:12")
    source.delete("main:5")
    source.timeline("other").clear()
    carried(source, target, file)
    again = tmp_path / "again.hardsave"
    target.export_file(again)
    assert again.read_bytes() == file.read_bytes()


def test_the_same_file_twice_changes_nothing(new: New, file: Path) -> None:
    source, target = new(), new()
    fill(source, "main", 5)
    carried(source, target, file)
    before, stats = everything(target), target.store.stats()
    count = len(list(target.operations()))
    assert target.import_file(file) == Imported((), 0, 5, 0, {})
    assert (everything(target), target.store.stats()) == (before, stats)
    assert len(list(target.operations())) == count


def test_a_store_takes_its_own_export_as_known(new: New, file: Path) -> None:
    source = new()
    fill(source, "main", 5)
    assert carried(source, source, file).checkpoints == 0


def test_an_empty_store_makes_a_file_too(new: New, file: Path) -> None:
    found = new().export_file(file)
    assert (found.timelines, found.checkpoints, found.objects) == (0, 0, 0)
    assert found.file_bytes == file.stat().st_size
    assert new().import_file(file) == Imported((), 0, 0, 0, {})


def test_nothing_of_another_user_is_in_a_file(tmp_path: Path, file: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    with Vault(store, user="kim") as kim, Vault(store) as nobody:
        kim.timeline("main").save({"secret": "x" * 500, "both": "y" * 500})
        nobody.timeline("mine").save({"both": "y" * 500})
        assert nobody.export_file(file).checkpoints == 1
        with Vault(MemoryStore(), user="lee") as lee:
            assert lee.import_file(file).timelines == ("mine",)
            assert [line.name for line in lee.timelines()] == ["mine"]
        with pytest.raises(NotFound):
            nobody.export_file(file, timelines=["main"])


# Some timelines


def test_a_fork_takes_the_history_that_it_needs_along(new: New, file: Path) -> None:
    source, target = new(), new()
    fill(source, "main", 12)
    source.timeline("main").fork("main:5", name="fork")
    fill(source, "fork", 3)
    fill(source, "unrelated", 4)
    found = source.export_file(file, timelines=["fork"])
    assert (found.timelines, found.checkpoints) == (2, 8)
    target.import_file(file)
    assert [line.name for line in target.timelines()] == ["fork", "main"]
    fork, main = target.timeline("fork"), target.timeline("main")
    assert fork.load("@~7") == source.timeline("fork").load("@~7")
    assert len(main) == 5
    assert main.head == source.get("main:5")
    assert main.save({}).seq == 6


def test_a_lent_timeline_explains_its_other_numbers_by_tombstones(
    new: New, file: Path, tmp_path: Path
) -> None:
    source, target = new(), new()
    fill(source, "main", 6)
    source.timeline("main").rewind("main:2")
    fill(source, "main", 3, start=50)  # numbers 7 to 9, on top of 2
    source.timeline("main").fork("main:9", name="fork")
    assert source.export_file(file, timelines=["fork"]).checkpoints == 5
    target.import_file(file)
    assert [each.seq for each in target.timeline("main").checkpoints()] == [9, 8, 7, 2, 1]
    stones = target._context.store.tombstones(None, "main", None, 10)
    assert [stone.seq for stone in stones] == [6, 5, 4, 3]
    for names in (None, ["fork"]):
        again = tmp_path / "again"
        target.export_file(again, timelines=names)
        assert again.read_bytes() == file.read_bytes()
    whole = tmp_path / "whole.hardsave"
    source.export_file(whole)
    assert target.import_file(whole).checkpoints == 4  # they come back to their places
    assert everything(target) == everything(source)


def test_the_history_of_a_fork_stays_when_its_source_was_deleted(new: New, file: Path) -> None:
    source, target = new(), new()
    fill(source, "main", 5)
    source.timeline("main").fork("main:4", name="fork")
    fill(source, "fork", 1)
    source.timeline("main").delete()
    assert source.export_file(file).checkpoints == 5
    target.import_file(file)
    assert [line.name for line in target.timelines()] == ["fork"]
    assert everything(target) == everything(source)
    with pytest.raises(NotFound, match="was deleted"):
        target.get("main:4")
    assert target.timeline("fork").load("@~4")["turn"] == 1


def test_what_was_deleted_comes_as_a_tombstone_without_its_content(new: New, file: Path) -> None:
    source, target = new(), new()
    line = source.timeline("main")
    line.save({"turn": 1})
    line.save({"secret": "a secret of some length " * 20})
    line.save({"turn": 3})
    source.delete("main:2")
    found = source.export_file(file)
    assert (found.checkpoints, found.objects) == (2, 2)
    target.import_file(file)
    assert [each.seq for each in target.timeline("main").ancestors()] == [1]
    assert target.timeline("main").save({}).seq == 4


def test_timelines_that_do_not_exist_are_named(new: New, file: Path) -> None:
    source = new()
    fill(source, "main", 1)
    fill(source, "gone", 1)
    source.timeline("gone").delete()
    for name in ("nope", "gone"):
        with pytest.raises(NotFound, match=name):
            source.export_file(file, timelines=["main", name])
    with pytest.raises(Misuse, match="list of names"):
        source.export_file(file, timelines="main")
    assert not file.exists()


# Into a store that has something already


def test_a_continuation_extends_what_is_here(new: New, file: Path) -> None:
    source, target = new(), new()
    fill(source, "main", 3)
    carried(source, target, file)
    fill(source, "main", 4)
    assert carried(source, target, file) == Imported(("main",), 4, 3, 0, {})
    assert everything(target) == everything(source)


def test_what_is_here_and_ahead_stays_where_it_is(new: New, file: Path) -> None:
    source, target = new(), new()
    fill(source, "main", 3)
    carried(source, target, file)
    fill(target, "main", 2)
    before = everything(target)
    assert target.import_file(file).checkpoints == 0
    assert everything(target) == before


def test_a_rewind_made_here_is_not_taken_back_by_the_same_file(new: New, file: Path) -> None:
    source, target = new(), new()
    fill(source, "main", 5)
    carried(source, target, file)
    target.timeline("main").rewind("main:2")
    target.import_file(file)
    head = target.timeline("main").head
    assert head is not None
    assert head.seq == 2


def test_another_history_under_the_same_name_gets_a_new_one(new: New, file: Path) -> None:
    source, target = new(), new()
    fill(source, "main", 3)
    fill(target, "main", 2)
    mine = everything(target)["main"]
    done = carried(source, target, file)
    assert done == Imported(("main-2",), 3, 0, 0, {"main": "main-2"})
    seen = everything(target)
    assert seen["main"] == mine
    assert [row.seq for row, _ in seen["main-2"][2]] == [3, 2, 1]
    assert target.timeline("main-2").load() == source.timeline("main").load()
    assert target.import_file(file).checkpoints == 0


@pytest.mark.parametrize("is_cleared_here", [True, False])
def test_a_timeline_that_was_cleared_brings_no_second_one(
    new: New, file: Path, is_cleared_here: bool
) -> None:
    source, target = new(), new()
    for vault in (source, target):
        fill(vault, "main", 3)
    source.timeline("main").clear()
    fill(source, "other", 1)
    if is_cleared_here:
        target.timeline("main").clear()
    before = len(target.timeline("main"))
    for expected in (Imported(("other",), 1, 0, 0, {}), Imported((), 0, 1, 0, {})):
        assert carried(source, target, file) == expected
    assert [line.name for line in target.timelines()] == ["main", "other"]
    assert len(target.timeline("main")) == before
    empty = new()
    carried(source, empty, file)
    assert [line.name for line in empty.timelines()] == ["main", "other"]
    assert empty.timeline("main").save({}).seq == 4


def test_a_timeline_that_was_cleared_comes_if_another_one_is_built_on_it(
    new: New, file: Path
) -> None:
    source, target = new(), new()
    for vault in (source, target):
        fill(vault, "main", 3)
    fork = source.timeline("main").fork(name="fork")
    fork.save({"turn": 9})
    source.timeline("main").clear()
    assert carried(source, target, file).renamed == {"main": "main-2"}
    assert [each.seq for each in target.timeline("fork").ancestors()] == [3, 2, 1]


def test_histories_that_went_apart_share_what_they_have_in_common(new: New, file: Path) -> None:
    source, target = new(), new()
    fill(source, "main", 3)
    carried(source, target, file)
    fill(target, "main", 2, start=50)
    fill(source, "main", 4, start=90)
    done = carried(source, target, file)
    assert done == Imported(("main-2",), 4, 3, 0, {"main": "main-2"})
    line = target.timeline("main-2")
    assert [each.seq for each in line.checkpoints()] == [7, 6, 5, 4]
    assert line.load("@~6") == source.timeline("main").load("@~6")
    assert target.timeline("main").load()["turn"] == 51


def test_what_came_under_another_name_goes_on_there(new: New, file: Path) -> None:
    source, target = new(), new()
    fill(source, "main", 2)
    fill(target, "main", 1)
    carried(source, target, file)
    fill(source, "main", 2)
    assert carried(source, target, file) == Imported(("main-2",), 2, 2, 0, {})
    assert target.timeline("main-2").load() == source.timeline("main").load()
    fill(target, "main-2", 1)
    fill(source, "main", 1)
    assert carried(source, target, file).renamed == {"main": "main-3"}


def test_a_head_that_is_neither_before_nor_behind_gets_a_new_name(new: New, file: Path) -> None:
    source, target = new(), new()
    fill(source, "main", 5)
    carried(source, target, file)
    source.timeline("main").rewind("main:2")
    fill(source, "main", 1, start=50)
    assert carried(source, target, file) == Imported(("main-2",), 1, 5, 0, {"main": "main-2"})
    head = target.timeline("main").head
    assert head is not None
    assert head.seq == 5
    assert target.timeline("main-2").load()["turn"] == 50


def test_a_new_name_is_one_that_neither_store_nor_file_has(new: New, file: Path) -> None:
    source, target = new(), new()
    for name in ("main", "main-2"):
        fill(source, name, 1)
    for name in ("main", "main-3"):
        fill(target, name, 1)
    done = carried(source, target, file)
    assert done.renamed == {"main": "main-4"}
    assert done.timelines == ("main-2", "main-4")


def test_what_was_deleted_here_stays_deleted_and_is_reported(new: New, file: Path) -> None:
    source, target = new(), new()
    fill(source, "main", 3)
    carried(source, target, file)
    target.delete("main:2")
    assert target.import_file(file) == Imported((), 0, 3, 1, {})
    target.undo()
    target.timeline("main").delete()
    fill(source, "main", 1)
    done = carried(source, target, file)
    assert done == Imported(("main",), 1, 3, 3, {})
    assert [each.seq for each in target.timeline("main").checkpoints()] == [4]


def test_a_checkpoint_that_was_dropped_here_comes_back_to_its_place(
    new: New, file: Path, tmp_path: Path
) -> None:
    source, target = new(), new()
    fill(source, "main", 3)
    carried(source, target, file)
    dropped = target.get("main:1")._record
    changes = Changes(drop=[dropped.id])
    target._context.store.commit(Batch(None, an_entry("gone"), changes=changes))
    assert len(target.timeline("main")) == 2
    assert target.import_file(file) == Imported(("main",), 1, 2, 0, {})
    assert everything(target) == everything(source)
    again = tmp_path / "again"
    target.export_file(again)  # its commit is younger than its children's
    assert again.read_bytes() == file.read_bytes()


def test_an_import_is_one_operation_and_can_be_undone_and_done_again(new: New, file: Path) -> None:
    source, target = new(), new()
    fill(source, "main", 3)
    source.timeline("main").fork("main:2", name="fork")
    fill(source, "fork", 1)
    carried(source, target, file)
    after = everything(target)
    fill(target, "mine", 1)
    (operation,) = target.operations()
    assert (operation.kind, operation.about["checkpoints"]) == ("import", 4)
    target.undo()
    assert [line.name for line in target.timelines()] == ["mine"]
    assert target.store.stats().checkpoints == 1
    target.redo()
    assert {name: seen for name, seen in everything(target).items() if name != "mine"} == after


def test_taking_an_import_back_reads_the_log_no_more_often_for_more_timelines(
    new: New, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = new(), new()
    for number in range(20):
        fill(source, f"line-{number}", 1)
    carried(source, target, file)
    reads: list[Id] = []
    decode = operations.decode

    def counted(record: LogRecord) -> operations.Entry | None:
        reads.append(record.id)
        return decode(record)

    monkeypatch.setattr(operations, "decode", counted)
    target.undo()
    assert len(reads) < 5
    assert list(target.timelines()) == []


# Other writers


class Busy(MemoryStore):
    """Does something right before a commit."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: list[Callable[[], None]] = []
        self.puts: list[int] = []

    def commit(self, batch: Batch) -> int:
        if self.meanwhile and batch.event.__class__.__name__ == "LogRecord":
            self.meanwhile.pop()()
        return super().commit(batch)

    def put(self, user: Any, objects: Any, *, pin: bytes, seconds: float) -> None:
        self.puts.append(len(objects))
        super().put(user, objects, pin=pin, seconds=seconds)


def test_a_save_in_between_is_seen_and_decided_on_anew(file: Path) -> None:
    source, store = Vault(MemoryStore(), clock=Clock()), Busy()
    target = Vault(store, clock=Clock())
    fill(source, "main", 2)
    carried(source, target, file)
    fill(source, "main", 2)
    source.export_file(file)
    store.meanwhile.append(lambda: fill(target, "main", 1, start=50))
    assert target.import_file(file) == Imported(("main-2",), 2, 2, 0, {"main": "main-2"})
    assert target.timeline("main").load()["turn"] == 50
    assert target.store.verify().faults == ()


def test_the_same_import_in_between_leaves_nothing_to_do(file: Path) -> None:
    source, store = Vault(MemoryStore(), clock=Clock()), Busy()
    target = Vault(store, clock=Clock())
    fill(source, "main", 2)
    source.export_file(file)
    store.meanwhile.append(lambda: (target.import_file(file), None)[1])
    assert target.import_file(file) == Imported((), 0, 2, 0, {})
    assert target.store.verify().faults == ()


def test_a_checkpoint_that_comes_back_does_so_once(file: Path) -> None:
    """Its return moves no head: only the log tells the second import of the first."""
    source, store = Vault(MemoryStore(), clock=Clock()), Busy()
    target = Vault(store, clock=Clock())
    fill(source, "main", 3)
    carried(source, target, file)
    changes = Changes(drop=[target.get("main:1")._record.id])
    store.commit(Batch(None, an_entry("gone"), changes=changes))
    store.meanwhile.append(lambda: (target.import_file(file), None)[1])
    assert target.import_file(file).checkpoints == 0
    assert [each.seq for each in target.timeline("main").checkpoints()] == [3, 2, 1]


def test_objects_that_were_collected_in_between_are_stored_again(file: Path) -> None:
    source, store = Vault(MemoryStore(), clock=Clock()), Busy()
    target = Vault(store, clock=Clock())
    fill(source, "main", 2)
    source.export_file(file)

    store.meanwhile.append(store._tenant(None).objects.clear)
    assert target.import_file(file).checkpoints == 2
    assert target.store.verify().faults == ()


def test_threads_that_import_the_same_file_bring_it_once(tmp_path: Path, file: Path) -> None:
    source = Vault(MemoryStore(), clock=Clock())
    fill(source, "main", 20)
    source.export_file(file)
    with Vault(SqliteStore(tmp_path / "store.db")) as target:
        done: list[int] = []
        threads = [
            threading.Thread(target=lambda: done.append(target.import_file(file).checkpoints))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(done) == [0, 0, 0, 20]
        assert everything(target) == everything(source)
        assert target.store.verify().faults == ()


def test_what_was_put_ahead_is_pinned_until_the_end(file: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(importing, "_BATCH_OBJECTS", 7)
    source, store = Vault(MemoryStore(), clock=Clock()), Busy()
    target = Vault(store, clock=Clock())
    fill(source, "main", 20)
    source.export_file(file)
    pinned: list[int] = []
    store.meanwhile.append(lambda: pinned.append(len(store._tenant(None).pins)))
    target.import_file(file)
    assert pinned == [1]
    assert store.puts[0] == 0  # the pin comes first
    assert max(store.puts) == 7
    assert store._tenant(None).pins == {}


def test_an_import_that_slept_too_long_says_so(file: Path, monkeypatch: Any) -> None:
    source, store = Vault(MemoryStore(), clock=Clock()), Busy()
    target = Vault(store, clock=Clock())
    fill(source, "main", 2)
    source.export_file(file)
    hours = iter(range(100))
    monkeypatch.setattr(time, "clock_gettime", lambda clock: next(hours) * 3600.0)
    with pytest.raises(Unavailable, match="interrupted for too long"):
        target.import_file(file)
    assert list(target.timelines()) == []
    assert store._tenant(None).pins == {}


def test_a_save_during_an_export_is_left_out(file: Path, monkeypatch: Any) -> None:
    source, target = Vault(MemoryStore(), clock=Clock()), Vault(MemoryStore(), clock=Clock())
    fill(source, "main", 3)
    walked = exporting.Walk.objects

    def slowly(walk: exporting.Walk, pieces: Iterator[Piece]) -> Iterator[bytes]:
        fill(source, "main", 1)
        fill(source, "other", 1)
        return walked(walk, pieces)

    monkeypatch.setattr(exporting.Walk, "objects", slowly)
    assert carried(source, target, file) == Imported(("main",), 3, 0, 0, {})


def dropped_meanwhile(source: Vault, monkeypatch: Any) -> None:
    """Retention and gc run to their end once an export has begun."""
    walked = exporting.Walk.objects

    def dropping(walk: exporting.Walk, pieces: Iterator[Piece]) -> Iterator[bytes]:
        monkeypatch.undo()
        newest = Policy(max_per_timeline=1, undo_window=timedelta(0))
        assert source.retention.apply(source.retention.plan(newest)).dropped == 5
        source.delete("main:6")
        source.retention.apply(source.retention.plan(newest))
        source.store.gc()
        return walked(walk, pieces)

    monkeypatch.setattr(exporting.Walk, "objects", dropping)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_retention_and_gc_beside_an_export_cost_it_nothing(
    file: Path, tmp_path: Path, monkeypatch: Any, kind: str
) -> None:
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "s.db")
    with Vault(store, clock=Clock()) as source, Vault(MemoryStore(), clock=Clock()) as target:
        fill(source, "main", 6)
        source.export_file(file)
        before = file.read_bytes()
        dropped_meanwhile(source, monkeypatch)
        assert carried(source, target, file) == Imported(("main",), 6, 0, 0, {})
        assert file.read_bytes() == before
        assert target.store.verify().ok
        assert source.store.verify().ok
        source.store.gc()  # the pin was given back: what was dropped goes now
        assert source.store.stats().objects < target.store.stats().objects


def test_an_export_without_a_pin_is_made_and_says_if_gc_has_ended_it(
    file: Path, monkeypatch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    source = Vault(MemoryStore(), clock=Clock())
    fill(source, "main", 6)

    def full(*args: Any, **options: Any) -> None:
        raise Unavailable("the disk is full")

    monkeypatch.setattr(MemoryStore, "put", full)
    source.export_file(file)
    assert "without a pin" in caplog.text
    dropped_meanwhile(source, monkeypatch)
    monkeypatch.setattr(MemoryStore, "put", full)
    with pytest.raises(Conflict, match="export again"):
        source.export_file(file)


def test_damage_in_the_store_is_no_file(file: Path) -> None:
    source = Vault(MemoryStore(), clock=Clock())
    fill(source, "main", 3)
    store = source._context.store
    assert isinstance(store, MemoryStore)
    objects: dict[Hash, bytes] = store._tenant(None).objects
    objects[max(objects)] = b"damaged"
    with pytest.raises(Corrupt):
        source.export_file(file)
    assert os.listdir(file.parent) == []


# The file itself


def test_an_export_is_for_its_owner_alone_and_leaves_nothing_beside_it(file: Path) -> None:
    source = Vault(MemoryStore(), clock=Clock())
    fill(source, "main", 1)
    source.export_file(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.listdir(file.parent) == [file.name]


def test_an_older_export_is_replaced_and_nothing_else_is(file: Path, tmp_path: Path) -> None:
    source = Vault(MemoryStore(), clock=Clock())
    source.export_file(file)
    old = file.read_bytes()
    fill(source, "main", 1)
    source.export_file(file)
    assert file.read_bytes() != old
    for name, content in (("notes.txt", b"my notes"), ("short", b"\x89HS")):
        other = tmp_path / name
        other.write_bytes(content)
        with pytest.raises(Misuse, match="no export"):
            source.export_file(other)
        assert other.read_bytes() == content
    (tmp_path / "empty").touch()
    source.export_file(tmp_path / "empty")
    with pytest.raises(Misuse, match="no plain file"):
        source.export_file(tmp_path)
    with pytest.raises(Misuse, match="no folder"):
        source.export_file(tmp_path / "no" / "folder")


def test_the_store_itself_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Vault(SqliteStore(path)) as vault:
        fill(vault, "main", 1)
        with pytest.raises(Misuse):
            vault.export_file(path)
        with pytest.raises(Misuse, match="no export"):
            vault.import_file(path)


def test_an_export_that_fails_leaves_the_old_file(file: Path, monkeypatch: Any) -> None:
    source = Vault(MemoryStore(), clock=Clock())
    fill(source, "main", 1)
    source.export_file(file)
    old = file.read_bytes()
    for call in ("pwrite", "fsync", "replace"):
        with monkeypatch.context() as patched:
            patched.setattr(os, call, _fails)
            with pytest.raises(Unavailable):
                source.export_file(file)
        assert file.read_bytes() == old
        assert os.listdir(file.parent) == [file.name]


def _fails(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    vault = Vault(MemoryStore())
    with pytest.raises(Misuse, match="there is no file"):
        vault.import_file(tmp_path / "nothing")
    with pytest.raises(Misuse, match="no plain file"):
        vault.import_file(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Misuse, match="no plain file"):
        vault.import_file(tmp_path / "pipe")


@pytest.mark.parametrize("path", ["a\0b", "a\ud800b", "", b"out", None, 7])
def test_what_no_file_can_be_called_is_misuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    vault = Vault(MemoryStore())
    for call in (vault.export_file, vault.import_file):
        with pytest.raises(Misuse, match=r"choose another path|path as text"):
            call(path)
    assert os.listdir(tmp_path) == []


def test_tasks_stay_where_they_are(tmp_path: Path) -> None:
    """A ledger is the truth about work in one store: with a second, work would be done twice."""
    with hardsave.open("memory://") as here, hardsave.open("memory://") as there:
        here.tasks.add("t1")
        with here.tasks.attempt("t1"):
            saved = here.timeline("main").save({"n": 1})
        here.export_file(tmp_path / "out.hardsave")
        there.import_file(tmp_path / "out.hardsave")
        found = there.get(saved.id)
        assert (found.read("n"), found.task, found.attempt) == (1, None, None)
        assert not there.tasks.find()
