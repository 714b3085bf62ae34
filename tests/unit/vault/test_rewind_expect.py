"""A rewind that its caller has looked at before: applied as it was shown, or refused."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave import Conflict, Misuse, Rewind, Timeline, Vault
from hardsave.vault.restore import rewind as rewinding


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


# The head


def test_a_rewind_that_expects_the_head_is_made(line: Timeline) -> None:
    seen = line.head
    assert seen is not None
    assert line.rewind("@~1", expect=seen).moved
    assert line.rewind(":1", expect=line.get(":3").id).moved
    assert head(line) == 1


def test_a_rewind_that_expects_another_head_is_refused(vault: Vault, line: Timeline) -> None:
    seen = line.head
    vault.timeline("main").append({"messages": ["meanwhile"]})
    with pytest.raises(Conflict, match=r"'main' is at chk_\w+ by now.*look at it again"):
        line.rewind("@~1", expect=seen)
    assert head(line) == 5
    assert not vault.operations()


@pytest.mark.parametrize("wrong", ["main:3", "plan_", "plan_12", "", 3, b"chk"])
def test_what_is_no_head_and_no_plan_is_refused(line: Timeline, wrong: Any) -> None:
    with pytest.raises(Misuse):
        line.rewind("@~1", expect=wrong)


def test_a_save_between_the_look_and_the_commit_is_not_overlooked(
    vault: Vault, line: Timeline, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(line, work, "one")
    saved(line, work, "two")
    seen = line.head
    committed = rewinding._committed

    def late(*given: Any) -> Any:
        monkeypatch.setattr(rewinding, "_committed", committed)
        vault.timeline("main").append({"more": 1})
        return committed(*given)

    for what in ("state", "all"):
        (work / "a.txt").write_text("unsaved")
        monkeypatch.setattr(rewinding, "_committed", late)
        with pytest.raises(Conflict, match="by now"):
            line.rewind("@~1", what=what, expect=seen)
        assert (work / "a.txt").read_text() == "unsaved"
        assert not vault.operations()
        seen = line.head


def test_what_was_saved_of_the_present_is_no_move_of_another(line: Timeline, work: Path) -> None:
    saved(line, work, "one")
    seen = saved(line, work, "two")
    (work / "a.txt").write_text("unsaved")
    assert line.rewind("@~1", expect=seen).moved
    assert (work / "a.txt").read_text() == "one"


# A plan


def test_a_plan_is_applied_later(vault: Vault, line: Timeline, work: Path) -> None:
    saved(line, work, "one")
    saved(line, work, "two")
    told = line.rewind("@~1", dry_run=True)
    assert told.plan.startswith("plan_")
    assert (head(line), (work / "a.txt").read_text()) == (6, "two")
    for expect in (told, told.plan):
        done = vault.timeline("main").rewind("@~1", expect=expect)
        assert (done.moved, done.plan) == (True, "")
        assert (head(line), (work / "a.txt").read_text()) == (5, "one")
        line.undo()


def test_a_plan_is_the_same_as_long_as_nothing_has_moved(line: Timeline, work: Path) -> None:
    saved(line, work, "one")
    saved(line, work, "two")
    plans = {line.rewind("@~1", dry_run=True).plan for _ in range(2)}
    assert len(plans) == 1
    others = [
        line.rewind("@~1", what="state", dry_run=True),
        line.rewind("@~1", paths=["a.txt"], dry_run=True),
        line.rewind("@~1", scope="everyone", dry_run=True),
        line.rewind(":1", what="state", dry_run=True),
    ]
    assert len(plans.union(each.plan for each in others)) == 5


def save_more(line: Timeline, work: Path) -> None:
    line.append({"more": 1})


def change_a_file(line: Timeline, work: Path) -> None:
    (work / "a.txt").write_text("changed since")


def add_a_file(line: Timeline, work: Path) -> None:
    (work / "new.txt").write_text("new since")


@pytest.mark.parametrize("meanwhile", [save_more, change_a_file, add_a_file])
def test_a_plan_that_is_stale_is_refused(
    line: Timeline, work: Path, meanwhile: Callable[[Timeline, Path], None]
) -> None:
    first = saved(line, work, "one")
    saved(line, work, "two")
    told = line.rewind(first, dry_run=True)
    meanwhile(line, work)
    before = (head(line), sorted((each.name, each.read_text()) for each in work.iterdir()))
    with pytest.raises(Conflict, match="then repeat"):
        line.rewind(first, expect=told)
    after = (head(line), sorted((each.name, each.read_text()) for each in work.iterdir()))
    assert before == after
    assert line.rewind(first, expect=line.rewind(first, dry_run=True)).moved


def test_a_plan_of_another_rewind_is_refused(vault: Vault, line: Timeline) -> None:
    told = line.rewind("@~1", dry_run=True)
    with pytest.raises(Misuse, match="plan is of another rewind"):
        line.rewind("@~2", expect=told)
    other = vault.timeline("other")
    other.save({})
    other.save({})
    with pytest.raises(Conflict):
        other.rewind("@~1", expect=told)


def test_a_plan_is_refused_once_a_task_has_moved(vault: Vault, line: Timeline) -> None:
    first = line.head
    assert first is not None
    vault.tasks.add("t")
    with vault.tasks.attempt("t"):
        line.append({"messages": ["by a task"]})
    told = line.rewind(first, tasks=True, dry_run=True)
    assert told.tasks
    vault.tasks.retry("t", force=True)
    with pytest.raises(Conflict):
        line.rewind(first, tasks=True, expect=told)


def test_a_workspace_is_restored_as_planned(vault: Vault, line: Timeline, work: Path) -> None:
    first = saved(line, work, "one")
    saved(line, work, "two")
    place = vault.workspace(work)
    told = place.restore(first, dry_run=True)
    (work / "a.txt").write_text("three")
    with pytest.raises(Conflict):
        place.restore(first, expect=told)
    assert place.restore(first, expect=place.restore(first, dry_run=True)).files
    assert (work / "a.txt").read_text() == "one"


def test_a_dry_run_says_how_many_messages_are_left_behind(line: Timeline) -> None:
    def left(done: Rewind) -> int | None:
        return done.messages_left

    assert left(line.rewind("@~3", dry_run=True)) == 3
    assert left(line.rewind("@~1", dry_run=True)) == 1
    line.save({"no": "messages"})
    assert left(line.rewind("@~1", dry_run=True)) is None
