"""CodeAgent's checkpoint manager: what its own tests promise, and what it got wrong."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hardsave.compat.code_agent import (
    CheckpointManager,
    SessionTracker,
    StatusManager,
    TaskLogger,
    TaskState,
)
from hardsave.config import trust
from hardsave.errors import Corrupt, Misuse, Unstorable

ROOT = Path(__file__).parents[3]
Open = Callable[..., CheckpointManager]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def say(project: Path, text: str) -> None:
    """Let the project's file say this, and be trusted."""
    (project / "hardsave.yaml").write_text(text)
    found = trust.look(project)
    assert found is not None
    trust.trust(found, os.environ, sys.platform)


@pytest.fixture
def open_manager(tmp_path: Path, project: Path) -> Iterator[Open]:
    """Managers of one store, one server after the other or side by side."""
    opened: list[CheckpointManager] = []

    def opening(**options: object) -> CheckpointManager:
        store = f"sqlite:///{tmp_path}/store.db"
        manager = CheckpointManager(project, store=store, **options)  # type: ignore[arg-type] # few
        opened.append(manager)
        return manager

    yield opening
    for manager in opened:
        manager.close()


def shown(project: Path, name: str = ".codeagent_checkpoint.json") -> dict[str, object]:
    found: dict[str, object] = json.loads((project / name).read_text())
    return found


# What the original's own tests promise


def test_initialization(open_manager: Open, project: Path) -> None:
    open_manager()
    assert shown(project).keys() == {
        *("version", "server_state", "tasks", "current_task", "session_id", "last_update")
    }


def test_server_start_and_stop(open_manager: Open, project: Path) -> None:
    manager = open_manager()
    assert manager.was_clean_shutdown()
    manager.mark_server_start("session-1")
    assert shown(project)["session_id"] == "session-1"
    assert not open_manager().was_clean_shutdown()
    manager.mark_server_stop(clean=True)
    assert manager.was_clean_shutdown()
    manager.mark_server_start("session-2")
    manager.mark_server_stop(clean=False)
    assert not manager.was_clean_shutdown()


def test_task_lifecycle(open_manager: Open) -> None:
    manager = open_manager()
    manager.mark_server_start("s")
    assert manager.add_task("task_001", "Implement", {"by": "me"})
    task = manager.get_task("task_001")
    assert task is not None
    assert (task.state, task.attempts, task.metadata) == (TaskState.PENDING, 0, {"by": "me"})
    assert manager.mark_task_start("task_001")
    current = manager.get_current_task()
    assert current is not None
    assert (current.task_id, current.state, current.attempts) == (
        *("task_001", TaskState.IN_PROGRESS),
        1,
    )
    assert manager.mark_task_completed("task_001", {"lines": 3})
    task = manager.get_task("task_001")
    assert task is not None
    assert (task.state, task.result) == (TaskState.COMPLETED, {"lines": 3})
    assert task.end_time is not None
    assert manager.get_current_task() is None


def test_task_failure(open_manager: Open) -> None:
    manager = open_manager()
    manager.add_task("t", "x")
    manager.mark_task_start("t")
    assert manager.mark_task_failed("t", "it broke")
    task = manager.get_task("t")
    assert task is not None
    assert (task.state, task.error_message) == (TaskState.FAILED, "it broke")
    assert manager.get_current_task() is None


