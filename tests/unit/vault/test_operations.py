"""Rewind, delete, clear, and taking them back."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hardsave.errors import Conflict, Corrupt, Misuse, NotFound
from hardsave.objects.codec import Codec
from hardsave.objects.records import LogRecord
from hardsave.page import every
from hardsave.stores.base import Batch, Changes, Store
from hardsave.stores.memory.store import MemoryStore
from hardsave.stores.sqlite import SqliteStore
from hardsave.testing.batches import an_entry
from hardsave.vault import operations
from hardsave.vault.line import Timeline
from hardsave.vault.restore import undo
from hardsave.vault.vault import Vault
from tests.unit.vault.stage import Clock


@pytest.fixture(params=["memory", "sqlite"])
def vault(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Vault]:
    store: Store = MemoryStore()
    if request.param == "sqlite":
        store = SqliteStore(tmp_path / "store.db")
    with Vault(store, clock=Clock()) as vault:
        yield vault
        assert vault.store.verify().faults == ()


@pytest.fixture
def line(vault: Vault) -> Timeline:
    line = vault.timeline("main")
    for turn in range(1, 6):
        line.save({"turn": turn}, status="RUNNING" if turn < 4 else "FAILED")
    return line


def turns(line: Timeline) -> list[int]:
    """What the head's history holds, newest first."""
    head = line.head
    if head is None:
        return []
    return [head.read("turn"), *(each.read("turn") for each in line.ancestors())]


# Rewind


def test_a_rewind_moves_the_head_and_removes_nothing(line: Timeline, vault: Vault) -> None:
    done = line.rewind("@~2")
    assert done.before is not None
    assert (done.before.seq, done.target.seq, done.moved) == (5, 3, True)
    assert turns(line) == [3, 2, 1]
    assert vault.get("main:5").read("turn") == 5
    assert len(line) == 5


def test_the_save_after_a_rewind_has_the_next_number_and_the_target_as_parent(
    line: Timeline,
) -> None:
    target = line.rewind("@~2").target
    saved = line.save({"turn": 33})
    assert (saved.seq, saved.parent) == (6, target.id)
    assert turns(line) == [33, 3, 2, 1]


def test_an_append_after_a_rewind_grows_what_was_rewound_to(line: Timeline) -> None:
    line.append({"messages": ["one"]})
    line.append({"messages": ["two"]})
    line.rewind("@~1")
    line.append({"messages": ["three"]})
    assert line.load()["messages"] == ["one", "three"]


def test_a_dry_run_says_what_would_happen_and_does_nothing(line: Timeline, vault: Vault) -> None:
    plan = line.rewind("@~2", dry_run=True)
    assert (plan.target.seq, plan.moved) == (3, False)
    assert turns(line) == [5, 4, 3, 2, 1]
    assert list(vault.operations()) == []


def test_a_rewind_to_the_head_does_nothing(line: Timeline, vault: Vault) -> None:
    assert not line.rewind("@").moved
    assert list(vault.operations()) == []


def test_a_rewind_finds_a_status_and_a_time(line: Timeline) -> None:
    moment = line.get("main:3").created_at
    assert line.rewind(status="RUNNING", dry_run=True).target.seq == 3
    assert line.rewind(before=moment, dry_run=True).target.seq == 2
    assert line.rewind(status="FAILED", before=moment + timedelta(days=1)).target.seq == 5
    with pytest.raises(NotFound, match="no checkpoint with status"):
        line.rewind(status="FAILED", before=moment)


@pytest.mark.parametrize("arguments", [{}, {"ref": "@", "status": "RUNNING"}])
def test_a_rewind_needs_to_know_where_to(line: Timeline, arguments: dict[str, str]) -> None:
    with pytest.raises(Misuse, match="rewind"):
        line.rewind(**arguments)  # type: ignore[arg-type] # texts only: no time among them


def test_a_rewind_to_what_is_not_there_changes_nothing(line: Timeline) -> None:
    with pytest.raises(NotFound):
        line.rewind("main:77")
    assert turns(line) == [5, 4, 3, 2, 1]


