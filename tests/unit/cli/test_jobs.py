"""Jobs and workflows from the command line."""

import asyncio
import json
import logging
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import hardsave
from hardsave.cli.errors import Exit
from hardsave.compat.ai_coder import AgentCheckpoint, checkpoint_manager
from hardsave.runtime.jobs import files
from hardsave.runtime.jobs.worker import Worker
from tests.unit.cli.conftest import Run
from tests.unit.cli.jobs_project import agent, make_jobs

WORK = ("worker", "--agents", "agents.py:AGENTS", "--until-idle")


@pytest.fixture
def jobs_project(project: Path) -> Path:
    make_jobs(project)
    return project


def test_the_list_has_what_is_not_over_or_can_be_resumed(run: Run, jobs_project: Path) -> None:
    found = {job["id"]: job for job in run("jobs", "list", "--json").data}
    assert found.keys() == {"fix", "asks", "new"}
    fix = found["fix"]
    assert (fix["state"], fix["turns"], fix["messages"], fix["model"], fix["text"]) == (
        "failed",
        1,
        2,
        "scripted",
        "Do fix",
    )
    assert fix["can_resume"]
    assert not found["asks"]["can_resume"]
    every = {job["id"] for job in run("jobs", "list", "--all", "--json").data}
    assert every == {"fix", "asks", "done", "new"}
    shown = run("jobs", "list").out
    assert "turn 1/10" in shown
    assert "resumable" in shown


def test_health_is_in_numbers(run: Run, jobs_project: Path) -> None:
    assert run("jobs", "list", "--health", "--json").data == {
        "total": 4,
        "queued": 1,
        "unserved": 1,
        "active": 0,
        "waiting": 1,
        "succeeded": 1,
        "failed": 1,
        "rolled_back": 0,
        "forgotten": 0,
        "resumable": 1,
        "stale": 0,
        "near_limit": 0,
        "failures": 1,
        "resumes_open": 0,
        "resumes_succeeded": 0,
        "resumes_failed": 0,
    }
    assert "resumable: 1" in run("jobs", "list", "--health").out


def test_inspecting_counts_messages_and_tools(run: Run, jobs_project: Path) -> None:
    found = run("jobs", "show", "done", "--json").data
    assert found["percent"] == 100
    assert found["message_counts"] == {"user": 2, "assistant": 2}
    assert found["tool_counts"] == {"note": 1}
    assert "conversation" not in found
    assert len(run("jobs", "show", "done", "--verbose", "--json").data["conversation"]) == 4
    brief, full = run("jobs", "show", "done").out, run("jobs", "show", "done", "--verbose").out
    assert "1 note" in brief
    assert "noted hello" not in brief
    assert "noted hello" in full
    assert run("jobs", "show", "unknown").code == Exit.NOT_FOUND
    assert "hardsave jobs list --all" in run("jobs", "show", "unknown").err


def test_a_resumed_job_is_run_by_a_worker(run: Run, jobs_project: Path) -> None:
    ran = run("jobs", "resume", "fix")
    assert ran.out == "fix goes on as fix~2, from turn 1 of 10\n"
    assert run("jobs", "resume", "fix").code == Exit.CONFLICT
    (jobs_project / "agents.py").write_text(
        (jobs_project / "agents.py").read_text().replace('"default"', '"fix"')
    )
    ended = {job["id"]: job for job in run(*WORK, "--json").data}
    assert ended["fix~2"]["output"] == "all done"
    assert "new" not in ended  # no worker has its agent
    new = run("jobs", "show", "new", "--json").data
    assert (new["state"], new["is_unserved"]) == ("queued", True)
    assert "has agent 'default', and none runs now" in run("jobs", "show", "new").out
    assert "no worker for it" in run("jobs", "list", "--all").out
    assert run("jobs", "show", "fix", "--json").data["resumed_from"] == "fix"


@pytest.mark.parametrize(
    ("job", "code"),
    [
        ("new", Exit.CONFLICT),
        ("done", Exit.CONFLICT),
        ("asks", Exit.CONFLICT),
        ("unknown", Exit.NOT_FOUND),
    ],
)
def test_what_cannot_be_resumed_is_refused(
    run: Run, jobs_project: Path, job: str, code: Exit
) -> None:
    assert run("jobs", "resume", job).code == code
    assert run("jobs", "resume", job, "--json").data["error"]["exit"] == code


