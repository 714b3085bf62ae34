"""Two handles on one timeline: exactly one wins, and the other is told the way out."""

import threading
from pathlib import Path

import pytest

import hardsave
from hardsave import ANY_HEAD, Conflict
from hardsave.vault.line import Timeline
from hardsave.vault.vault import Vault
from tests.unit.vault.stage import Watched, messages


@pytest.fixture
def pair(vault: Vault) -> tuple[Timeline, Timeline]:
    """Two handles that have seen the same head."""
    vault.timeline("main").save({"messages": messages(100)})
    return vault.timeline("main"), vault.timeline("main")


def test_one_wins_and_the_other_writes_nothing(
    pair: tuple[Timeline, Timeline], store: Watched
) -> None:
    one, two = pair
    one.save({"by": "one"})
    objects = dict(store.objects)
    with pytest.raises(Conflict):
        two.save({"by": "two", "much": messages(50)})
    assert store.objects == objects
    assert len(one) == 2
    assert one.load() == {"by": "one"}


def test_the_loser_is_told_the_way_out(pair: tuple[Timeline, Timeline]) -> None:
    one, two = pair
    one.save({"by": "one"})
    for write in (two.save, two.append):
        with pytest.raises(Conflict) as caught:
            write({"by": "two"})
        text = str(caught.value)
        assert "'main'" in text
        assert "load()" in text
        assert "ANY_HEAD" in text
        assert "number 2" in text


@pytest.mark.parametrize("look", ["load", "head"])
def test_after_looking_the_loser_can_save(pair: tuple[Timeline, Timeline], look: str) -> None:
    one, two = pair
    one.save({"by": "one"})
    with pytest.raises(Conflict):
        two.save({"by": "two"})
    with pytest.raises(Conflict):
        two.save({"by": "two"})  # a refusal is not a look
    assert two.load() if look == "load" else two.head
    saved = two.save({"by": "two"})
    assert (saved.seq, saved.parent) == (3, one.get("main:2").id)
    with pytest.raises(Conflict):
        one.save({"by": "one"})


def test_looking_at_something_else_does_not_count(pair: tuple[Timeline, Timeline]) -> None:
    one, two = pair
    one.save({"by": "one"})
    two.load("@~1")
    two.load("main:2")
    two.get("main:2")
    two.checkpoints()
    len(two)
    with pytest.raises(Conflict):
        two.save({"by": "two"})
    two.get("@")
    two.save({"by": "two"})


def test_a_refused_expectation_does_not_count_as_a_look(pair: tuple[Timeline, Timeline]) -> None:
    one, two = pair
    first = one.get()
    one.save({"by": "one"})
    with pytest.raises(Conflict, match=r"load\(\)"):
        two.save({"by": "two"}, expect=first)
    with pytest.raises(Conflict):
        two.save({"by": "two"})
    assert len(one) == 2


def test_two_handles_may_both_begin_a_timeline_but_one_wins(vault: Vault) -> None:
    one, two = vault.timeline("new"), vault.timeline("new")
    one.save(1)
    with pytest.raises(Conflict, match="exists already"):
        two.save(2)
    two.load()
    two.save(2)
    assert vault.timeline("new").load() == 2


def test_any_head_saves_on_top_of_whatever_there_is(pair: tuple[Timeline, Timeline]) -> None:
    one, two = pair
    one.save({"by": "one"})
    two.save({"by": "two"}, expect=ANY_HEAD)
    assert one.load() == {"by": "two"}
    one.save({"by": "one"})
    two.append({"more": ["two"]}, expect=ANY_HEAD)
    assert one.load() == {"by": "one", "more": ["two"]}


def test_any_head_begins_a_timeline_too(vault: Vault) -> None:
    assert vault.timeline("new").save(1, expect=ANY_HEAD).seq == 1


def test_any_head_means_the_head_at_the_moment_of_writing(vault: Vault, store: Watched) -> None:
    one, two = vault.timeline("main"), vault.timeline("main")
    one.append({"list": [0]})
    look = store.timeline
    rounds = 3

    def moving(user: str | None, name: str) -> object:
        """Somebody else saves between the look at the head and the commit, three times."""
        nonlocal rounds
        found = look(user, name)
        if rounds and threading.current_thread() is threading.main_thread():
            rounds -= 1
            thread = threading.Thread(target=lambda: one.append({"list": ["one"]}))
            thread.start()
            thread.join()
        return found

    store.timeline = moving  # type: ignore[method-assign,assignment] # in between
    two.append({"list": ["two"]}, expect=ANY_HEAD)
    del store.timeline
    assert one.load() == {"list": [0, "one", "one", "one", "two"]}


def test_a_checkpoint_as_expectation_decides(pair: tuple[Timeline, Timeline]) -> None:
    one, two = pair
    seen = one.save({"by": "one"})
    two.save({"by": "two"}, expect=seen)  # although this handle has not seen it
    with pytest.raises(Conflict):
        one.save({"by": "one"}, expect=seen.id)
    assert one.load() == {"by": "two"}


def test_after_a_conflict_everything_needed_is_stored(vault: Vault, store: Watched) -> None:
    one, two = vault.timeline("main"), vault.timeline("main")
    state = {"messages": messages(300)}
    two.save(state)
    one.load()
    one.save({})
    state["messages"] += messages(100, start=300)
    for _ in range(2):
        with pytest.raises(Conflict):
            two.save(state)  # its objects are not stored, and must not be thought to be
    two.load()
    state["messages"] += messages(1, start=400)
    two.save(state)
    assert vault.store.verify().ok
    assert one.load() == {"messages": messages(401)}


def test_after_a_conflict_an_append_stores_everything_needed(vault: Vault) -> None:
    one, two = vault.timeline("main"), vault.timeline("main")
    two.append({"messages": messages(300)})
    one.load()
    one.append({"turn": 1})
    with pytest.raises(Conflict):
        two.append({"messages": messages(100, start=300)})
    two.load()
    two.append({"messages": messages(1, start=300)})
    assert vault.store.verify().ok
    assert one.load() == {"messages": messages(301), "turn": 1}


def test_a_conflict_is_told_to_no_handler(vault: Vault, pair: tuple[Timeline, Timeline]) -> None:
    one, two = pair
    one.save(1)
    told: list[object] = []
    vault.on("checkpoint_saved", told.append)
    with pytest.raises(Conflict):
        two.save(2)
    assert told == []


def test_threads_that_share_a_handle_are_served_one_after_the_other(line: Timeline) -> None:
    line.save({"list": []})

    def work() -> None:
        for n in range(25):
            line.append({"list": [n]})

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(line) == 151
    assert sorted(line.load()["list"]) == sorted(list(range(25)) * 6)


@pytest.mark.parametrize("url", ["memory://", "sqlite:///{}"])
def test_racing_handles_lose_no_save(url: str, tmp_path: Path) -> None:
    """Each thread appends its own numbers, and goes on after a conflict as it is told to."""
    with hardsave.open(url.format(tmp_path / "store.db")) as vault:

        def work(writer: int) -> None:
            line = vault.timeline("main")
            for n in range(15):
                while True:
                    try:
                        line.append({"list": [(writer, n)]})
                        break
                    except Conflict:
                        line.load()

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        line = vault.timeline("main")
        assert sorted(line.load()["list"]) == [(w, n) for w in range(4) for n in range(15)]
        assert [cp.seq for cp in line.checkpoints(limit=100)] == list(range(60, 0, -1))
        assert vault.store.verify().ok
