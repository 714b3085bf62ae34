"""Another program as a child of ours: its output is its own, and so are the signals it gets."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

from hardsave.cli.output import stdout_is_stderr
from hardsave.errors import NotFound
from hardsave.tasks.tether import Tether


def run(program: Sequence[str], more: Mapping[str, str], tether: Tether) -> int:
    """Its exit code; that of a shell, 128 and the signal's number, if one has ended it.

    What it prints goes to stderr: stdout is for our own answer. It may outlive us, and is known
    to be there by its tether.
    """
    with stdout_is_stderr(), tether:
        try:
            child = subprocess.Popen(
                program, env={**os.environ, **more}, pass_fds=tether.descriptors
            )
        except (FileNotFoundError, PermissionError) as error:
            raise NotFound(f"{program[0]!r} cannot be run: {error.strerror}") from error
        tether.tie(child.pid)
        code = _ended(child)
    return code if code >= 0 else 128 - code


def _ended(child: "subprocess.Popen[bytes]") -> int:
    """Wait for it; whoever wants to end us ends it first."""

    def pass_on(number: int, frame: object) -> None:
        child.send_signal(number)

    before = {each: signal.signal(each, pass_on) for each in (signal.SIGTERM, signal.SIGHUP)}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal tells both
    try:
        return child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
