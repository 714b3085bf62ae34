"""Who outlives an agent, and for how long that is waited for."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hardsave.daemon import recorder
from hardsave.daemon.processes import Running, outermost, wait_for_end, with_variable
from hardsave.stores.host import processes

VARIABLE = "HARDSAVE_TEST_SURVIVORS"
SLEEP = "import time; time.sleep(600)"


@pytest.fixture
def token(tmp_path: Path) -> str:
    return f"{tmp_path}/a b=c"


@pytest.fixture
def left(token: str) -> "Iterator[subprocess.Popen[bytes]]":
    """A process that has inherited it, in a session of its own, and has nothing else to do."""
    environment = {**os.environ, VARIABLE: token}
    command = [sys.executable, "-c", SLEEP]
    with subprocess.Popen(command, env=environment, start_new_session=True) as made:
        yield made
        made.kill()


def wait_for(token: str, count: int) -> list[Running]:
    end = time.monotonic() + 60
    while len(found := with_variable(VARIABLE, token)) != count and time.monotonic() < end:
        time.sleep(0.01)
    return found


def test_processes_that_have_inherited_it_are_found_and_the_dead_are_not(
    token: str, left: "subprocess.Popen[bytes]"
) -> None:
    assert wait_for(token, 1) == [Running(left.pid, f"{sys.executable} -c {SLEEP}"[:80])]
    assert with_variable(VARIABLE, token[:-1]) == []
    assert with_variable(VARIABLE, token[:-1], is_prefix=True) == with_variable(VARIABLE, token)
    left.kill()
    os.waitid(os.P_PID, left.pid, os.WEXITED | os.WNOWAIT)  # dead, and not buried
    assert with_variable(VARIABLE, token) == []


def test_this_process_is_not_among_them(token: str) -> None:
    environment = {**os.environ, VARIABLE: token}
    script = "from hardsave.daemon.processes import with_variable; "
    script += f"print(with_variable({VARIABLE!r}, {token!r}))"
    command = [sys.executable, "-P", "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert done.stdout == b"[]\n"


def test_who_has_started_us_is_among_our_ancestors() -> None:
    script = "from hardsave.daemon.processes import ancestors; print(*ancestors())"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-P', '-c', {script!r}])"
    done = subprocess.run([sys.executable, "-c", nested], capture_output=True, check=True)
    found = set(map(int, done.stdout.split()))
    assert {os.getpid(), os.getppid()} <= found


@pytest.mark.skipif(sys.platform != "linux", reason="this system has no /proc")
def test_what_one_of_them_has_started_is_not_named_besides() -> None:
    script = ["bash", "-c", "sh -c 'sleep 60 & echo $!; wait' & wait"]
    with subprocess.Popen(script, stdout=subprocess.PIPE, start_new_session=True) as outer:
        assert outer.stdout is not None
        inner = int(outer.stdout.readline())
        both = [Running(inner, "sleep"), Running(outer.pid, "bash"), Running(inner, "sleep")]
        assert outermost(both) == both[1:2]
        assert outermost(both[::2]) == both[:1]
        os.killpg(outer.pid, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="this system has no /proc")
def test_where_there_is_no_proc_no_process_is_found(
    token: str, left: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(wait_for(token, 1)) == 1
    monkeypatch.setattr(processes, "_PROC", "/nowhere")
    assert with_variable(VARIABLE, token) == []


def test_waiting_ends_when_no_process_is_left_or_time_is_over() -> None:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    def look() -> list[Running]:
        return [Running(7, "serve")] if now[0] < 5 else []

    assert wait_for_end(look, 10, clock=lambda: now[0], sleep=sleep) == []
    assert now[0] < 6
    now[0] = 0.0
    assert wait_for_end(look, 3, clock=lambda: now[0], sleep=sleep) == [Running(7, "serve")]
    assert 3 <= now[0] < 4


def test_what_people_read_about_them() -> None:
    many = [Running(pid, "serve") for pid in range(1, 6)]
    assert recorder.told([]) == ""
    assert recorder.told(many[:1]) == "still running: serve (1)"
    assert recorder.told(many).endswith("serve (2), serve (3) and 2 more")
