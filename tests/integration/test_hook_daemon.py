"""Hooks as `hardsave init` installs them, with the daemon that the first one leaves behind."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.daemon.election import MOST_ZOMBIES
from hardsave.stores.host import processes
from tests.integration.hooked import HOOK, LIMIT, OBEDIENT, Stage

CONTAINED = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
CAN_CONTAIN = (
    shutil.which("unshare") is not None
    and subprocess.run([*CONTAINED, "true"], capture_output=True, check=False).returncode == 0
)


def checkpoints(stage: Stage) -> list[dict[str, Any]]:
    """All that can be told apart of what was saved, but ids and times, and the times of calls."""
    with hardsave.open(f"sqlite:///{stage.store}") as vault:
        return [
            {
                "timeline": line.name,
                "seq": each.seq,
                "kind": each.kind,
                "status": each.status,
                "description": each.description,
                "metadata": {k: v for k, v in each.metadata.items() if k != "evidence"},
                "files": [] if each.files is None else [*each.files.list()],
            }
            for line in vault.timelines()
            for each in line.checkpoints()
        ]


def test_the_first_hook_leaves_a_daemon_that_answers_the_next_until_the_agent_ends(
    stage: Stage,
) -> None:
    agent = stage.agent()
    agent.hooks("c0")
    pid = stage.daemon()
    for number in range(1, 4):
        (stage.work / "f").write_text(f"{number}")
        agent.hooks(f"c{number}")
    assert stage.daemon() == pid
    stage.end()
    assert stage.calls() == ["c0", "c1", "c2", "c3"]
    assert stage.handed_over() == 3
    assert stage.notes() == []
    assert stage.links() == []
    assert list(stage.store.parent.glob("*.sock")) == []
    with hardsave.open(f"sqlite:///{stage.store}") as vault:
        found = [each.files for each in vault.timeline("claude-s").checkpoints()]
        assert [files.read("f") for files in found if files is not None][::-1] == [
            b"one",
            b"1",
            b"2",
            b"3",
        ]
        assert vault.store.verify().ok


def test_hooks_may_call_the_program_as_a_module(stage: Stage) -> None:
    stage.command = f"{shlex.quote(sys.executable)} -P -m hardsave.daemon.hook"
    agent = stage.agent()
    for call in ("c0", "c1"):
        agent.hooks(call)
    stage.end()
    assert stage.calls() == ["c0", "c1"]
    assert stage.notes() == []


def test_the_checkpoints_are_those_that_hooks_alone_would_have_made(tmp_path: Path) -> None:
    found = []
    for name, switch in (("alone", {"HARDSAVE_DAEMON": "off"}), ("beside", {})):
        (tmp_path / name).mkdir()
        stage = Stage(tmp_path / name)
        agent = stage.agent(**switch)
        for number, event in enumerate(("UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd")):
            (stage.work / f"g{number}").write_text("new")
            agent.hooks(f"c{number}", event=event)
            if number == 0 and not switch:
                stage.daemon()
            (stage.work / "f").write_text(event)  # which is not saved before the next hook
        stage.end()
        assert stage.handed_over() == (0 if switch else 3)
        found.append(checkpoints(stage))
    assert found[0] == found[1]
    assert len(found[0]) == 4


def test_doctor_says_who_answers(stage: Stage) -> None:
    def told() -> str:
        looked = json.loads(stage.cli("doctor", "--json").stdout)
        (found,) = (each["message"] for each in looked if each["what"] == "daemon")
        return str(found)

    agent = stage.agent()
    agent.hooks("c0")
    pid = stage.daemon()
    assert told() == f"process {pid}, left behind by a hook, answers the hooks here"
    stage.end()
    assert told() == "none now: the next hook saves by itself"


def test_it_holds_nothing_of_the_agent_and_no_directory(stage: Stage) -> None:
    """The agent reads its hooks' output to the end: what holds it open would hang it."""
    agent = stage.agent()
    agent.hooks("c0")
    pid = stage.daemon()
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    open_files = [os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()]
    assert not [path for path in open_files if path.startswith(str(stage.work))]
    theirs = {os.readlink(path) for path in Path(f"/proc/{agent.process.pid}/fd").iterdir()}
    assert not {path for path in theirs & set(open_files) if path.startswith("pipe:")}
    assert os.getsid(pid) not in (os.getsid(0), os.getsid(agent.process.pid))
    assert processes.look(pid) is not None
    stage.end()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_who_ends_it_leaves_a_clean_store_and_hooks_that_go_on(
    stage: Stage, how: signal.Signals
) -> None:
    agent = stage.agent()
    agent.hooks("c0")
    first = stage.daemon()
    os.kill(first, how)
    stage.wait_for(lambda: first not in stage.processes())
    agent.hooks("c1")  # alone, past what is left
    stage.wait_for(lambda: stage.holders() not in ([], [first]))
    stage.daemon()
    agent.hooks("c2")
    stage.end()
    assert stage.calls() == ["c0", "c1", "c2"]
    assert stage.notes() == []
    assert stage.links() == []
    with hardsave.open(f"sqlite:///{stage.store}") as vault:
        assert vault.store.verify().ok


