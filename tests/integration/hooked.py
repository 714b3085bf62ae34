"""Agents that call hooks as `hardsave init` installs them, in a project with a store of its own."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import hardsave
from hardsave.agents import install
from hardsave.agents.claude_code.spec import CLAUDE_CODE
from hardsave.daemon import spool
from hardsave.stores.local import daemon_lock

LIMIT = 60.0
HOOK = install.command(CLAUDE_CODE)
# As it is, but for the half second after which a hook takes silence for an answer: on a slow
# machine a daemon may be there that does not come to say so.
PATIENT = HOOK.replace(
    "-c 'from",
    f"-c 'from hardsave.daemon import client; client.TAKEN_SECONDS = {LIMIT}; from",
)
assert PATIENT != HOOK
OBEDIENT = PATIENT.replace(" -E ", " ")  # as it is where only PYTHONPATH leads to us
# An agent calls its hooks through a shell and waits until their output is closed. This one is told
# on its standard input what to do: one line each time, with the words of hooks that begin at once.
AGENT = """
import subprocess, sys
for line in sys.stdin:
    told = line.rstrip("\\n").split("\\t")
    hooks = [subprocess.Popen(["sh", "-c", sys.argv[1]], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in told]
    for hook, words in zip(hooks, told):
        hook.stdin.write(words.encode())
        hook.stdin.close()
    said = [hook.stdout.read() + b"%d" % hook.wait() for hook in hooks]
    print(b" ".join(said).decode(), flush=True)
"""


class Agent:
    """A process that calls hooks, as often as it is told to."""

    def __init__(self, stage: "Stage", session: str, **environment: str) -> None:
        self.session = session
        self._stage = stage
        self.process = subprocess.Popen(
            [sys.executable, "-E", "-P", "-c", AGENT, stage.command],
            cwd=stage.work,
            env={**stage.environment, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hooks(self, *calls: str, event: str = "PostToolUse") -> None:
        """All at once; each ends with 0, and has nothing to say."""
        about = {"session_id": self.session, "hook_event_name": event, "cwd": str(self._stage.work)}
        self._tell(*({**about, "tool_use_id": call} for call in calls))

    def hook(self, event: str, **told: object) -> None:
        """One, which is told more."""
        about = {"session_id": self.session, "hook_event_name": event, "cwd": str(self._stage.work)}
        self._tell({**about, **told})

    def _tell(self, *told: Mapping[str, object]) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\t".join(json.dumps(each) for each in told) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline().split() == ["0"] * len(told)

    def end(self) -> None:
        """As it ends by itself: no hook says so."""
        with suppress(BrokenPipeError):
            self.process.communicate(timeout=LIMIT)


class Stage:
    """A project with a store of its own, and agents that work there."""

    command = PATIENT

    def __init__(self, base: Path) -> None:
        self.base = base
        self.work = base / "work"
        self.work.mkdir()
        (self.work / "f").write_text("one")
        self.agents: list[Agent] = []
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HARDSAVE_", "CLAUDE_"))}
        own = {"HOME": str(base), "XDG_DATA_HOME": str(base / "data")}
        self.environment = {**kept, **own, "HARDSAVE_STORE": str(base / "store" / "s.db")}

    @property
    def store(self) -> Path:
        return Path(self.environment["HARDSAVE_STORE"])

    def agent(self, session: str = "s", **environment: str) -> Agent:
        made = Agent(self, session, **environment)
        self.agents.append(made)
        return made

    def holders(self) -> list[int]:
        """Who answers hooks, as everybody can see it."""
        return [who.pid for who in daemon_lock.of_store(str(self.store)).values()]

    def daemon(self) -> int:
        """The one that hooks find by now, and that has looked at everything."""
        self.wait_for(lambda: len(self.links()) == 1 and len(self.holders()) == 1)
        (pid,) = self.holders()
        self.wait_for(lambda: f" {pid} INFO {self.work} is known" in self.log())
        return pid

    def links(self) -> list[Path]:
        folder = self.base / "data" / "hardsave" / "daemons"
        return [path for path in folder.iterdir() if path.exists()] if folder.exists() else []

    def log(self) -> str:
        path = Path(f"{self.store}-hooks.log")
        return path.read_text() if path.exists() else ""

    def handed_over(self) -> int:
        """How many hooks were answered by daemons that have ended since."""
        return sum(int(line.split()[4]) - 1 for line in self.log().splitlines() if "calls;" in line)

    def calls(self, session: str = "s") -> list[str]:
        """Those that have a checkpoint, oldest first."""
        with hardsave.open(f"sqlite:///{self.store}") as vault:
            found = [
                cp.metadata for cp in vault.timeline(f"claude-{session}").checkpoints(limit=1000)
            ]
        return [str(about["tool_use_id"]) for about in found][::-1]

    def notes(self) -> list[str]:
        folder = spool.folder(self.environment, self.work)
        return [path.name for path in folder.iterdir()] if folder.exists() else []

    def cli(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-P", "-m", "hardsave", *words],
            cwd=self.work,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )

    def wait_for(self, is_true: Callable[[], bool]) -> None:
        end = time.monotonic() + LIMIT
        while not is_true():
            assert time.monotonic() < end, self.log()
            time.sleep(0.02)

    def wait_until_no_process_is_left(self) -> None:
        self.wait_for(lambda: self.processes() == [])

    def processes(self) -> list[int]:
        """Those that have this stage's store in their environment."""
        wanted = b"HARDSAVE_STORE=" + os.fsencode(self.store)
        found = []
        for folder in Path("/proc").iterdir():
            with suppress(OSError):
                if folder.name.isdigit() and wanted in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
        return found

    def end(self) -> None:
        for agent in self.agents:
            agent.end()
        self.wait_until_no_process_is_left()
