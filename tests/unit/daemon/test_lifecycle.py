"""When the daemon that hooks leave behind goes, over plain facts and with real processes."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hardsave import config
from hardsave.daemon import election, protocol
from hardsave.daemon.lifecycle import (
    Facts,
    Lifecycle,
    SameFiles,
    Sessions,
    why_end,
    why_unfit,
)
from hardsave.defaults import DAEMON_IDLE_SECONDS
from hardsave.stores.host import processes
from hardsave.stores.host.processes import Process, started

STAYING = Facts(agents=1, sessions=1, idle_seconds=0)


def test_it_stays_as_long_as_nothing_speaks_against_it() -> None:
    assert why_end(STAYING) == ""
    assert why_end(STAYING._replace(idle_seconds=DAEMON_IDLE_SECONDS - 1)) == ""
    assert why_end(STAYING._replace(agents=2, sessions=5)) == ""


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (STAYING._replace(agents=0, sessions=0), "its agents have ended"),
        (STAYING._replace(sessions=0), "the sessions of its agents have ended"),
        (STAYING._replace(idle_seconds=DAEMON_IDLE_SECONDS), "for 30 minutes"),
        (STAYING._replace(is_in_place=False), "not the one that it was"),
        (STAYING._replace(is_current=False), "installed anew"),
        (STAYING._replace(is_wanted=False), "switched off"),
        (STAYING._replace(has_failed=True), "could not save"),
        (STAYING._replace(told="another version"), "another version"),
    ],
)
def test_each_reason_to_go_is_enough(facts: Facts, why: str) -> None:
    assert why in why_end(facts)


def test_one_with_a_run_to_save_for_ends_only_when_it_is_told_to() -> None:
    alone = Facts(agents=0, sessions=0, idle_seconds=2 * DAEMON_IDLE_SECONDS, is_current=False)
    assert why_end(alone._replace(has_run=True, has_failed=True, is_in_place=False)) == ""
    assert why_unfit(alone._replace(has_run=True, has_failed=True)) == ""
    assert why_end(alone._replace(has_run=True, told="its agent has ended")) != ""


def test_it_can_be_told_to_end_while_it_waits() -> None:
    lifecycle, woken = Lifecycle(has_run=True), []
    lifecycle.wakes(lambda: woken.append("files"))
    lifecycle.end("first")
    lifecycle.end("second")
    lifecycle.wait(60)
    assert lifecycle.why_end() == "first"
    assert woken == ["files", "files"]


# Its callers


def wait_for(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.01)


def sleeper() -> "tuple[subprocess.Popen[bytes], Process]":
    made = subprocess.Popen(["sleep", "600"])
    found = processes.look(made.pid)
    assert found is not None
    return made, found


def test_sessions_end_with_their_agent_or_before() -> None:
    changes: list[None] = []
    callers = Sessions(lambda: changes.append(None))
    (one, first), (two, second) = sleeper(), sleeper()
    try:
        callers.add(first, "a")
        callers.add(first, "b")
        callers.add(second, "c")
        callers.add(second, "c")
        assert callers.counts() == (2, 3)
        callers.end("b")
        callers.end("unknown")
        assert callers.counts() == (2, 2)
        one.kill()
        one.wait()
        wait_for(lambda: callers.counts() == (1, 1) and len(changes) >= 3)
    finally:
        two.kill()
        two.wait()
    wait_for(lambda: callers.counts() == (0, 0))


def test_a_number_that_is_used_again_is_no_agent() -> None:
    callers = Sessions(lambda: None)
    callers.add(Process(os.getpid(), (started(os.getpid()) or 0) - 1, 1, 0, ()), "s")
    wait_for(lambda: callers.counts() == (0, 0))


def test_it_ends_when_its_agent_does_however_long_a_look_takes() -> None:
    process, agent = sleeper()
    lifecycle = Lifecycle()
    lifecycle.asked(agent, "s")
    process.kill()
    process.wait()
    while not (why := lifecycle.why_end()):
        lifecycle.wait()
    assert why == "its agents have ended"


def test_one_that_has_failed_answers_no_hook() -> None:
    lifecycle = Lifecycle()
    assert lifecycle.why_unfit() == ""
    lifecycle.failed()
    assert lifecycle.why_unfit() == lifecycle.why_end() != ""


def test_it_waits_for_no_hook_longer_than_half_an_hour() -> None:
    now = [0.0]
    lifecycle = Lifecycle(clock=lambda: now[0])
    own = processes.look(os.getpid())
    assert own is not None
    lifecycle.asked(own, "s")
    now[0] += DAEMON_IDLE_SECONDS
    assert "for 30 minutes" in lifecycle.why_end()


# What it stands on


def test_what_is_removed_replaced_or_written_anew_is_noticed(tmp_path: Path) -> None:
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("one")
    folder.mkdir()
    ground = SameFiles((str(file), str(folder)))
    code = SameFiles((str(file),), by_time=True)
    (folder / "new").touch()
    assert ground.are_the_same()
    assert code.are_the_same()
    os.utime(file, ns=(1, 1))
    assert ground.are_the_same()
    assert not code.are_the_same()
    folder.rename(tmp_path / "old")
    assert not ground.are_the_same()
    folder.mkdir()
    assert not ground.are_the_same()
    assert not SameFiles((str(tmp_path / "never"),)).are_the_same()


# Where hooks look for it


def test_a_meeting_is_where_the_users_data_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for environment in ({"HOME": str(tmp_path)}, {"XDG_DATA_HOME": "/d"}, {"XDG_DATA_HOME": "rel"}):
        given = {"HOME": str(tmp_path), **environment}
        link = protocol.rendezvous(given, "/work")
        assert link is not None
        folder = config.data_directory(given, "linux") / protocol.RENDEZVOUS
        assert os.path.dirname(link) == str(folder)


def test_a_meeting_is_another_where_a_hook_would_save_elsewhere() -> None:
    home = {"HOME": "/h"}
    found = [
        protocol.rendezvous(home, "/work"),
        protocol.rendezvous(home, "/work2"),
        protocol.rendezvous({**home, "HARDSAVE_STORE": "/s.db"}, "/work"),
        protocol.rendezvous({**home, "CLAUDE_PROJECT_DIR": "/s.db"}, "/work"),
        protocol.rendezvous({"HOME": "/other"}, "/work"),
    ]
    assert len(set(found)) == len(found)
    assert None not in found
    assert protocol.rendezvous({**home, "CLAUDE_CODE": "1"}, "/work") == found[0]
    assert protocol.rendezvous(home, "/w\udcff") is not None  # a path that is no UTF-8


def test_without_a_home_or_switched_off_there_is_no_rendezvous() -> None:
    assert protocol.rendezvous({}, "/work") is None
    assert protocol.rendezvous({"HOME": "relative"}, "/work") is None
    assert protocol.rendezvous({"HOME": "/h", "HARDSAVE_DAEMON": "off"}, "/work") is None


def test_links_lead_to_the_last_who_came_and_go_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "daemons"
    one, other = tmp_path / "one.sock", tmp_path / "other.sock"
    other.touch()
    for name in ("a", "b"):
        election.publish(str(folder / name), str(one))
    election.publish(str(folder / "b"), str(other))
    election.publish(str(folder / "b"), str(other))
    assert os.readlink(folder / "b") == str(other)
    election.unpublish(str(folder), "unknown")
    assert [path.name for path in folder.iterdir()] == ["b"]
    election.unpublish(str(folder), str(other))
    assert list(folder.iterdir()) == []
    election.unpublish(str(tmp_path / "never"), str(other))
