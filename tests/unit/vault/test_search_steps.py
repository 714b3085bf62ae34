"""An index that is far behind: searches answer at once, say how far they reach, and it grows
in steps, each of which takes in what is new and nothing twice."""

import asyncio
from unittest import mock

import pytest

import hardsave
from hardsave import aio
from hardsave.vault.line import Timeline
from hardsave.vault.search import search
from hardsave.vault.search import walk as search_walk
from hardsave.vault.search.rows import Rows
from hardsave.vault.search.tail import MOST_KEYS, Tail
from hardsave.vault.vault import Vault
from tests.unit.vault.stage import Watched


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search has time for one checkpoint."""
    monkeypatch.setattr(search, "SEARCH_SECONDS", 0.0)


def saved(line: Timeline, count: int) -> None:
    for turn in range(count):
        line.append({"messages": [f"word{turn} said"]})


# Behind


@pytest.mark.usefixtures("no_time")
def test_a_search_says_how_far_it_reaches(vault: Vault, line: Timeline) -> None:
    saved(line, 5)
    found = vault.search("said")
    assert [hit.checkpoint.seq for hit in found] == [1]
    assert not found.is_complete
    assert found.unsearched == 4
    assert found.reaches == line.get("main:1").created_at
    found = vault.search("said")
    assert (len(found), found.unsearched) == (2, 3)


@pytest.mark.usefixtures("no_time")
def test_a_search_that_waits_finds_all(vault: Vault, line: Timeline) -> None:
    saved(line, 5)
    found = vault.search("said", wait=True)
    assert (len(found), found.unsearched, found.reaches, found.is_complete) == (5, 0, None, True)
    assert vault.search("word4").is_complete


def test_a_search_with_little_to_take_in_reaches_the_end(vault: Vault, line: Timeline) -> None:
    saved(line, 5)
    assert vault.search("said").is_complete
    assert len(vault.search("said")) == 5


@pytest.mark.usefixtures("no_time")
def test_coroutines_are_told_how_far_a_search_reaches() -> None:
    async def main() -> None:
        async with await aio.open("memory://") as vault:
            line = await vault.timeline("main")
            for turn in range(3):
                await line.append({"messages": [f"word{turn} said"]})
            found = await vault.search("said")
            assert (len(found), found.unsearched, found.is_complete) == (1, 2, False)
            assert (await vault.search("said", wait=True)).is_complete

    asyncio.run(main())


# Steps


@pytest.mark.usefixtures("no_time")
def test_others_bring_it_up_to_date_once_a_search_has_made_it(vault: Vault, line: Timeline) -> None:
    saved(line, 5)
    with mock.patch.object(search, "catch_up") as looked:
        assert vault.store.update_search(seconds=5)
        looked.assert_not_called()  # no caller has ever searched here
    vault.search("said")
    assert vault.store.update_search(seconds=5)
    assert len(vault.search("said")) == 5


def test_a_step_ends_when_its_time_is_over(vault: Vault, line: Timeline) -> None:
    vault.search("said")
    saved(line, 3)
    assert not vault.store.update_search(seconds=1e-9)
    assert vault.store.update_search(seconds=5)


@pytest.mark.usefixtures("no_time")
def test_upkeep_brings_it_up_to_date(vault: Vault, line: Timeline) -> None:
    vault.search("said")
    saved(line, 5)
    vault.store.upkeep()
    assert len(vault.search("said")) == 5


# Once


@pytest.mark.parametrize("padding", [1, 50])
def test_a_text_is_taken_in_once_however_many_checkpoints_have_it(
    vault: Vault, line: Timeline, padding: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed: list[str] = []
    add_place = Rows.add_place

    def noted(self: Rows, timeline: int, field: str, path: str, text: str, number: int) -> None:
        placed.append(path)
        add_place(self, timeline, field, path, text, number)

    monkeypatch.setattr(Rows, "add_place", noted)
    for turn in range(80):
        line.append({"messages": [f"word{turn} " * padding]})
        vault.search("word1")
    said = [path for path in placed if path]
    assert len(said) == len(set(said)) == 80


def test_what_did_not_change_is_not_read_again() -> None:
    store = Watched()
    with Vault(store) as vault:
        line = vault.timeline("main")
        line.save({"messages": [f"word{turn} " * 50 for turn in range(2_000)]})
        vault.search("word1")
        for turn in range(8):
            line.append({"messages": [f"later{turn} " * 50]})
            store.forget()
            with mock.patch.object(store, "read", wraps=store.read) as read:
                (hit,) = vault.search(f"later{turn}")
            assert hit.path == f"messages[{2_000 + turn}]"
            assert sum(len(call.args[1]) for call in read.call_args_list) < 40


def test_a_tail_forgets_what_is_long_gone_and_keeps_what_came_last() -> None:
    tail = Tail(b"")
    for number in range(2 * MOST_KEYS):
        assert tail.is_new(number.to_bytes(8) + b"rest")
        tail.end_checkpoint()
    kept = Tail(tail.packed())
    assert len(tail.packed()) == 8 * MOST_KEYS
    assert not kept.is_new((2 * MOST_KEYS - 1).to_bytes(8))
    assert kept.is_new((0).to_bytes(8))
    assert not kept.is_new((0).to_bytes(8)), "met in this checkpoint"


# Operations


def test_an_operation_on_one_timeline_lists_no_other(vault: Vault, line: Timeline) -> None:
    saved(line, 3)
    saved(vault.timeline("other"), 3)
    vault.search("said")
    vault.timeline("other").delete()
    with mock.patch.object(search_walk, "_listed", side_effect=AssertionError("all are listed")):
        assert {hit.timeline for hit in vault.search("said")} == {"main"}
        vault.undo()
        assert {hit.timeline for hit in vault.search("said")} == {"main", "other"}


def test_a_search_does_not_list_a_large_index_anew(
    vault: Vault, line: Timeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_walk, "LARGE", 3)
    saved(line, 6)
    vault.search("said")
    vault.retention.apply(vault.retention.plan(hardsave.Policy(max_per_timeline=2)))
    found = vault.search("word0")
    assert (len(found), found.is_complete) == (0, False)
    found = vault.search("word0", wait=True)
    assert [hit.checkpoint.seq for hit in found] == [5]
    assert found.is_complete
