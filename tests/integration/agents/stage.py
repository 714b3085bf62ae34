"""What the tests with real agents stand on: a project, a home, and a store of one's own."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import hardsave
from hardsave.vault.files import difference
from tests.integration.cli.screen import Screen

TIMEOUT_SECONDS = 120
HARDSAVE = f"{sys.executable} -P -m hardsave"
# A tool of a test that waits for the checkpoint that another hook has saved
UNTIL_SAVED = (
    f'until [ $({HARDSAVE} log --all --json | grep -c \'"hook": "PostToolUse"\') -ge %d ]; '
    "do sleep 0.1; done; "
)
# And one that waits until hooks find a daemon
UNTIL_ANSWERED = 'until [ -e "$XDG_DATA_HOME"/hardsave/daemons/* ]; do sleep 0.1; done; '


# And one that waits until the process beside an agent has heard of it
UNTIL_HEARD = f": %s; until {HARDSAVE} show @ -t t --state | grep -q ': %s;'; do sleep 0.1; done; "


def attributed(saved: hardsave.Checkpoint, path: str) -> list[str]:
    """The calls that a checkpoint says have changed a path, by their ids."""
    for told in saved.metadata.get("changed_by", ()):
        if path in told["paths"]:
            return [call["tool_use_id"] for call in told["calls"]]
    is_own = saved.metadata.get("hook") == "PostToolUse"
    return [str(saved.metadata["tool_use_id"])] if is_own else []


class Saved(NamedTuple):
    """What a checkpoint of a `hardsave run` has of a conversation."""

    id: str
    metadata: dict[str, Any]
    lines: str


def _lines(state: Any) -> str:
    return b"\n".join(state["lines"] if state else ()).decode()


class Stage:
    """A project in a home of its own, where an agent keeps its things in a folder of its own."""

    def __init__(self, folder: Path, agent: str, variable: str) -> None:
        self.project = folder / "project"
        self.project.mkdir()
        self.config = folder / agent
        self.config.mkdir()
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "XDG_DATA_HOME": str(folder / "data"),
            variable: str(self.config),
        }

    def hardsave(self, *arguments: str) -> Any:
        done = self.run([*HARDSAVE.split(), *arguments, "--json"], {})
        assert done.returncode == 0, done
        return json.loads(done.stdout)

    def run(self, command: list[str], more: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.project,
            env={**self.environment, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )

    def watched(self, command: list[str]) -> list[str]:
        """A command as `hardsave run` runs it."""
        return [*HARDSAVE.split(), "run", "--timeline", "t", "--", *command]

    def saved(self) -> list[Saved]:
        """What the checkpoints of that hold, oldest first, once the process beside it has ended."""
        self.wait_until(lambda: self.hardsave("log", "--timeline", "t")[0]["status"] == "ended")
        (store,) = Path(self.environment["XDG_DATA_HOME"]).rglob("store.db")
        with hardsave.open(f"sqlite:///{store}") as vault:
            found = reversed(vault.timeline("t").checkpoints())
            return [Saved(each.id, dict(each.metadata), _lines(each.state)) for each in found]

    def changes(self) -> dict[str, list[str]]:
        """Each path that has changed on the timeline of a `hardsave run` since its first
        checkpoint, with the calls that its checkpoint says have made it."""
        self.wait_until(lambda: self.hardsave("log", "--timeline", "t")[0]["status"] == "ended")
        (store,) = Path(self.environment["XDG_DATA_HOME"]).rglob("store.db")
        found: dict[str, list[str]] = {}
        with hardsave.open(f"sqlite:///{store}") as vault:
            saved = list(reversed(vault.timeline("t").checkpoints(limit=1000)))
            for before, after in pairwise(saved):
                diff = difference(before.files, after.files)
                paths = (*diff.added, *diff.removed, *diff.changed)
                found |= {path: attributed(after, path) for path in paths}
        return found

    def check_told(self, made: dict[str, str]) -> None:
        """Each change is told of the call that made it. On a busy machine a moment may be missed:
        then a change is told of no call, and never of a wrong one."""
        changes = self.changes()
        assert {path: calls or [made[path]] for path, calls in changes.items()} == {
            path: [call] for path, call in made.items()
        }
        assert sum(not calls for calls in changes.values()) <= 1, changes

    @contextmanager
    def started(self, command: list[str], more: dict[str, str]) -> Iterator[None]:
        """An agent at work, until the end of the block: then it is killed with all its children."""
        process = subprocess.Popen(
            command,
            cwd=self.project,
            env={**self.environment, **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def screen(self, command: list[str], more: dict[str, str]) -> Screen:
        """An agent at a terminal."""
        program = shutil.which(command[0]) or command[0]
        environment = {**self.environment, **more, "LANG": "C.UTF-8"}
        return Screen(
            [program, *command[1:]],
            cwd=self.project,
            environment=environment,
            width=120,
            height=40,
        )

    def broken(self) -> dict[str, str]:
        """A store that cannot be saved in."""
        path = Path(self.environment["HOME"]) / "broken.db"
        path.write_text("no store at all\n")
        return {"HARDSAVE_STORE": str(path)}

    def checkpoints(self) -> dict[tuple[str, str | None], Any]:
        """The checkpoints of the one timeline, the newest by each hook and call."""
        (line,) = self.hardsave("timelines")
        return {
            (each["metadata"]["hook"], each["metadata"].get("tool_use_id")): each
            for each in reversed(self.hardsave("log", "--timeline", line["name"]))
        }

    def wait_for(self, path: Path) -> None:
        self.wait_until(path.exists)

    def wait_until(self, is_true: Callable[[], bool]) -> None:
        end = time.monotonic() + TIMEOUT_SECONDS
        while not is_true():
            assert time.monotonic() < end, "it never happened"
            time.sleep(0.05)

    def daemons(self) -> list[int]:
        """Those that hooks of this stage have left behind, and that are there."""
        found = []
        for folder in Path("/proc").iterdir():
            with suppress(OSError):
                if folder.name.isdigit() and b"hardsave-daemon" in (folder / "comm").read_bytes():
                    told = (folder / "environ").read_bytes().split(b"\0")
                    if os.fsencode(f"XDG_DATA_HOME={self.environment['XDG_DATA_HOME']}") in told:
                        found.append(int(folder.name))
        return found

    def answered(self) -> list[int]:
        """How many hooks each of them has seen to, itself the first, as their log tells."""
        logs = Path(self.environment["XDG_DATA_HOME"]).rglob("*-hooks.log")
        lines = [line for log in logs for line in log.read_text().splitlines()]
        return [int(line.split()[4]) for line in lines if "calls; it ends, because" in line]

    def story(self) -> str:
        """What daemons, hooks that failed and the agent itself have written down."""
        data = Path(self.environment["XDG_DATA_HOME"])
        told = [*data.rglob("*-hooks.log"), *data.rglob("hooks/*/*.json")]
        return "\n".join(path.read_text() for path in [*told, *self.config.rglob("*.jsonl")])

    def end_tool(self) -> None:
        """A tool outlives its agent; this one has written its process down."""
        with suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int((self.project / "pid").read_text()), signal.SIGKILL)

    def kept(self) -> dict[str, str]:
        """Everything in the agent's own folder, by what is in it."""
        found = (path for path in self.config.rglob("*") if path.is_file())
        return {str(path): sha256(path.read_bytes()).hexdigest() for path in found}

    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in sorted(self.project.iterdir())}
