from typing import Any

import pytest

from hardsave.errors import Conflict, Misuse, NotFound
from hardsave.vault.line import Timeline
from hardsave.vault.vault import Vault
from tests.unit.vault.stage import Watched, messages


@pytest.fixture
def line(vault: Vault) -> Timeline:
    line = vault.timeline("main")
    for n in range(1, 6):
        line.save({"messages": messages(100), "turn": n}, name=f"turn-{n}")
    return line


def test_a_fork_starts_at_the_checkpoint_it_names(line: Timeline, vault: Vault) -> None:
    for ref, turn in (("@", 5), ("@~3", 2), ("main:1", 1), ("turn-4", 4), (line.get("@~2").id, 3)):
        fork = line.fork(ref, name=f"from {turn}")
        assert fork.name == f"from {turn}"
        assert fork.load()["turn"] == turn
        assert fork.head == line.get(f"main:{turn}")
        assert len(fork) == 0
        assert fork.save({"turn": 0}).parent == line.get(f"main:{turn}").id
        assert fork.get().seq == 1


def test_a_fork_copies_nothing(line: Timeline, store: Watched) -> None:
    objects = dict(store.objects)
    store.forget_reads()
    line.fork("@~3", name="try-2")
    assert store.objects == objects
    assert store.reads == 0
    assert store.batches[-1].objects == {}
    assert store.count(None, "try-2") == 0


def test_a_fork_is_an_entry_in_the_log(line: Timeline, store: Watched, vault: Vault) -> None:
    line.fork("@~3", name="try-2")
    (entry,) = store.log(None, 0, 10)
    assert (entry.kind, entry.timeline, entry.number) == ("fork", "try-2", 6)
    said = vault._context.objects.codec.decode(entry.data)
    assert (said["source"], said["from"]) == (line.get("@~3")._record.id, "main")


def test_a_fork_leaves_the_source_timeline_unchanged(line: Timeline, store: Watched) -> None:
    before = (store.timeline(None, "main"), line.checkpoints()[:], line.load())
    fork = line.fork("@~2", name="try-2")
    fork.save({"turn": 99})
    fork.append({"turn": 100})
    assert (store.timeline(None, "main"), line.checkpoints()[:], line.load()) == before
    line.save({"turn": 6})
    assert fork.load() == {"turn": 100}


def test_a_fork_of_a_fork(line: Timeline) -> None:
    second = line.fork("@~1", name="two")
    second.save({"turn": "two"})
    third = second.fork(name="three")
    third.save({"turn": "three"})
    fourth = third.fork("@~2", name="four")  # back on the first timeline
    assert [third.load(f"@~{n}")["turn"] for n in range(6)] == ["three", "two", 4, 3, 2, 1]
    assert fourth.load()["turn"] == 4
    with pytest.raises(NotFound):
        third.load("@~6")
    assert [cp.seq for cp in third.checkpoints()] == [1]


def test_a_fork_may_start_on_another_timeline(line: Timeline, vault: Vault) -> None:
    other = vault.timeline("other")
    other.save({"turn": "other"})
    assert line.fork("other:1", name="mixed").load() == {"turn": "other"}


def test_a_fork_to_a_name_that_is_taken_is_a_conflict(line: Timeline, vault: Vault) -> None:
    line.fork(name="try-2")
    for name in ("try-2", "main"):
        with pytest.raises(Conflict, match=f"'{name}' exists already"):
            line.fork(name=name)
    assert len(list(vault.timelines())) == 2


@pytest.mark.parametrize("name", ["", "a:b", "@", "a\nb", None])
def test_a_fork_with_a_wrong_name_is_misuse(line: Timeline, vault: Vault, name: Any) -> None:
    with pytest.raises(Misuse):
        line.fork(name=name)
    assert len(list(vault.timelines())) == 1


def test_a_fork_of_nothing_is_not_found(line: Timeline, vault: Vault) -> None:
    with pytest.raises(NotFound):
        line.fork("@~9", name="try-2")
    with pytest.raises(NotFound):
        vault.timeline("empty").fork(name="try-2")
    assert [known.name for known in vault.timelines()] == ["main"]


def test_a_fork_is_seen_by_every_handle(line: Timeline, vault: Vault) -> None:
    fork = line.fork("@~3", name="try-2")
    again = vault.timeline("try-2")
    assert again.load() == fork.load()
    assert again.head == fork.head
    again.save({"turn": 1})
    with pytest.raises(Conflict):
        fork.save({"turn": 2})


def test_what_is_saved_on_a_fork_is_shared_with_its_source(line: Timeline, store: Watched) -> None:
    fork = line.fork(name="try-2")
    before = len(store.objects)
    fork.save({"messages": messages(100), "turn": 6})
    assert len(store.objects) - before <= 2
