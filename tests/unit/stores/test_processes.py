import os
import signal
import subprocess
import sys

import pytest

from hardsave.stores import processes

linux_only = pytest.mark.skipif(not processes.can_ask(), reason="this system has no /proc")


@linux_only
def test_this_process_is_there_and_began_once() -> None:
    here = processes.here()
    assert here.pid == os.getpid()
    assert processes.started(here.pid) == here.pid_started > 0
    assert here == processes.here()


@linux_only
def test_a_process_that_was_killed_is_gone_before_anybody_waits_for_it() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert processes.started(child.pid) is not None
        child.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now
        assert processes.started(child.pid) is None
    finally:
        child.communicate()
    assert processes.started(child.pid) is None


def test_a_name_cannot_pass_for_fields() -> None:
    rest = " ".join(str(number) for number in range(4, 53))
    assert processes._started(f"42 (a) Z (b c) S {rest}") == 22
    assert processes._started(f"42 (x) Z {rest}") is None
