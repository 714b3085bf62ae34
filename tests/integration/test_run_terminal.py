"""`hardsave run` at a shell on a real terminal: the agent notices nothing of us.

Everything is done twice, with us and without, and has to look the same.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.cli.screen import SECONDS, Screen

# An agent that says what it notices, until it is told to end.
AGENT = """
import os, signal, sys
def say(*words):  # in the middle of its output, too: print() would not have it
    os.write(1, " ".join(map(str, words)).encode() + b"\\n")
def size(*_): say("size", *os.get_terminal_size())
def again(*_): say("continued")
signal.signal(signal.SIGWINCH, size)
signal.signal(signal.SIGCONT, again)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)  # who is told right before input() notices in it
is_known = False
while True:
    try:
        if not is_known:  # the reader may press a key at once
            is_known = True
            size()
            say("leader", os.getpgrp() == os.getpid() == os.tcgetpgrp(0))
        word = input()
    except KeyboardInterrupt:
        say("interrupted")
        continue
    if word == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if word.startswith("exit"):
        signal.setitimer(signal.ITIMER_REAL, 0)  # Python forgets its handlers before it ends
        sys.exit(int(word.split()[1]))
    say("heard", word)
"""
UNSHARE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
CAN_UNSHARE = shutil.which("unshare") is not None and (
    subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0
)
WITHOUT_US = ""
WITH_US = f"{sys.executable} -m hardsave run --timeline t -- "


@pytest.fixture
def agent(tmp_path: Path) -> str:
    (tmp_path / "work").mkdir()
    script = tmp_path / "agent.py"
    script.write_text(AGENT)
    return f"{sys.executable} {script}"


@pytest.fixture
def shell(tmp_path: Path, agent: str) -> Callable[[], Screen]:
    environment = {"HARDSAVE_STORE": str(tmp_path / "store.db"), "PS1": "$ ", "HOME": str(tmp_path)}

    def open_shell() -> Screen:
        bash = shutil.which("bash")
        assert bash is not None
        return Screen([bash, "--norc", "-i"], cwd=tmp_path / "work", environment=environment)

    return open_shell


@pytest.mark.parametrize("prefix", [WITHOUT_US, WITH_US], ids=["without us", "with us"])
def test_size_keys_and_jobs_are_the_agents_own(
    shell: Callable[[], Screen], agent: str, prefix: str
) -> None:
    with shell() as seen:
        seen.wait_for("$")
        seen.type(f"{prefix}{agent}\n")
        seen.wait_for("size 100 30")
        seen.wait_for("leader True")
        seen.resize(77, 28)
        seen.wait_for("size 77 28")
        seen.type("\x03")
        seen.wait_for("interrupted")
        seen.type("\x1a")
        seen.wait_for("Stopped")
        seen.type("echo at the $((40 + 2))nd shell; fg\n")
        seen.wait_for("at the 42nd shell")
        seen.wait_for("continued")
        seen.type("on\n")
        seen.wait_for("heard on")
        seen.type("exit 37\n")
        seen.type("echo code $?\n")
        seen.wait_for("code 37")


@pytest.mark.parametrize("prefix", [WITHOUT_US, WITH_US], ids=["without us", "with us"])
def test_an_agent_that_is_killed_looks_killed(
    shell: Callable[[], Screen], agent: str, prefix: str
) -> None:
    with shell() as seen:
        seen.wait_for("$")
        seen.type(f"{prefix}{agent}\n")
        seen.wait_for("leader True")
        seen.type("die\n")
        seen.wait_for("Killed")
        seen.type("echo code $?\n")
        seen.wait_for("code 137")


def test_an_agent_that_could_be_started_again_has_its_keys_and_jobs_too(
    shell: Callable[[], Screen], tmp_path: Path
) -> None:
    """There a process of ours stays above it."""
    program = tmp_path / "claude"
    program.write_text(f"#!{sys.executable}\n{AGENT}")
    program.chmod(0o755)
    with shell() as seen:
        seen.wait_for("$")
        seen.type(f"{WITH_US}{program}\n")
        seen.wait_for("size 100 30")
        seen.resize(77, 28)
        seen.wait_for("size 77 28")
        seen.type("\x03")
        seen.wait_for("interrupted")
        for turn in ("1st", "2nd"):
            seen.type("\x1a")
            seen.wait_for("Stopped")
            seen.type(f"clear; echo {turn[0]}${{PS1:5}}{turn[1:]} time; fg\n")
            seen.wait_for(f"{turn} time")
            seen.wait_for("continued")
            seen.type(f"on {turn}\n")
            seen.wait_for(f"heard on {turn}")
        seen.type("exit 37\n")
        seen.type("echo code $?\n")
        seen.wait_for("code 37")
        seen.type(f"clear; {WITH_US}{program}\n")
        seen.wait_for("size 77 28")
        seen.type("die\n")
        seen.wait_for("Killed")
        seen.type("echo code $?\n")
        seen.wait_for("code 137")


@pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux here")
@pytest.mark.parametrize("prefix", [WITHOUT_US, WITH_US], ids=["without us", "with us"])
def test_the_same_in_tmux(tmp_path: Path, agent: str, prefix: str) -> None:
    pane = Pane(tmp_path / "tmux", tmp_path / "work", tmp_path)
    try:
        pane.type(f"{prefix}{agent}", "Enter")
        pane.wait_for("leader True")
        pane.tmux("resize-window", "-x", "66", "-y", "20")
        pane.wait_for("size 66 20")
        pane.type("C-c")
        pane.wait_for("interrupted")
        pane.type("C-z")
        pane.wait_for("Stopped")
        pane.type("fg", "Enter")
        pane.wait_for("continued")
        pane.type("exit 9", "Enter")
        pane.type("echo code $?", "Enter")
        pane.wait_for("code 9")
    finally:
        pane.tmux("kill-server")


@pytest.mark.skipif(not CAN_UNSHARE, reason="no process here may be process 1")
def test_a_shell_that_is_process_1_has_its_jobs(tmp_path: Path, agent: str) -> None:
    with contained(tmp_path, "bash", "--norc", "-i") as seen:
        seen.wait_for("$")
        seen.type(f"{WITH_US}{agent}\n")
        seen.wait_for("leader True")
        seen.type("\x1a")
        seen.wait_for("Stopped")
        seen.type("fg\n")
        seen.wait_for("continued")
        seen.type("exit 37\n")
        seen.type("echo code $?\n")
        seen.wait_for("code 37")
        beside = "sh -c 'echo begun as the $((40 + 1))st; sleep 100'"
        seen.type(f"{WITH_US.replace('--timeline t', '--timeline other')}{beside} &\n")
        seen.wait_for("begun as the 41st")
        seen.type("echo still at the $((40 + 2))nd shell\n")
        seen.wait_for("still at the 42nd shell")


@pytest.mark.skipif(not CAN_UNSHARE, reason="no process here may be process 1")
@pytest.mark.parametrize("standard_input", ["", "< /dev/null"])
def test_a_script_that_is_process_1_has_its_terminal_back(
    tmp_path: Path, standard_input: str
) -> None:
    (tmp_path / "work").mkdir()
    inner = "sh -c 'sleep 2 & echo begun; wait; read word < /dev/tty; echo heard $word; exit 3'"
    script = (
        f"{WITH_US}{inner} {standard_input}; echo code $?; read word < /dev/tty; echo and $word"
    )
    with contained(tmp_path, "sh", "-c", script) as seen:
        seen.wait_for("begun")
        seen.type("\x1a")  # stops all that the agent has started; no shell could say "fg"
        seen.type("one\n")
        seen.wait_for("heard one")
        seen.wait_for("code 3")
        seen.type("two\n")
        seen.wait_for("and two")


def contained(folder: Path, *command: str) -> Screen:
    """A program that is process 1, as in a container: it leads a session on this terminal."""
    unshare = str(shutil.which("unshare"))
    return Screen(
        [unshare, *UNSHARE[1:], "setsid", "--ctty", *command],
        cwd=folder / "work",
        environment={"HARDSAVE_STORE": str(folder / "store.db"), "PS1": "$ ", "HOME": str(folder)},
    )


class Pane:
    """A shell in a tmux of its own."""

    def __init__(self, socket: Path, cwd: Path, home: Path) -> None:
        self._socket = socket
        self._environment = {
            "PATH": os.environ["PATH"],
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "HOME": str(home),
            "HARDSAVE_STORE": str(home / "store.db"),
        }
        size = ("-x", "90", "-y", "25")
        self.tmux("-f", os.devnull, "new-session", "-d", *size, "-c", str(cwd), "bash --norc -i")

    def tmux(self, *words: str) -> str:
        return subprocess.run(
            ["tmux", "-S", str(self._socket), *words],
            env=self._environment,
            check=True,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        ).stdout

    def type(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def wait_for(self, text: str) -> None:
        end = time.monotonic() + SECONDS
        while text not in (shown := self.tmux("capture-pane", "-p")):
            assert time.monotonic() < end, f"no {text!r} on the screen:\n{shown}"
            time.sleep(0.05)