def test_a_resumption_may_begin_earlier(run: Run, jobs_project: Path) -> None:
    ran = run("jobs", "resume", "fix", "--from", "fix:1", "--max-turns", "3", "--json")
    assert (ran.data["turn"], ran.data["max_turns"]) == (0, 3)


def test_a_resumption_may_have_a_callback_of_its_own_and_is_logged(
    run: Run, jobs_project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="hardsave"):
        assert run("jobs", "resume", "fix", "--callback", "https://example.org/told").code == 0
    assert "job 'fix' is resumed as 'fix~2', from turn 1 of 10" in caplog.text
    with hardsave.open() as vault:
        assert vault.jobs.get("fix").spec.callback == "https://example.org/told"
    assert run("jobs", "resume", "asks", "--callback", "nowhere").code == Exit.CONFLICT


def test_a_resumption_says_which_files_its_worker_would_change(
    run: Run, jobs_project: Path
) -> None:
    assert run("jobs", "submit", "here", "--prompt", "Do", "--agent", "breaks").code == Exit.DONE
    with hardsave.open() as vault:
        Worker(vault, {"breaks": agent(breaks=True)}).run(until_idle=True)
    (jobs_project / "mended").write_text("by hand")
    ran = run("jobs", "resume", "here")
    assert "then restores its own files (1 removed)" in " ".join(ran.err.split())
    assert "--keep-files" in ran.err
    run("tasks", "cancel", "here~2")
    assert "--keep-files" not in run("jobs", "resume", "here", "--keep-files").err
    with hardsave.open() as vault:
        Worker(vault, {"breaks": agent()}).run(until_idle=True)
    assert (jobs_project / "mended").read_text() == "by hand"


def test_a_directory_that_cannot_be_looked_at_keeps_no_job_from_being_resumed(
    run: Run, jobs_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*given: object) -> None:
        raise hardsave.Unavailable("the lock of a workspace cannot be opened")

    monkeypatch.setattr(files, "differing", busy)
    ran = run("jobs", "resume", "fix")
    assert ran.code == Exit.DONE
    assert "cannot be looked at: the lock" in ran.err


def test_watching_a_job_that_is_over_says_how_it_ended(run: Run, jobs_project: Path) -> None:
    done = run("jobs", "watch", "done")
    assert (done.code, done.out) == (Exit.DONE, "done  succeeded  turn 2/10  100 %  all done\n")
    failed = run("jobs", "watch", "fix")
    assert failed.code == Exit.FAILED
    assert "the model is gone" in failed.out
    assert "hardsave jobs resume fix" in failed.err
    assert run("jobs", "watch", "unknown").code == Exit.NOT_FOUND


def _watching(job: str) -> "subprocess.Popen[str]":
    typed = [sys.executable, "-m", "hardsave", "jobs", "watch", job, "--json"]
    return subprocess.Popen(typed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_job_is_watched_to_its_end_while_a_worker_runs_it(run: Run, jobs_project: Path) -> None:
    with _watching("new") as watching:
        assert watching.stdout is not None
        first = json.loads(watching.stdout.readline())
        assert (first["state"], first["is_unserved"], first["turns"]) == ("queued", True, 0)
        assert run(*WORK).code == Exit.DONE
        out, err = watching.communicate(timeout=30)
    lines = [json.loads(line) for line in out.splitlines()]
    assert watching.returncode == 0, err
    assert (lines[-1]["state"], lines[-1]["percent"]) == ("succeeded", 100)
    assert lines[-1]["last_message"] == "all done"
    turns = [line["turns"] for line in lines]
    assert turns == sorted(turns)


def test_ctrl_c_ends_the_watching_and_leaves_the_job_alone(run: Run, jobs_project: Path) -> None:
    with _watching("asks") as watching:
        assert watching.stdout is not None
        first = json.loads(watching.stdout.readline())
        assert (first["state"], first["last_message"]) == ("waiting", "calls note")
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=30)
    assert watching.returncode == Exit.INTERRUPTED
    assert run("jobs", "show", "asks", "--json").data["state"] == "waiting"


