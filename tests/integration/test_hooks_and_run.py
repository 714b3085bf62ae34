"""Hooks beside the daemon of a run: each call is saved exactly once, even if the daemon dies."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import hardsave
from hardsave.agents import install
from hardsave.agents.claude_code.spec import CLAUDE_CODE
from hardsave.daemon import spool
from tests.integration.hooked import HOOK, PATIENT
from tests.integration.test_run import LIMIT, Stage, stage
from tests.unit.repositories import begin_repository

__all__ = ["stage"]  # a fixture

AGENT = 'echo "$HARDSAVE_SOCKET" > ../socket; while [ ! -e ../end ]; do sleep 0.05; done'


class Beside(Stage):
    """An agent under `hardsave run`, and hooks as it would call them."""

    command = PATIENT

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        self.base = base
        self.transcript = base / "t.jsonl"
        self.transcript.write_text("")
        self.agent = self.start(AGENT, "--timeline", "t")
        self.wait_for(lambda: bool(self._told().endswith("\n")))
        self.socket = self._told().strip()
        self.hooks: list[subprocess.Popen[bytes]] = []

    def _told(self) -> str:
        path = self.base / "socket"
        return path.read_text() if path.exists() else ""

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "HARDSAVE_STORE": f"sqlite:///{self.store}",
            "HARDSAVE_TIMELINE": "t",
            "HARDSAVE_SOCKET": self.socket,
            "XDG_DATA_HOME": str(self.base / "data"),
        }

    def hook(self, call: str, *options: str, **environment: str) -> "subprocess.Popen[bytes]":
        """One that has begun, with these options of Python's."""
        python, *words = shlex.split(self.command)
        with self.transcript.open("a") as file:
            file.write(json.dumps({"type": "user", "message": {"content": call}}) + "\n")
        told = {"session_id": "s", "hook_event_name": "PostToolUse", "tool_use_id": call}
        told |= {"transcript_path": str(self.transcript), "cwd": str(self.work)}
        made = subprocess.Popen(
            [python, *options, *words],
            cwd=self.work,
            env={**self.environment, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._running.append(made)
        assert made.stdin is not None
        made.stdin.write(json.dumps(told).encode())
        made.stdin.close()
        made.stdin = None  # no other code closes it
        return made

    def done(self, hook: "subprocess.Popen[bytes]") -> None:
        assert hook.wait(timeout=LIMIT) == 0
        assert hook.stdout is not None
        assert hook.stdout.read() == b""

    def calls(self, store: Path | None = None) -> list[str]:
        """The calls that have a checkpoint, oldest first."""
        with hardsave.open(f"sqlite:///{store or self.store}") as vault:
            found = [cp.metadata for cp in vault.timeline("t").checkpoints()]
        return [str(about["tool_use_id"]) for about in found if "tool_use_id" in about][::-1]

    def notes(self) -> list[str]:
        """Those of hooks. The daemon itself has one for as long as it is there."""
        folder = spool.folder(self.environment, self.work)
        names = [path.name for path in folder.iterdir()] if folder.exists() else []
        return [name for name in names if not name.endswith("-run.json")]

    @contextmanager
    def no_other_captures(self) -> Iterator[None]:
        url = f"sqlite:///{self.store}"
        with hardsave.open(url) as vault, vault.workspace(self.work)._place.locked():
            yield

    def daemon(self) -> int:
        (pid,) = self.daemons()
        return pid

    def end(self) -> None:
        for pid in self.daemons():
            os.kill(pid, signal.SIGCONT)
        (self.base / "end").touch()
        super().end()


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[Beside]:
    made = Beside(tmp_path)
    yield made
    made.end()


def test_a_daemon_saves_for_a_hook_files_and_conversation(beside: Beside) -> None:
    (beside.work / "f").write_text("one")
    hook = beside.hook("c1", "-X", "importtime")
    loaded = hook.communicate(timeout=LIMIT)[0]
    assert b"hardsave.daemon.protocol" in loaded
    assert b"hardsave.daemon.save" not in loaded  # which does the work where no daemon does
    assert beside.calls() == ["c1"]
    with hardsave.open(f"sqlite:///{beside.store}") as vault:
        head = vault.timeline("t").head
        assert head is not None
        assert head.files is not None
        assert head.files.read("f") == b"one"
        assert head.read("lines") == beside.transcript.read_bytes().splitlines()
    assert beside.notes() == []
    assert os.stat(beside.socket).st_mode & 0o777 == 0o600


def test_many_hooks_at_once_are_all_saved_once(beside: Beside) -> None:
    hooks = [beside.hook(f"c{number}") for number in range(12)]
    for hook in hooks:
        beside.done(hook)
    assert sorted(beside.calls()) == sorted(f"c{number}" for number in range(12))
    beside.wait_for(lambda: beside.notes() == [])


def test_a_hook_of_another_store_saves_there(beside: Beside) -> None:
    other = beside.base / "other.db"
    beside.done(beside.hook("c1", HARDSAVE_STORE=str(other)))
    assert beside.calls() == []
    assert beside.calls(other) == ["c1"]


def test_a_stopped_daemon_is_not_waited_for_and_does_nothing_twice(beside: Beside) -> None:
    pid, beside.command = beside.daemon(), HOOK
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    beside.done(beside.hook("c1"))
    assert time.monotonic() - began < LIMIT
    assert beside.calls() == ["c1"]
    os.kill(pid, signal.SIGCONT)  # and now it reads what c1 had asked for
    beside.done(beside.hook("c2"))
    (beside.base / "end").touch()
    beside.wait_for_the_end()  # all that it had to do is done
    assert beside.calls() == ["c1", "c2"]
    assert beside.notes() == []


def test_a_daemon_killed_in_the_middle_leaves_the_save_to_the_hook(beside: Beside) -> None:
    with beside.no_other_captures():
        hook = beside.hook("c1")
        beside.wait_for(lambda: beside.notes() != [])  # it was taken
        os.kill(beside.daemon(), signal.SIGKILL)
        beside.wait_for(lambda: beside.daemons() == [])
    beside.done(hook)
    assert beside.calls() == ["c1"]
    assert beside.notes() == []
    assert beside.agent.poll() is None  # the agent goes on
    beside.done(beside.hook("c2"))  # and so do its hooks, past the socket that is left
    assert beside.calls() == ["c1", "c2"]


def test_a_hook_killed_in_the_middle_is_saved_by_the_daemon(beside: Beside) -> None:
    with beside.no_other_captures():
        hook = beside.hook("c1")
        beside.wait_for(lambda: beside.notes() != [])
        hook.kill()
        hook.wait()
    beside.wait_for(lambda: beside.calls() == ["c1"])
    beside.wait_for(lambda: beside.notes() == [])


def test_the_socket_goes_with_the_daemon_and_a_left_one_with_the_next(beside: Beside) -> None:
    os.kill(beside.daemon(), signal.SIGKILL)
    beside.wait_for(lambda: beside.daemons() == [])
    assert os.path.exists(beside.socket)
    beside.run("true", "--timeline", "second")
    beside.wait_for(lambda: list(beside.base.glob("*.sock")) == [])


def test_two_residents_serve_their_own_agents(beside: Beside) -> None:
    """In one workspace, on two timelines."""
    second = beside.run(
        f"{install.command(CLAUDE_CODE)} <<< "
        '\'{"session_id": "s2", "hook_event_name": "Stop"}\'; echo "$HARDSAVE_SOCKET"',
        "--timeline",
        "u",
    )
    assert second.stdout.decode().strip() not in ("", beside.socket)
    beside.done(beside.hook("c1"))
    assert beside.calls() == ["c1"]
    with hardsave.open(f"sqlite:///{beside.store}") as vault:
        hooks = [cp.metadata.get("hook") for cp in vault.timeline("u").checkpoints()]
    assert hooks.count("Stop") == 1


def _script(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(("#!/bin/bash", *lines, "true")))
    path.chmod(0o755)
    return path


def _called(session: str) -> str:
    told = json.dumps({"session_id": session, "hook_event_name": "Stop"})
    return f"{install.command(CLAUDE_CODE)} <<< '{told}'"


def test_the_conversation_of_an_agent_that_an_agent_has_started_is_its_own(stage: Stage) -> None:
    """By a tool, without a `hardsave run` of its own. What a plain script starts is the run's."""
    inner = _script(stage.work / "codex", _called("inner"))
    outer = _script(stage.work / "claude", _called("outer"), f"sh -c '{inner}; true'")
    for script in (f"exec {outer}", f"{outer}; true"):
        assert stage.run(script, "--timeline", "t").returncode == 0
    with hardsave.open(f"sqlite:///{stage.store}") as vault:
        sessions = {
            line.name: {each.metadata.get("session") for each in line.checkpoints()} - {None}
            for line in vault.timelines()
        }
    assert sessions.pop("t") == {"outer"}
    assert list(sessions.values()) == [{"inner"}]


def test_a_run_inside_of_another_has_a_timeline_of_its_own(stage: Stage) -> None:
    run = f"{sys.executable} -m hardsave run"
    script = f"{run} -- true; HARDSAVE_TIMELINE=other {run} -- true; {run} --timeline t -- true"
    assert stage.run(script, "--timeline", "t").returncode == 0
    with hardsave.open(f"sqlite:///{stage.store}") as vault:
        names = {line.name for line in vault.timelines()}
    assert {"t", "other"} < names
    assert [name.partition("-")[0] for name in names - {"t", "other"}] == ["true"]


def _told_in(directory: Path, environment: dict[str, str]) -> list[str]:
    """The timelines that are found there, without what ends their names."""
    names = subprocess.run(
        [sys.executable, "-m", "hardsave", "timelines", "--json"],
        cwd=directory,
        env=environment,
        check=True,
        capture_output=True,
        timeout=LIMIT,
    ).stdout
    return [each["name"].partition("-")[0] for each in json.loads(names)]


def test_what_a_run_starts_in_another_project_is_saved_where_that_is_looked_for(
    stage: Stage,
) -> None:
    """By a run of its own, and by the hooks of an agent."""
    other, third = stage.work.parent / "other", stage.work.parent / "third"
    nested = stage.work / "below" / "nested"
    for folder in (other, third):
        folder.mkdir()
    begin_repository(nested)
    inner = _script(stage.work / "codex", _called("inner"))
    run = f"{sys.executable} -m hardsave run"
    outer = _script(
        stage.work / "claude",
        f"cd ../other; {run} -- true; {run} --store ../chosen.db -- true",
        f"cd ../third; sh -c '{inner}; true'",
        f"cd {nested}; {run} -- echo; cd {stage.work}/below; {run} -- pwd",
    )
    around = {k: v for k, v in stage.surroundings.items() if not k.startswith("HARDSAVE_")}
    around["HARDSAVE_DAEMON"] = "off"
    command = [sys.executable, "-m", "hardsave", "run", "--", str(outer)]
    subprocess.run(command, cwd=stage.work, env=around, check=True, timeout=LIMIT)
    assert sorted(_told_in(stage.work, around)) == ["claude", "pwd"]
    assert _told_in(nested, around) == ["echo"]
    assert _told_in(other, around) == ["true"]
    assert _told_in(third, around) == ["claude"]  # whose hooks these are
    assert (stage.work.parent / "chosen.db").exists()
