"""How refs are resolved, in which order, and what is said when nothing is found."""

import pytest

from hardsave.errors import Corrupt, Misuse, NotFound
from hardsave.objects.records import CheckpointRecord, Id
from hardsave.stores.base import Batch, Move
from hardsave.stores.memory.store import MemoryStore
from hardsave.testing.batches import Line, an_entry, but
from hardsave.timeline.history import CANDIDATES, History
from hardsave.timeline.refs import to_text


class Saved(Line):
    """A line whose checkpoints have the ids that a test gives them."""

    def add(self, id: str, **about: str) -> CheckpointRecord:
        batch = self.next(**about)  # type: ignore[arg-type] # texts only
        event = batch.event._replace(id=an_id(id))
        assert batch.move is not None
        move = batch.move._replace(become=batch.move.become._replace(head=event.id))
        self.commit(but(batch, event=event, move=move))
        return self.saved[-1]

    def fork(self, name: str) -> "Saved":
        assert self.standing is not None
        become = self.standing._replace(name=name, last_seq=0, origin=self.standing.head)
        self.store.commit(Batch(self.user, an_entry(f"fork {name}"), Move(None, become)))
        fork = Saved(self.store, name, user=self.user)
        fork.standing = become
        return fork


def an_id(digits: str) -> Id:
    return bytes.fromhex(digits.ljust(24, "0"))


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def history(store: MemoryStore) -> History:
    return History(store, None)


@pytest.fixture
def main(store: MemoryStore) -> Saved:
    """aa1, aa2 ("plan"), bb3, bb4 ("plan"), cc5"""
    line = Saved(store)
    line.add("aa1")
    line.add("aa2", name="plan")
    line.add("bb3")
    line.add("bb4", name="plan")
    line.add("cc5")
    return line


# What is found


def test_the_head_and_its_parents(history: History, main: Saved) -> None:
    for steps, record in enumerate(reversed(main.saved)):
        assert history.find(f"@~{steps}", "main") == record
    assert history.find("@", "main") == main.saved[-1]


def test_a_whole_id_is_found_on_any_timeline(history: History, main: Saved) -> None:
    for record in main.saved:
        assert history.find(to_text(record.id)) == record
        assert history.find(to_text(record.id), "another") == record


def test_a_number_is_found_on_the_timeline_it_names(history: History, main: Saved) -> None:
    other = Saved(main.store, "other")
    second = other.add("dd1")
    for record in main.saved:
        assert history.find(f"main:{record.seq}") == record
        assert history.find(f"main:{record.seq}", "other") == record
    assert history.find("other:1", "main") == second


def test_a_name_is_the_newest_of_its_kind_on_this_timeline(history: History, main: Saved) -> None:
    Saved(main.store, "other").add("dd1", name="plan")
    assert history.find("plan", "main") == main.saved[3]
    assert history.find("plan", "other").id == an_id("dd1")


def test_a_name_is_looked_for_on_a_timeline_only(history: History, main: Saved) -> None:
    with pytest.raises(NotFound):
        history.find("plan")
    with pytest.raises(NotFound):
        history.find("plan", "other")


@pytest.mark.parametrize(
    "prefix", ["aa2", "chk_aa2", "cc", "c", "chk_c", "aa2" + "0" * 20, "cc5".ljust(24, "0")]
)
def test_a_unique_beginning_of_an_id_is_enough(history: History, main: Saved, prefix: str) -> None:
    found = history.find(prefix)
    assert to_text(found.id).startswith("chk_" + prefix.removeprefix("chk_"))
    assert history.find(prefix, "main") == history.find(prefix, "another") == found


# In which order


def test_a_whole_id_comes_before_a_name(history: History, store: MemoryStore) -> None:
    # Such a name is refused when it is given; one that is there all the same loses.
    line = Saved(store)
    first = line.add("aa1")
    line.add("aa2", name=to_text(first.id))
    assert history.find(to_text(first.id), "main") == first


def test_a_number_comes_before_a_name(history: History, store: MemoryStore) -> None:
    line = Saved(store)
    first = line.add("aa1")
    line.add("aa2", name="main:1")
    assert history.find("main:1", "main") == first


def test_a_name_comes_before_the_beginning_of_an_id(history: History, main: Saved) -> None:
    assert history.find("cc", "main") == main.saved[4]
    named = main.add("ee1", name="cc")
    assert history.find("cc", "main") == named
    also = main.add("ee2", name="chk_aa1")
    assert history.find("chk_aa1", "main") == also
    assert history.find("cc") == main.saved[4]  # no timeline, so no names
    assert history.find("cc", "other") == main.saved[4]


def test_a_name_comes_before_an_ambiguous_beginning(history: History, main: Saved) -> None:
    named = main.add("ee1", name="aa")
    assert history.find("aa", "main") == named


def test_a_missing_whole_id_is_not_taken_for_a_beginning(history: History, main: Saved) -> None:
    main.add("ee1", name="chk_" + "d" * 23)
    with pytest.raises(NotFound):
        history.find("chk_" + "d" * 24, "main")


