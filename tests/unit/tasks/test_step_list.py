"""The journal of a task as people read it."""

from pathlib import Path

import hardsave
from hardsave.tasks import step_list
from hardsave.tasks.steps import is_unknown_question, unknown_question
from tests.unit.tasks import unknown_step


def test_each_step_is_told_once_with_how_it_ended() -> None:
    with hardsave.open("memory://") as vault:
        vault.tasks.add("t")
        with vault.tasks.attempt("t") as attempt:
            attempt.step("build", lambda: "made", unknown="ask")
            under_way = step_list.of_task(vault.tasks, "t")
            attempt.step("look", lambda: None)
        ended = step_list.of_task(vault.tasks, "t")
    assert [(each.path, each.state, each.value) for each in ended] == [
        ("build#1", "done", "made"),
        ("look#1", "done", None),
    ]
    assert [each.path for each in under_way] == ["build#1"]
    first, second = ended
    assert first.started_at is not None
    assert first.ended_at is not None
    assert first.started_at <= first.ended_at
    assert second.started_at is None  # of a step that may be repeated only the end is recorded


def test_a_step_whose_process_died_is_unknown_until_it_is_settled(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 's.db'}"
    unknown_step.leave(store, "deploy")
    with hardsave.open(store) as vault:

        def states() -> list[str]:
            return [each.state for each in step_list.of_task(vault.tasks, "deploy")]

        assert states() == ["done", "unknown"]
        unknown_step.ask(vault, "deploy")
        assert states() == ["done", "unknown"]
        question = vault.tasks.get("deploy").question
        assert question is not None
        assert is_unknown_question(question)
        vault.tasks.answer("deploy", "skip")
        assert states() == ["done", "skipped"]


def test_only_the_question_about_an_unknown_step_is_taken_for_one() -> None:
    assert is_unknown_question(unknown_question("push#1"))
    assert not is_unknown_question("Deploy to production now?")