def test_what_a_program_of_its_own_saves_is_watched_too(run: Run, jobs_project: Path) -> None:
    async def saved(turns: int) -> None:
        record = AgentCheckpoint("own", "ws", "Fix it", [], turns, 9)
        await checkpoint_manager.save_checkpoint(record)

    try:
        asyncio.run(saved(1))
        with _watching("own") as watching:
            assert watching.stdout is not None
            assert json.loads(watching.stdout.readline())["turns"] == 1
            asyncio.run(saved(2))
            assert json.loads(watching.stdout.readline())["turns"] == 2
            asyncio.run(checkpoint_manager.delete_checkpoint("own"))
            watching.communicate(timeout=30)
        assert watching.returncode == Exit.FAILED  # whether it has succeeded is not known
    finally:
        asyncio.run(checkpoint_manager.close())


@pytest.mark.parametrize(
    ("answer", "told"), [(["approve"], "noted hello"), (["deny", "--because", "no"], "no")]
)
def test_a_word_lets_a_job_go_on(
    run: Run, jobs_project: Path, answer: list[str], told: str
) -> None:
    (jobs_project / "agents.py").write_text(
        (jobs_project / "agents.py")
        .read_text()
        .replace('"default": agent()', '"asks": agent(careful=True)')
    )
    assert (
        run("jobs", "show", "asks", "--json").data["question"]
        == 'may it call note({"text": "hello"})?'
    )
    assert run("jobs", answer[0], "asks", *answer[1:], "--json").data["state"] == "queued"
    assert run(*WORK, "--json").code == Exit.DONE
    assert run("jobs", "show", "asks", "--json").data["output"] == "all done"
    assert told in run("jobs", "show", "asks", "--verbose").out
    assert run("jobs", "approve", "asks").code == Exit.CONFLICT


@pytest.mark.parametrize(
    ("agents", "code", "says"),
    [
        ([], Exit.USAGE, "which agents?"),
        (["--agents", "agents.py"], Exit.USAGE, "FILE.py:NAME"),
        (["--agents", "nowhere.py:AGENTS"], Exit.NOT_FOUND, "no file"),
        (["--agents", "no_such_module:AGENTS"], Exit.USAGE, "cannot be loaded"),
        (["--agents", "agents.py:NOTHING"], Exit.USAGE, "no dict"),
        (["--agents", "broken.py:AGENTS"], Exit.USAGE, "ZeroDivisionError"),
    ],
)
def test_agents_that_are_not_there_are_named(
    run: Run, jobs_project: Path, agents: list[str], code: Exit, says: str
) -> None:
    (jobs_project / "broken.py").write_text("1 / 0")
    ran = run("worker", "--until-idle", *agents)
    assert ran.code == code
    assert says in ran.err


def test_a_workflow_runs_and_goes_on_after_a_failure(run: Run, jobs_project: Path) -> None:
    flow = jobs_project / "flow.yaml"
    whole = flow.read_text()
    flow.write_text(whole.replace("second, agent: shout", "second, agent: fall"))
    arguments = ("workflow", "run", "flow.yaml", "--agents", "agents.py:AGENTS", "--json")
    broken = run(*arguments)
    assert broken.code == Exit.FAILED
    assert broken.data["failed"] == "step 'second' failed: OSError: it is broken"
    flow.write_text(whole)
    going_on = (*arguments, "--from", broken.data["checkpoint"])
    assert "--accept-changes" in run(*going_on).data["error"]["message"]
    done = run(*going_on, "--accept-changes")
    assert done.code == Exit.DONE
    assert done.data["ok"]
    assert done.data["run"] == broken.data["run"]
    assert done.data["steps"]["second"]["answer"] == "HELLO AGAIN"
    assert done.data["steps"]["first"] == broken.data["steps"]["first"]


