"""A rewind may take tasks back; undo and redo turn that around. The ledger forgets nothing."""

from pathlib import Path
from typing import Any

import pytest

from hardsave.errors import Conflict, LeaseLost, Misuse
from hardsave.objects.records import LogRecord, TaskRecord
from hardsave.stores.base import Batch
from hardsave.stores.memory.store import MemoryStore
from hardsave.tasks.attempt import working
from hardsave.timeline.policy import Policy
from hardsave.vault.line import Timeline
from hardsave.vault.vault import Vault
from tests.unit.vault.desk import Desk
from tests.unit.vault.stage import Watched


def do(vault: Vault, name: str, line: Timeline, **about: Any) -> str:
    """A task that takes two steps and saves; the id of its checkpoint."""
    vault.tasks.add(name, f"do {name}", **about)
    with vault.tasks.attempt(name, force=True) as attempt:
        attempt.step("mail", lambda: f"sent by {name}")
        attempt.step("pay", lambda: 3)
        saved = line.save({"by": name}).id
        attempt.complete(f"result of {name}")
    return saved


def states(vault: Vault) -> dict[str, str]:
    return {task.id: task.state for task in vault.tasks.find()}


def test_tasks_that_saved_after_the_target_are_rolled_back_and_no_others(
    vault: Vault, line: Timeline
) -> None:
    do(vault, "early", line)
    target = line.get().id
    do(vault, "late", line)
    do(vault, "elsewhere", vault.timeline("other"))
    vault.tasks.add("never saved")
    done = line.rewind(target, tasks=True)
    assert states(vault) == {
        "early": "completed",
        "late": "rolled_back",
        "elsewhere": "completed",
        "never saved": "pending",
    }
    (late,) = done.tasks
    assert (late.id, late.text, late.state) == ("late", "do late", "completed")
    assert late.effects == ("mail#1", "pay#1")
    assert line.load() == {"by": "early"}


def test_other_timelines_that_a_task_saved_on_are_named_and_stay(
    vault: Vault, line: Timeline
) -> None:
    target, other = line.save({}).id, vault.timeline("other")
    vault.tasks.add("both")
    with vault.tasks.attempt("both"):
        other.save({"n": 0})
    vault.tasks.retry("both", force=True)  # what an earlier generation did is not counted
    do(vault, "alone", line)
    with vault.tasks.attempt("both"):
        vault.timeline("third").save({"n": 1})
        line.save({"n": 2})
    plan = line.rewind(target, tasks=True, dry_run=True)
    assert {each.id: each.elsewhere for each in plan.tasks} == {"both": ("third",), "alone": ()}
    line.rewind(target, tasks=True)
    assert vault.timeline("third").load() == {"n": 1}


def test_what_a_person_answered_is_no_effect(vault: Vault, line: Timeline) -> None:
    target = line.save({}).id
    vault.tasks.add("asks")
    with vault.tasks.attempt("asks") as attempt:
        attempt.ask("deploy?")
    vault.tasks.answer("asks", "yes")
    with vault.tasks.attempt("asks") as attempt:
        assert attempt.ask("deploy?") == "yes"
        attempt.step("ask", lambda: "a step of that name is one")
        line.save({"n": 1})
    (plan,) = line.rewind(target, tasks=True, dry_run=True).tasks
    assert plan.effects == ("ask#2",)


def test_a_target_that_was_imported_again_is_where_it_was(
    vault: Vault, line: Timeline, tmp_path: Path
) -> None:
    line.save({})
    do(vault, "early", line)
    target = line.get().id
    vault.export_file(tmp_path / "copy")
    do(vault, "late", line)
    vault.retention.apply(vault.retention.plan(Policy(max_per_timeline=1)))
    vault.import_file(tmp_path / "copy")
    line.rewind(target, tasks=True)
    assert states(vault) == {"early": "completed", "late": "rolled_back"}


def test_without_being_asked_it_leaves_tasks_alone(vault: Vault, line: Timeline) -> None:
    first = line.save({}).id
    do(vault, "late", line)
    assert line.rewind(first).tasks == ()
    assert states(vault) == {"late": "completed"}


def test_a_dry_run_tells_which_and_does_nothing(vault: Vault, line: Timeline) -> None:
    first = line.save({}).id
    do(vault, "late", line)
    before = vault.tasks.get("late")
    done = line.rewind(first, tasks=True, dry_run=True)
    assert [task.id for task in done.tasks] == ["late"]
    assert vault.tasks.get("late") == before
    assert [each.kind for each in vault.operations()] == []