WORK = """
import os, signal, sys
from hardsave.compat.code_agent import CheckpointManager
manager = CheckpointManager(sys.argv[1], store=sys.argv[2])
manager.mark_server_start("session-1")
for number in (1, 2, 3):
    manager.add_task(f"t{number}", f"do {number}")
manager.increment_iteration()
manager.mark_task_start("t1"); manager.mark_task_completed("t1")
manager.mark_task_start("t2")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_crash_recovery(open_manager: Open, project: Path, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    command = [sys.executable, "-c", WORK, str(project), store]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    status = StatusManager(tmp_path / "status.md")
    manager = open_manager(status_manager=status)
    assert not manager.was_clean_shutdown()
    info = manager.get_recovery_info()
    assert [task.task_id for task in info["interrupted_tasks"]] == ["t2"]
    assert info["current_task"].task_id == "t2"
    assert (info["session_id"], info["iteration_count"]) == ("session-1", 1)
    manager.mark_server_start("session-2")
    assert "Recovered after a crash. Incomplete tasks: 2" in (tmp_path / "status.md").read_text()
    assert [task.task_id for task in manager.get_recovery_info()["interrupted_tasks"]] == ["t2"]
    incomplete = manager.get_incomplete_tasks()
    assert [(task.task_id, task.attempts) for task in incomplete] == [("t2", 1), ("t3", 0)]
    for task in incomplete:
        assert manager.mark_task_start(task.task_id)
        assert manager.mark_task_completed(task.task_id)
    task_2 = manager.get_task("t2")
    assert task_2 is not None
    assert task_2.attempts == 2
    manager.mark_server_stop(clean=True)
    assert open_manager().was_clean_shutdown()


def test_duplicate_protection(open_manager: Open) -> None:
    manager = open_manager()
    assert manager.add_task("t1", "same text")
    assert not manager.add_task("t1", "another text")
    assert not manager.add_task("t2", "same text")
    manager.mark_task_completed("t1")
    assert manager.is_task_completed("same text")
    assert not manager.mark_task_start("t1")
    assert manager.get_statistics()["total_tasks"] == 1


def in_all_states(manager: CheckpointManager) -> CheckpointManager:
    for name in ("pending", "running", "done", "failed"):
        manager.add_task(name, name)
    manager.mark_task_completed("done")
    manager.mark_task_failed("failed", "no")
    manager.mark_task_start("running")
    return manager


def test_incomplete_tasks(open_manager: Open) -> None:
    found = in_all_states(open_manager()).get_incomplete_tasks()
    assert {task.task_id for task in found} == {"pending", "running"}


def test_failed_tasks(open_manager: Open) -> None:
    found = in_all_states(open_manager()).get_failed_tasks()
    assert [(task.task_id, task.error_message) for task in found] == [("failed", "no")]


def test_retry_logic(open_manager: Open) -> None:
    manager = open_manager()
    manager.add_task("t", "x")
    for attempt in range(3):
        assert manager.should_retry("t", max_attempts=3), attempt
        assert manager.mark_task_start("t")
        manager.mark_task_failed("t", f"number {attempt}")
    assert not manager.should_retry("t", max_attempts=3)
    assert not manager.should_retry("unknown")


def test_iteration_counter(open_manager: Open) -> None:
    manager = open_manager()
    assert [manager.increment_iteration() for _ in range(3)] == [1, 2, 3]
    assert open_manager().get_iteration_count() == 3


def test_clear_old_tasks(open_manager: Open) -> None:
    manager = open_manager()
    for number in range(8):
        manager.add_task(f"t{number}", f"{number}")
        manager.mark_task_completed(f"t{number}")
    manager.add_task("pending", "p")
    manager.add_task("failed", "f")
    manager.mark_task_failed("failed", "no")
    assert manager.clear_old_tasks(keep_last_n=3) == 5
    stats = manager.get_statistics()
    assert (stats["completed"], stats["pending"], stats["failed"]) == (3, 1, 1)


def test_statistics(open_manager: Open) -> None:
    manager = open_manager()
    manager.mark_server_start("session-7")
    for name in "abcde":
        manager.add_task(name, name)
    manager.mark_task_completed("a")
    manager.mark_task_failed("b", "no")
    manager.mark_task_start("c")
    manager.rollback_task("d")
    stats = manager.get_statistics()
    counts = {state: stats[state.value] for state in TaskState}
    assert sum(counts.values()) == stats["total_tasks"] == 5
    assert set(counts.values()) == {1}
    assert stats["session_id"] == "session-7"


def test_recovery_from_backup(open_manager: Open, project: Path) -> None:
    """The file is a picture: damage to it costs nothing, and it is drawn anew."""
    manager = open_manager()
    manager.add_task("t1", "one")
    manager.add_task("t2", "two")
    backup = json.loads((project / ".codeagent_checkpoint.json.backup").read_text())
    assert [task["task_id"] for task in backup["tasks"]] == ["t1"]  # one step older
    (project / ".codeagent_checkpoint.json").write_text("garbage")
    again = open_manager()
    assert [task.task_id for task in again.get_incomplete_tasks()] == ["t1", "t2"]
    assert len(shown(project)["tasks"]) == 2  # type: ignore[arg-type] # a list
    assert (project / ".codeagent_checkpoint.json.backup").read_text() != "garbage"


def test_parallel_tasks(open_manager: Open) -> None:
    manager = open_manager()
    for number in range(12):
        manager.add_task(f"t{number}", f"{number}")
    faults: list[str] = []

    def work(numbers: range) -> None:
        for name in (f"t{number}" for number in numbers):
            faults.extend([] if manager.mark_task_start(name) else [f"start of {name}"])
            faults.extend([] if manager.mark_task_completed(name) else [f"end of {name}"])

    threads = [threading.Thread(target=work, args=(range(n, 12, 3),)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert manager.get_statistics()["completed"] == 12


# What the original got wrong


def test_unknown_ids_are_answered_and_change_nothing(open_manager: Open, project: Path) -> None:
    manager = open_manager()
    before = (project / ".codeagent_checkpoint.json").read_bytes()
    assert not manager.mark_task_start("nobody")
    assert not manager.mark_task_completed("nobody")
    assert not manager.mark_task_failed("nobody", "x")
    assert manager.get_task("nobody") is None
    assert (project / ".codeagent_checkpoint.json").read_bytes() == before


def test_a_completed_task_starts_again_only_by_force(open_manager: Open) -> None:
    manager = open_manager()
    manager.start_task("do it", "t")
    assert manager.end_task("t", success=True)
    assert not manager.mark_task_start("t")
    assert manager.mark_task_start("t", force=True)


def test_success_after_failure_clears_the_error(open_manager: Open) -> None:
    manager = open_manager()
    manager.start_task("do it", "t")
    manager.end_task("t", success=False, error="once")
    manager.mark_task_start("t")
    manager.mark_task_completed("t")
    task = manager.get_task("t")
    assert task is not None
    assert (task.error_message, task.attempts) == (None, 2)


def test_an_unclean_stop_loses_no_task_in_progress(open_manager: Open) -> None:
    manager = open_manager()
    manager.mark_server_start("one")
    for name in ("a", "b"):
        manager.add_task(name, name)
        manager.mark_task_start(name)
    manager.mark_server_stop(clean=False)
    manager.mark_server_start("two")
    incomplete = manager.get_incomplete_tasks()
    assert [(task.task_id, task.state) for task in incomplete] == [
        ("a", TaskState.PENDING),
        ("b", TaskState.PENDING),
    ]


def test_an_unclean_stop_is_told_also_if_nothing_was_under_way(open_manager: Open) -> None:
    manager = open_manager()
    manager.mark_server_start("one")
    manager.mark_server_stop(clean=False)
    assert not manager.get_recovery_info()["was_clean_shutdown"]
    manager.mark_server_start("two")
    info = manager.get_recovery_info()
    assert (info["was_clean_start"], info["was_clean_shutdown"]) == (False, False)
    manager.mark_server_stop()
    manager.mark_server_start("three")
    assert manager.get_recovery_info()["was_clean_start"]


def test_each_try_may_have_an_id_of_its_own(open_manager: Open) -> None:
    """The original makes one for each, and never comes to the limit."""
    runs, manager = [], open_manager()
    for number in range(5):
        id = f"task_{number}"
        assert manager.add_task(id, "always fails") is (number == 0)
        if manager.should_retry(id, max_attempts=3):
            assert manager.mark_task_start(id)
            assert manager.mark_task_failed(id, f"error {number}")
            runs.append(id)
        manager = open_manager()
    assert runs == ["task_0", "task_1", "task_2"]
    assert manager.start_task("always fails", "by hand")
    assert manager.end_task("by hand", success=True)
    found = manager.get_task("by hand")
    assert found is not None
    assert (found.task_id, found.attempts, found.state) == ("task_0", 4, TaskState.COMPLETED)
    assert not manager.start_task("always fails", "once more")
    assert manager.get_statistics()["total_tasks"] == 1


def test_an_id_that_is_added_again_changes_nothing(open_manager: Open, project: Path) -> None:
    manager = open_manager()
    manager.start_task("do it", "t")
    manager.end_task("t", success=False, error="no")
    before = (project / ".codeagent_checkpoint.json").read_bytes()
    assert not manager.add_task("t", "do it")
    assert not manager.add_task("other", "do it")
    assert (project / ".codeagent_checkpoint.json").read_bytes() == before
    assert [task.task_id for task in manager.get_failed_tasks()] == ["t"]


def test_a_result_that_cannot_be_stored_leaves_the_task_with_its_server(
    open_manager: Open,
) -> None:
    manager = open_manager()
    manager.start_task("do it", "t")
    with pytest.raises(Unstorable, match="pass plain data"):
        manager.mark_task_completed("t", object())
    assert manager.mark_task_completed("t", "done")
    assert manager.get_statistics()["completed"] == 1


def test_a_server_stops_cleanly_though_a_task_was_taken_from_it(open_manager: Open) -> None:
    manager = open_manager()
    manager.mark_server_start("s")
    for name in ("a", "b"):
        manager.start_task(name, name)
    assert open_manager().rollback_task("a")
    manager.mark_server_stop(clean=True)
    assert manager.was_clean_shutdown()
    found = [manager.get_task(name) for name in ("a", "b")]
    assert [task.state.value for task in found if task is not None] == ["rolled_back", "pending"]


def test_the_file_shows_results_that_json_has_no_form_for(
    open_manager: Open, project: Path
) -> None:
    manager = open_manager()
    results = [{(1, 2): "pair", None: b"x"}, 10**5_000, {3}, {"d": Decimal("1.5")}]
    for number, result in enumerate(results):
        manager.start_task(f"{number}", f"t{number}")
        assert manager.mark_task_completed(f"t{number}", result)
    tasks: Any = shown(project)["tasks"]
    found = [task["result"] for task in tasks]
    assert found == [{"[1, 2]": "pair", "null": "b'x'"}, hex(10**5_000), [3], {"d": "1.5"}]


def test_there_is_a_whole_file_at_every_moment(
    open_manager: Open, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = open_manager()
    replace, seen = os.replace, []

    def watched(*args: Any) -> None:
        seen.append(len(shown(project)["tasks"]))  # type: ignore[arg-type] # a list
        replace(*args)
        seen.append(len(shown(project)["tasks"]))  # type: ignore[arg-type] # a list

    monkeypatch.setattr(os, "replace", watched)
    manager.add_task("a", "A")
    manager.add_task("b", "B")
    assert seen == [0, 0, 0, 1, 1, 1, 1, 2]
    assert [path.name for path in project.iterdir() if "tmp" in path.name] == []


def test_a_disk_that_is_full_costs_no_file(
    open_manager: Open, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = open_manager()
    manager.add_task("a", "A")

    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("hardsave.compat.code_agent.mirror.os.fsync", full)
        manager.add_task("b", "B")
    assert len(shown(project)["tasks"]) == 1  # type: ignore[arg-type] # a list
    assert [path.name for path in project.iterdir() if "tmp" in path.name] == []
    manager.add_task("c", "C")
    assert len(shown(project)["tasks"]) == 3  # type: ignore[arg-type] # a list


def test_what_a_killed_writer_has_left_beside_the_file_goes(
    open_manager: Open, project: Path
) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    name = ".codeagent_checkpoint.json"
    left = [f"{name}.tmp{gone.pid}", f"{name}.backup.tmp{gone.pid}"]
    theirs = [f"{name}.tmp{os.getppid()}", f"{name}.tmpl", f"x.tmp{gone.pid}"]
    for each in (*left, *theirs):
        (project / each).touch()
    open_manager()
    assert sorted(path.name for path in project.iterdir()) == sorted([name, *theirs])


def test_a_file_of_somebody_else_in_its_place_is_kept(open_manager: Open, project: Path) -> None:
    open_manager().mark_server_start("s")
    say(project, "server: {checkpoint: {checkpoint_file: main.py}}\n")
    (project / "main.py").write_text("print('mine')\n")
    manager = open_manager()
    manager.add_task("a", "A")
    assert (project / "main.py.damaged").read_text() == "print('mine')\n"
    assert len(shown(project, "main.py")["tasks"]) == 1  # type: ignore[arg-type] # a list


def test_of_two_servers_the_one_with_the_older_picture_does_not_come_last(
    open_manager: Open, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager, other = open_manager(), open_manager()
    replace = manager._mirror._replace

    def slowly(whole: str) -> None:
        monkeypatch.undo()
        other.add_task("b", "B")  # after ours was drawn, and before it is written
        replace(whole)

    monkeypatch.setattr(manager._mirror, "_replace", slowly)
    manager.add_task("a", "A")
    assert len(shown(project)["tasks"]) == 2  # type: ignore[arg-type] # a list


def test_what_is_switched_off_keeps_nothing(open_manager: Open, project: Path) -> None:
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    exclude = (project / ".git/info/exclude").read_bytes()
    say(project, "server: {checkpoint: {enabled: false}}\n")
    manager = open_manager()
    manager.mark_server_start("s")
    manager.start_task("do it", "t")
    assert manager.end_task("t", success=True)
    assert manager.is_task_completed("do it")
    again = open_manager()
    assert again.was_clean_shutdown()
    assert again.get_statistics()["total_tasks"] == 0
    assert sorted(path.name for path in project.iterdir()) == [".git", "hardsave.yaml"]
    assert (project / ".git/info/exclude").read_bytes() == exclude


def test_settings_of_a_trusted_file_are_heeded(open_manager: Open, project: Path) -> None:
    text = "server:\n  checkpoint:\n    checkpoint_file: mirror.json\n    max_task_attempts: 1\n"
    say(project, text)
    manager = open_manager()
    assert shown(project, "mirror.json")["version"] == "1.0"
    manager.start_task("x", "t")
    assert not manager.should_retry("t")
    say(project, "server:\n  checkpoint:\n    enabled: false\n")
    (project / "mirror.json").unlink()
    open_manager().add_task("u", "y")
    assert not (project / ".codeagent_checkpoint.json").exists()


@pytest.mark.parametrize(
    "said", ["{checkpoint: {enabled: false}}", "{checkpoint: {checkpoint_file: main.py}}", "{}x"]
)
def test_a_stranger_s_file_neither_stops_it_nor_has_it_write_elsewhere(
    said: str, open_manager: Open, project: Path
) -> None:
    (project / "main.py").write_text("print('mine')\n")
    (project / "hardsave.yaml").write_text(f"server: {said}\n")
    open_manager().add_task("u", "y")
    assert len(shown(project)["tasks"]) == 1  # type: ignore[arg-type] # a list
    assert (project / "main.py").read_text() == "print('mine')\n"


def test_a_file_from_before_there_was_a_store_is_taken_in(
    open_manager: Open, project: Path
) -> None:
    tasks = [
        {"task_id": "a", "task_text": "A", "state": "completed", "attempts": 2, "result": [1]},
        {"task_id": "b", "task_text": "B", "state": "in_progress", "attempts": 1},
        {"task_id": "c", "task_text": "C", "state": "failed", "attempts": 2, "error_message": "e"},
        {"task_id": "d", "task_text": "D", "state": "pending", "attempts": 0},
        {"task_id": "e", "task_text": "E", "state": "rolled_back", "attempts": 0},
    ]
    old = {"version": "1.0", "server_state": {}, "tasks": tasks, "current_task": "b"}
    old |= {"session_id": "s", "last_update": "2024-01-01T00:00:00"}
    (project / ".codeagent_checkpoint.json").write_text("damaged")
    (project / ".codeagent_checkpoint.json.backup").write_text(json.dumps(old))
    manager = open_manager()
    found = [manager.get_task(name) for name in "abcde"]
    assert [(task.state.value, task.attempts) for task in found if task is not None] == [
        ("completed", 2),
        ("pending", 1),
        ("failed", 2),
        ("pending", 0),
        ("rolled_back", 0),
    ]
    assert found[0] is not None
    assert found[0].result == [1]


def old_file(project: Path, tasks: Any) -> None:
    old = {"version": "1.0", "server_state": {}, "tasks": tasks, "current_task": None}
    old |= {"session_id": "s", "last_update": "2024-01-01T00:00:00"}
    (project / ".codeagent_checkpoint.json").write_text(json.dumps(old))


OLD = [
    {"task_id": "a", "task_text": "same", "state": "failed", "attempts": 2},
    {"task_id": "b", "task_text": "same", "state": "completed", "attempts": 1},
    {"task_id": "c", "task_text": "C", "state": "in_progress", "attempts": 1},
]


CUT_OFF = """
import os, sys
from hardsave.compat.code_agent import CheckpointManager
from hardsave.tasks.context import LedgerContext
left, commit = int(sys.argv[3]), LedgerContext.commit

