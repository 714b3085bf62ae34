"""Being process 1 of a container while an agent works, and until its last save is there.

When that one ends, the kernel kills everybody else. As any process 1 should, it passes signals on,
buries whoever is left to it, and ends as the program does that it was started for. The agent has a
group of its own, in the foreground, so that what is typed reaches it once; the terminal is given
back when it has ended, for whatever a script does next.
"""

import os
import re
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from hardsave.daemon.life import Life

_LAST_SAVE_SECONDS = 60
_PASSED_ON = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGWINCH")


def is_needed() -> bool:
    """Whether this is process 1, or what that was started for: with `docker run --init`, or as a
    service, everybody else is killed just the same. Not at the prompt of a shell, which stays, and
    whose jobs are to be stopped and continued by nobody else."""
    return os.getpid() == 1 or (os.getppid() == 1 and not _has_jobs(1))


def _has_jobs(pid: int) -> bool:
    """Whether a process is a shell that Ctrl-Z leads back to: it ignores the signal itself."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    ignored = re.search(r"^SigIgn:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return ignored is not None and bool(int(ignored[1], 16) >> (signal.SIGTSTP - 1) & 1)


def stay_with(become: Callable[[], NoReturn], resident: int) -> NoReturn:
    """Let a child become the agent; when that has ended, the resident saves and ends, and so do
    we, with the agent's exit code."""
    life = Life(resident)
    terminal = _terminal()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        _hand_over(terminal, os.getpgrp())
        become()
    for name in _PASSED_ON:
        signal.signal(getattr(signal, name), lambda number, frame: _pass_on(child, number, frame))
    code = os.waitstatus_to_exitcode(_ended(child))
    _hand_over(terminal, os.getpgrp())
    shown = code if code >= 0 else 128 - code
    signal.signal(signal.SIGALRM, lambda *_: os._exit(shown))
    signal.alarm(_LAST_SAVE_SECONDS)
    if life.is_there():
        os.kill(resident, signal.SIGTERM)  # who else is left dies with us: nobody waits for them
        life.wait()
    os._exit(shown)


def _terminal() -> int | None:
    """Our terminal, if it is ours to give: what is typed there comes to us."""
    with suppress(OSError):
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
        if os.tcgetpgrp(terminal) == os.getpgrp():
            return terminal
        os.close(terminal)
    return None


def _hand_over(terminal: int | None, group: int) -> None:
    if terminal is None:
        return
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    with suppress(OSError):  # it may have been closed meanwhile
        os.tcsetpgrp(terminal, group)
    signal.signal(signal.SIGTTOU, before)


def _pass_on(child: int, number: int, frame: FrameType | None) -> None:
    with suppress(ProcessLookupError):
        os.kill(child, number)


def _ended(child: int) -> int:
    """How it has. Ctrl-Z has no shell to come back to: it goes on, with all that it has stopped. In
    the background, what asks for the terminal waits until somebody brings us forward."""
    while True:
        pid, status = os.waitpid(-1, os.WUNTRACED)
        if pid != child:
            continue
        if not os.WIFSTOPPED(status):
            return status
        if os.WSTOPSIG(status) in (signal.SIGTTIN, signal.SIGTTOU):
            os.kill(os.getpid(), signal.SIGSTOP)
            _hand_over(_terminal(), child)
        os.killpg(child, signal.SIGCONT)
