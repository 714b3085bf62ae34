"""Starting a resident, and becoming the agent.

The resident is forked away twice, so it belongs to nobody; then this very process becomes the
agent. Terminal, resizing, Ctrl-C, Ctrl-Z, exit code and signals are the agent's own, because
there is nothing in between.

Process 1 of a container is another matter: when it ends, the kernel kills everybody else, the
resident before its last save among them. So there this process stays: see `daemon.first`.
"""

import errno
import os
import select
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from hardsave.agents import interpreter
from hardsave.daemon import handover, inherited
from hardsave.daemon.resident import READY, Task
from hardsave.errors import Misuse, Unavailable

READY_SECONDS = 60.0
_SHELL = "/bin/sh"


def start(task: Task, *, seconds: float = READY_SECONDS) -> int:
    """Start a resident for this process, and wait for its first save; the number of its process.

    To be called with no vault open and no other thread: it forks.
    """
    options = interpreter.options(os.environ)
    reads, writes = os.pipe()
    named, names = os.pipe()
    hears, tells = os.pipe()
    try:
        argument, command = task._replace(ready=writes).dump()
        child = os.fork()
        if child == 0:
            words = [sys.executable, *options, "-m", task.program, argument]
            _leave(words, hears, ready=writes, names=names)
        for theirs in (writes, names, hears):
            os.close(theirs)
        os.waitpid(child, 0)
        with suppress(BrokenPipeError), open(tells, "wb") as told:  # one that is gone tells why
            told.write(command)
        if not select.select([reads], [], [], seconds)[0]:
            raise Unavailable(
                f"{task.workspace!r} was not saved within {seconds:.0f} s, which a first save may "
                "take; it goes on: run it again in a while"
            )
        _check(os.read(reads, 4096), task)
        return int(os.read(named, 32) or 0)
    finally:
        os.close(reads)
        os.close(named)


def _check(told: bytes, task: Task) -> None:
    """Whether a resident is ready, or else why not."""
    if told == READY:
        return
    kind, _, why = told.decode(errors="replace").partition(": ")
    if kind == Misuse.__name__:
        raise Misuse(why)
    raise Unavailable(f"{task.workspace!r} cannot be saved: {why or 'no reason'}; see {task.log}")


def _leave(words: list[str], hears: int, *, ready: int, names: int) -> NoReturn:
    """In the child: become somebody who belongs to nobody, and `hears` by stdin; `names` is told
    who."""
    try:
        os.setsid()
        if (resident := os.fork()) != 0:
            os.write(names, b"%d" % resident)
            os._exit(0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor, source in enumerate((hears, nothing, nothing)):
            os.dup2(source, descriptor)
        inherited.close_all_but(ready)
        os.set_inheritable(ready, True)
        os.environ.pop(handover.VARIABLE, None)  # else an agent around us would take us for its own
        os.execv(words[0], words)  # noqa: S606 # ourselves, without a shell
    except OSError as error:  # there is no log yet that could say it
        os.write(ready, f"{type(error).__name__}: {words[0]}: {error.strerror}".encode())
    finally:
        os._exit(1)


def without_coercion(environment: Mapping[str, str]) -> dict[str, str]:
    """What is told to an agent, but for what Python has told itself: where no language is set, it
    takes an LC_CTYPE of its own, and would hand that on."""
    try:
        given = Path("/proc/self/environ").read_bytes()
    except OSError:  # not on this system
        return dict(environment)
    is_given = any(each.startswith(b"LC_CTYPE=") for each in given.split(b"\0"))
    return {name: told for name, told in environment.items() if is_given or name != "LC_CTYPE"}


def become(command: Sequence[str], environment: Mapping[str, str], resident: int) -> NoReturn:
    """Be the agent from here on, as if nobody had been here before."""
    from hardsave.daemon import first

    if first.is_needed():
        first.stay_with(lambda: _become(command, environment), resident)
    _become(command, environment)


def _become(command: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and an exec would keep that
        number = getattr(signal, name, None)
        if number is not None:
            signal.signal(number, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # what was said there may be lost; the agent has its own to say
            stream.flush()
    try:
        os.execvpe(command[0], list(command), dict(environment))  # noqa: S606 # what the user typed
    except OSError as error:
        script = shutil.which(command[0])
        if error.errno != errno.ENOEXEC or script is None:
            raise
        # One that does not say who reads it: shells, env and nohup all take it for a shell's.
        words = [_SHELL, script, *command[1:]]
        os.execve(_SHELL, words, dict(environment))  # noqa: S606
