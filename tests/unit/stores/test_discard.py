"""What a save has put ahead and then gives up is gone again, unless something may need it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hardsave.objects.hashing import Hash, digest
from hardsave.stores.base import Batch
from hardsave.stores.sqlite.backup import backup_file
from hardsave.stores.sqlite.gc.vacuum import file_bytes
from hardsave.stores.sqlite.store import SqliteStore
from hardsave.stores.sqlite.write import disk_reserve
from hardsave.testing.batches import Line, a_parent, an_entry, an_object, but, refs_of

PIN, OTHER = b"p" * 12, b"o" * 12
MIB = 1 << 20


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with_backup = SqliteStore(tmp_path / "store.db")
    yield with_backup
    with_backup.close()


def large(label: str, size: int) -> dict[Hash, bytes]:
    """Objects that refer to nothing, and cannot be compressed."""
    made = [a_leaf(label, number) for number in range(size // 65536)]
    return {digest(data): data for data in made}


def a_leaf(label: str, number: int) -> bytes:
    [(_, data)] = an_object(f"{label} {number}").items()
    return data + os.urandom(65536)


def test_what_is_given_up_is_gone_and_its_space_is_free(store: SqliteStore) -> None:
    kept = Line(store).save_tree(an_object("kept"))
    before = file_bytes(store.path)
    ahead = large("ahead", 8 * MIB)
    for start in range(0, 128, 32):
        store.put(None, dict(list(ahead.items())[start : start + 32]), pin=PIN, seconds=60)
    assert file_bytes(store.path) > before + 7 * MIB
    store.unpin(None, PIN, given_up=refs_of)
    assert store.missing(None, ahead) == set(ahead)
    assert store.missing(None, [kept.root]) == set()
    copied = backup_file.path_of(store.path)
    store.close()
    assert file_bytes(store.path) <= before + 65536
    assert os.path.getsize(copied) <= before + 65536


@pytest.mark.parametrize("by", ["commit", "commit of a parent", "pin", "operation"])
def test_what_may_be_needed_stays(store: SqliteStore, by: str) -> None:
    line, ahead = Line(store), an_object("ahead", 100_000)
    store.put(None, ahead, pin=PIN, seconds=60)
    if by == "commit":
        line.save_tree(ahead)
    elif by == "commit of a parent":
        line.commit(but(line.next(objects=a_parent("root", *ahead)), requires=list(ahead)))
    elif by == "pin":
        store.put(None, {}, pin=OTHER, seconds=60)
    else:
        store.commit(Batch(None, an_entry("purged"), objects=an_object("other")))
    store.unpin(None, PIN, given_up=refs_of)
    assert store.missing(None, ahead) == set()


def test_what_others_have_saved_meanwhile_holds_nothing_back(store: SqliteStore) -> None:
    line, ahead = Line(store), an_object("ahead", 100_000)
    store.put(None, ahead, pin=PIN, seconds=60)
    saved = line.save_tree(an_object("theirs"))
    store.unpin(None, PIN, given_up=refs_of)
    assert store.missing(None, ahead) == set(ahead)
    assert store.missing(None, [saved.root]) == set()
    assert store.verify() == []


def test_a_pin_that_is_given_back_leaves_what_was_put(store: SqliteStore) -> None:
    ahead = an_object("ahead", 100_000)
    store.put(None, ahead, pin=PIN, seconds=60)
    store.unpin(None, PIN)
    assert store.missing(None, ahead) == set()


def test_space_is_reserved_beside_a_large_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, held = tmp_path / "store.db", tmp_path / "store.db-reserve"
    store.write_bytes(bytes(1))
    disk_reserve.set_aside(str(store))
    assert not held.exists()
    os.truncate(store, 64 * MIB)
    monkeypatch.setattr(disk_reserve, "free_bytes", lambda _: 1 << 40)
    disk_reserve.set_aside(str(store))
    assert held.stat().st_blocks * 512 >= 4 * MIB
    disk_reserve.release(str(store))
    assert held.exists()
    monkeypatch.setattr(disk_reserve, "free_bytes", lambda _: MIB)
    disk_reserve.release(str(store))
    assert not held.exists()