def test_of_many_hooks_at_once_one_leaves_a_daemon(stage: Stage) -> None:
    agents = [stage.agent(), stage.agent("t")]
    for number, agent in enumerate(agents):
        agent.hooks(*(f"{number}-{call}" for call in range(5)))
    stage.daemon()
    agents[1].hooks("last")
    stage.wait_for(lambda: len(stage.processes()) == 3)  # two agents, and one beside them
    agents[0].end()
    agents[1].hooks("after the first has ended")
    stage.end()
    assert sorted(stage.calls()) == [f"0-{call}" for call in range(5)]
    assert sorted(stage.calls("t")[:5]) == [f"1-{call}" for call in range(5)]
    assert stage.calls("t")[5:] == ["last", "after the first has ended"]


def test_it_ends_with_the_session_if_no_other_session_needs_it(stage: Stage) -> None:
    one, other = stage.agent("s"), stage.agent("t")
    one.hooks("c0")
    pid = stage.daemon()
    other.hooks("c0")
    one.hooks("end", event="SessionEnd")
    other.hooks("c1")
    assert stage.daemon() == pid
    other.hooks("end", event="SessionEnd")
    stage.wait_for(lambda: pid not in stage.processes())
    assert "the sessions of its agents have ended" in stage.log()
    one.hooks("c1")  # as after /clear: it is the same agent
    assert stage.daemon() != pid
    stage.end()


def test_an_agent_killed_by_force_takes_it_along(stage: Stage) -> None:
    agent = stage.agent()
    agent.hooks("c0")
    stage.daemon()
    agent.process.kill()
    stage.wait_until_no_process_is_left()
    assert "its agents have ended" in stage.log()


@pytest.mark.parametrize("where", ["the environment", "the user's file", "the project's file"])
def test_who_does_not_want_it_has_none(stage: Stage, where: str) -> None:
    said = "hooks:\n  daemon: false\n"
    if where == "the environment":
        stage.environment["HARDSAVE_DAEMON"] = "off"
    elif where == "the user's file":
        (stage.base / ".config" / "hardsave").mkdir(parents=True)
        (stage.base / ".config" / "hardsave" / "config.yaml").write_text(said)
    else:
        (stage.work / "hardsave.yaml").write_text(said)
    agent = stage.agent()
    for number in range(2):
        agent.hooks(f"c{number}")
    stage.wait_for(lambda: stage.processes() == [agent.process.pid])
    assert stage.holders() == []
    assert stage.log() == ""
    assert stage.calls() == ["c0", "c1"]


def test_switched_off_it_answers_no_hook_any_more(stage: Stage) -> None:
    agent = stage.agent()
    agent.hooks("c0")
    stage.daemon()
    (stage.work / "hardsave.yaml").write_text("hooks:\n  daemon: false\n")
    agent.hooks("c1")
    stage.wait_for(lambda: "it was switched off" in stage.log())
    stage.end()
    assert stage.calls() == ["c0", "c1"]
    assert stage.handed_over() == 0


def test_where_no_socket_can_be_made_hooks_are_as_they_were(stage: Stage) -> None:
    """As in a sandbox."""
    blocked = (
        "import _socket\n"
        "class Blocked(_socket.socket):\n"
        "    def bind(self, *_): raise PermissionError(1, 'not here')\n"
        "_socket.socket = Blocked\n"
    )
    (stage.base / "site").mkdir()
    (stage.base / "site" / "sitecustomize.py").write_text(blocked)
    stage.command = OBEDIENT
    agent = stage.agent(PYTHONPATH=str(stage.base / "site"))
    agent.hooks("c0")
    agent.hooks("c1")
    stage.wait_for(lambda: stage.processes() == [agent.process.pid])
    assert stage.calls() == ["c0", "c1"]


