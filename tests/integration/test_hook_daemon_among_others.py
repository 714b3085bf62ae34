"""A daemon that hooks have left behind keeps no process out, and to harm it harms no save."""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

import hardsave
from tests.integration.hooked import HOOK, LIMIT, OBEDIENT, Agent, Stage


def test_a_store_that_was_removed_is_begun_anew(stage: Stage) -> None:
    agent = stage.agent()
    agent.hooks("c0")
    pid = stage.daemon()
    shutil.rmtree(stage.store.parent)
    agent.hooks("c1")
    assert stage.calls() == ["c1"]
    stage.wait_for(lambda: pid not in stage.processes())
    agent.hooks("c2")
    stage.end()
    assert stage.calls() == ["c1", "c2"]
    assert stage.notes() == []
    with hardsave.open(f"sqlite:///{stage.store}") as vault:
        assert vault.store.verify().ok


def test_a_workspace_that_was_replaced_is_another(stage: Stage) -> None:
    agent = stage.agent()
    agent.hooks("c0")
    pid = stage.daemon()
    stage.work.rename(stage.base / "old")
    stage.work.mkdir()
    (stage.work / "new").write_text("new")
    other = stage.agent("t")
    other.hooks("c1")
    stage.wait_for(lambda: pid not in stage.processes())
    with hardsave.open(f"sqlite:///{stage.store}") as vault:
        head = vault.timeline("claude-t").get()
        assert head.files is not None
        assert [each.path for each in head.files.list()] == ["new"]
    stage.end()


def test_a_damaged_store_is_taken_over_although_a_daemon_has_it_open(stage: Stage) -> None:
    agent = stage.agent()
    agent.hooks("c0")
    pid = stage.daemon()
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
        assert vault.store.verify().ok


def test_rewind_gc_and_purge_are_not_kept_out(stage: Stage) -> None:
    (stage.work / "f").write_text("a secret word")
    agent = stage.agent()
    agent.hooks("c0")
    stage.daemon()
    (stage.work / "f").write_text("plain")
    agent.hooks("c1")
    assert stage.cli("rewind", "claude-s:1", "--yes").returncode == 0
    assert (stage.work / "f").read_text() == "a secret word"
    agent.hooks("c2")
    assert stage.cli("undo", "--timeline", "claude-s").returncode == 0
    for words in (
        ["store", "gc"],
        ["store", "purge", "--text", "a secret word", "--yes"],
        ["doctor"],
    ):
        done = stage.cli(*words)
        assert done.returncode == 0, done
    agent.hooks("c3")
    stage.end()
    assert stage.calls()[-1] == "c3"
    for path in stage.store.parent.iterdir():
        assert path.is_dir() or b"a secret word" not in path.read_bytes()


def test_what_is_purged_is_gone_from_its_memory_too(stage: Stage) -> None:
    """When it ends, it writes down what it knows of the workspace."""
    private = stage.work / "private-name"
    private.touch()
    agent = stage.agent()
    agent.hooks("c0")
    stage.daemon()
    (stage.work / "f").write_text("two")
    agent.hooks("c1")
    private.unlink()
    done = stage.cli("store", "purge", "--text", "private-name", "--yes")
    assert done.returncode == 0, done
    stage.end()
    for path in stage.store.parent.iterdir():
        assert path.is_dir() or b"private-name" not in path.read_bytes(), path


def test_an_upgrade_sends_it_away(stage: Stage, tmp_path: Path) -> None:
    """A copy of the package stands for the one that is installed: it can be replaced."""
    source = Path(hardsave.__file__).parent
    copy = tmp_path / "installed" / "hardsave"
    shutil.copytree(source, copy)
    stage.command = OBEDIENT
    agent = stage.agent(PYTHONPATH=str(copy.parent))
    agent.hooks("c0")
    pid = stage.daemon()
    agent.hooks("c1")
    protocol = copy / "daemon" / "protocol.py"
    shutil.copy(protocol, tmp_path / "new.py")
    os.replace(tmp_path / "new.py", protocol)
    agent.hooks("c2")
    stage.wait_for(lambda: pid not in stage.processes())
    assert stage.handed_over() == 1
    agent.hooks("c3")
    stage.end()
    assert stage.calls() == ["c0", "c1", "c2", "c3"]


def test_a_hook_of_another_installation_replaces_the_daemon(stage: Stage, tmp_path: Path) -> None:
    """It saves by itself meanwhile, and what the daemon has begun is brought to its end."""
    copy = tmp_path / "installed" / "hardsave"
    shutil.copytree(Path(hardsave.__file__).parent, copy)
    agent, stage.command = stage.agent(), OBEDIENT
    other = stage.agent("t", PYTHONPATH=str(copy.parent))
    agent.hooks("c0")
    first = stage.daemon()
    other.hooks("c0")
    stage.wait_for(lambda: first not in stage.processes())
    assert "because a hook of another installation has called" in stage.log()
    second = stage.daemon()
    assert second != first
    other.hooks("c1")  # answered by the one of its own version
    stage.end()
    assert stage.handed_over() == 1
    assert (stage.calls(), stage.calls("t")) == (["c0"], ["c0", "c1"])
    assert stage.notes() == []


def test_the_daemon_of_a_run_answers_the_hooks_of_others_there(stage: Stage) -> None:
    """There is one for a workspace: an evictable one ends when it comes."""
    agent = stage.agent()
    agent.hooks("c0")
    evictable = stage.daemon()
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
        stage.wait_for(lambda: evictable not in stage.processes() and len(stage.holders()) == 1)
        agent.hooks("c1")  # alone, and then it knows who is there
        agent.hooks("c2")
        (pid,) = stage.holders()
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        assert b"hardsave.daemon.main" in command
    finally:
        (stage.base / "end").touch()
        run.wait(timeout=LIMIT)
    stage.wait_for(lambda: pid not in stage.processes())
    stage.end()
    assert stage.calls() == ["c0", "c1", "c2"]
    assert stage.handed_over() == 0  # by the evictable, that is


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(5))
def test_killed_ended_or_stopped_every_call_is_saved_once(stage: Stage, seed: int) -> None:
    """Two agents at work, while the daemon is killed, ended or stopped again and again."""
    stage.command = HOOK
    chance, is_over = random.Random(seed), threading.Event()

    def disturb() -> None:
        while not is_over.wait(chance.random() * 0.6):
            for pid in stage.holders():
                how = chance.choice(
                    [signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP]
                )
                with suppress(ProcessLookupError):
                    os.kill(pid, how)
                    time.sleep(chance.random() if how == signal.SIGSTOP else 0)
                    os.kill(pid, signal.SIGCONT)

    def work(agent: Agent) -> list[str]:
        own, called = random.Random(f"{seed}{agent.session}"), []
        for turn in range(40):
            calls = [f"{agent.session}{turn}-{n}" for n in range(own.choice([1, 1, 1, 2, 4]))]
            (stage.work / f"{agent.session}{own.randint(0, 5)}").write_text(str(own.random()))
            agent.hooks(*calls)
            called += calls
        return called

    with ThreadPoolExecutor() as threads:
        disturbing = threads.submit(disturb)
        working = {agent.session: threads.submit(work, agent) for agent in map(stage.agent, "ab")}
        called = {session: each.result() for session, each in working.items()}
        is_over.set()
        disturbing.result()
    stage.end()
    for session, calls in called.items():
        assert sorted(stage.calls(session)) == sorted(calls)
    assert stage.notes() == []
    with hardsave.open(f"sqlite:///{stage.store}") as vault:
        assert vault.store.verify().ok