def test_another_handle_that_saw_the_old_head_gets_a_conflict(line: Timeline, vault: Vault) -> None:
    other = vault.timeline("main")
    line.rewind("@~2")
    with pytest.raises(Conflict):
        other.save({"turn": 6})


def test_a_timeline_may_take_over_what_its_fork_has_reached(line: Timeline) -> None:
    fork = line.fork("@~2", name="try-2")
    fork.save({"turn": 44})
    line.rewind("try-2:1")
    assert turns(line) == [44, 3, 2, 1]
    line.undo()
    assert turns(line) == [5, 4, 3, 2, 1]


# Undo, redo


def test_undo_takes_a_rewind_back_and_redo_does_it_again(line: Timeline) -> None:
    line.rewind("@~2")
    assert line.undo().kind == "undo"
    assert turns(line) == [5, 4, 3, 2, 1]
    assert line.redo().kind == "redo"
    assert turns(line) == [3, 2, 1]
    line.undo()
    assert turns(line) == [5, 4, 3, 2, 1]


def test_undo_walks_back_over_several_operations_and_redo_forth(line: Timeline) -> None:
    line.rewind("@~1")
    line.rewind("@~1")
    line.rewind("@~1")
    for expected in (3, 4, 5):
        line.undo()
        assert turns(line)[0] == expected
    with pytest.raises(NotFound, match="nothing to undo on timeline 'main'"):
        line.undo()
    for expected in (4, 3, 2):
        line.redo()
        assert turns(line)[0] == expected
    with pytest.raises(NotFound, match="nothing to redo"):
        line.redo()


def test_saves_made_since_stay_reachable_and_redo_leads_back_to_them(line: Timeline) -> None:
    line.rewind("@~2")
    line.save({"turn": 33})
    line.undo()
    assert turns(line) == [5, 4, 3, 2, 1]
    assert line.get("main:6").read("turn") == 33
    line.save({"turn": 6})  # a save does not clear redo
    line.redo()
    assert turns(line) == [33, 3, 2, 1]
    assert line.get("main:7").read("turn") == 6
    assert line.save({"turn": 8}).seq == 8


def test_a_new_operation_clears_redo(line: Timeline) -> None:
    line.rewind("@~2")
    line.undo()
    line.rewind("@~1")
    with pytest.raises(NotFound, match="nothing to redo"):
        line.redo()


def test_undo_minds_only_its_own_timeline_and_the_vault_all_of_them(
    line: Timeline, vault: Vault
) -> None:
    other = vault.timeline("other")
    other.save({"turn": 1})
    other.save({"turn": 2})
    line.rewind("@~1")
    other.rewind("@~1")
    line.undo()
    assert (turns(line)[0], turns(other)[0]) == (5, 1)
    vault.undo()
    assert turns(other)[0] == 2
    vault.redo()
    assert turns(other)[0] == 1
    vault.redo()
    assert turns(line)[0] == 4


class _Counting(MemoryStore):
    """How many log entries were read in one go over the log."""

    def __init__(self) -> None:
        super().__init__()
        self.read_entries = 0

    def log_before(
        self, user: str | None, before: int | None, limit: int, timeline: str | None = None
    ) -> list[LogRecord]:
        found = super().log_before(user, before, limit, timeline)
        self.read_entries += len(found)
        return found


def test_an_undo_costs_the_same_however_many_undos_came_before_it() -> None:
    with Vault(store := _Counting(), clock=Clock()) as vault:
        line = vault.timeline("main")
        line.save({"turn": 1})
        line.save({"turn": 2})
        for turn in range(40):
            line.rewind(f"main:{turn % 2 + 1}")
        for step in (line.undo, line.redo, vault.undo, vault.redo):
            read = []
            for _ in range(40):
                store.read_entries = 0
                step()
                read.append(store.read_entries)
            assert max(read) <= 20, step


