"""`tasks`, `recover` and `rewind --tasks`: the ledger from a terminal."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import hardsave
from hardsave.cli.main import main
from hardsave.stores.host import processes
from tests.unit.cli.conftest import Run

STARTED = """
import hardsave, sys, time
vault = hardsave.open()
with vault.tasks.runner("server-1") as runner:
    vault.tasks.iterate()
    def work(attempt):
        print("begun", flush=True)
        time.sleep(60)
    runner.run(work)
"""


def killed_at_work() -> None:
    """A server that is killed while it works."""
    child = subprocess.Popen([sys.executable, "-c", STARTED], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "begun\n"
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()


def test_tasks_are_listed_by_state_in_the_order_they_were_added(run: Run, project: Path) -> None:
    for name in ("c", "a", "b"):
        assert run("tasks", "add", name, f"do {name}").code == 0
    run("tasks", "cancel", "a")
    assert [each["id"] for each in run("tasks", "--json").data] == ["c", "a", "b"]
    assert [each["id"] for each in run("tasks", "list", "--state", "failed", "--json").data] == [
        "a"
    ]
    page = run("tasks", "list", "-n", "1")
    assert "do c" in page.out
    assert "hardsave tasks list -n 1 --after 1." in page.err
    assert "2 pending, 1 failed" in page.err
    assert run("tasks", "list", "--state", "nonsense").code == 2


def test_a_task_is_added_once(run: Run, project: Path) -> None:
    given = ["tasks", "add", "t1", "Do it", "--priority", "3", "--metadata", '{"a": [1]}']
    assert run(*given, "--json").data["is_new"] is True
    again = run(*given, "--json").data
    assert (again["is_new"], again["priority"], again["metadata"]) == (False, 3, {"a": [1]})
    assert "is there already" in run(*given).out
    assert "stays" not in run(*given).out
    ran = run("tasks", "add", given[2], "Something else")
    assert f"; its text stays: {given[3]}" in ran.out
    assert run("tasks", "add", "t2", "--metadata", "[1]").code == 2
    assert run("tasks", "add", "t2", "--metadata", "{").code == 2
    assert run("tasks", "add", "t2", "--metadata", '{"a":' * 50_000).code == 2
    assert run("tasks", "add", "t2", "--after", "nowhere").code == 3


def test_a_command_is_an_attempt(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    main(["tasks", "add", "t1", "--max-attempts", "1"])
    capfd.readouterr()
    assert (
        main(["tasks", "start", "t1", "--json", "--", "sh", "-c", "echo $HARDSAVE_TASK; exit 7"])
        == 1
    )
    out, err = capfd.readouterr()
    assert err == "t1\n"
    data = json.loads(out)
    assert (data["state"], data["error_message"]) == ("failed", "sh ended with exit code 7")
    assert main(["tasks", "start", "t1", "--", "true"]) == 4
    assert main(["tasks", "retry", "t1"]) == 0
    assert main(["tasks", "start", "t1", "--", "true"]) == 0
    assert main(["tasks", "start", "t1", "--", "true"]) == 4
    assert "--force runs it again" in capfd.readouterr().err
    assert main(["tasks", "start", "t1", "--force", "--", "sh", "-c", "kill -9 $$"]) == 1
    with hardsave.open() as vault:
        task = vault.tasks.get("t1")
        assert (task.generation, task.error) == (2, "sh ended with exit code 137")
    assert main(["tasks", "start", "t1", "--force", "--", "./no-such-program"]) == 3


def test_what_is_completed_is_put_back_to_work_only_by_force(run: Run, project: Path) -> None:
    run("tasks", "add", "t1")
    assert run("tasks", "start", "t1").code == 0  # it is pending, and stays so
    with hardsave.open() as vault, vault.tasks.attempt("t1"):
        pass
    assert run("tasks", "start", "t1").code == 4
    assert run("tasks", "retry", "t1").code == 4
    assert run("tasks", "start", "t1", "--force", "--json").data["generation"] == 2


def test_history_has_every_attempt_with_its_error(run: Run, project: Path) -> None:
    with hardsave.open() as vault:
        vault.tasks.add("t1")
        for text in ("first", "second"):
            with pytest.raises(ValueError, match=text), vault.tasks.attempt("t1", force=True):
                raise ValueError(text)
    data = run("tasks", "show", "t1", "--history", "--json").data
    failures = [each["about"] for each in data["history"] if each["kind"] == "failed"]
    assert [each["error"] for each in failures] == ["ValueError: first", "ValueError: second"]
    assert all("Traceback" in each["traceback"] for each in failures)
    shown = run("tasks", "show", "t1", "--history").out
    assert "ValueError: second" in shown
    assert "again at" in shown


def test_a_question_is_shown_and_answered(run: Run, project: Path) -> None:
    with hardsave.open() as vault:
        vault.tasks.add("t1")
        with vault.tasks.attempt("t1") as attempt:
            attempt.ask("deploy?")
    assert "asks: deploy?" in run("tasks").out
    assert run("tasks", "answer", "t1", '{"to": "staging"}').code == 0
    with hardsave.open() as vault, vault.tasks.attempt("t1") as attempt:
        assert attempt.ask("deploy?") == {"to": "staging"}
    assert run("tasks", "answer", "t1", "yes").code == 4


def test_what_cannot_happen_is_refused_with_what_can(run: Run, project: Path) -> None:
    run("tasks", "add", "t1")
    assert "waits for its turn already" in run("tasks", "retry", "t1").err
    failed = run("tasks", "start", "t1", "--", "false")
    assert failed.out == "t1 is pending: false ended with exit code 1\n"
    run("tasks", "start", "t1", "--force", "--", "true")
    for words in (["cancel", "t1"], ["answer", "t1", "x"]):  # neither has a --force
        ran = run("tasks", *words)
        assert (ran.code, ran.err.endswith(": it is done\n")) == (4, True), ran
    assert "--force runs it again" in run("tasks", "retry", "t1").err


def test_unknown_ids_are_not_found_and_nothing_changes(run: Run, project: Path) -> None:
    run("tasks", "add", "t1")
    before = run("tasks", "--json").data
    for words in (["show"], ["start"], ["retry"], ["cancel"], ["answer"]):
        ran = run("tasks", *words, "nope", *(["x"] if words == ["answer"] else []))
        assert (ran.code, "see 'hardsave tasks list'" in ran.err) == (3, True), ran
    assert run("tasks", "--json").data == before


def test_recover_tells_what_a_killed_server_left_and_puts_it_back(run: Run, project: Path) -> None:
    run("tasks", "add", "t1", "Build it")
    run("tasks", "add", "t2")
    killed_at_work()
    looked = run("tasks", "recover", "--dry-run", "--json").data
    assert [each["id"] for each in looked["interrupted"]] == ["t1"]
    assert looked["incomplete_count"] == len(looked["incomplete"]) == 2
    assert run("tasks", "show", "t1", "--json").data["state"] == "in_progress"
    assert "attempt 1 of 3, begun" in (told := run("tasks", "recover", "--dry-run").out)
    assert "waits for the next runner" in told
    ran = run("tasks", "recover")
    assert "session 'server-1'" in ran.out
    assert "interrupted: t1 ('Build it'), attempt 1 of 3" in ran.out
    task = run("tasks", "show", "t1", "--json").data
    assert (task["state"], task["attempts"]) == ("pending", 1)
    after = run("tasks", "recover", "--json").data
    assert (after["was_clean"], after["iterations"], after["last_session"]) == (True, 1, "server-1")
    assert after["incomplete_count"] == 2


def test_with_manual_recovery_only_recover_puts_a_task_back(run: Run, project: Path) -> None:
    (project / "hardsave.yaml").write_text("recovery: manual\n")
    run("tasks", "add", "t1")
    killed_at_work()
    refused = run("tasks", "start", "t1", "--", "true")
    assert (refused.code, "'hardsave tasks recover' puts it back" in refused.err) == (4, True)
    assert run("jobs", "list").code == 0  # which looks for dead workers
    assert run("tasks", "show", "t1", "--json").data["state"] == "in_progress"
    assert "waits for 'hardsave tasks recover'" in run("tasks", "recover", "--dry-run").out
    assert "will run again" in run("tasks", "recover").out
    assert run("tasks", "start", "t1", "--", "true").code == 0


ITSELF = ["sh", "-c", "echo $$; exec sleep 60 2>&-"]
ITS_CHILD = [
    "sh",
    "-c",
    "sh -c 'echo $$; exec sleep 60 2>&-' & while kill -0 $PPID; do sleep 0.01; done 2>&-",
]
ONE_THAT_CLOSES_ALL = [
    sys.executable,
    "-c",
    "import os, time; print(os.getpid(), flush=True); os.closerange(1, 99); time.sleep(60)",
]


def left_working(data: Path, task: str, command: list[str]) -> int:
    """What works on at a task whose `hardsave tasks start` was killed; its number."""
    start = [sys.executable, "-m", "hardsave", "tasks", "start", task, "--", *command]
    with subprocess.Popen(start, stderr=subprocess.PIPE, text=True) as started:
        assert started.stderr is not None
        pid = int(started.stderr.readline())
        while not any(path.stat().st_size for path in data.rglob("*child-lock*")):
            time.sleep(0.01)
        os.kill(started.pid, signal.SIGKILL)
    return pid


@pytest.mark.parametrize("command", [ITSELF, ITS_CHILD, ONE_THAT_CLOSES_ALL])
def test_a_command_that_outlives_its_attempt_keeps_the_task(
    run: Run, project: Path, command: list[str]
) -> None:
    run("tasks", "add", "t1", "Build it")
    pid = left_working(project.parent, "t1", command)
    try:
        while run("tasks", "recover", "--json").data["outlived"][0]["pids"] != [pid]:
            time.sleep(0.01)  # until its parent is gone, too
        for words in (["--dry-run"], []):
            ran = run("tasks", "recover", *words)
            assert f"task 't1' is still worked on by process {pid}" in ran.out
            assert "interrupted" not in ran.out
        again = run("tasks", "start", "t1", "--", "true")
        assert (again.code, f"process {pid}" in again.err) == (4, True)
        assert run("tasks", "show", "t1", "--json").data["state"] == "in_progress"
    finally:
        os.kill(pid, signal.SIGKILL)
    while processes.started(pid) is not None:
        time.sleep(0.01)
    assert [each["id"] for each in run("tasks", "recover", "--json").data["interrupted"]] == ["t1"]
    assert run("tasks", "start", "t1", "--", "true").code == 0
    assert list(project.parent.rglob("*child-lock*")) == []


def test_a_task_whose_command_lives_on_can_be_cancelled(run: Run, project: Path) -> None:
    run("tasks", "add", "t1")
    pid = left_working(project.parent, "t1", ITSELF)
    try:
        assert run("tasks", "cancel", "t1").code == 0
        assert run("tasks", "retry", "t1").code == 0
        assert run("tasks", "start", "t1", "--", "true").code == 0
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_task_whose_server_was_killed_can_be_started_at_once(run: Run, project: Path) -> None:
    run("tasks", "add", "t1")
    killed_at_work()
    assert run("tasks", "start", "t1", "--", "true").code == 0


def test_a_rewind_shows_and_takes_back_tasks(run: Run, session_1: Path) -> None:
    with hardsave.open() as vault:
        vault.tasks.add("edit", "Edit a file")
        with vault.tasks.attempt("edit") as attempt:
            attempt.step("mail", lambda: None)
            vault.timeline("session-1").append({"turn": 4}, workspace=".")
    plan = run("rewind", "@~1", "--tasks", "--dry-run")
    assert "1 task rolled back" in plan.out
    assert "still done outside: mail#1" in plan.out
    assert run("show", "@", "--json").data["task"] == "edit"
    assert "edit, attempt 1" in run("show", "@").out
    done = run("rewind", "@~1", "--tasks", "--yes", "--json").data
    assert [each["id"] for each in done["tasks"]] == ["edit"]
    assert 'tasks ["edit"]' in run("undo", "--list").out
    assert "edit" in run("tasks", "list", "--state", "rolled_back").out
    run("undo")
    assert run("tasks", "show", "edit", "--json").data["state"] == "completed"
    again = run("rewind", "@~1", "--tasks", "--yes")
    assert "rolled back 1 task" in again.out


def test_a_task_for_later_is_not_due_before_and_says_so(run: Run, project: Path) -> None:
    added = run("tasks", "add", "t1", "--not-before", "2h", "--json").data
    moment = datetime.fromisoformat(added["not_before"])
    assert timedelta(hours=1.9) < moment - datetime.now(UTC) < timedelta(hours=2.1)
    assert run("tasks", "start", "t1", "--", "true").code == 4
    assert "not before 20" in run("tasks").out
    assert "not before 20" in run("tasks", "start", "t1").out


def test_what_a_pending_task_waits_for_is_said(run: Run, project: Path) -> None:
    run("tasks", "add", "first")
    run("tasks", "add", "then", "--after", "first")
    assert run("tasks", "start", "then").out == "then is pending; waits for first\n"
    run("tasks", "cancel", "then")
    assert run("tasks", "retry", "then").out == "then is pending; waits for first\n"
    assert run("tasks", "start", "first").out == "first is pending; the next runner begins it\n"
    run("tasks", "cancel", "first")
    assert "waits for first, which was given up" in run("tasks").out
    assert "waits for first, which was given up" in run("tasks", "start", "then").out


def test_the_next_page_is_of_the_same_kind(run: Run, project: Path) -> None:
    for name in ("one", "it's two", "three"):
        run("tasks", "add", name)
        run("tasks", "cancel", name)
    said = run("tasks", "list", "--state", "failed", "-n", "2").err.splitlines()[-1]
    asked = shlex.split(said.removeprefix("more: hardsave "))
    assert [each["id"] for each in run(*asked, "--json").data] == ["three"]
    assert asked[:-1] == ["tasks", "list", "--state", "failed", "-n", "2", "--after"]


def test_a_page_after_what_is_no_cursor_is_not_the_end(run: Run, project: Path) -> None:
    run("tasks", "add", "t1")
    assert run("tasks", "list", "--after", "gone").code == 2
    assert run("tasks", "list", "--after", "1").code == 2


def test_a_command_that_is_not_there_is_no_attempt(run: Run, project: Path) -> None:
    run("tasks", "add", "t1")
    ran = run("tasks", "start", "t1", "--", "nosuch-command")
    assert (ran.code, "'nosuch-command' cannot be run" in ran.err) == (3, True)
    assert run("tasks", "show", "t1", "--json").data["attempts"] == 0
    assert run("tasks", "start", "t1", "--", "true").code == 0
