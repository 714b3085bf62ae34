"""`hardsave tasks run`: a server that runs a command, or a function, for each task."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import hardsave
from hardsave.cli.commands import tasks_run
from hardsave.cli.errors import Exit
from hardsave.errors import Unavailable
from hardsave.stores.host import processes
from hardsave.tasks.ledger import Tasks
from hardsave.tasks.recovery import RecoveryReport
from tests.unit.cli.conftest import Run

SERVER = [sys.executable, "-m", "hardsave", "tasks", "run"]
SECONDS = 60  # a bound for a machine that is busy
NASTY = 'it\'s "here"; $(touch pwned) `touch pwned`\n--and a second line'
TOLD = """
import json, os, sys
with open("got.txt", "a") as file:
    print(json.dumps([sys.argv[1:], os.environ["HARDSAVE_TASK_ATTEMPT"]]), file=file)
"""

HANDLER = """
from beside import NOTE
import os, time

def handle(attempt):
    with open("ran.txt", "a") as file:
        file.write(attempt.id + "\\n")
    if attempt.id == "bug":
        undefined_name
    attempt.step("note", print, NOTE)
    return attempt.task.text.upper()

def hangs(attempt):
    print("begun", flush=True)
    time.sleep(600)

async def waits(attempt):
    pass

NOTHING = 7
"""

ASKING = """
import hardsave

def handle(attempt):
    if attempt.id == "t1":
        with hardsave.open() as vault:
            vault.tasks.cancel("t1")
        return
    attempt.ask("which one")
