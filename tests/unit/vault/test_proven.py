"""Bytes that were checked against their hash are kept in memory; all others are checked."""

import pytest

from hardsave import Vault
from hardsave.errors import Corrupt
from hardsave.vault.line import Timeline
from tests.unit.vault.stage import Watched, messages


@pytest.fixture
def store() -> Watched:
    return Watched()


@pytest.fixture
def vault(store: Watched) -> Vault:
    vault = Vault(store)
    vault.timeline("main").save({"messages": messages(100)})
    return vault


@pytest.fixture
def line(vault: Vault, store: Watched) -> Timeline:
    store.forget_reads()
    return vault.timeline("main")


def test_what_was_read_once_is_not_asked_for_again(line: Timeline, store: Watched) -> None:
    first = line.load()
    store.forget_reads()
    assert line.load() == first == {"messages": messages(100)}
    assert store.read_hashes == []


def test_only_what_is_new_is_read(line: Timeline, store: Watched) -> None:
    line.load()
    line.append({"messages": messages(1, start=100)})
    store.forget_reads()
    assert line.load() == {"messages": messages(101)}
    assert 0 < len(store.read_hashes) < 10


def test_what_was_damaged_is_not_kept(line: Timeline, store: Watched) -> None:
    sound = dict(store.objects)
    for address, data in sound.items():
        store.objects[address] = data[:-1] + bytes([data[-1] ^ 1])
    for _ in range(2):
        with pytest.raises(Corrupt):
            line.load()
    store.objects.update(sound)
    assert line.load() == {"messages": messages(100)}


def test_one_damaged_object_among_sound_ones_is_not_kept(line: Timeline, store: Watched) -> None:
    address = max(store.objects, key=lambda address: store.objects[address].count(b"."))
    sound = store.objects[address]
    store.objects[address] = sound.replace(b"message", b"massage")
    for _ in range(2):
        with pytest.raises(Corrupt):
            line.load()
    store.objects[address] = sound
    assert line.load() == {"messages": messages(100)}


def test_after_a_collection_everything_is_read_anew(
    vault: Vault, line: Timeline, store: Watched
) -> None:
    line.load()
    vault.store.gc()
    store.forget_reads()
    line.load()
    assert len(store.read_hashes) > 100


def test_another_vault_checks_for_itself(line: Timeline, store: Watched) -> None:
    line.load()
    address = max(store.objects, key=lambda address: len(store.objects[address]))
    store.objects[address] = b"\x11\x00\xc0"
    with pytest.raises(Corrupt):
        Vault(store).timeline("main").load()
