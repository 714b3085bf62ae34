"""Fresh processes, cheaply: a process that has imported everything and opened nothing forks.

A fork of it is as new as a new interpreter, as far as a store can tell, and takes
milliseconds. It has no threads, and never opens a store itself.

As a program it reads a line of JSON with jobs, runs them side by side, and answers with a
line of JSON: how each ended.
"""

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
HANGS_AFTER_SECONDS = 120
MODULES = (
    *(
        "child",
        "invariants",
        "damage",
        "restoring",
        "rewinding",
        "forking",
        "gitrestoring",
        "working",
        "migrating",
        "acting",
    ),
)


class Ended(NamedTuple):
    """How a process ended: its exit code (below zero: the signal), its answer, its last words."""

    code: int
    answer: Any
    words: str


class Launcher:
    """The side of the tests."""

    def __init__(self, modules: Sequence[str] = MODULES) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.launcher", self._folder.name, *modules],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()
        self._folder.cleanup()

    def start(self, *jobs: tuple[str, dict[str, Any]]) -> list[Ended]:
        """Run functions, each in a process of its own, and wait for all of them."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(jobs) + "\n")
        self._process.stdin.flush()
        answered = self._process.stdout.readline()
        if not answered:
            raise RuntimeError("the launcher is gone")
        return [Ended(*each) for each in json.loads(answered)]

    def call(self, function: str, **given: Any) -> Any:
        """The answer of one function, in a process of its own; it must end well."""
        (ended,) = self.start((function, given))
        if ended.code != 0:
            raise RuntimeError(f"{function} ended with {ended.code}:\n{ended.words}")
        return ended.answer


# The side of the program


def _serve(folder: Path, modules: Sequence[str]) -> None:
    for module in modules:
        importlib.import_module(f"tests.crash.{module}")
    for line in sys.stdin:
        started = [
            (_fork(folder / str(at), function, given), folder / str(at))
            for at, (function, given) in enumerate(json.loads(line))
        ]
        print(json.dumps([_wait(process, out) for process, out in started]), flush=True)  # noqa: T201 # the answer


def _fork(out: Path, function: str, given: dict[str, Any]) -> int:
    out.mkdir(exist_ok=True)
    for left in out.iterdir():
        left.unlink()
    process = os.fork()
    if process == 0:
        _run(out, function, given)
    return process


def _run(out: Path, function: str, given: dict[str, Any]) -> None:
    """In the new process. Does not return, and leaves whatever is open to the kernel."""
    code = 1
    try:
        with contextlib.suppress(AttributeError):
            signal.alarm(HANGS_AFTER_SECONDS)
        words = os.open(out / "words", os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(words, 1)
        os.dup2(words, 2)
        module, name = function.rsplit(".", 1)
        answer = getattr(importlib.import_module(f"tests.crash.{module}"), name)(**given)
        (out / "answer").write_text(json.dumps(answer))
        code = 0
    except BaseException:  # noqa: BLE001 # whatever it is, it is the answer
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _wait(process: int, out: Path) -> Ended:
    _, status = os.waitpid(process, 0)
    answer = out / "answer"
    words = out / "words"
    return Ended(
        os.waitstatus_to_exitcode(status),
        json.loads(answer.read_text()) if answer.exists() else None,
        words.read_text(errors="replace") if words.exists() else "",
    )


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), sys.argv[2:])