def test_an_undo_reads_nothing_of_what_was_done_on_other_timelines() -> None:
    with Vault(store := _Counting(), clock=Clock()) as vault:
        for name in ("main", "other"):
            vault.timeline(name).save({"turn": 1})
            vault.timeline(name).save({"turn": 2})
        vault.timeline("main").rewind("@~1")
        for turn in range(100):
            vault.timeline("other").rewind(f"other:{turn % 2 + 1}")
        store.read_entries = 0
        assert [each.kind for each in vault.operations("main")] == ["rewind"]
        assert vault.timeline("main").undo().timeline == "main"
        assert store.read_entries < 10


_TIMELINES = ("a", "b", "c")
_DOINGS = st.tuples(
    st.sampled_from(("rewind", "undo", "redo")), st.sampled_from((*_TIMELINES, None))
)


@given(st.lists(_DOINGS, max_size=40))
@example([("rewind", "a"), ("rewind", "b"), ("undo", "a"), ("undo", None), ("redo", "a")])
@example([("rewind", "a"), ("rewind", "a"), ("undo", "a"), ("undo", None), ("redo", "a")])
@example([*[("rewind", "a")] * 4, ("rewind", "b"), ("undo", "a"), ("undo", None)])
def test_what_is_undone_next_is_what_the_whole_log_would_say(doings: list[Any]) -> None:
    with Vault(MemoryStore(), clock=Clock()) as vault:
        for name in _TIMELINES:
            vault.timeline(name).save({})
            vault.timeline(name).save({})
        for turn, (doing, name) in enumerate(doings):
            _do(vault, turn, doing, name)
            _check_next(vault)


_WITH_EARLIER = st.tuples(_DOINGS, st.booleans())


@given(st.lists(_WITH_EARLIER, max_size=40))
@example(
    [
        *[(("rewind", name), False) for name in "ab"],
        *[(("undo", "a"), True), (("undo", None), False), (("undo", None), False)],
    ]
)
@example(
    [
        *[(("rewind", "a"), False)] * 2,
        *[(("undo", "a"), False)] * 2,
        (("redo", "a"), True),
    ]
)
def test_what_earlier_versions_have_undone_is_neither_undone_twice_nor_passed_over(
    doings: list[Any],
) -> None:
    """They do not say which entry they have turned around."""
    with Vault(MemoryStore(), clock=Clock()) as vault:
        for name in _TIMELINES:
            vault.timeline(name).save({})
            vault.timeline(name).save({})
        for turn, (doing, is_earlier) in enumerate(doings):
            with _as_written_by(is_earlier):
                _do(vault, turn, *doing)
            _check_next(vault)


def _as_written_by(is_earlier: bool) -> AbstractContextManager[Any]:
    if not is_earlier:
        return nullcontext()
    encode = operations.encode
    return patch.object(
        operations, "encode", lambda effects: encode(effects._replace(turned=0, on_any=False))
    )


def _do(vault: Vault, turn: int, doing: str, name: str | None) -> None:
    if doing == "rewind" and name is not None:
        vault.timeline(name).rewind(f"{name}:{turn % 2 + 1}")
    elif doing != "rewind":
        line = vault if name is None else vault.timeline(name)
        with suppress(NotFound):
            line.undo() if doing == "undo" else line.redo()


def _check_next(vault: Vault) -> None:
    for name in (*_TIMELINES, None):
        for choose in (operations.next_undo, operations.next_redo):
            expected = choose(undo.entries(vault._context), name)
            assert choose(undo.unsettled(vault._context, name), name) == expected


def test_undo_survives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Vault(SqliteStore(path)) as vault:
        line = vault.timeline("main")
        line.save({"turn": 1})
        line.save({"turn": 2})
        line.rewind("@~1")
    with Vault(SqliteStore(path)) as vault:
        line = vault.timeline("main")
        line.undo()
        assert turns(line) == [2, 1]
    with Vault(SqliteStore(path)) as vault:
        vault.timeline("main").redo()
        assert vault.timeline("main").load() == {"turn": 1}


