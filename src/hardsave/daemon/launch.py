"""Starting the daemon of a `hardsave run`, and becoming the agent.

The daemon is forked away twice, so no process waits for it; then this very process becomes the
agent. Terminal, resizing, Ctrl-C, Ctrl-Z, exit code and signals are the agent's own, because
there is nothing in between.

Process 1 of a container is another matter: when it ends, the kernel kills all other processes, the
daemon before its last save among them. So there this process stays while the agent works and until
the last save is there. As any process 1 should, it passes signals on, waits for orphans, and ends
as the agent does.
"""

import errno
import json
import os
import re
import select
import shutil
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from hardsave.agents import interpreter
from hardsave.daemon import protocol, restart
from hardsave.daemon.processes import ProcessHandle, close_inherited
from hardsave.errors import Misuse, Unavailable
from hardsave.tuples import NamedTuple

if TYPE_CHECKING:
    from hardsave.agents.spec import AgentSpec

DAEMON = "hardsave.daemon.main"
READY = b"ready\n"
READY_SECONDS = 60.0
_SHELL = "/bin/sh"
_LAST_SAVE_SECONDS = 60
_PASSED_ON = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGWINCH")


class Task(NamedTuple):
    """What the daemon of a run is told when it is started."""

    store: str
    timeline: str
    workspace: str
    agent: int  # its process
    command: list[str]
    ready: int  # a descriptor that is told when the first save is there
    log: str
    socket: str  # where hooks find it

    def dump(self) -> tuple[str, bytes]:
        """As an argument, and what comes by stdin: a command may be a prompt of many pages, which
        one argument cannot hold."""
        about = self._asdict()
        command = about.pop("command")
        return json.dumps(about), json.dumps(command).encode()

    @classmethod
    def load(cls, argument: str, command: bytes) -> "Task":
        return cls(**json.loads(argument), command=json.loads(command))


def start(task: Task, *, seconds: float = READY_SECONDS) -> int:
    """Start a daemon for this process, and wait for its first save; the number of its process.

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
            words = [sys.executable, *options, "-m", DAEMON, argument]
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
    """Whether the daemon is ready, or else why not."""
    if told == READY:
        return
    kind, _, why = told.decode(errors="replace").partition(": ")
    if kind == Misuse.__name__:
        raise Misuse(why)
    raise Unavailable(f"{task.workspace!r} cannot be saved: {why or 'no reason'}; see {task.log}")


def _leave(words: list[str], hears: int, *, ready: int, names: int) -> NoReturn:
    """In the child: fork again, so that no process waits for the daemon. The daemon reads `hears`
    as its stdin; `names` is told its number."""
    try:
        os.setsid()
        if (daemon := os.fork()) != 0:
            os.write(names, b"%d" % daemon)
            os._exit(0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor, source in enumerate((hears, nothing, nothing)):
            os.dup2(source, descriptor)
        close_inherited(ready)
        os.set_inheritable(ready, True)
        os.environ.pop(protocol.SOCKET_VARIABLE, None)  # else it looks like a tool of the agent
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


def become(
    command: Sequence[str],
    environment: Mapping[str, str],
    daemon: int,
    restartable: "tuple[AgentSpec, str] | None" = None,
) -> NoReturn:
    """Be the agent from here on, as if it had been started without us. Or stay as the parent of one
    that can be started again, and listen at a path for that."""
    if restartable is not None:
        agent, path = restartable
        told = {**environment, restart.VARIABLE: path}
        restart.stay(command, agent, path, lambda words: become_program(words, told))
    if must_stay():
        _stay_with(lambda: become_program(command, environment), daemon)
    become_program(command, environment)


def become_program(command: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Be this program from here on. Only returns by an `OSError`."""
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
        # One that does not name its interpreter: shells, env and nohup all take it for a shell's.
        words = [_SHELL, script, *command[1:]]
        os.execve(_SHELL, words, dict(environment))  # noqa: S606


# Being process 1


def must_stay() -> bool:
    """Whether this is process 1, or what that was started for: with `docker run --init`, or as a
    service, all other processes are killed just the same. Not at the prompt of a shell, which
    stays, and which stops and continues its jobs itself."""
    return os.getpid() == 1 or (os.getppid() == 1 and not _has_jobs(1))


def _has_jobs(pid: int) -> bool:
    """Whether a process is a shell that Ctrl-Z leads back to: it ignores the signal itself."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    ignored = re.search(r"^SigIgn:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return ignored is not None and bool(int(ignored[1], 16) >> (signal.SIGTSTP - 1) & 1)


def _stay_with(become: Callable[[], NoReturn], daemon: int) -> NoReturn:
    """Let a child become the agent; when that has ended, the daemon saves and ends, and so does
    this process, with the agent's exit code. The agent has a process group of its own, in the
    foreground, so that what is typed reaches it once; the terminal is given back when it has ended.
    """
    process = ProcessHandle(daemon)
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
    if process.is_running():
        os.kill(daemon, signal.SIGTERM)  # what else is left dies with us: the daemon need not wait
        process.wait()
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
    the background, what asks for the terminal waits until the user brings us forward."""
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
