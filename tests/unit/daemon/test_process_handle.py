"""Whether another process lives."""

import subprocess
import sys
import threading

import pytest

from hardsave.daemon.processes import ProcessHandle


@pytest.fixture
def sleeper() -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])


@pytest.mark.parametrize("has_pidfd", [True, False])
def test_waiting_ends_with_the_process(
    sleeper: "subprocess.Popen[bytes]", has_pidfd: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_pidfd:
        monkeypatch.setattr("hardsave.daemon.processes._open", None)
    life = ProcessHandle(sleeper.pid)
    assert life.is_running()
    waiting = threading.Thread(target=life.wait)
    waiting.start()
    sleeper.kill()
    sleeper.wait()
    waiting.join(timeout=60)
    assert not waiting.is_alive()
    assert not life.is_running()


def test_a_process_that_is_gone_is_not_waited_for(sleeper: "subprocess.Popen[bytes]") -> None:
    sleeper.kill()
    sleeper.wait()
    ProcessHandle(sleeper.pid).wait()
