"""Files of checkpoints are kept as long as something leads to them, and no longer."""

from datetime import timedelta
from pathlib import Path

import pytest

import hardsave
from hardsave.errors import NotFound
from hardsave.objects import envelope
from hardsave.vault.vault import Vault
from tests.unit.vault.desk import Desk, put, refusal
from tests.unit.vault.stage import SECOND, Clock, Watched
from tests.unit.workspace.room import picture

DAY = 24 * 60 * 60 * SECOND


def contents(store: Watched) -> set[bytes]:
    found = [envelope.unseal(data) for data in store.objects.values()]
    return {each.payload for each in found if each.kind == envelope.CONTENT}


def test_files_live_and_die_with_their_checkpoints(desk: Desk, store: Watched) -> None:
    desk.write(a_txt="one", same="same")
    one = desk.save(1)
    desk.write(a_txt="two")
    desk.save(2)
    desk.vault.store.gc()
    assert contents(store) == {b"one", b"two", b"same"}
    desk.vault.delete(one)
    desk.vault.store.gc()
    assert b"one" in contents(store)  # it can be brought back
    desk.vault.undo()
    desk.vault.store.purge(one)
    assert contents(store) == {b"two", b"same"}
    assert desk.vault.store.verify().faults == ()


def test_a_safety_checkpoint_outlives_retention_while_it_can_be_undone(
    desk: Desk, clock: Clock, store: Watched
) -> None:
    desk.write(a_txt="one")
    desk.save(1, name="kept")
    desk.write(a_txt="two")
    desk.save(2)
    desk.write(a_txt="three, never saved by hand")
    unsaved = desk.seen()
    desk.line.rewind("kept")
    policy = hardsave.Policy(max_age=timedelta(days=1), undo_window=timedelta(days=7))
    clock.now += 3 * DAY
    desk.vault.retention.apply(desk.vault.retention.plan(policy))
    desk.vault.store.gc()
    assert b"three, never saved by hand" in contents(store)
    desk.line.undo()
    assert desk.seen() == unsaved
    desk.line.redo()
    clock.now += 30 * DAY
    desk.vault.retention.apply(desk.vault.retention.plan(policy))
    desk.vault.store.gc()
    assert contents(store) == {b"one"}
    assert isinstance(refusal(desk.line.undo), NotFound)
    assert desk.vault.store.verify().faults == ()


def test_what_a_restore_of_files_replaced_outlives_retention_too(
    desk: Desk, clock: Clock, store: Watched
) -> None:
    desk.write(a_txt="one")
    desk.save(1)
    desk.write(a_txt="two, never saved by hand")
    desk.line.rewind("main:1", what="files")
    desk.write(b_txt="later")
    desk.save(3)
    clock.now += 3 * DAY
    policy = hardsave.Policy(max_age=timedelta(days=1), undo_window=timedelta(days=7))
    desk.vault.retention.apply(desk.vault.retention.plan(policy))
    desk.vault.store.gc()
    desk.line.undo()
    assert (desk.read("a.txt"), desk.read("b.txt")) == ("two, never saved by hand", "later")
    desk.save(4)
    desk.save(5)
    clock.now += 3 * DAY
    desk.vault.retention.apply(desk.vault.retention.plan(policy))
    desk.line.redo()  # what the undo was about is known by two checkpoints, which stayed
    assert (desk.read("a.txt"), desk.read("b.txt")) == ("one", "later")


def test_gc_beside_a_first_capture_takes_nothing_of_it(
    desk: Desk, store: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write(a_txt="one")
    real = store.commit
    monkeypatch.setattr(store, "commit", lambda batch: (desk.vault.store.gc(), real(batch))[1])
    saved = desk.line.save({}, workspace=desk.work)
    assert saved.files is not None
    assert saved.files.read("a.txt") == b"one"


def test_verify_finds_a_damaged_and_a_missing_content(desk: Desk, store: Watched) -> None:
    desk.write(a_txt="one", b_txt="two")
    saved = desk.save(1)
    for address, data in list(store.objects.items()):
        if data.endswith(b"one"):
            store.objects[address] = data + b"!"
        if data.endswith(b"two"):
            del store.objects[address]
    assert len(desk.vault.store.verify().faults) == 2
    assert len(desk.vault.store.verify(saved).faults) == 2


def test_an_export_restores_to_the_byte_elsewhere(desk: Desk, tmp_path: Path) -> None:
    desk.write(a_txt="one", sub__deep__b="b" * 300_000, _env="TOKEN=1")
    (desk.work / "sub/deep").chmod(0o750)
    (desk.work / "a.txt").chmod(0o600)
    (desk.work / "empty").mkdir()
    (desk.work / "link").symlink_to("../outside")
    (desk.work / "hard").hardlink_to(desk.work / "a.txt")
    put(desk.work, os_name := "n\udcff\n", "odd name")
    first = desk.save(1)
    then = {p: s for p, s in desk.seen().items() if p != b".env"}
    desk.write(a_txt="two")
    desk.save(2)
    exported = desk.vault.export_file(tmp_path / "export")
    assert exported.checkpoints == 2
    with Vault(Watched()) as vault:
        vault.import_file(tmp_path / "export")
        assert vault.store.verify().faults == ()
        saved = vault.get(first)
        assert saved.files is not None
        assert saved.files.read(os_name) == b"odd name"
        assert [each.path for each in saved.not_captured] == [".env"]
        fork = vault.workspace(tmp_path).fork(first, tmp_path / "elsewhere", name="elsewhere")
        assert picture(fork.workspace.path) == then
        other = tmp_path / "other"
        other.mkdir()
        vault.timeline("main").rewind(first, workspace=other)
        assert picture(other) == then
        vault.export_file(tmp_path / "again", timelines=["main"])


def test_an_undone_import_takes_its_files_along(desk: Desk, tmp_path: Path) -> None:
    desk.write(a_txt="one")
    desk.save(1)
    desk.vault.export_file(tmp_path / "export")
    store = Watched()
    with Vault(store) as vault:
        vault.import_file(tmp_path / "export")
        assert contents(store) == {b"one"}
        vault.undo()
        vault.store.purge(timeline="main")
        assert contents(store) == set()


def test_a_store_that_was_repaired_still_has_its_files(tmp_path: Path) -> None:
    work, url = tmp_path / "work", f"sqlite:///{tmp_path}/store/store.db"
    put(work, "a.txt", "one")
    with hardsave.open(url) as vault:
        saved = vault.timeline("main").save({"turn": 1}, workspace=work)
        vault.store.compact()
    with hardsave.open(url) as vault:
        vault.store.repair()
        again = vault.get(saved.id)
        assert again.files is not None
        assert again.files.read("a.txt") == b"one"
        assert again.files.workspace == str(work)
        assert vault.workspace(work).last == again
