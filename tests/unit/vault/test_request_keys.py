"""Requests that a client makes twice, because it did not get the answer: carried out once."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave import Conflict, Misuse, NotFound, Timeline, Vault, aio
from hardsave.stores import requests


@pytest.fixture(params=["memory", "sqlite"])
def vault(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Vault]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/store/runs.db"
    with hardsave.open(url) as opened:
        yield opened


@pytest.fixture
def line(vault: Vault) -> Timeline:
    made = vault.timeline("main")
    for turn in range(1, 5):
        made.append({"messages": [{"role": "user", "content": f"turn {turn}"}]})
    return made


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def saved(line: Timeline, work: Path, text: str) -> hardsave.Checkpoint:
    (work / "a.txt").write_text(text)
    return line.save({"text": text}, workspace=work)


def head(line: Timeline) -> int:
    found = line.head
    assert found is not None
    return found.seq


def entries(vault: Vault) -> list[str]:
    return [each.kind for each in vault.operations()]


def test_a_rewind_with_the_same_key_is_made_once(vault: Vault, line: Timeline) -> None:
    first = line.rewind("@~1", key="request 1")
    assert first.moved
    line.append({"messages": ["later"]})
    again = vault.timeline("main").rewind("@~1", key="request 1")
    assert (again.target, again.before, again.moved) == (first.target, first.before, True)
    assert head(line) == 5
    assert entries(vault) == ["rewind"]


def test_a_rewind_of_files_with_the_same_key_is_made_once(
    vault: Vault, line: Timeline, work: Path
) -> None:
    one = saved(line, work, "one")
    saved(line, work, "two")
    (work / "a.txt").write_text("unsaved")
    first = line.rewind(one, key="k")
    (work / "a.txt").write_text("after it")
    again = line.rewind(one, key="k")
    assert again.before == first.before
    assert (work / "a.txt").read_text() == "after it"
    assert entries(vault) == ["rewind"]


def test_every_operation_with_the_same_key_is_made_once(vault: Vault, line: Timeline) -> None:
    fork = line.fork("@~1", name="other", key="fork")
    fork.append({"messages": ["on it"]})
    assert len(line.fork("@~1", name="other", key="fork")) == 1
    line.rewind("@~1")
    line.rewind("@~1")
    one, two = line.undo(key="undo"), vault.timeline("main").undo(key="undo")
    assert one == two
    assert one.about["of"] == "rewind"
    assert head(line) == 3
    three, four = vault.redo(key="redo"), vault.redo(key="redo")
    assert three == four
    assert head(line) == 2
    gone = vault.delete("main:4", key="delete")
    assert vault.delete("main:4", key="delete") == gone
    assert line.clear(key="clear") == line.clear(key="clear") == 3
    line.save({"turn": 5})
    assert line.clear(key="clear") == 3
    assert line.delete(key="gone") == line.delete(key="gone") == 1
    assert entries(vault).count("delete") == 2


def test_a_key_of_another_request_is_refused(vault: Vault, line: Timeline) -> None:
    line.rewind("@~1", key="k")
    calls: list[Callable[[], object]] = [
        lambda: line.rewind(":1", key="k"),
        lambda: line.fork(name="other", key="k"),
        lambda: line.undo(key="k"),
        lambda: line.clear(key="k"),
        lambda: vault.delete(":1", key="k"),
        lambda: vault.timeline("second").rewind("@~1", key="k"),
        lambda: line.rewind("@~1", what="state", key="k"),
        lambda: line.rewind("@~1", tasks=True, key="k"),
        lambda: line.rewind(status="running", key="k"),
    ]
    vault.timeline("second").save({})
    for call in calls:
        with pytest.raises(Conflict, match="this key is that of another request"):
            call()


@pytest.mark.parametrize("wrong", ["", 3, "x" * 1001, "\ud800"])
def test_what_is_no_key_is_refused(line: Timeline, wrong: Any) -> None:
    with pytest.raises(Misuse, match="key"):
        line.rewind("@~1", key=wrong)


def test_users_have_their_own_keys(tmp_path: Path) -> None:
    for user in (None, "ada"):
        with hardsave.open(f"sqlite:///{tmp_path}/runs.db", user=user) as vault:
            line = vault.timeline("main")
            line.save({"turn": 1})
            line.save({"turn": 2})
            assert line.rewind("@~1", key="k").moved
            assert head(line) == 1


def test_a_key_of_another_deletion_is_refused(vault: Vault, line: Timeline) -> None:
    vault.delete("main:2", key="d")
    for call in (lambda: vault.delete("main:3", key="d"), lambda: line.delete(key="d")):
        with pytest.raises(Conflict, match="this key is that of another request, a delete"):
            call()
    assert len(line) == 3


# What was asked for is what the caller has said


@pytest.mark.parametrize(
    "asked",
    [
        {"ref": "@~1"},
        {"status": "good"},
        {"before": datetime(2100, 1, 1, tzinfo=UTC)},
    ],
    ids=["ref", "status", "moment"],
)
def test_a_rewind_to_what_has_moved_since_is_answered(vault: Vault, asked: dict[str, Any]) -> None:
    line = vault.timeline("main")
    for turn in range(3):
        line.save({"turn": turn}, status="good" if turn < 2 else "running")
    first = line.rewind(what="state", key="k", **asked)
    assert line.rewind(what="state", key="k", **asked).target == first.target
    line.save({"turn": 3}, status="good")
    again = line.rewind(what="state", key="k", **asked)
    assert (again.target, again.before, again.moved) == (first.target, first.before, first.moved)
    assert head(line) == 4


def test_the_head_that_was_deleted_is_answered_though_another_one_is_the_head_by_then(
    line: Timeline, vault: Vault
) -> None:
    gone = vault.delete("@", timeline="main", key="k")
    assert gone.seq == 4
    assert vault.delete("@", timeline="main", key="k") == gone
    assert head(line) == 3
    calls: list[Callable[[], object]] = [
        lambda: vault.delete("@", timeline="second", key="k"),
        lambda: vault.delete("main:4", key="k"),
    ]
    for call in calls:
        with pytest.raises(Conflict, match="this key is that of another request, a delete"):
            call()


def test_a_fork_into_a_directory_with_the_same_key_is_made_once(
    vault: Vault, line: Timeline, work: Path, tmp_path: Path
) -> None:
    source = saved(line, work, "one")
    told: list[str] = []
    vault.on("forked", lambda made: told.append(made.name))

    def fork(to: str = "try") -> hardsave.Fork:
        return vault.workspace(work).fork(source, tmp_path / to, key="k")

    first = fork()
    (tmp_path / "try" / "a.txt").write_text("two")
    vault.delete(source)
    again = fork()
    assert (again.timeline.name, again.workspace.path) == ("try", first.workspace.path)
    assert (tmp_path / "try" / "a.txt").read_text() == "two"
    assert len(again.timeline) == 1
    assert told == ["try"]
    with pytest.raises(Conflict, match="this key is that of another request, a fork of 'try'"):
        fork("other")
    assert not (tmp_path / "other").exists()


def test_a_deletion_is_answered_though_its_ref_means_nothing_any_more(
    line: Timeline, vault: Vault
) -> None:
    gone = vault.delete("main:4", key="k")
    assert vault.delete("main:4", key="k") == gone
    with pytest.raises(NotFound):
        vault.delete("main:4", key="other")


# A request that finds nothing to do


def test_a_rewind_that_found_nothing_to_do_does_nothing_later(vault: Vault, line: Timeline) -> None:
    here = line.get("@")
    first = line.rewind(here, what="state", key="k")
    later = line.save({"turn": 5})
    again = line.rewind(here, what="state", key="k")
    assert (again.target, again.before, again.moved) == (here, here, False)
    assert (first.target, first.before, first.moved) == (here, here, False)
    assert line.head == later


def test_a_rewind_of_files_that_found_nothing_to_do_does_nothing_later(
    line: Timeline, work: Path
) -> None:
    one = saved(line, work, "one")
    for what in ("all", "files"):
        assert not line.rewind(one, what=what, key=what).moved
    two = saved(line, work, "two")
    for what in ("all", "files"):
        assert not line.rewind(one, what=what, key=what).moved  # type: ignore[arg-type]
    assert line.head == two
    assert (work / "a.txt").read_text() == "two"


def test_a_clear_that_found_nothing_to_do_does_nothing_later(vault: Vault) -> None:
    line = vault.timeline("new")
    assert line.clear(key="before it exists") == 0
    line.save({"turn": 1})
    assert line.clear(key="before it exists") == 0
    assert line.clear() == 1
    assert line.clear(key="empty") == 0
    line.save({"turn": 2})
    assert line.clear(key="empty") == 0
    assert line.load() == {"turn": 2}
    with pytest.raises(Conflict, match="this key is that of another request"):
        line.delete(key="empty")


def test_undo_passes_by_a_request_that_found_nothing_to_do(vault: Vault, line: Timeline) -> None:
    line.rewind("@~1")
    line.rewind("@", what="state", key="k")
    assert entries(vault) == ["rewind"]
    assert line.undo().about["of"] == "rewind"
    assert head(line) == 4
    line.rewind("@", what="state", key="j")
    line.redo()
    assert head(line) == 3
    assert vault.store.verify().ok
    assert [hit.checkpoint.seq for hit in vault.search("turn 4")] == [4]


# The same request at the same moment


def _look_away_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[object] = []
    look = requests.found

    def away(*given: Any) -> Any:
        looks.append(given)
        return None if len(looks) == 1 else look(*given)

    monkeypatch.setattr(requests, "found", away)


def test_the_same_request_that_came_through_meanwhile_is_no_conflict(
    vault: Vault, line: Timeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = line.rewind("@~1", dry_run=True).plan
    calls: list[Callable[[], object]] = [
        lambda: line.rewind("@~1", expect=plan, key="rewind").target,
        lambda: line.fork("@", name="other", key="fork").name,
        lambda: vault.delete("main:1", key="delete"),
        lambda: line.undo(key="undo"),
        lambda: line.delete(key="gone"),
    ]
    for call in calls:
        first = call()
        with monkeypatch.context() as patched:
            _look_away_once(patched)
            assert call() == first


def test_a_restore_that_waited_for_the_same_one_touches_no_file(
    line: Timeline, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = saved(line, work, "one")
    saved(line, work, "two")
    line.rewind(one, key="k")
    (work / "a.txt").write_text("after it")
    _look_away_once(monkeypatch)
    line.rewind(one, key="k")
    assert (work / "a.txt").read_text() == "after it"


# Handlers


def test_handlers_are_told_once(vault: Vault, line: Timeline) -> None:
    told: list[str] = []
    for event in ("forked", "rewound", "undone", "redone", "cleared", "deleted"):
        vault.on(event, lambda _, event=event: told.append(event))
    for _ in range(2):
        line.fork(name="other", key="fork")
        line.rewind("@~1", key="rewind")
        line.undo(key="undo")
        vault.redo(key="redo")
        vault.delete("main:1", key="one")
        line.clear(key="clear")
        line.delete(key="delete")
    assert told == ["forked", "rewound", "undone", "redone", "deleted", "cleared", "deleted"]


def test_awaited_handlers_are_told_once() -> None:
    told: list[str] = []

    async def main() -> None:
        async with aio.open("memory://") as vault:
            line = await vault.timeline("main")
            for turn in range(4):
                await line.save({"turn": turn})
            for event in ("forked", "rewound", "undone", "redone", "cleared", "deleted"):

                async def handler(_: object, event: str = event) -> None:
                    told.append(event)

                vault.on(event, handler)
            for _ in range(2):
                await line.fork(name="other", key="fork")
                await line.rewind("@~1", key="rewind")
                await line.undo(key="undo")
                await vault.redo(key="redo")
                await vault.delete("main:1", key="one")
                await line.clear(key="clear")
                await line.delete(key="delete")

    asyncio.run(main())
    assert told == ["forked", "rewound", "undone", "redone", "deleted", "cleared", "deleted"]
