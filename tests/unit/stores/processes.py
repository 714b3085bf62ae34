"""Other processes for a test: forked ones that do a piece of work, and fresh ones."""

import os
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable

PATIENCE_SECONDS = 60.0


class Child:
    """A forked process at work. It leaves without any of the test runner's clean-up."""

    def __init__(self, work: Callable[["Child"], object]) -> None:
        self._to_child = os.pipe()
        self._to_parent = os.pipe()
        with warnings.catch_warnings():
            # Newer Pythons warn where there are threads: what happens then is what is tested.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            self._work(work)

    def _work(self, work: Callable[["Child"], object]) -> None:
        status = 1
        try:
            work(self)
            status = 0
        except BaseException:  # noqa: BLE001 # it is told, and nothing may get back to the runner
            traceback.print_exc()
        finally:
            os._exit(status)

    # In the child

    def tell(self) -> None:
        """Let the parent go on."""
        os.write(self._to_parent[1], b".")

    def wait(self) -> None:
        """Until the parent says so."""
        os.read(self._to_child[0], 1)

    # In the parent

    def hear(self) -> None:
        """Wait until the child has told."""
        os.read(self._to_parent[0], 1)

    def go(self) -> None:
        """Let the child go on."""
        os.write(self._to_child[1], b".")

    def end(self) -> int:
        """Wait for the child; its exit status, negative for a signal. One that hangs is killed."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                for descriptor in (*self._to_child, *self._to_parent):
                    os.close(descriptor)
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.002)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise TimeoutError("the child process hangs")


def fresh(script: str, *arguments: str) -> str:
    """What a new Python process prints."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    return done.stdout


def eventually(holds: Callable[[], object], seconds: float = 60) -> bool:
    """Whether something comes true before long."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.005)
    return bool(holds())