def test_the_path_of_a_store_may_be_longer_than_sockets_allow(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    long = tmp_path / ("d" * 80) / ("e" * 80)
    stage.environment["HARDSAVE_STORE"] = str(long / "s.db")
    stage.environment["XDG_DATA_HOME"] = str(tmp_path / "data")
    agent = stage.agent()
    agent.hooks("c0")
    stage.daemon()
    agent.hooks("c1")
    stage.end()
    assert stage.handed_over() == 1
    assert stage.calls() == ["c0", "c1"]


def test_a_stopped_one_is_not_waited_for_and_does_nothing_twice(stage: Stage) -> None:
    stage.command = HOOK
    agent = stage.agent()
    agent.hooks("c0")
    pid = stage.daemon()
    os.kill(pid, signal.SIGSTOP)
    agent.hooks("c1")
    os.kill(pid, signal.SIGCONT)
    stage.wait_for(lambda: "not understood" in stage.log() or stage.calls() == ["c0", "c1"])
    agent.hooks("c2")
    stage.end()
    assert stage.calls() == ["c0", "c1", "c2"]
    assert stage.notes() == []


def test_killed_in_the_middle_it_leaves_the_save_to_the_hook(stage: Stage) -> None:
    agent = stage.agent()
    agent.hooks("c0")
    pid = stage.daemon()
    url = f"sqlite:///{stage.store}"
    with hardsave.open(url) as vault, vault.workspace(stage.work)._place.locked():
        hook = subprocess.Popen(
            shlex.split(HOOK), stdin=subprocess.PIPE, cwd=stage.work, env=stage.environment
        )
        about = {"session_id": "s", "hook_event_name": "Stop", "tool_use_id": "c1"}
        assert hook.stdin is not None
        hook.stdin.write(json.dumps({**about, "cwd": str(stage.work)}).encode())
        hook.stdin.close()
        noted = ".json"  # whole, that is: what is half written when it dies would stay
        stage.wait_for(lambda: any(note.endswith(noted) for note in stage.notes()))  # it was taken
        os.kill(pid, signal.SIGKILL)
        stage.wait_for(lambda: pid not in stage.processes())
    assert hook.wait(timeout=LIMIT) == 0
    os.kill(stage.daemon(), signal.SIGTERM)  # this test was the agent of that hook, and goes on
    stage.end()
    assert stage.calls() == ["c0", "c1"]
    assert stage.notes() == []


# A container whose process 1 reaps no orphans

FIRST = """
import json, os, subprocess, sys, time
from hardsave.daemon.election import MOST_ZOMBIES, PROCESS_NAME
from hardsave.stores.host import processes
from pathlib import Path
from tests.integration.hooked import Stage
for _ in range(MOST_ZOMBIES - 1):
    if os.fork() == 0:
        Path("/proc/self/comm").write_text(PROCESS_NAME)
        os._exit(0)
stage = Stage(Path(sys.argv[1]))
stage.wait_for(lambda: len(processes.zombies(PROCESS_NAME)) == MOST_ZOMBIES - 1)
found = {"process": os.getpid(), "dead": []}
for number in range(3):
    agent = stage.agent(f"s{number}")
    agent.hooks("c0")
    agent.hooks("c1")
    if number == 0:
        stage.daemon()
    agent.end()
    stage.wait_until_no_process_is_left()
    stage.wait_for(lambda: len(processes.zombies(PROCESS_NAME)) >= MOST_ZOMBIES)
    found["dead"].append(len(processes.zombies(PROCESS_NAME)))
print(json.dumps({**found, "saved": [stage.calls(f"s{number}") for number in range(3)]}))
"""


@pytest.mark.skipif(not CAN_CONTAIN, reason="no process numbers of our own can be had here")
def test_where_process_1_reaps_no_orphans_there_is_an_end_to_them(tmp_path: Path) -> None:
    done = subprocess.run(
        [*CONTAINED, sys.executable, "-c", FIRST, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=5 * LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["process"] == 1
    assert found["saved"] == [["c0", "c1"]] * 3
    first, *later = found["dead"]
    assert first in (MOST_ZOMBIES, MOST_ZOMBIES + 1)  # two hooks may begin in one moment
    assert later == [first] * 2


DEAD = """
import os, sys, time
from hardsave.stores.host import processes
from pathlib import Path
if os.fork() == 0:
    Path("/proc/self/comm").write_text(sys.argv[1])
    os._exit(0)
while not processes.zombies(sys.argv[1]):
    time.sleep(0.01)
print(len(processes.zombies(sys.argv[1])), flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not CAN_CONTAIN, reason="no process numbers of our own can be had here")
def test_the_zombies_of_a_container_say_nothing_about_the_machine_around_it() -> None:
    name = f"dead-{os.getpid()}"
    with subprocess.Popen(
        [*CONTAINED, sys.executable, "-c", DEAD, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as container:
        assert container.stdin is not None
        assert container.stdout is not None
        assert container.stdout.readline() == "1\n"
        assert processes.zombies(name) == []
        container.stdin.close()
