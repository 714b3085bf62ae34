"""Hooks as `hardsave init` installs them, with the resident that the first one leaves behind."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.adapters import install, spool
from hardsave.adapters.agents import CLAUDE_CODE
from hardsave.runtime import parentage
from hardsave.stores.sqlite import seats

LIMIT = 60.0
HOOK = install.command(CLAUDE_CODE)
# An agent calls its hooks through a shell and waits until their output is closed. This one is told
# on its standard input what to do: one line each time, with the words of hooks that begin at once.
AGENT = """
import subprocess, sys
for line in sys.stdin:
    told = line.rstrip("\\n").split("\\t")
    hooks = [subprocess.Popen(["sh", "-c", sys.argv[1]], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in told]
    for hook, words in zip(hooks, told):
        hook.stdin.write(words.encode())
        hook.stdin.close()
    said = [hook.stdout.read() + b"%d" % hook.wait() for hook in hooks]
    print(b" ".join(said).decode(), flush=True)
"""


class Agent:
    """A process that calls hooks, as often as it is told to."""

    def __init__(self, stage: "Stage", session: str, **environment: str) -> None:
        self.session = session
        self._stage = stage
        self.process = subprocess.Popen(
            [sys.executable, "-c", AGENT, stage.command],
            cwd=stage.work,
            env={**stage.environment, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hooks(self, *calls: str, event: str = "PostToolUse") -> None:
        """All at once; each ends with 0, and has nothing to say."""
        about = {"session_id": self.session, "hook_event_name": event, "cwd": str(self._stage.work)}
        told = [json.dumps({**about, "tool_use_id": call}) for call in calls]
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\t".join(told) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline().split() == ["0"] * len(calls)

    def end(self) -> None:
        """As it ends by itself: no hook says so."""
        with suppress(BrokenPipeError):
            self.process.communicate(timeout=LIMIT)


class Stage:
    """A project with a store of its own, and agents that work there."""

    command = HOOK

    def __init__(self, base: Path) -> None:
        self.base = base
        self.work = base / "work"
        self.work.mkdir()
        (self.work / "f").write_text("one")
        self.agents: list[Agent] = []
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HARDSAVE_", "CLAUDE_"))}
        own = {"HOME": str(base), "XDG_DATA_HOME": str(base / "data")}
        self.environment = {**kept, **own, "HARDSAVE_STORE": str(base / "store" / "s.db")}

    @property
    def store(self) -> Path:
        return Path(self.environment["HARDSAVE_STORE"])

    def agent(self, session: str = "s", **environment: str) -> Agent:
        made = Agent(self, session, **environment)
        self.agents.append(made)
        return made

    def sitters(self) -> list[int]:
        """Who answers hooks, as everybody can see it."""
        return [who.pid for who in seats.of_store(str(self.store)).values()]

    def resident(self) -> int:
        """The one that hooks find by now."""
        self.wait_for(lambda: len(self.links()) == 1)
        (pid,) = self.sitters()
        return pid

    def links(self) -> list[Path]:
        folder = self.base / "data" / "hardsave" / "residents"
        return [path for path in folder.iterdir() if path.exists()] if folder.exists() else []

    def log(self) -> str:
        path = Path(f"{self.store}-hooks.log")
        return path.read_text() if path.exists() else ""

    def handed_over(self) -> int:
        """How many hooks were answered by residents that have ended since."""
        return sum(int(line.split()[4]) - 1 for line in self.log().splitlines() if "calls;" in line)

    def calls(self, session: str = "s") -> list[str]:
        """Those that have a checkpoint, oldest first."""
        with hardsave.open(f"sqlite:///{self.store}") as vault:
            found = [
                cp.metadata for cp in vault.timeline(f"claude-{session}").checkpoints(limit=1000)
            ]
        return [str(about["tool_use_id"]) for about in found][::-1]

    def notes(self) -> list[str]:
        folder = spool.folder(self.environment, self.work)
        return [path.name for path in folder.iterdir()] if folder.exists() else []

    def cli(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-P", "-m", "hardsave", *words],
            cwd=self.work,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )

    def wait_for(self, is_true: Callable[[], bool]) -> None:
        end = time.monotonic() + LIMIT
        while not is_true():
            assert time.monotonic() < end, self.log()
            time.sleep(0.02)

    def wait_until_nobody_is_left(self) -> None:
        self.wait_for(lambda: self.processes() == [])

    def processes(self) -> list[int]:
        """Whoever has this stage's store in its environment."""
        wanted = b"HARDSAVE_STORE=" + os.fsencode(self.store)
        found = []
        for folder in Path("/proc").iterdir():
            with suppress(OSError):
                if folder.name.isdigit() and wanted in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
        return found

    def end(self) -> None:
        for agent in self.agents:
            agent.end()
        self.wait_until_nobody_is_left()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    for agent in made.agents:
        agent.process.kill()
        agent.end()
    for pid in made.processes():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def checkpoints(stage: Stage) -> list[dict[str, Any]]:
    """All that can be told apart of what was saved, but ids and times."""
    with hardsave.open(f"sqlite:///{stage.store}") as vault:
        return [
            {
                "timeline": line.name,
                "seq": each.seq,
                "kind": each.kind,
                "status": each.status,
                "description": each.description,
                "metadata": dict(each.metadata),
                "files": [] if each.snapshot is None else [*each.snapshot.files()],
            }
            for line in vault.timelines()
            for each in line.checkpoints()
        ]


def test_the_first_hook_leaves_a_resident_that_answers_the_next_until_the_agent_ends(
    stage: Stage,
) -> None:
    agent = stage.agent()
    agent.hooks("c0")
    pid = stage.resident()
    for number in range(1, 4):
        (stage.work / "f").write_text(f"{number}")
        agent.hooks(f"c{number}")
    assert stage.resident() == pid
    stage.end()
    assert stage.calls() == ["c0", "c1", "c2", "c3"]
    assert stage.handed_over() == 3
    assert stage.notes() == []
    assert stage.links() == []
    assert list(stage.store.parent.glob("*.sock")) == []
    with hardsave.open(f"sqlite:///{stage.store}") as vault:
        found = [each.snapshot for each in vault.timeline("claude-s").checkpoints()]
        assert [files.read("f") for files in found if files is not None][::-1] == [
            b"one",
            b"1",
            b"2",
            b"3",
        ]
        assert vault.verify().ok


def test_the_checkpoints_are_those_that_hooks_alone_would_have_made(tmp_path: Path) -> None:
    found = []
    for name, switch in (("alone", {"HARDSAVE_RESIDENT": "off"}), ("beside", {})):
        (tmp_path / name).mkdir()
        stage = Stage(tmp_path / name)
        agent = stage.agent(**switch)
        for number, event in enumerate(("UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd")):
            (stage.work / f"g{number}").write_text("new")
            agent.hooks(f"c{number}", event=event)
            if number == 0 and not switch:
                stage.resident()
            (stage.work / "f").write_text(event)  # which is nobody's to save before the next hook
        stage.end()
        assert stage.handed_over() == (0 if switch else 3)
        found.append(checkpoints(stage))
    assert found[0] == found[1]
    assert len(found[0]) == 4


def test_doctor_says_who_answers(stage: Stage) -> None:
    def told() -> str:
        looked = json.loads(stage.cli("doctor", "--json").stdout)
        (found,) = (each["message"] for each in looked if each["what"] == "resident")
        return str(found)

    agent = stage.agent()
    agent.hooks("c0")
    pid = stage.resident()
    assert told() == f"process {pid}, left behind by a hook, answers the hooks here"
    stage.end()
    assert told() == "none now: the next hook saves by itself"


def test_it_holds_nothing_of_the_agent_and_no_directory(stage: Stage) -> None:
    """The agent reads its hooks' output to the end: what holds it open would hang it."""
    agent = stage.agent()
    agent.hooks("c0")
    pid = stage.resident()
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    open_files = [os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()]
    assert not [path for path in open_files if path.startswith(str(stage.work))]
    theirs = {os.readlink(path) for path in Path(f"/proc/{agent.process.pid}/fd").iterdir()}
    assert not {path for path in theirs & set(open_files) if path.startswith("pipe:")}
    assert os.getsid(pid) not in (os.getsid(0), os.getsid(agent.process.pid))
    assert parentage.look(pid) is not None
    stage.end()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_who_ends_it_leaves_a_clean_store_and_hooks_that_go_on(
    stage: Stage, how: signal.Signals
) -> None:
    agent = stage.agent()
    agent.hooks("c0")
    first = stage.resident()
    os.kill(first, how)
    stage.wait_for(lambda: first not in stage.processes())
    agent.hooks("c1")  # alone, past whatever is left
    stage.wait_for(lambda: stage.sitters() not in ([], [first]))
    stage.resident()
    agent.hooks("c2")
    stage.end()
    assert stage.calls() == ["c0", "c1", "c2"]
    assert stage.notes() == []
    assert stage.links() == []
    with hardsave.open(f"sqlite:///{stage.store}") as vault:
        assert vault.verify().ok


def test_of_many_hooks_at_once_one_leaves_a_resident(stage: Stage) -> None:
    agents = [stage.agent(), stage.agent("t")]
    for number, agent in enumerate(agents):
        agent.hooks(*(f"{number}-{call}" for call in range(5)))
    stage.resident()
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
    pid = stage.resident()
    other.hooks("c0")
    one.hooks("end", event="SessionEnd")
    other.hooks("c1")
    assert stage.resident() == pid
    other.hooks("end", event="SessionEnd")
    stage.wait_for(lambda: pid not in stage.processes())
    assert "the sessions of its agents have ended" in stage.log()
    one.hooks("c1")  # as after /clear: it is the same agent
    assert stage.resident() != pid
    stage.end()


def test_an_agent_killed_by_force_takes_it_along(stage: Stage) -> None:
    agent = stage.agent()
    agent.hooks("c0")
    stage.resident()
    agent.process.kill()
    stage.wait_until_nobody_is_left()
    assert "its agents have ended" in stage.log()


@pytest.mark.parametrize("where", ["the environment", "the user's file", "the project's file"])
def test_who_does_not_want_it_has_none(stage: Stage, where: str) -> None:
    said = "hooks:\n  resident: false\n"
    if where == "the environment":
        stage.environment["HARDSAVE_RESIDENT"] = "off"
    elif where == "the user's file":
        (stage.base / ".config" / "hardsave").mkdir(parents=True)
        (stage.base / ".config" / "hardsave" / "config.yaml").write_text(said)
    else:
        (stage.work / "hardsave.yaml").write_text(said)
    agent = stage.agent()
    for number in range(2):
        agent.hooks(f"c{number}")
    assert stage.processes() == [agent.process.pid]
    assert stage.sitters() == []
    assert stage.log() == ""
    assert stage.calls() == ["c0", "c1"]


def test_switched_off_it_answers_nobody_any_more(stage: Stage) -> None:
    agent = stage.agent()
    agent.hooks("c0")
    stage.resident()
    (stage.work / "hardsave.yaml").write_text("hooks:\n  resident: false\n")
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
    agent = stage.agent(PYTHONPATH=str(stage.base / "site"))
    agent.hooks("c0")
    agent.hooks("c1")
    assert stage.processes() == [agent.process.pid]
    assert stage.calls() == ["c0", "c1"]


def test_the_path_of_a_store_may_be_longer_than_sockets_allow(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    long = tmp_path / ("d" * 80) / ("e" * 80)
    stage.environment["HARDSAVE_STORE"] = str(long / "s.db")
    stage.environment["XDG_DATA_HOME"] = str(tmp_path / "data")
    agent = stage.agent()
    agent.hooks("c0")
    stage.resident()
    agent.hooks("c1")
    stage.end()
    assert stage.handed_over() == 1
    assert stage.calls() == ["c0", "c1"]


def test_a_store_that_was_removed_is_begun_anew(stage: Stage) -> None:
    agent = stage.agent()
    agent.hooks("c0")
    pid = stage.resident()
    shutil.rmtree(stage.store.parent)
    agent.hooks("c1")
    assert stage.calls() == ["c1"]
    stage.wait_for(lambda: pid not in stage.processes())
    agent.hooks("c2")
    stage.end()
    assert stage.calls() == ["c1", "c2"]
    assert stage.notes() == []
    with hardsave.open(f"sqlite:///{stage.store}") as vault:
        assert vault.verify().ok


def test_a_workspace_that_was_replaced_is_another(stage: Stage) -> None:
    agent = stage.agent()
    agent.hooks("c0")
    pid = stage.resident()
    stage.work.rename(stage.base / "old")
    stage.work.mkdir()
    (stage.work / "new").write_text("new")
    other = stage.agent("t")
    other.hooks("c1")
    stage.wait_for(lambda: pid not in stage.processes())
    with hardsave.open(f"sqlite:///{stage.store}") as vault:
        head = vault.timeline("claude-t").get()
        assert head.snapshot is not None
        assert [each.path for each in head.snapshot.files()] == ["new"]
    stage.end()


def test_a_damaged_store_is_taken_over_although_somebody_stands_by(stage: Stage) -> None:
    agent = stage.agent()
    agent.hooks("c0")
    pid = stage.resident()
    (stage.work / "f").write_text("two")
    agent.hooks("c1")
    stage.wait_for(lambda: "has everything" in stage.cli("doctor").stdout)  # the backup, that is
    with stage.store.open("r+b") as file:
        file.write(b"\0" * 8192)
    done = stage.cli("log", "--all")
    assert done.returncode == 0, done
    assert pid not in stage.processes()
    agent.hooks("c2")
    stage.end()
    assert stage.calls()[-1] == "c2"
    with hardsave.open(f"sqlite:///{stage.store}") as vault:
        assert vault.verify().ok


def test_rewind_gc_and_purge_are_not_kept_out(stage: Stage) -> None:
    (stage.work / "f").write_text("a secret word")
    agent = stage.agent()
    agent.hooks("c0")
    stage.resident()
    (stage.work / "f").write_text("plain")
    agent.hooks("c1")
    assert stage.cli("rewind", "claude-s:1", "--yes").returncode == 0
    assert (stage.work / "f").read_text() == "a secret word"
    agent.hooks("c2")
    assert stage.cli("undo", "--timeline", "claude-s").returncode == 0
    for words in (["gc"], ["purge", "--text", "a secret word", "--yes"], ["doctor"]):
        done = stage.cli(*words)
        assert done.returncode == 0, done
    agent.hooks("c3")
    stage.end()
    assert stage.calls()[-1] == "c3"
    for path in stage.store.parent.iterdir():
        assert path.is_dir() or b"a secret word" not in path.read_bytes()


def test_an_upgrade_sends_it_away(stage: Stage, tmp_path: Path) -> None:
    """A copy of the package stands for the one that is installed: it can be replaced."""
    source = Path(hardsave.__file__).parent
    copy = tmp_path / "installed" / "hardsave"
    shutil.copytree(source, copy)
    agent = stage.agent(PYTHONPATH=str(copy.parent))
    agent.hooks("c0")
    pid = stage.resident()
    agent.hooks("c1")
    handover = copy / "runtime" / "handover.py"
    shutil.copy(handover, tmp_path / "new.py")
    os.replace(tmp_path / "new.py", handover)
    agent.hooks("c2")
    stage.wait_for(lambda: pid not in stage.processes())
    assert stage.handed_over() == 1
    agent.hooks("c3")
    stage.end()
    assert stage.calls() == ["c0", "c1", "c2", "c3"]


def test_hooks_of_another_installation_are_not_answered(stage: Stage, tmp_path: Path) -> None:
    copy = tmp_path / "installed" / "hardsave"
    shutil.copytree(Path(hardsave.__file__).parent, copy)
    agent, other = stage.agent(), stage.agent("t", PYTHONPATH=str(copy.parent))
    agent.hooks("c0")
    stage.resident()
    other.hooks("c0")
    stage.end()
    assert stage.handed_over() == 0
    assert (stage.calls(), stage.calls("t")) == (["c0"], ["c0"])


def test_the_resident_of_a_run_answers_the_hooks_of_others_there(stage: Stage) -> None:
    """There is one for a workspace: a guest leaves when it comes."""
    agent = stage.agent()
    agent.hooks("c0")
    guest = stage.resident()
    script = "while [ ! -e ../end ]; do sleep 0.05; done"
    run = subprocess.Popen(
        [
            sys.executable,
            "-P",
            "-m",
            "hardsave",
            "run",
            "--timeline",
            "r",
            "--",
            "sh",
            "-c",
            script,
        ],
        cwd=stage.work,
        env=stage.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        stage.wait_for(lambda: guest not in stage.processes() and len(stage.sitters()) == 1)
        agent.hooks("c1")  # alone, and then it knows who is there
        agent.hooks("c2")
        (pid,) = stage.sitters()
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        assert b"hardsave.adapters.resident" in command
    finally:
        (stage.base / "end").touch()
        run.wait(timeout=LIMIT)
    stage.wait_for(lambda: pid not in stage.processes())
    stage.end()
    assert stage.calls() == ["c0", "c1", "c2"]
    assert stage.handed_over() == 0  # by the guest, that is


def test_a_stopped_one_is_not_waited_for_and_does_nothing_twice(stage: Stage) -> None:
    agent = stage.agent()
    agent.hooks("c0")
    pid = stage.resident()
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
    pid = stage.resident()
    url = f"sqlite:///{stage.store}"
    with hardsave.open(url) as vault, vault.workspace(stage.work).place.locked():
        hook = subprocess.Popen(
            shlex.split(HOOK), stdin=subprocess.PIPE, cwd=stage.work, env=stage.environment
        )
        about = {"session_id": "s", "hook_event_name": "Stop", "tool_use_id": "c1"}
        assert hook.stdin is not None
        hook.stdin.write(json.dumps({**about, "cwd": str(stage.work)}).encode())
        hook.stdin.close()
        stage.wait_for(lambda: stage.notes() != [])  # it was taken
        os.kill(pid, signal.SIGKILL)
        stage.wait_for(lambda: pid not in stage.processes())
    assert hook.wait(timeout=LIMIT) == 0
    for left in stage.sitters():  # this test was the agent of that hook, and goes on
        os.kill(left, signal.SIGTERM)
    stage.end()
    assert stage.calls() == ["c0", "c1"]
    assert stage.notes() == []