def test_undo_and_redo_turn_it_around(vault: Vault, line: Timeline) -> None:
    first = line.save({}).id
    do(vault, "late", line)
    before = vault.tasks.get("late")
    line.rewind(first, tasks=True)
    for _ in range(3):
        undone = line.undo()
        assert undone.about == {"of": "rewind" if _ == 0 else "redo", "tasks": ["late"]}
        after = vault.tasks.get("late")
        assert (after.state, after.result, after.ended_at) == (
            "completed",
            "result of late",
            before.ended_at,
        )
        assert line.load() == {"by": "late"}
        line.redo()
        assert vault.tasks.get("late").state == "rolled_back"
        assert line.load() == {}
    kinds = [each.kind for each in vault.tasks.history("late")]
    assert kinds[-7:] == ["rolled_back", *["reinstated", "rolled_back"] * 3]


def test_run_again_it_is_a_new_generation_with_an_empty_journal(
    vault: Vault, line: Timeline
) -> None:
    first = line.save({}).id
    do(vault, "late", line)
    line.rewind(first, tasks=True)
    with pytest.raises(Conflict, match="rolled_back"):
        vault.tasks.claim("late")
    vault.tasks.retry("late")
    with vault.tasks.attempt("late") as attempt:
        assert attempt.step("mail", lambda: "sent anew") == "sent anew"
    again = vault.tasks.get("late")
    assert (again.state, again.generation, again.attempts) == ("completed", 2, 1)
    # What is another generation's by now is not touched by undoing what was done to the old one.
    line.undo()
    assert vault.tasks.get("late") == again
    line.redo()
    assert vault.tasks.get("late") == again
    assert line.rewind(first, tasks=True).tasks == ()


def test_one_in_progress_is_stopped_and_an_undo_puts_it_back_to_work(
    vault: Vault, line: Timeline
) -> None:
    first = line.save({}).id
    vault.tasks.add("running", max_attempts=1)
    attempt = vault.tasks.claim("running")
    with working(attempt):
        line.save({"half": True})
    line.rewind(first, tasks=True)
    with pytest.raises(LeaseLost):
        attempt.step("late", lambda: None)
    assert attempt.is_lost
    line.undo()
    task = vault.tasks.get("running")
    assert (task.state, task.attempts) == ("pending", 0)
    with vault.tasks.attempt("running"):
        pass


def test_an_attempt_that_has_lost_its_task_moves_no_timeline(vault: Vault, line: Timeline) -> None:
    first = line.save({}).id
    vault.tasks.add("lost")
    attempt = vault.tasks.claim("lost")
    with working(attempt):
        head = line.save({"half": True}).id
        vault.tasks.cancel("lost")
        for operation in (lambda: line.rewind(first), line.clear, line.delete):
            with pytest.raises(LeaseLost):
                operation()
    assert line.get().id == head


def test_a_question_comes_back_with_its_task(vault: Vault, line: Timeline) -> None:
    first = line.save({}).id
    vault.tasks.add("asks")
    with vault.tasks.attempt("asks") as attempt:
        line.save({"half": True})
        attempt.ask("may I?")
    line.rewind(first, tasks=True)
    assert vault.tasks.get("asks").question is None
    line.undo()
    assert vault.tasks.get("asks").question == "may I?"
    vault.tasks.answer("asks", "yes")
    with vault.tasks.attempt("asks") as attempt:
        assert attempt.ask("may I?") == "yes"


def test_whoever_waits_for_it_waits_again(vault: Vault, line: Timeline) -> None:
    first = line.save({}).id
    do(vault, "one", line)
    vault.tasks.add("two", after=["one"])
    line.rewind(first, tasks=True)
    with pytest.raises(Conflict, match="waits for task 'one'"):
        vault.tasks.claim("two")
    line.undo()
    with vault.tasks.attempt("two"):
        pass


def test_one_that_somebody_rolled_back_since_is_left_alone_by_undo(
    vault: Vault, line: Timeline
) -> None:
    first = line.save({}).id
    do(vault, "late", line)
    line.rewind(first, tasks=True)
    line.undo()
    vault.tasks.roll_back("late")
    line.redo()
    line.undo()
    assert states(vault) == {"late": "rolled_back"}
    assert line.load() == {"by": "late"}