"""


def served(*arguments: str) -> "subprocess.Popen[str]":
    """A server that works; what it says is read from its stderr."""
    ignored = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # by nohup, which children inherit
    try:
        return subprocess.Popen(
            [*SERVER, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    finally:
        signal.signal(signal.SIGHUP, ignored)


def said(server: "subprocess.Popen[str]", pattern: str) -> "re.Match[str]":
    """The first line that is like this; a server that never says it is killed."""
    assert server.stderr is not None
    lines: list[str] = []
    too_late = threading.Timer(SECONDS, server.kill)
    too_late.start()
    try:
        for line in server.stderr:
            if found := re.search(pattern, line):
                return found
            lines.append(line)
    finally:
        too_late.cancel()
    raise AssertionError(f"it did not say {pattern!r}, but {lines}")


def is_gone(pid: int) -> bool:
    end = time.monotonic() + SECONDS
    while processes.started(pid) is not None and time.monotonic() < end:
        time.sleep(0.01)
    return processes.started(pid) is None


# Commands


def test_a_command_gets_each_task_as_arguments_that_no_shell_reads(run: Run, project: Path) -> None:
    run("tasks", "add", "t1", NASTY)
    run("tasks", "add", "t2", "--", "-rf")
    ran = run("tasks", "run", "--until-idle", "--", sys.executable, "-c", TOLD, "{id}", "{text}")
    assert (ran.code, ran.out) == (0, "2 attempts: 2 completed\n")
    got = [json.loads(line) for line in (project / "got.txt").read_text().splitlines()]
    assert got == [[["t1", NASTY], "1"], [["t2", "-rf"], "1"]]
    assert not (project / "pwned").exists()
    assert run("tasks", "show", "t1", "--json").data["result"] == {"exit": 0}


def test_the_text_reaches_a_shell_as_a_variable(run: Run, project: Path) -> None:
    run("tasks", "add", "t1", NASTY)
    write = 'printf %s "$HARDSAVE_TASK $HARDSAVE_TASK_TEXT" > got.txt'
    assert run("tasks", "run", "--until-idle", "--", "sh", "-c", write).code == 0
    assert (project / "got.txt").read_text() == f"t1 {NASTY}"
    assert not (project / "pwned").exists()


@pytest.mark.parametrize(("place", "name"), [("{text}", "_TEXT"), ("{id}", "")])
def test_a_place_inside_of_an_argument_is_refused_before_anything_runs(
    place: str, name: str, run: Run, project: Path
) -> None:
    run("tasks", "add", "t1", "$(touch pwned)")
    ran = run("tasks", "run", "--until-idle", "--", "sh", "-c", f"echo {place}")
    assert ran.code == 2
    assert f'in a shell, write "$HARDSAVE_TASK{name}" instead' in ran.err
    assert run("tasks", "show", "t1", "--json").data["attempts"] == 0


def test_what_fails_is_tried_as_often_as_it_may_be_and_then_the_exit_code_says_so(
    run: Run, project: Path
) -> None:
    for name in ("good", "bad"):
        run("tasks", "add", name, "--max-attempts", "2")
    command = ["sh", "-c", 'echo $1 >> ran.txt; [ "$1" = good ]', "sh", "{id}"]
    given = ["tasks", "run", "--until-idle", "--retry-seconds", "0", "--json", "--", *command]
    first = run(*given)
    assert (first.code, first.data["attempts"], first.data["completed"]) == (1, 3, 1)
    assert (first.data["failed"], first.data["iterations"]) == (1, 3)
    assert Counter((project / "ran.txt").read_text().split()) == {"good": 1, "bad": 2}
    bad = run("tasks", "show", "bad", "--json").data
    assert (bad["state"], bad["error_message"]) == ("failed", "sh ended with exit code 1")
    again = run(*given)
    assert (again.code, again.data["attempts"], again.data["iterations"]) == (0, 0, 3)
    assert again.data["recovery"]["was_clean"]


def test_a_command_that_is_not_there_is_no_attempt(run: Run, project: Path) -> None:
    run("tasks", "add", "t1")
    assert run("tasks", "run", "--until-idle", "--", "nosuch-command").code == 3
    assert run("tasks", "run", "--until-idle").code == 2
    assert run("tasks", "run", "--handler", "a.py:f", "--", "true").code == 2
    assert run("tasks", "show", "t1", "--json").data["attempts"] == 0


def test_a_file_that_cannot_be_executed_is_told_in_a_sentence(
    run: Run, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run("tasks", "add", "t1")
    (project / "folder").mkdir()
    (project / "plain").write_text("echo hello\n")
    for name in ("./folder", "./plain"):
        ran = run("tasks", "run", "--until-idle", "--", name)
        assert (ran.code, "not executable" in ran.err) == (2, True), ran
    assert run("tasks", "show", "t1", "--json").data["attempts"] == 0
    (project / "plain").chmod(0o755)
    ran = run("tasks", "run", "--until-idle", "--", "./plain")
    assert "Traceback" not in ran.err + caplog.text
    task = run("tasks", "show", "t1", "--json").data
    assert (ran.code, task["state"], task["attempts"]) == (1, "failed", 1)
    assert "'./plain' cannot be run: Exec format error; a script" in task["error_message"]


def test_a_text_that_no_command_can_be_given_fails_once_and_says_why(
    run: Run, project: Path
) -> None:
    with hardsave.open() as vault:
        vault.tasks.add("nul", "a\0b")
        vault.tasks.add("long", "x" * 300_000)
    assert run("tasks", "run", "--until-idle", "--", "true").code == 1
    for name in ("nul", "long"):
        task = run("tasks", "show", name, "--json").data
        assert (task["state"], task["attempts"]) == ("failed", 1)
        assert "'true' cannot be given the text of its task" in task["error_message"]


def test_jobs_are_left_to_workers(run: Run, project: Path) -> None:
    run("jobs", "submit", "job-1", "--prompt", "Fix it")
    run("tasks", "add", "t1")
    ran = run("tasks", "run", "--until-idle", "--json", "--", "true")
    assert (ran.code, ran.data["attempts"]) == (0, 1)
    assert run("jobs", "show", "job-1", "--json").data["state"] == "queued"


def test_the_status_log_has_each_start_end_and_recovery(run: Run, project: Path) -> None:
    run("tasks", "add", "t1", "Build it", "--max-attempts", "1")
    for _ in range(2):
        run("tasks", "run", "--until-idle", "--log", "status.log", "--", "false")
        run("tasks", "retry", "t1")
    lines = [line.split(" ", 1) for line in (project / "status.log").read_text().splitlines()]
    assert [text for _, text in lines] == [
        "clean start: 1 task to do, 0 failed",
        "t1: attempt 1 of 1, Build it",
        "t1: failed, false ended with exit code 1",
        "clean start: 1 task to do, 0 failed",
        "t1: attempt 2 of 2, Build it",
        "t1: failed, false ended with exit code 1",
    ]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", moment) for moment, _ in lines)
    assert run("tasks", "run", "--until-idle", "--log", "no/such/folder", "--", "true").code == 1


def test_old_tasks_are_forgotten_while_it_runs(run: Run, project: Path) -> None:
    settings = project.parent / "config" / "hardsave" / "config.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text("tasks: {keep_completed: 2, cleanup_every: 5}\n")
    for number in range(11):
        run("tasks", "add", f"t{number}")
    assert run("tasks", "run", "--until-idle", "--", "true").code == 0
    left = [each["id"] for each in run("tasks", "list", "--json").data]
    assert left == ["t8", "t9", "t10"]  # two after the tenth iteration, and one since


# Functions


def test_a_function_is_called_with_each_attempt(
    run: Run, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (project / "server.py").write_text(HANDLER)
    (project / "beside.py").write_text("NOTE = 'from beside'")
    run("tasks", "add", "t1", "loud")
    run("tasks", "add", "bug", "quiet", "--max-attempts", "1")
    ran = run("tasks", "run", "--until-idle", "--handler", "server.py:handle", "--json")
    assert (ran.code, ran.data["completed"], ran.data["failed"]) == (1, 1, 1)
    assert "from beside" in ran.err
    assert "NameError: name 'undefined_name' is not defined" in caplog.text
    assert run("tasks", "show", "t1", "--json").data["result"] == "LOUD"


@pytest.mark.parametrize(
    ("where", "code", "why"),
    [
        ("server.py", 2, "--handler is FILE.py:NAME"),
        ("nowhere.py:handle", 3, "there is no file 'nowhere.py'; --handler is"),
        ("server.py:missing", 2, "is no function; write def missing(attempt)"),
        ("server.py:NOTHING", 2, "is no function"),
        ("server.py:waits", 2, "a handler is a plain function"),
    ],
)
def test_what_is_no_handler_is_refused_before_anything_runs(
    where: str, code: int, why: str, run: Run, project: Path
) -> None:
    (project / "server.py").write_text(HANDLER)
    (project / "beside.py").write_text("NOTE = 'from beside'")
    run("tasks", "add", "t1")
    ran = run("tasks", "run", "--until-idle", "--handler", where)
    assert ran.code == code
    assert why in ran.err
    assert run("tasks", "show", "t1", "--json").data["attempts"] == 0


# Stops, kills, neighbours

STUBBORN = "trap '' TERM; sh -c 'echo pid=$$; exec sleep 600'; sleep 600"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_is_clean_ends_the_commands_and_costs_no_attempt(
    number: signal.Signals, run: Run, project: Path
) -> None:
    run("tasks", "add", "t1")
    server = served("--json", "--grace-seconds", "0.2", "--", "sh", "-c", STUBBORN)
    pid = int(said(server, r"^pid=(\d+)")[1])  # of what the command has started
    server.send_signal(number)
    out, err = server.communicate(timeout=SECONDS)
    assert server.returncode == 0, err
    told = "SIGINT" if number == signal.SIGINT else "SIGTERM"
    assert (json.loads(out)["stopped_by"], json.loads(out)["handed_back"]) == (told, 1)
    assert is_gone(pid)
    task = run("tasks", "show", "t1", "--json").data
    assert (task["state"], task["attempts"]) == ("pending", 0)
    next_one = run("tasks", "run", "--until-idle", "--", "true")
    assert "clean start: 1 task to do" in next_one.err
    assert list(project.parent.rglob("*child-lock*")) == []


def test_ctrl_c_again_and_again_is_one_stop(run: Run, project: Path) -> None:
    """Also while Python itself ends, where an interruption would be told as a traceback."""
    run("tasks", "add", "t1")
    server = served("--", "sh", "-c", "echo begun; exec sleep 600")
    said(server, "^begun")
    server.send_signal(signal.SIGINT)
    said(server, "handed back")
    while server.poll() is None:
        server.send_signal(signal.SIGINT)
        time.sleep(0.001)
    out, err = server.communicate(timeout=SECONDS)
    assert (server.returncode, out) == (0, "1 attempt: 1 handed back\n")
    assert re.fullmatch(r"\S+  stopped by SIGINT\n", err), err


def test_a_function_that_hangs_is_handed_back_by_a_stop(run: Run, project: Path) -> None:
    (project / "server.py").write_text(HANDLER)
    (project / "beside.py").write_text("NOTE = ''")
    run("tasks", "add", "t1")
    server = served("--grace-seconds", "0", "--handler", "server.py:hangs")
    said(server, "^begun")
    server.terminate()
    _, err = server.communicate(timeout=SECONDS)
    assert server.returncode == 0
    assert "t1: handed back; the attempt does not count" in err
    assert run("tasks", "show", "t1", "--json").data["attempts"] == 0
    assert run("tasks", "recover", "--json").data["was_clean"]


def test_after_a_kill_the_next_server_says_what_was_interrupted_and_goes_on(
    run: Run, project: Path
) -> None:
    """The command that was left working is waited for, and its task is not begun meanwhile."""
    run("tasks", "add", "t1", "Build it")
    alone = "echo pid=$$; exec sleep 600 >&- 2>&-"
    server = served("--session", "first", "--", "sh", "-c", alone)
    pid = int(said(server, r"^pid=(\d+)")[1])
    while not any(path.stat().st_size for path in project.parent.rglob("*child-lock*")):
        time.sleep(0.01)
    server.kill()
    server.communicate()
    second = served("--session", "second", "--log", "status.log", "--", "true")
    try:
        said(second, "the last session was not stopped cleanly")
        said(second, "session 'first', begun .*: process .* is gone")
        said(second, f"task 't1' is still worked on by process {pid}")
        assert run("tasks", "show", "t1", "--json").data["state"] == "in_progress"
        os.kill(pid, signal.SIGKILL)
        said(second, "t1: its process has died; it is put back to work")
        said(second, "t1: attempt 2 of 3, Build it")
        said(second, "t1: completed")
    finally:
        second.terminate()
        second.communicate(timeout=SECONDS)
    logged = (project / "status.log").read_text()
    assert "the last session was not stopped cleanly" in logged
    assert "t1: its process has died" in logged


def test_a_task_that_is_cancelled_ends_its_command(run: Run, project: Path) -> None:
    run("tasks", "add", "t1")
    server = served("--", "sh", "-c", "echo pid=$$; exec sleep 600")
    try:
        pid = int(said(server, r"^pid=(\d+)")[1])
        assert run("tasks", "cancel", "t1").code == 0
        assert is_gone(pid)
    finally:
        server.terminate()
        server.communicate(timeout=SECONDS)
    assert run("tasks", "show", "t1", "--json").data["error_message"] == "cancelled"


def test_what_is_cancelled_or_waits_for_an_answer_is_told_as_that(
    run: Run, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (project / "server.py").write_text(ASKING)
    run("tasks", "add", "t1")
    run("tasks", "add", "t 2")
    ran = run("tasks", "run", "--until-idle", "--handler", "server.py:handle")
    assert "task 't1' was cancelled" in caplog.text
    assert "is not ours any more" not in caplog.text
    assert ran.out.splitlines() == [
        "2 attempts: 1 waits for an answer",
        "t 2 asks which one; answer it with: hardsave tasks answer 't 2' ANSWER",
    ]
    again = run("tasks", "run", "--until-idle", "--handler", "server.py:handle", "--json")
    assert again.data["waiting"] == [{"id": "t 2", "question": "which one"}]
    third = run("tasks", "run", "--until-idle", "--handler", "server.py:handle")
    assert "clean start: 1 task to do, 0 failed, 1 cancelled" in third.err


def test_a_stop_that_was_asked_for_is_no_failure_though_a_task_was_given_up() -> None:
    done = tasks_run._Done(
        session="s",
        report=RecoveryReport.__new__(RecoveryReport),
        happened=Counter(given_up=1),
        waiting=(),
        iterations=0,
        signal=signal.SIGTERM,
    )
    assert done.exit is Exit.DONE
    assert replace(done, signal=None).exit is Exit.FAILED


def test_an_iteration_that_cannot_be_counted_does_not_end_the_server(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(tasks: Tasks) -> int:
        raise Unavailable("the disk is full")

    monkeypatch.setattr(Tasks, "iterate", full)
    for name in ("t1", "t2"):
        run("tasks", "add", name)
    ran = run("tasks", "run", "--until-idle", "--", "true")
    assert (ran.code, ran.out) == (0, "2 attempts: 2 completed\n")
    assert caplog.text.count("an iteration was not counted: the disk is full") == 2


def test_two_servers_share_a_store_and_each_task_runs_once(run: Run, project: Path) -> None:
    (project / "server.py").write_text(HANDLER)
    (project / "beside.py").write_text("NOTE = ''")
    names = {f"t{number}" for number in range(100)}
    with hardsave.open() as vault:
        for name in names:
            vault.tasks.add(name)
    two = [
        served("--until-idle", "--concurrency", "4", "--json", "--handler", "server.py:handle")
        for _ in range(2)
    ]
    ends = [json.loads(server.communicate(timeout=SECONDS)[0]) for server in two]
    assert Counter((project / "ran.txt").read_text().split()) == dict.fromkeys(names, 1)
    assert sum(end["completed"] for end in ends) == 100
    with hardsave.open() as vault:
        assert vault.tasks.iterations == 100