def counted(context, *args):
    global left
    left -= 1
    return os._exit(9) if left < 0 else commit(context, *args)

LedgerContext.commit = counted
CheckpointManager(sys.argv[1], store=sys.argv[2])
"""


def test_of_one_text_in_an_old_file_the_last_task_decides(
    open_manager: Open, project: Path
) -> None:
    done = {"task_id": "a", "task_text": "same", "state": "completed", "attempts": 1}
    old_file(project, [done, {**done, "task_id": "b", "state": "failed"}])
    assert not open_manager().is_task_completed("same")


@pytest.mark.parametrize("commits", [1, 4, 5, 7])
def test_a_file_is_taken_in_whole_also_if_that_is_interrupted(
    open_manager: Open, project: Path, tmp_path: Path, commits: int
) -> None:
    old_file(project, OLD)
    store = f"sqlite:///{tmp_path}/store.db"
    cut = [sys.executable, "-c", CUT_OFF, str(project), store, str(commits)]
    assert subprocess.run(cut, check=False).returncode == 9
    manager = open_manager()
    found = [manager.get_task(name) for name in "abc"]
    assert [task.state.value for task in found if task is not None] == [
        "failed",
        "completed",
        "pending",
    ]


@pytest.mark.parametrize(
    "odd",
    [
        5,
        {},
        {"task_id": "x", "task_text": None, "state": "pending"},
        {"task_id": "x", "task_text": "x", "state": "odd"},
        {"task_id": "\ud800", "task_text": "x", "state": "pending"},
        {"task_id": "x", "task_text": "x", "state": "failed", "attempts": "two"},
        {"task_id": "x", "task_text": "x", "state": "failed", "attempts": 10**9},
        {"task_id": "x" * 501, "task_text": "x", "state": "pending"},
        {"task_id": "x", "task_text": "\ud800", "state": "pending"},
    ],
)
def test_of_a_file_that_is_not_understood_nothing_is_taken_in(
    open_manager: Open, project: Path, odd: Any
) -> None:
    old_file(project, [*OLD, odd])
    with pytest.raises(Corrupt, match="set aside"):
        open_manager()
    assert open_manager().get_statistics()["total_tasks"] == 0


def test_a_file_that_cannot_be_written_stops_no_server(
    open_manager: Open, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager = open_manager()
    (project / ".codeagent_checkpoint.json").unlink()
    (project / ".codeagent_checkpoint.json").mkdir()
    manager.add_task("a", "A")
    assert "cannot be written" in caplog.text
    assert manager.get_task("a") is not None


def test_damage_on_both_sides_is_loud_and_nothing_is_thrown_away(
    open_manager: Open, project: Path
) -> None:
    for name in (".codeagent_checkpoint.json", ".codeagent_checkpoint.json.backup"):
        (project / name).write_text("garbage")
    with pytest.raises(Corrupt, match="set aside"):
        open_manager()
    aside = sorted(path.name for path in project.iterdir() if "damaged" in path.name)
    assert len(aside) == 2


def test_the_file_is_kept_out_of_git_and_no_other(open_manager: Open, project: Path) -> None:
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    manager = open_manager(checkpoint_file="agent")
    manager.add_task("t", "x")
    (project / "agent").write_text("damaged")
    manager.add_task("u", "y")
    (project / "agent.py").touch()
    assert len(list(project.glob("agent*"))) == 4
    status = ["git", "-C", str(project), "status", "--porcelain"]
    assert subprocess.run(status, capture_output=True, check=True).stdout == b"?? agent.py\n"


def test_calls_that_change_nothing_write_nothing(open_manager: Open, project: Path) -> None:
    manager = open_manager()
    manager.add_task("t", "x")
    before = (project / ".codeagent_checkpoint.json").stat()
    manager.add_task("t", "x")
    manager.get_statistics()
    after = (project / ".codeagent_checkpoint.json").stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)


def test_a_damaged_file_that_was_written_anew_is_named_in_the_log(
    open_manager: Open, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    open_manager().add_task("a", "A")
    assert caplog.text == ""
    (project / ".codeagent_checkpoint.json").write_text("garbage")
    open_manager()
    assert (project / ".codeagent_checkpoint.json.damaged").read_text() == "garbage"
    assert ".codeagent_checkpoint.json could not be read: it was set aside as" in caplog.text
    assert "written anew from the store" in caplog.text


def test_a_backup_that_is_taken_in_is_named_in_the_log(
    open_manager: Open, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old_file(project, OLD)
    main = project / ".codeagent_checkpoint.json"
    main.rename(project / ".codeagent_checkpoint.json.backup")
    main.write_text("garbage")
    assert open_manager().get_statistics()["total_tasks"] == 3
    assert "json cannot be read; .codeagent_checkpoint.json.backup is taken instead" in caplog.text


# What its server calls


def test_records_can_be_read_as_mappings(open_manager: Open) -> None:
    manager = open_manager()
    manager.start_task("do it", "t")
    manager.mark_task_failed("t", "no")
    [task] = manager.get_failed_tasks()
    assert (task["task_id"], task["state"], task["attempts"]) == ("t", "failed", 1)
    assert task.get("error_message") == "no"
    assert task.get("nothing", "else") == "else"
    assert "result" in task
    assert "nothing" not in task
    assert datetime.fromisoformat(task["start_time"]) == task.start_time
    assert dict(task) == task.to_dict() == {**task}
    assert len(task) == len(list(task)) == len(task.keys())
    with pytest.raises(KeyError):
        task["nothing"]


def test_what_is_set_in_a_record_stays_in_that_copy(open_manager: Open) -> None:
    manager = open_manager()
    manager.start_task("do it", "t")
    manager.mark_task_failed("t", "no")
    task = manager._find_task("t")
    assert task is not None
    task["state"] = "pending"
    task["start_time"] = "2026-01-01T00:00:00+00:00"
    assert (task.state, task["start_time"]) == (TaskState.PENDING, "2026-01-01T00:00:00+00:00")
    for key, value in (("state", "odd"), ("start_time", 5), ("nothing", 1)):
        with pytest.raises((KeyError, ValueError, Misuse)):
            task[key] = value
    assert [each["state"] for each in manager.get_failed_tasks()] == ["failed"]
    assert manager.mark_task_start("t")


def test_the_server_s_look_for_a_crash_reads_and_resets(
    open_manager: Open, project: Path, tmp_path: Path
) -> None:
    """As a server does it: before it says that it has started."""
    store = f"sqlite:///{tmp_path}/store.db"
    command = [sys.executable, "-c", WORK, str(project), store]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    status = StatusManager(tmp_path / "status.md")
    manager = open_manager(status_manager=status)
    recovery_info = manager.get_recovery_info()
    assert not recovery_info["was_clean_shutdown"]
    current_task = recovery_info.get("current_task")
    assert current_task
    assert (current_task["task_id"], current_task["task_text"]) == ("t2", "do 2")
    assert (current_task["attempts"], current_task["start_time"][:2]) == (1, "20")
    assert manager.reset_interrupted_task()
    assert manager.get_current_task() is None
    assert [(t["task_id"], t["state"], t["attempts"]) for t in manager.get_incomplete_tasks()] == [
        ("t2", "pending", 1),
        ("t3", "pending", 0),
    ]
    manager.mark_server_start("session-2")
    assert not manager.get_recovery_info()["was_clean_start"]
    assert "Recovered after a crash" in (tmp_path / "status.md").read_text()
    assert manager.mark_task_start("t2")
    assert manager.should_retry_task("t2", max_attempts=3)
    assert not manager.should_retry_task("t2", max_attempts=2)


def test_a_server_puts_back_its_own_task_and_no_other_servers(
    open_manager: Open, caplog: pytest.LogCaptureFixture
) -> None:
    manager, other = open_manager(), open_manager()
    assert not manager.reset_interrupted_task()
    assert "no task was interrupted" in caplog.text
    manager.start_task("mine", "a")
    other.start_task("theirs", "b")
    assert manager.reset_interrupted_task()
    found = [manager.get_task(name) for name in "ab"]
    assert [(task["state"], task["attempts"]) for task in found if task is not None] == [
        ("pending", 1),
        ("in_progress", 1),
    ]
    assert other.mark_task_completed("b")
    assert manager.mark_task_start("a")


def test_an_id_that_stands_for_an_earlier_task_does_so_after_a_restart(
    open_manager: Open,
) -> None:
    manager = open_manager()
    manager.add_task("task_1", "do it")
    assert not manager.add_task("task_2", "do it")
    again, third = open_manager(), open_manager()
    found = again.get_task("task_2")
    assert found is not None
    assert found.task_id == "task_1"
    assert again.mark_task_start("task_2")
    assert again.mark_task_failed("task_2", "no")
    assert not manager.add_task("task_3", "do it")  # by another server that is running
    assert third.should_retry("task_3")
    assert third.get_task("task_4") is None
    assert third.get_statistics()["total_tasks"] == 1
    third.start_task("do it", "task_3")
    third.mark_task_completed("task_3")
    third.clear_old_tasks(keep_last_n=0)
    assert open_manager().get_task("task_2") is None  # it went with the task


def test_progress_of_instructions_is_kept_for_the_next_attempt(open_manager: Open) -> None:
    manager = open_manager()
    nothing = {
        "last_completed_instruction": 0,
        "total_instructions": 0,
        "completed_instructions": [],
    }
    manager.add_task("t", "do it")
    assert manager.get_instruction_progress("t") == nothing
    assert not manager.update_instruction_progress("t", 1, 3)  # it was not begun
    manager.mark_task_start("t")
    assert manager.update_instruction_progress("t", instruction_num=2, total_instructions=3)
    assert manager.checkpoint_data["tasks"][0]["instruction_progress"]["total_instructions"] == 3
    manager.mark_task_failed("t", "no")
    again = open_manager()
    again.start_task({"text": "do it", "type": "code"}, "another id")
    progress = again.get_instruction_progress("another id")
    assert progress == {
        "last_completed_instruction": 2,
        "total_instructions": 3,
        "completed_instructions": [1, 2],
    }
    again.mark_task_completed("another id")
    progress = again.get_instruction_progress("t")
    assert progress is not None
    assert progress["completed_instructions"] == [1, 2, 3]
    assert again.get_instruction_progress("unknown") is None


def test_what_the_file_shows_can_be_read_without_it(open_manager: Open, project: Path) -> None:
    manager = open_manager()
    manager.start_task({"text": "do it", "type": "code"}, "t")
    data, file = manager.checkpoint_data, shown(project)
    assert data.pop("last_update") != file.pop("last_update")
    assert data == file
    assert data["tasks"][0]["metadata"] == {"type": "code"}
    assert manager.checkpoint_file == project / ".codeagent_checkpoint.json"
    assert manager.backup_file.exists()


# Beside it


def test_what_is_done_is_ticked_off_in_the_todo_list(open_manager: Open, project: Path) -> None:
    todo = project / "TODO.md"
    todo.write_bytes(b"# To do\n- [ ] Write the API\n* [ ] Test it\n1. [ ] Ship it\r\n- [x] Plan\n")
    manager = open_manager()
    for number, text in enumerate(("Write the API", "Test it", "Ship it")):
        manager.add_task(f"t{number}", text)
    manager.mark_task_completed("t0")
    manager.mark_task_completed("t2")
    assert manager.sync_todo(todo)
    assert todo.read_bytes() == (
        b"# To do\n- [x] Write the API\n* [ ] Test it\n1. [x] Ship it\r\n- [x] Plan\n"
    )
    assert not manager.sync_todo(todo)


def test_a_todo_list_stays_what_it_was_but_for_its_ticks(open_manager: Open, project: Path) -> None:
    todo, link = project / "real.md", project / "TODO.md"
    todo.write_bytes(b"\xff caf\xe9\n- [ ] Ship it\n")
    todo.chmod(0o600)
    link.symlink_to(todo)
    manager = open_manager()
    manager.add_task("t", "Ship it")
    manager.mark_task_completed("t")
    assert manager.sync_todo(link)
    assert link.is_symlink()
    assert todo.read_bytes() == b"\xff caf\xe9\n- [x] Ship it\n"
    assert todo.stat().st_mode & 0o777 == 0o600


def test_links_that_came_with_a_project_lead_no_writer_elsewhere(
    open_manager: Open, project: Path, tmp_path: Path
) -> None:
    mine, new = tmp_path / "mine", tmp_path / "new"
    mine.write_text("mine")
    name = ".codeagent_checkpoint.json"
    for ending in (f".tmp{os.getpid()}", f".backup.tmp{os.getpid()}"):
        (project / (name + ending)).symlink_to(mine)
    (project / f"{name}.damaged").symlink_to(new)
    manager = open_manager()
    manager.add_task("t", "Ship it")
    manager.mark_task_completed("t")
    (project / name).write_text("not ours")
    manager.add_task("u", "Another")
    (project / "TODO.md").write_text("- [ ] Ship it\n")
    (project / "TODO.md.tmp").symlink_to(mine)
    assert manager.sync_todo(project / "TODO.md")
    assert (project / "TODO.md").read_text() == "- [x] Ship it\n"
    assert not (project / "TODO.md").is_symlink()
    assert mine.read_text() == "mine"
    assert not new.exists()
    assert (project / f"{name}.damaged1").read_text() == "not ours"


def test_the_log_of_a_task_stays_in_its_directory(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    TaskLogger("../a/b", "do it", tmp_path / "logs")
    assert [path.name for path in (tmp_path / "logs").iterdir()] == [".._a_b.log"]


def test_status_session_and_task_logs(tmp_path: Path, open_manager: Open) -> None:
    status = StatusManager(tmp_path / "status.md")
    session = SessionTracker()
    manager = open_manager(status_manager=status)
    manager.mark_server_start(session.current_session_id)
    logger = TaskLogger("t", "do it", tmp_path)
    manager.start_task("do it", "t")
    logger.log_error("hm")
    manager.end_task("t", success=True)
    manager.mark_server_stop()
    said = (tmp_path / "status.md").read_text()
    for line in (
        "Server started",
        "Task started: t",
        "Task completed: t",
        "Server stopped, cleanly",
    ):
        assert line in said
    assert "ERROR hm" in (tmp_path / "t.log").read_text()
    assert SessionTracker().current_session_id != session.current_session_id
