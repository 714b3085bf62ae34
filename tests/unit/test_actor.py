"""A block with a name: what is done in it tells who did it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave import Misuse, Vault, aio
from hardsave.vault import json_data


@pytest.fixture(params=["memory", "sqlite"])
def vault(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Vault]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/store/runs.db"
    with hardsave.open(url) as opened:
        yield opened


@pytest.fixture
def line(vault: Vault) -> hardsave.Timeline:
    made = vault.timeline("main")
    for turn in range(4):
        made.save({"turn": turn})
    return made


@pytest.mark.parametrize(
    "wrong", ["", " ", "x" * 201, "two\nlines", "a\u2028b", "\x1b[1m", "\ud800", 3, None, b"ada"]
)
def test_what_is_no_name_is_refused(wrong: Any) -> None:
    with pytest.raises(Misuse, match="who acts is a text of 1 to 200"), hardsave.acting_as(wrong):
        pass


@pytest.mark.parametrize("name", ["a", "x" * 200, "山田\u3000太郎", "Ada (token 3)", "می‌خواهم"])
def test_a_name_is_kept_as_it_is(vault: Vault, line: hardsave.Timeline, name: str) -> None:
    with hardsave.acting_as(name):
        line.rewind("@~1")
        assert line.save({}).by == name
        vault.tasks.add("t")
    assert [each.by for each in vault.operations()] == [name]
    assert [each.by for each in vault.tasks.history("t")] == [name]


def test_operations_tell_who_did_them(vault: Vault, line: hardsave.Timeline) -> None:
    with hardsave.acting_as("ada"):
        line.rewind("@~1")
        line.fork(name="other")
        with hardsave.acting_as("bob"):
            undone = vault.undo()
        redone = vault.redo()
        vault.delete("main:1")
        line.clear()
    line.delete()
    assert (undone.by, redone.by) == ("bob", "ada")
    told = [(each.kind, each.by) for each in vault.operations()]
    assert told == [
        ("delete", None),
        ("clear", "ada"),
        ("delete", "ada"),
        ("redo", "ada"),
        ("undo", "bob"),
        ("fork", "ada"),
        ("rewind", "ada"),
    ]
    assert vault.operations()[1].about == {"checkpoints": 3, "by": "ada"}
    assert json_data.operation(vault.operations()[1])["by"] == "ada"


def test_an_undo_that_is_answered_again_tells_who_did_it(
    vault: Vault, line: hardsave.Timeline
) -> None:
    line.rewind("@~1")
    with hardsave.acting_as("ada"):
        first = vault.undo(key="k")
    with hardsave.acting_as("bob"):
        assert vault.undo(key="k") == first
    assert first.by == "ada"


def test_what_callers_do_to_tasks_tells_who_did_it(vault: Vault) -> None:
    tasks = vault.tasks
    with hardsave.acting_as("ada"):
        tasks.add("t")
        with tasks.attempt("t") as attempt:
            attempt.ask("which?")
        tasks.answer("t", "this")
        tasks.cancel("t", key="k")
        tasks.retry("t")
        tasks.roll_back("t")
    tasks.retry("t")
    found = [(each.kind, each.by) for each in tasks.history("t")]
    assert found == [
        ("added", "ada"),
        ("claimed", None),
        ("asked", None),
        ("answered", "ada"),
        ("cancelled", "ada"),
        ("retried", "ada"),
        ("rolled_back", "ada"),
        ("retried", None),
    ]
    assert json_data.happening(tasks.history("t")[0])["by"] == "ada"


def test_tasks_that_a_rewind_takes_back_tell_who_did_it(vault: Vault) -> None:
    line = vault.timeline("main")
    line.save({"turn": 0})
    vault.tasks.add("t")
    with vault.tasks.attempt("t"):
        line.save({"turn": 1})
    with hardsave.acting_as("ada"):
        line.rewind("main:1", tasks=True)
    with hardsave.acting_as("bob"):
        line.undo()
    told = [(each.kind, each.by) for each in vault.tasks.history("t")][-2:]
    assert told == [("rolled_back", "ada"), ("reinstated", "bob")]


def test_checkpoints_tell_who_saved_them(vault: Vault, tmp_path: Path) -> None:
    line = vault.timeline("main")
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one")
    with hardsave.acting_as("ada"):
        saved = [
            line.save({"messages": [{"role": "user", "content": "hello"}]}),
            line.append({"messages": [{"role": "user", "content": "there"}]}),
            line.save_files(work),
            line.copy("@~1"),
        ]
    assert [each.by for each in saved] == ["ada"] * 4
    assert [vault.get(each.id).by for each in saved] == ["ada"] * 4
    assert json_data.checkpoint(saved[0])["by"] == "ada"
    summary = saved[1].summary
    assert summary is not None
    assert (summary.messages, summary.new_messages, summary.said, summary.by) == (
        *(2, 1, "there"),
        "ada",
    )
    plain = line.append({"messages": [{"role": "user", "content": "last"}]})
    assert (plain.by, plain.summary and plain.summary.new_messages) == (None, 1)
    assert line.copy(saved[1]).by is None  # not who saved what it is a copy of
    assert [each.by for each in line.checkpoints()] == [None, None, "ada", "ada", "ada", "ada"]
    assert vault.store.verify().ok


def test_the_first_checkpoint_of_a_fork_into_a_directory_is_whose_fork_it_is(
    vault: Vault, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one")
    with hardsave.acting_as("ada"):
        saved = vault.timeline("main").save({}, workspace=work)
    for name, by in (("hers", "bob"), ("plain", None)):
        directory = tmp_path / name
        if by is None:
            vault.workspace(work).fork(saved, name=name, directory=directory)
        else:
            with hardsave.acting_as(by):
                vault.workspace(work).fork(saved, name=name, directory=directory)
        head = vault.timeline(name).head
        assert head is not None
        assert head.by == by


def test_what_a_restore_saves_of_the_present_tells_who_did_it(vault: Vault, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    line = vault.timeline("main")
    (work / "a.txt").write_text("one")
    line.save({}, workspace=work)
    (work / "a.txt").write_text("two")
    with hardsave.acting_as("ada"):
        before = line.rewind("@").before
    assert before is not None
    assert (before.by, before.summary and before.summary.phase) == ("ada", "safety")


def test_what_is_exported_tells_who_saved_it(vault: Vault, tmp_path: Path) -> None:
    with hardsave.acting_as("ada"):
        vault.timeline("main").save({"turn": 1})
    vault.export_file(tmp_path / "all.hardsave")
    with hardsave.open("memory://") as other, hardsave.acting_as("bob"):
        other.import_file(tmp_path / "all.hardsave")
        assert other.get("main:1").by == "ada"
        assert [(each.kind, each.by) for each in other.operations()] == [("import", "bob")]


def test_events_tell_who_did_it(vault: Vault) -> None:
    with hardsave.acting_as("ada"):
        line = vault.timeline("main")
        line.save({"turn": 1})
        line.save({"turn": 2})
        line.rewind("@~1")
        vault.tasks.add("t")
        vault.tasks.cancel("t", key="k")
        vault.store.purge(ref="main:2")
    vault.tasks.retry("t")
    events = vault.follow(0).read()
    assert [(each.kind, each.by) for each in events] == [
        ("checkpoint_saved", "ada"),
        ("rewind", "ada"),
        ("task_added", "ada"),
        ("task_cancelled", "ada"),
        ("request", "ada"),
        ("purge", "ada"),
        ("task_retried", None),
    ]
    assert [each.data["by"] for each in events[1:6] if each.data is not None] == ["ada"] * 5


def test_a_text_is_purged_from_names_too(vault: Vault) -> None:
    line = vault.timeline("main")
    with hardsave.acting_as("key opensesame"):
        with pytest.raises(Misuse, match="take another"):
            vault.store.purge(text="opensesame")
        line.save({"turn": 1})
        line.save({"turn": 2})
        line.rewind("@~1")
        vault.tasks.add("t")
        vault.tasks.cancel("t", key="k")
    assert vault.store.purge(text="opensesame").left == ()
    assert line.get("main:1").by == "key [purged]"
    assert [*vault.operations()] == []
    store = vault._context.store
    assert not any(b"opensesame" in each.data for each in store.log(None, 0, 99))
    assert not any(b"opensesame" in each.data for each in store.happened(None, 0, 99))


def test_without_a_name_nothing_is_written(vault: Vault, line: hardsave.Timeline) -> None:
    line.rewind("@~1")
    vault.tasks.add("t")
    assert [each.by for each in line.checkpoints()] == [None] * 4
    assert [each.by for each in vault.operations()] == [None]
    store = vault._context.store
    data = [each.data for each in store.log(None, 0, 99)]
    data += [each.data for each in store.happened(None, 0, 99)]
    assert not any(b"\xa2by" in each for each in data)
    assert {row.summary for row in store.saved(None, 0, 99)} == {b"\x90"}


def test_a_name_holds_for_calls_of_coroutines() -> None:
    async def main() -> None:
        async with aio.open("memory://") as vault:
            line = await vault.timeline("main")
            with hardsave.acting_as("ada"):
                saved = await line.save({"turn": 1})
                await line.save({"turn": 2})
                await line.rewind("@~1")
                await vault.tasks.add("t")
            await line.save({"turn": 3})
            assert saved.by == "ada"
            assert [each.by for each in await vault.operations()] == ["ada"]
            assert [each.by for each in await vault.tasks.history("t")] == ["ada"]
            assert (await line.get("@")).by is None

    asyncio.run(main())
