import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hardsave.stores.host import location, processes

asking = pytest.mark.skipif(not processes.can_ask(), reason="this system tells nothing")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="this system has no /proc")


@asking
def test_this_process_is_there_and_began_once() -> None:
    here = location.here()
    assert here.pid == os.getpid()
    assert processes.started(here.pid) == here.pid_started > 0
    assert here == location.here()


@asking
def test_a_process_that_was_killed_is_gone_before_its_parent_waits_for_it() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert processes.started(child.pid) is not None
        child.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now
        assert processes.started(child.pid) is None
    finally:
        child.communicate()
    assert processes.started(child.pid) is None


@linux_only
def test_a_name_cannot_pass_for_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rest = " ".join(str(number) for number in range(4, 53))
    folder = tmp_path / str(os.getpid())
    folder.mkdir()
    (folder / "cmdline").write_bytes(b"sleep\0a b\0")
    monkeypatch.setattr(processes, "_PROC", str(tmp_path))
    (folder / "stat").write_text(f"42 (a) Z (b c) S {rest}")
    assert processes.started(os.getpid()) == 22
    seen = processes.look(os.getpid())
    assert seen == (os.getpid(), 22, 4, os.geteuid(), ("sleep", "a b"), 6)
    (folder / "stat").write_text(f"42 (x) Z {rest}")
    assert processes.started(os.getpid()) is None
    assert processes.look(os.getpid()) is None


@asking
def test_what_can_be_seen_of_a_process() -> None:
    command = [sys.executable, "-c", "input()", "ä b"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, env={"A": "1", "B": ""})
    try:
        seen = processes.look(child.pid)
        assert seen is not None
        assert seen[:4] == (child.pid, processes.started(child.pid), os.getpid(), os.geteuid())
        assert child.pid in processes.pids()
        while (seen := processes.look(child.pid)) and seen.words != tuple(command):
            pass  # it has not become what it shall be yet
        assert set(processes.environment(child.pid)) >= {b"A=1", b"B="}
    finally:
        child.communicate(b"\n")
    assert processes.look(child.pid) is None
    assert processes.environment(child.pid) == []


@linux_only
def test_a_process_that_cannot_look_takes_no_other_for_ended() -> None:
    """Not even at the limit of open files, where not even /proc can be read."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        lowest = os.open(os.devnull, os.O_RDONLY)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
        with pytest.raises(OSError, match="Too many open files"):
            os.open(os.devnull, os.O_RDONLY)
        assert processes.started(child.pid) == processes.UNKNOWN
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert processes.started(child.pid) not in (None, processes.UNKNOWN)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        child.communicate(b"\n")
    assert processes.started(child.pid) is None


def test_numbers_that_no_process_has() -> None:
    assert not processes.is_there(1 << 62)
    assert processes.is_there(os.getpid())


@linux_only
def test_the_processes_of_another_numbering_are_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a sandbox with numbers of its own that still sees the machine's /proc."""
    (tmp_path / "self").symlink_to(str(os.getpid() + 1))
    (tmp_path / str(os.getpid())).symlink_to("/proc/1")
    monkeypatch.setattr(processes, "_PROC", str(tmp_path))
    assert processes.started(os.getpid()) is not None
    assert not processes.can_ask()
    assert location.here().pid_started == processes.UNKNOWN