# Across forks


def test_parents_are_followed_across_forks(history: History, main: Saved) -> None:
    fork = main.fork("try-2")
    assert history.find("@", "try-2") == main.saved[4]
    fork.add("dd1")
    fork.add("dd2")
    second = fork.fork("try-3")
    second.add("ff1")
    chain = [second.saved[0], *reversed(fork.saved), *reversed(main.saved)]
    for steps, record in enumerate(chain):
        assert history.find(f"@~{steps}", "try-3") == record
    assert list(history.ancestors(chain[0])) == chain[1:]
    with pytest.raises(NotFound):
        history.find(f"@~{len(chain)}", "try-3")


def test_names_are_not_followed_across_forks(history: History, main: Saved) -> None:
    main.fork("try-2")
    with pytest.raises(NotFound):
        history.find("plan", "try-2")


# What is said


def test_a_ref_that_needs_a_timeline_says_so(history: History, main: Saved) -> None:
    for ref in ("@", "@~2"):
        with pytest.raises(Misuse, match="needs a timeline"):
            history.find(ref)


def test_an_ambiguous_beginning_lists_the_candidates(history: History, main: Saved) -> None:
    with pytest.raises(Misuse) as caught:
        history.find("aa", "main")
    text = str(caught.value)
    assert "'aa'" in text
    for record in main.saved[:2]:
        assert f"{to_text(record.id)} (main:{record.seq})" in text
    assert to_text(main.saved[2].id) not in text
    assert "and more" not in text


def test_a_very_ambiguous_beginning_lists_some_candidates(
    history: History, store: MemoryStore
) -> None:
    line = Saved(store)
    for number in range(CANDIDATES + 5):
        line.add(f"ab{number:02}")
    with pytest.raises(Misuse) as caught:
        history.find("ab")
    assert str(caught.value).count("chk_") == CANDIDATES
    assert "and more" in str(caught.value)


@pytest.mark.parametrize(
    ("ref", "nearest"),
    [("plam", "'plan'"), ("Plan", "'plan'"), ("main:55", "'main:5'"), ("mian:5", "'main:5'")],
)
def test_what_is_not_found_names_the_nearest(
    history: History, main: Saved, ref: str, nearest: str
) -> None:
    with pytest.raises(NotFound) as caught:
        history.find(ref, "main")
    assert repr(ref) in str(caught.value)
    assert "'main'" in str(caught.value)
    assert nearest in str(caught.value)


def test_what_is_not_found_without_a_timeline_names_the_nearest(
    history: History, main: Saved
) -> None:
    with pytest.raises(NotFound, match=r"'main:9' not found.*'main:5'"):
        history.find("main:9")


def test_a_ref_like_nothing_tells_where_the_timeline_ends(history: History, main: Saved) -> None:
    with pytest.raises(NotFound, match="its last number is 5"):
        history.find("@~99", "main")
    with pytest.raises(NotFound, match="nothing was saved there"):
        history.find("@", "empty")


@pytest.mark.parametrize(
    "ref", ["main:0", "main:6", "main:" + "9" * 30, "other:1", "dd", "chk_" + "d" * 24, "@~5"]
)
def test_what_is_not_there_is_not_found(history: History, main: Saved, ref: str) -> None:
    with pytest.raises(NotFound):
        history.find(ref, "main")


def test_another_users_checkpoints_are_not_found(store: MemoryStore, main: Saved) -> None:
    other = History(store, "ada")
    for ref in (to_text(main.saved[0].id), "main:1", "plan", "aa1", "@"):
        with pytest.raises(NotFound) as caught:
            other.find(ref, "main")
        assert "plan'" not in str(caught.value).replace(repr(ref), "")  # no hint either


# Damage


def test_a_missing_parent_is_corrupt(history: History, store: MemoryStore, main: Saved) -> None:
    del store._tenants[None].checkpoints[main.saved[2].id]
    assert history.find("@~1", "main") == main.saved[3]
    with pytest.raises(Corrupt, match=f"{to_text(main.saved[2].id)}, the parent of"):
        history.find("@~2", "main")


def test_a_missing_head_is_corrupt(history: History, store: MemoryStore, main: Saved) -> None:
    del store._tenants[None].checkpoints[main.saved[-1].id]
    with pytest.raises(Corrupt, match=to_text(main.saved[-1].id)):
        history.head("main")


def test_a_head_that_was_dropped_is_corrupt_and_nobody_waits_for_another(
    history: History, store: MemoryStore, main: Saved
) -> None:
    store._tenants[None].drop(main.saved[-1])
    with pytest.raises(Corrupt, match=r"'main' stands at chk_.*, which was dropped"):
        history.head("main")


def test_a_timeline_without_a_head_has_none(history: History, main: Saved) -> None:
    main.commit(main.moved("emptied", head=None))
    assert history.head("main") is None
    with pytest.raises(NotFound):
        history.find("@", "main")
    assert history.head("nowhere") is None