def test_files_of_a_job_that_lie_elsewhere_are_brought_here_as_it_says(
    run: Run, jobs_project: Path, tmp_path: Path
) -> None:
    assert "--into" not in run("jobs", "show", "done").err
    (elsewhere := tmp_path / "attempt").mkdir()
    (elsewhere / "made.txt").write_text("made\n")
    with hardsave.open() as vault:  # as a worker does where hosts share a store
        vault.timeline("done").append({"messages": []}, workspace=elsewhere)
    typed = "rewind done --into ."
    assert f"bring its files here with: hardsave {typed}" in run("jobs", "show", "done").err
    assert run(*typed.split(), "--yes").code == Exit.DONE
    assert (jobs_project / "made.txt").read_text() == "made\n"


def test_a_step_that_failed_says_why_and_an_input_is_asked_for_as_it_is_typed(
    run: Run, jobs_project: Path
) -> None:
    flow = jobs_project / "flow.yaml"
    typed = ("workflow", "run", "flow.yaml", "--agents", "agents.py:AGENTS")
    flow.write_text(flow.read_text().replace("second, agent: shout", "second, agent: fall"))
    assert "  second: failed  OSError: it is broken" in run(*typed).out
    flow.write_text(flow.read_text().replace("${first}", "${inputs.goal}"))
    asked = "which was not given; give it with --input KEY=TEXT"
    assert asked in run(*typed).err


def test_with_manual_recovery_a_job_whose_worker_was_killed_says_how_it_goes_on(
    run: Run, project: Path
) -> None:
    (project / "hardsave.yaml").write_text("recovery: manual\n")
    (project / "agents.py").write_text(
        "import os\n"
        "from pydantic_ai import Agent\n"
        "from pydantic_ai.models.test import TestModel\n"
        "made = Agent(TestModel())\n"
        "@made.system_prompt\n"
        "def die():\n"
        "    if not os.path.exists('../died'):\n"  # beside the project, whose files are restored
        "        open('../died', 'w').close()\n"
        "        os.kill(os.getpid(), 9)\n"
        "    return ''\n"
        "AGENTS = {'default': made}\n"
    )
    run("jobs", "submit", "fix", "--prompt", "Fix it", "--retries", "2")
    killed = subprocess.run([sys.executable, "-m", "hardsave", *WORK], check=False)
    assert killed.returncode == -signal.SIGKILL
    way_out = "its worker has died, and 'recovery' is 'manual': 'hardsave tasks recover' puts it"
    shown = run("jobs", "show", "fix", "--json").data
    assert (shown["state"], shown["can_resume"]) == ("active", False)
    assert way_out in " ".join(run("jobs", "show", "fix").out.split())
    refused = run("jobs", "resume", "fix")
    assert (refused.code, way_out in " ".join(refused.err.split())) == (Exit.CONFLICT, True)
    assert run("tasks", "recover").code == 0
    assert run("jobs", "show", "fix", "--json").data["state"] == "queued"
    run(*WORK)
    assert run("jobs", "show", "fix", "--json").data["state"] == "succeeded"


