"""Hooks, daemon, runs and commands while the server of their store is away, and when it is back."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hardsave
from tests.integration.served import ServedStage

ALONE = {"HARDSAVE_DAEMON": "off"}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[ServedStage]:
    made = ServedStage(tmp_path)
    yield made
    made.line.join()
    for agent in made.agents:
        agent.process.kill()
    made.end()


def files_of(stage: ServedStage, timeline: str = "claude-s") -> list[bytes]:
    with stage.vault() as vault:
        found = [each.files for each in vault.timeline(timeline).checkpoints(limit=100)]
        return [files.read("f") for files in found if files is not None][::-1]


def test_a_server_that_is_down_at_the_first_contact_gets_all_later_in_order(
    stage: ServedStage,
) -> None:
    stage.line.cut()
    agent = stage.agent(**ALONE)
    for number in range(3):
        (stage.work / "f").write_text(f"{number}")
        agent.hooks(f"c{number}")
    assert stage.waiting() == ["c0", "c1", "c2"]
    assert stage.notes() == []  # nothing was missed
    stage.line.join()
    told = stage.cli("log")
    assert told.returncode == 0, told.stderr
    assert "3 saves that waited on this host: delivered" in told.stderr
    assert stage.outbox.is_empty
    assert stage.calls() == ["c0", "c1", "c2"]
    assert files_of(stage) == [b"0", b"1", b"2"]


def test_a_daemon_that_loses_its_server_lets_hooks_wait_and_delivers_when_it_is_back(
    stage: ServedStage,
) -> None:
    agent = stage.agent()
    agent.hooks("c0")
    first = stage.daemon()
    (stage.work / "f").write_text("1")
    agent.hooks("c1")
    stage.line.cut()
    for number in (2, 3):
        (stage.work / "f").write_text(f"{number}")
        agent.hooks(f"c{number}")
        stage.wait_for(lambda: first not in stage.holders())
    assert stage.waiting() == ["c2", "c3"]
    stage.wait_for(lambda: len(stage.holders()) == 1)  # the next one, which saves in the outbox
    (stage.work / "f").write_text("4")
    agent.hooks("c4")
    stage.line.join()
    stage.wait_for(lambda: stage.outbox.is_empty)
    (stage.work / "f").write_text("5")
    agent.hooks("c5")
    agent.end()
    assert stage.calls() == [f"c{number}" for number in range(6)]
    assert files_of(stage) == [b"one", *(b"%d" % number for number in range(1, 6))]
    assert stage.notes() == []
    with stage.vault() as vault:
        assert vault.store.verify().ok


def test_a_server_that_takes_connections_and_says_nothing_keeps_no_save_from_being_made(
    stage: ServedStage,
) -> None:
    stage.line.silence()
    agent = stage.agent(**ALONE)
    agent.hooks("c0", "c1")
    assert sorted(stage.waiting()) == ["c0", "c1"]
    stage.line.join()
    stage.wait_for(lambda: not stage.outbox.why_away())
    agent.hooks("c2")
    assert sorted(stage.calls()[:2]) == ["c0", "c1"]
    assert stage.calls()[2:] == ["c2"]
    assert stage.outbox.is_empty


def test_commands_say_what_waits_and_how_to_look_at_it(stage: ServedStage) -> None:
    stage.line.cut()
    agent = stage.agent(**ALONE)
    agent.hooks("c0")
    look = f"hardsave --store {stage.outbox.url} log"
    for command in ("log", "status"):
        told = stage.cli(command)
        assert told.returncode == 6, told
        assert "1 save waits on this host" in told.stderr
        assert look in " ".join(told.stderr.split())
    found = {each["what"]: each for each in json.loads(stage.cli("doctor", "--json").stdout)}
    assert found["waiting saves"]["level"] == "warning"
    assert "1 save waits on this host" in found["waiting saves"]["message"]
    assert found["store"]["level"] == "failure"
    assert "c0" in stage.cli("--store", stage.outbox.url, "log", "--all", "--json").stdout


def test_a_run_goes_on_without_its_server_and_delivers_when_it_is_back(stage: ServedStage) -> None:
    script = """
        echo 1 > g; while [ ! -e ../cut ]; do sleep 0.05; done
        echo 2 > g; while [ ! -e ../joined ]; do sleep 0.05; done
        echo 3 > g
    """
    command = [sys.executable, "-P", "-m", "hardsave", "run", "--timeline", "r", "--"]
    process = subprocess.Popen(
        [*command, "sh", "-c", script], cwd=stage.work, env=stage.environment
    )

    def seen() -> list[bytes]:
        with stage.vault() as vault:
            found = [each.files for each in vault.timeline("r").checkpoints(limit=100)]
            return [
                files.read("g")
                for files in found[::-1]
                if files is not None and any(each.path == "g" for each in files.list())
            ]

    def waits() -> bool:
        if stage.outbox.is_empty:
            return False
        try:
            with hardsave.open(stage.outbox.url, read_only=True) as vault:
                head = vault.timeline("r").head
                files = None if head is None else head.files
                return files is not None and files.read("g") == b"2\n"
        except hardsave.Unavailable:
            return False  # its file is just being made

    stage.wait_for(lambda: b"1\n" in seen())
    stage.line.cut()
    (stage.base / "cut").touch()
    stage.wait_for(waits)
    stage.line.join()
    stage.wait_for(lambda: stage.outbox.is_empty)
    (stage.base / "joined").touch()
    assert process.wait(60) == 0
    stage.wait_until_no_process_is_left()
    assert list(dict.fromkeys(seen())) == [b"1\n", b"2\n", b"3\n"]
    assert stage.outbox.is_empty


def test_a_run_begins_while_its_server_is_away(stage: ServedStage) -> None:
    stage.line.cut()
    told = stage.cli("run", "--timeline", "r", "--", "sh", "-c", "echo 1 > g")
    assert told.returncode == 0, told.stderr
    assert "what is saved waits on this host" in told.stderr
    stage.wait_until_no_process_is_left()
    stage.line.join()
    assert "delivered" in stage.cli("status", "--timeline", "r").stderr
    with stage.vault() as vault:
        head = vault.timeline("r").head
        assert head is not None
        assert head.files is not None
        assert (head.status, head.files.read("g")) == ("ended", b"1\n")


def test_what_another_host_has_saved_meanwhile_stays_the_head(stage: ServedStage) -> None:
    agent = stage.agent(**ALONE)
    agent.hooks("c0")
    stage.line.cut()
    (stage.work / "f").write_text("ours")
    agent.hooks("c1")
    (stage.base / "other").mkdir()
    (stage.base / "other" / "f").write_text("theirs")
    with stage.vault() as vault:  # another directory is as good as another host
        vault.timeline("claude-s").save_files(stage.base / "other", metadata={"tool_use_id": "x"})
    stage.line.join()
    told = stage.cli("status")
    assert "'claude-s' had moved on elsewhere, so they are on 'claude-s-2'" in told.stderr
    assert stage.calls() == ["c0", "x"]
    assert files_of(stage, "claude-s-2") == [b"ours"]
    with stage.vault() as vault:
        beside = vault.timeline("claude-s-2").head
        assert beside is not None
        assert beside.description.startswith("beside 'claude-s', which had moved on elsewhere")
        assert beside.parent == next(
            each.id for each in vault.timeline("claude-s").checkpoints() if each.seq == 1
        )


def test_a_delivery_that_is_killed_is_completed_by_the_next_one(stage: ServedStage) -> None:
    stage.line.cut()
    agent = stage.agent(**ALONE)
    for number in range(4):
        (stage.work / "f").write_text(f"{number}")
        agent.hooks(f"c{number}")
    stage.line.join()
    dying = f"""
import os, signal, sys
from pathlib import Path
from hardsave.daemon.outbox import Outbox
outbox = Outbox(os.environ, Path({str(stage.work)!r}), {stage.url!r})
noted = outbox._note_arrived
def note(number):
    if number >= 2: os.kill(os.getpid(), signal.SIGKILL)
    noted(number)
outbox._note_arrived = note
outbox.deliver()
"""
    done = subprocess.run(
        [sys.executable, "-c", dying],
        env={**os.environ, **stage.environment},
        check=False,
    )
    assert done.returncode == -9
    assert 0 < len(stage.calls()) < 4
    assert not stage.outbox.is_empty
    assert stage.cli("status").returncode == 0
    assert stage.calls() == ["c0", "c1", "c2", "c3"]
    assert stage.outbox.is_empty