def test_undoing_a_fork_takes_the_timeline_away(line: Timeline, vault: Vault) -> None:
    fork = line.fork("@~2", name="try-2")
    fork.undo()
    assert [each.name for each in vault.timelines()] == ["main"]
    assert vault.timeline("try-2").head is None
    fork.redo()
    assert turns(vault.timeline("try-2")) == [3, 2, 1]


def test_a_fork_with_saves_of_its_own_is_not_undone(line: Timeline) -> None:
    fork = line.fork("@~2", name="try-2")
    fork.save({"turn": 44})
    with pytest.raises(Conflict, match=r"saved on since the fork .* delete the whole timeline"):
        fork.undo()
    assert turns(fork) == [44, 3, 2, 1]


def test_a_timeline_with_new_saves_is_not_deleted_again_by_redo(line: Timeline) -> None:
    line.delete()
    line.undo()
    line.save({"turn": 6})
    with pytest.raises(Conflict, match="was saved on since the undo"):
        line.redo()
    assert turns(line) == [6, 5, 4, 3, 2, 1]


def test_a_name_that_was_given_up_can_be_forked_to_again(line: Timeline, vault: Vault) -> None:
    fork = line.fork("@~2", name="try-2")
    fork.save({"turn": 44})
    fork.delete()
    again = line.fork("@~1", name="try-2")
    assert turns(again) == [4, 3, 2, 1]
    assert again.save({"turn": 45}).seq == 2


def test_undo_that_relies_on_a_dropped_checkpoint_says_so(line: Timeline, vault: Vault) -> None:
    line.rewind("@~1")
    head = line.get("main:5")._record.id
    vault._context.store.commit(Batch(None, an_entry("drop"), changes=Changes(drop=[head])))
    with pytest.raises(NotFound, match="cannot be taken back any more"):
        line.undo()
    assert turns(line) == [4, 3, 2, 1]


def test_operations_are_listed_newest_first(line: Timeline, vault: Vault) -> None:
    line.rewind("@~1")
    line.fork(name="try-2")
    line.undo()
    found = [(each.kind, each.timeline, each.is_undone) for each in vault.operations()]
    assert found == [("undo", "main", False), ("fork", "try-2", False), ("rewind", "main", True)]
    assert [each.kind for each in vault.operations("try-2")] == ["fork"]
    assert "rewind of 'main' at" in str(vault.operations()[2])


def test_operations_come_in_pages_that_know_what_was_undone(line: Timeline, vault: Vault) -> None:
    for number in range(4):
        line.rewind("@~1" if number % 2 else ":3")
    for _ in range(3):
        line.undo()
    line.redo()
    whole = list(vault.operations())
    assert sum(each.is_undone for each in whole) == 2
    for limit in range(1, 10):
        found = list(every(lambda after: vault.operations(limit=limit, after=after)))  # noqa: B023
        assert found == whole
    assert vault.operations(limit=len(whole)).next is None


def test_a_page_of_operations_is_not_moved_by_later_ones(line: Timeline, vault: Vault) -> None:
    for ref in (":3", ":2", ":1"):
        line.rewind(ref)
    whole, first = list(vault.operations()), vault.operations(limit=1)
    line.fork(name="other")
    assert list(vault.operations(after=first.next)) == whole[1:]


def test_a_cursor_from_another_listing_is_refused(line: Timeline, vault: Vault) -> None:
    other = vault.timeline("other")
    for number in range(3):
        other.save({"turn": number})
        other.rewind("@~0" if not number else "@~1")
    page = other.checkpoints(limit=1)
    assert page.next is not None
    assert len(other.checkpoints(after=page.next)) == 2
    calls: list[Callable[..., object]] = [
        line.checkpoints,
        vault.operations,
        vault.sessions,
        vault.tasks.find,
        partial(vault.moments, "."),
    ]
    for call in calls:
        for wrong in (page.next, page.next.partition(".")[0], "", 3):
            with pytest.raises(Misuse, match=r"earlier page of this listing.*begin without it"):
                call(after=wrong)


# Clear, delete