def test_one_that_waited_comes_back_to_work_if_what_it_waited_for_is_done_by_then(
    vault: Vault, line: Timeline
) -> None:
    do(vault, "one", vault.timeline("other"))
    first = line.save({}).id
    vault.tasks.add("two", after=["one"])
    with vault.tasks.attempt("two") as attempt:
        line.save({"half": True})
        attempt.fail("not yet")
    vault.tasks.roll_back("one")
    line.rewind(first, tasks=True)
    do(vault, "one", vault.timeline("other"))
    line.undo()
    with vault.tasks.attempt("two"):
        pass


def test_files_state_and_tasks_go_back_together(desk: Desk) -> None:
    desk.write(a_txt="before")
    first = desk.save(0)
    desk.vault.tasks.add("edit")
    with desk.vault.tasks.attempt("edit"):
        desk.write(a_txt="after")
        desk.save(1)
    done = desk.line.rewind(first, tasks=True)
    assert desk.read("a.txt") == "before"
    assert [task.id for task in done.tasks] == ["edit"]
    assert states(desk.vault) == {"edit": "rolled_back"}
    desk.line.undo()
    assert desk.read("a.txt") == "after"
    assert states(desk.vault) == {"edit": "completed"}


def test_head_files_and_tasks_are_one_commit(desk: Desk, store: Watched) -> None:
    desk.write(a_txt="before")
    first = desk.save(0)
    desk.vault.tasks.add("edit")
    with desk.vault.tasks.attempt("edit"):
        desk.write(a_txt="after")
        desk.save(1)
    for act in (lambda: desk.line.rewind(first, tasks=True), desk.line.undo, desk.line.redo):
        store.batches.clear()
        act()
        moving = [batch for batch in store.batches if batch.work.moves]
        logged = [batch for batch in store.batches if isinstance(batch.event, LogRecord)]
        assert moving == logged
        assert len(logged) == 1


def test_tasks_go_back_even_if_all_else_is_there_already(desk: Desk) -> None:
    desk.write(a_txt="same")
    first = desk.save(0)
    desk.vault.tasks.add("t1")
    with desk.vault.tasks.attempt("t1"):
        desk.save(1)
    desk.line.rewind(first)
    assert states(desk.vault) == {"t1": "completed"}
    done = desk.line.rewind(first, tasks=True)
    assert not done.moved
    assert states(desk.vault) == {"t1": "rolled_back"}
    desk.line.undo()
    assert states(desk.vault) == {"t1": "completed"}
    desk.line.rewind(first, what="files", tasks=True)
    assert states(desk.vault) == {"t1": "rolled_back"}


def test_with_paths_it_is_refused(desk: Desk) -> None:
    first = desk.save(0)
    with pytest.raises(Misuse, match="leave tasks=True or the paths out"):
        desk.line.rewind(first, paths=["a.txt"], tasks=True)


def test_a_forgotten_task_is_left_out_of_it(vault: Vault, line: Timeline) -> None:
    first = line.save({}).id
    do(vault, "late", line)
    line.rewind(first, tasks=True)
    line.undo()
    vault.tasks.forget(keep_completed=0)
    assert line.redo().about["tasks"] == ["late"]
    assert line.rewind(first, tasks=True).tasks == ()


class Busy(MemoryStore):
    """Somebody comes first, once, whenever tasks are to be rolled back."""

    def __init__(self) -> None:
        super().__init__()
        self.first: Any = None

    def commit(self, batch: Batch) -> int:
        if self.first is not None and any(_goes_back(m.become) for m in batch.work.moves):
            first, self.first = self.first, None
            first()
        return super().commit(batch)


def _goes_back(task: TaskRecord) -> bool:
    return task.state == "rolled_back"


def test_a_task_that_moves_meanwhile_is_looked_at_again() -> None:
    store = Busy()
    with Vault(store) as vault:
        line = vault.timeline("main")
        first = line.save({}).id
        vault.tasks.add("t1")
        attempt = vault.tasks.claim("t1")
        with attempt:
            line.save({"half": True})
            store.first = lambda: attempt.complete("just done")
            line.rewind(first, tasks=True)
        task = vault.tasks.get("t1")
        assert (task.state, task.result) == ("rolled_back", "just done")
        line.undo()
        assert vault.tasks.get("t1").state == "completed"
