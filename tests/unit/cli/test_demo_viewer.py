"""The viewer of `hardsave demo --interactive`, and what a kill at any moment leaves to be seen."""

import os
import pty
import signal
import sys
import termios
import time
from contextlib import nullcontext

import pytest

from hardsave.cli.commands import demo
from hardsave.cli.demo import agent_server
from hardsave.cli.demo.stage import Stage
from hardsave.cli.demo.viewer import Left, Viewer, at_terminal
from tests.unit.cli.conftest import Run


def is_by_lines(terminal: int) -> bool:
    return bool(termios.tcgetattr(terminal)[3] & termios.ICANON)


def test_an_action_that_is_killed_while_it_lasts_was_seen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is not done again: what was never seen would seem to be lost."""

    def killed(seconds: float) -> None:
        raise InterruptedError

    monkeypatch.setattr(time, "sleep", killed)
    with pytest.raises(InterruptedError):
        agent_server.act("begin to test")
    assert capsys.readouterr().out == "    begin to test\n"


@pytest.mark.parametrize("key", [b"q", b"\x04"])
def test_a_viewer_can_leave_while_an_agent_runs(key: bytes) -> None:
    (keyboard, keys), (output, program) = os.pipe(), os.pipe()
    with os.fdopen(output, "rb") as lines:
        seen = Viewer(keyboard).watch(lines)
        os.write(program, b"turn 1\n")
        assert next(seen) == "turn 1"
        os.write(keys, b"x")
        assert next(seen) is None
        os.write(keys, key)
        with pytest.raises(Left):
            next(seen)
    for each in (keyboard, keys, program):
        os.close(each)


def test_after_ctrl_z_keys_are_read_as_they_are_pressed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys, ours = pty.openpty()
    as_shells_have_it = termios.tcgetattr(ours)
    with (
        os.fdopen(ours) as typed,
        os.fdopen(os.dup(ours), "w") as shown,
        monkeypatch.context() as at,
    ):
        at.setattr(sys, "stdin", typed)
        at.setattr(sys, "stdout", shown)
        with at_terminal():
            termios.tcsetattr(ours, termios.TCSANOW, as_shells_have_it)
            assert is_by_lines(ours)
            signal.raise_signal(signal.SIGCONT)
            assert not is_by_lines(ours)
        assert is_by_lines(ours)
    os.close(keys)
    assert signal.getsignal(signal.SIGCONT) is signal.SIG_DFL


def test_scenes_that_were_all_seen_to_their_end_have_a_closing_line(
    monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    keyboard, keys = os.pipe()

    def play(stage: Stage) -> None:
        os.write(keys, b"x")  # begins the next one

    os.write(keys, b"x")
    scenes = {name: demo.Scene(name, play) for name in ("crash", "tasks")}
    monkeypatch.setattr(demo, "SCENES", scenes)
    monkeypatch.setattr(demo, "at_terminal", lambda: nullcontext(Viewer(keyboard)))
    assert run("demo", "--interactive").out.endswith("all as it should be, in 0.0 s\n")
    os.write(keys, b"q")
    os.read(keyboard, 1)  # what the last scene has typed
    assert "all as it should be" not in run("demo", "--interactive").out
    os.close(keyboard)
    os.close(keys)