def test_clear_hides_all_and_the_numbers_go_on(line: Timeline, vault: Vault) -> None:
    assert line.clear() == 5
    assert (len(line), line.head, list(line.checkpoints())) == (0, None, [])
    assert [each.name for each in vault.timelines()] == ["main"]
    assert vault.store.stats().checkpoints == 0
    saved = line.save({"turn": 6})
    assert (saved.seq, saved.parent) == (6, None)
    assert line.clear() == 1
    assert vault.timeline("never saved").clear() == 0


def test_what_was_deleted_is_not_found_and_the_error_says_why(line: Timeline, vault: Vault) -> None:
    id = line.get("main:3").id
    line.clear()
    for ref in ("main:3", id):
        with pytest.raises(NotFound, match="deleted; undo may bring it back"):
            vault.get(ref)
    with pytest.raises(NotFound):
        vault.get(id[:12])


def test_undo_brings_back_what_was_cleared_and_keeps_what_came_since(line: Timeline) -> None:
    line.clear()
    line.save({"turn": 6})
    line.undo()
    assert turns(line) == [5, 4, 3, 2, 1]
    assert [each.seq for each in line.checkpoints()] == [6, 5, 4, 3, 2, 1]
    line.redo()
    assert turns(line) == [6]
    assert [each.seq for each in line.checkpoints()] == [6]
    line.undo()
    assert len(line) == 6


def test_a_deleted_timeline_is_not_listed_until_the_next_save(line: Timeline, vault: Vault) -> None:
    assert line.delete() == 5
    assert list(vault.timelines()) == []
    with pytest.raises(NotFound, match="there is no timeline 'main'"):
        line.delete()
    assert vault.timeline("main").save({"turn": 6}).seq == 6
    assert [each.name for each in vault.timelines()] == ["main"]
    line.undo()
    assert turns(line) == [5, 4, 3, 2, 1]


def test_a_fork_keeps_its_history_when_its_source_is_deleted(line: Timeline, vault: Vault) -> None:
    fork = line.fork("@~2", name="try-2")
    line.delete()
    assert turns(fork) == [3, 2, 1]
    fork.save({"turn": 44})
    assert turns(fork) == [44, 3, 2, 1]


def test_one_checkpoint_can_be_deleted_and_history_passes_over_it(
    line: Timeline, vault: Vault
) -> None:
    vault.delete("main:3")
    assert turns(line) == [5, 4, 2, 1]
    vault.delete("main:5")
    assert turns(line) == [4, 2, 1]
    vault.undo()
    vault.undo()
    assert turns(line) == [5, 4, 3, 2, 1]


def test_the_head_of_another_timeline_is_not_deleted(line: Timeline, vault: Vault) -> None:
    line.fork("@~2", name="try-2")
    with pytest.raises(Conflict, match="head of timeline 'try-2'"):
        vault.delete("main:3")


# The tree


def test_children_and_leaves_and_depth(line: Timeline) -> None:
    line.rewind("@~2")
    line.save({"turn": 33})
    fork = line.fork("main:3", name="try-2")
    fork.save({"turn": 44})
    assert [each.read("turn") for each in line.children("main:3")] == [4, 33, 44]
    assert [each.seq for each in line.leaves()] == [6, 5]
    assert (line.depth("main:1"), line.depth()) == (0, 3)


# Several at once


def test_two_handles_that_undo_at_once_take_back_two_operations(
    line: Timeline, vault: Vault
) -> None:
    line.rewind("@~1")
    line.rewind("@~1")
    store = vault._context.store
    commit = store.commit
    other = vault.timeline("main")

    def late(batch: Batch) -> int:
        store.commit = commit  # type: ignore[method-assign] # only the first is held up
        other.undo()
        return commit(batch)

    store.commit = late  # type: ignore[method-assign] # between looking and writing
    line.undo()
    assert turns(line) == [5, 4, 3, 2, 1]