def test_a_run_that_was_killed_goes_on_by_the_name_that_it_began_with(
    run: Run, jobs_project: Path
) -> None:
    (jobs_project / "agents.py").write_text(
        "import os\n"
        "def count(inputs):\n"
        "    with open('counted', 'a') as file: file.write(f'{inputs}\\n')\n"
        "def die(inputs):\n"
        "    if not os.path.exists('died'):\n"
        "        open('died', 'w').close()\n"
        "        os.kill(os.getpid(), 9)\n"
        "AGENTS = {'count': count, 'die': die}\n"
    )
    (jobs_project / "flow.yaml").write_text(
        "steps: [{name: a, agent: count}, {name: b, agent: die}, {name: c, agent: count}]"
    )
    words = ["workflow", "run", "flow.yaml", "--agents", "agents.py:AGENTS"]
    killed = subprocess.run(
        [sys.executable, "-m", "hardsave", *words], capture_output=True, text=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    name = killed.stderr.split(" begins; ")[0]
    done = run(*words, "--from", name, "--json").data
    assert (done["ok"], done["run"]) == (True, name)
    assert (jobs_project / "counted").read_text() == "{}\n{}\n"
    assert run(*words, "--from", "nowhere:1").code == Exit.NOT_FOUND


def test_the_workflow_that_the_help_shows_can_be_run(run: Run, jobs_project: Path) -> None:
    shown = run("workflow", "run", "--help").out.split("\n\n")
    Path("shown.yaml").write_text(next(part for part in shown if "steps:" in part))
    Path("own.py").write_text(
        "OWN = {'planner': lambda given: given['goal'], 'coder': lambda given: given['plan']}\n"
    )
    typed = ("workflow", "run", "shown.yaml", "--agents", "own.py:OWN", "--input", "goal=tidy")
    assert run(*typed, "--json").data["steps"]["code"]["answer"] == "tidy"


def test_a_workflow_is_checked_without_agents(run: Run, jobs_project: Path) -> None:
    found = run("workflow", "check", "flow.yaml", "--json").data
    assert found["steps"][0] == {"name": "first", "agent": "shout"}
    (jobs_project / "flow.yaml").write_text("steps:\n  - {name: a, agent: b, colour: red}\n")
    wrong = run("workflow", "check", "flow.yaml")
    assert wrong.code == Exit.USAGE
    assert "flow.yaml:2" in wrong.err
    assert run("workflow", "run", "flow.yaml", "--input", "x").code == Exit.USAGE


def test_a_job_is_queued_and_run_in_this_workspace(run: Run, jobs_project: Path) -> None:
    words = ("jobs", "submit", "fresh", "--prompt", "Do it", "--max-turns", "5", "--json")
    job = run(*words).data
    assert (job["state"], job["workspace"], job["max_turns"]) == ("queued", str(jobs_project), 5)
    assert run(*words).data["state"] == "queued"  # once more changes nothing
    assert run("jobs", "submit", "fresh", "--prompt", "Something else").code == Exit.CONFLICT
    assert (
        run("jobs", "submit", "x", "--prompt", "Do", "--callback", "file:///x").code == Exit.USAGE
    )
    run(*WORK)
    assert run("jobs", "show", "fresh", "--json").data["output"] == "all done"


def test_queued_jobs_are_not_denied_and_advice_is_in_the_words_of_commands(
    run: Run, project: Path
) -> None:
    ran = run("jobs", "submit", "fix", "--prompt", "Fix it")
    assert ran.out == "fix: queued\n"
    assert ran.err.endswith("start one with: hardsave worker --agents agents.py:AGENTS\n")
    assert run("jobs", "list").out.startswith("fix  queued")
    run("tasks", "cancel", "fix")
    assert "a retry of its task begins it again" in run("jobs", "show", "fix").out
    assert "'fix' (failed) has asked nothing" in run("jobs", "approve", "fix").err


def test_a_job_is_deleted_and_brought_back(run: Run, jobs_project: Path) -> None:
    gone = run("jobs", "delete", "fix")
    assert (gone.code, gone.out) == (Exit.DONE, "fix: deleted\n")
    assert "take it back with: hardsave undo --timeline fix" in gone.err
    assert "fix" not in {job["id"] for job in run("jobs", "--json").data}
    assert run("undo", "--timeline", "fix").code == Exit.DONE
    assert "fix" in {job["id"] for job in run("jobs", "--json").data}
    assert run("jobs", "delete", "no-such-job").code == Exit.NOT_FOUND


def test_a_queued_job_is_taken_out_of_the_queue_and_put_back(run: Run, jobs_project: Path) -> None:
    gone = run("jobs", "delete", "new", "--json")
    assert (gone.data["deleted"]["id"], gone.data["deleted"]["state"]) == ("new", "queued")
    assert "new" not in {job["id"] for job in run("jobs", "--json").data}
    assert run("tasks", "retry", "new").code == Exit.DONE
    deleted = run("jobs", "delete", "new")
    assert deleted.out == "new: deleted, and taken out of the queue\n"
    assert "put it back with: hardsave tasks retry new" in deleted.err


def test_a_worker_may_take_over_from_another_machine(
    run: Run, jobs_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {}
    monkeypatch.setattr(Worker, "run", lambda self, name, **terms: given.update(terms))
    assert run(*WORK, "--take-over").code == Exit.DONE
    assert given["take_over"] is True