def test_a_rewind_looks_again_if_somebody_saved_meanwhile(line: Timeline, vault: Vault) -> None:
    store = vault._context.store
    commit = store.commit
    other = vault.timeline("main")

    def late(batch: Batch) -> int:
        store.commit = commit  # type: ignore[method-assign] # only the first is held up
        other.save({"turn": 6})
        return commit(batch)

    store.commit = late  # type: ignore[method-assign] # between looking and writing
    done = line.rewind("main:2")
    assert done.before is not None
    assert done.before.read("turn") == 6
    line.undo()
    assert turns(line) == [6, 5, 4, 3, 2, 1]


def test_events_are_told(line: Timeline, vault: Vault) -> None:
    told: list[str] = []
    for event in ("rewound", "undone", "redone", "cleared", "deleted"):
        vault.on(event, lambda about, event=event: told.append(event))
    line.rewind("@~1")
    line.undo()
    line.redo()
    vault.undo()
    vault.delete("main:1")
    line.clear()
    line.delete()
    assert told == ["rewound", "undone", "redone", "undone", "deleted", "cleared", "deleted"]


def test_a_naive_time_is_local(line: Timeline) -> None:
    moment = datetime.now(UTC).astimezone().replace(tzinfo=None)
    assert line.rewind(before=moment, dry_run=True).target.seq == 5


@pytest.mark.parametrize("way", ["head", "get", "load"])
def test_a_head_that_is_dropped_between_two_looks_is_looked_up_again(
    line: Timeline, vault: Vault, way: str
) -> None:
    store = vault._context.store
    find = store.checkpoint
    other = vault.timeline("main")

    def late(user: str | None, id: bytes) -> object:
        store.checkpoint = find  # type: ignore[method-assign] # only the first is held up
        other.rewind("main:2")
        store.commit(Batch(None, an_entry("drop"), changes=Changes(drop=[id])))
        return find(user, id)

    store.checkpoint = late  # type: ignore[assignment,method-assign] # between two looks
    found: Any = line.head if way == "head" else getattr(line, way)()
    assert (found if way == "load" else found.read()) == {"turn": 2}


# Of earlier versions


def test_an_entry_that_says_less_of_files_is_understood() -> None:
    files = operations.FilesMove(b"/work", bytes(12), bytes(12), (b"src",), git=True)
    data = Codec().decode(operations.encode(operations.Effects(files=files)))
    data["files"] = data["files"][:5]
    record = LogRecord(1, bytes(12), "main", "rewind", 0, Codec().encode(data))
    entry = operations.decode(record)
    assert entry is not None
    assert entry.effects.files == files


ID = bytes(12)
LINE = [ID, 1, 1, None]


@pytest.mark.parametrize(
    "data",
    [
        {"moves": 5},
        {"moves": [["main", None]]},
        {"moves": [["main", None, None]]},
        {"moves": [["main", None, ["no id", 1, 1, None]]]},
        {"moves": [["main", None, [ID, "one", 1, None]]]},
        {"moves": [[5, None, LINE]]},
        {"shown": ["one"]},
        {"lost": [[1]]},
        {"subject": b"short"},
        {"files": [b"/work", ID, ID, None, False, None, None, False, [ID]]},
        {"files": [b"/work", ID, ID, None, False, None, [ID]]},
        {"files": [b"/work", ID, ID, ["text"]]},
        {"files": [b"/work"]},
        {"tasks": [["t1", "one"]]},
    ],
)
def test_an_entry_that_no_operation_has_written_is_damage(data: dict[str, Any]) -> None:
    store = MemoryStore()
    vault = Vault(store)
    line = vault.timeline("main")
    line.save(1)
    entry = LogRecord(0, os.urandom(12), "main", "rewind", 1, Codec().encode(data))
    store.commit(Batch(None, entry))
    for call in (line.undo, vault.undo, lambda: list(vault.operations())):
        with pytest.raises(Corrupt, match="entry 2 of the log, 'rewind', is malformed"):
            call()
    (fault,) = vault.store.verify().faults
    assert fault.startswith("entry 2 of the log, 'rewind', is malformed")
    assert line.load() == 1
