"""What an agent waits for after each of its tools: the whole process of a hook, and a shadow git's.

A file is edited and the conversation goes on before every call; then the hook saves both, with
the transcript's mark, git's position, ignore rules, secrets and caps, and syncs. Alone it opens
the store and looks at every file. As `hardsave init` installs them, the first hook of a session
does that, and leaves a daemon behind to which the others hand their work over; all of them count.
With `hardsave run` there is a daemon from the beginning. Beside it, what most rivals do at that
moment: `add -A` and a commit in a repository elsewhere.
"""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import hardsave
from bench import report
from bench.machine import check
from bench.report import Row, at_most
from bench.rivals import Shadow
from bench.setting import Setting
from bench.stopwatch import in_turns, median, timed
from bench.trees import Tree
from hardsave.agents import install
from hardsave.agents.claude_code.spec import CLAUDE_CODE
from hardsave.stores.local import daemon_lock

CALLS = 20
WARM = 2  # calls before those that count
HOOK = shlex.split(install.command(CLAUDE_CODE))
AGENT = 'printf "%s\\n" "$HARDSAVE_SOCKET"; cat > /dev/null'
TIMELINE = "bench"
QUIET_SECONDS = 0.4  # between two calls: a daemon looks whether a burst has left anything


class Conversation:
    """A conversation that goes on while files are edited, and the hooks that it calls."""

    def __init__(self, place: Path, tree: Tree) -> None:
        self._tree = tree
        self._transcript = place / "transcript.jsonl"
        self._data = str(place / "data")
        self._store = f"{place}/hooks.db"
        self.url = f"sqlite:///{self._store}"
        self.calls = 0
        for _ in range(50):
            self._say("hello, " * 100)

    def environment(self, **more: str) -> dict[str, str]:
        """As an agent has it."""
        dropped = ("HARDSAVE_", "CLAUDE_")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
        own = {"XDG_DATA_HOME": self._data, "HARDSAVE_STORE": self.url}
        return {**kept, **own, "HARDSAVE_TIMELINE": TIMELINE, **more}

    def edited(self, call: Callable[[], object]) -> float:
        """How long a call takes that comes after an edit."""
        time.sleep(QUIET_SECONDS)
        self._tree.edit(1)
        return timed(call)[0]

    def hook(self, event: str = "PostToolUse", **environment: str) -> None:
        self.calls += 1
        self._say("done")
        told = {
            "session_id": "bench",
            "hook_event_name": event,
            "transcript_path": str(self._transcript),
            "cwd": str(self._tree.root),
            "tool_name": "Edit",
            "tool_use_id": f"call-{self.calls}",
        }
        subprocess.run(
            HOOK,
            input=json.dumps(told).encode(),
            env=self.environment(**environment),
            cwd=self._tree.root,
            check=True,
        )

    def _say(self, text: str) -> None:
        message = {"role": "assistant", "content": text}
        with self._transcript.open("a") as file:
            file.write(json.dumps({"type": "assistant", "message": message}) + "\n")

    @contextmanager
    def daemon(self) -> Iterator[str]:
        """Where the daemon of a `hardsave run` listens, as long as its agent is there."""
        command = [sys.executable, "-m", "hardsave", "run", "--timeline", TIMELINE]
        agent = subprocess.Popen(
            [*command, "--", "sh", "-c", AGENT],
            cwd=self._tree.root,
            env=self.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        with agent:
            assert agent.stdout is not None
            path = agent.stdout.readline().decode().strip()
            check(os.path.exists(path), "the daemon does not listen")
            yield path
        while os.path.exists(path):  # it saves once more
            time.sleep(0.05)

    def daemons(self) -> int:
        """How many there are that hooks have left behind."""
        return sum(each.is_evictable for each in daemon_lock.of_store(self._store).values())

    def end_session(self) -> None:
        """With the daemon that its hooks have left behind."""
        self.hook("SessionEnd")
        while self.daemons():
            time.sleep(0.05)

    def saved(self) -> int:
        """How many calls have left a checkpoint."""
        with hardsave.open(self.url) as vault:
            found = [cp.metadata for cp in vault.timeline(TIMELINE).checkpoints(limit=1000)]
        return sum("tool_use_id" in about for about in found)


def hook(setting: Setting) -> list[Row]:
    place = setting.place / "hooks"
    tree = Tree(place / "work", setting.choose(7_000, 1_000), setting.tree)
    talk, shadow = Conversation(place, tree), Shadow(place / "shadow", tree.root)
    label = f"{tree.count:,} files"
    rounds = setting.choose(CALLS, 5) + WARM
    shadow.snapshot()
    bare = [sys.executable, "-P", "-c", "pass"]
    with_git = (lambda: talk.edited(shadow.snapshot), lambda: talk.edited(lambda: _run(bare)))
    hook_alone = partial(talk.hook, HARDSAVE_DAEMON="off")
    alone = in_turns(rounds, lambda: talk.edited(hook_alone), *with_git)
    installed = in_turns(rounds - WARM, lambda: talk.edited(talk.hook), *with_git)
    check(talk.daemons() == 1, "no hook has left a daemon behind")
    talk.end_session()
    with talk.daemon() as path:
        served = in_turns(
            rounds, lambda: talk.edited(lambda: talk.hook(HARDSAVE_SOCKET=path)), *with_git
        )
    check(talk.saved() == talk.calls == 3 * rounds - WARM + 1, "a call left no checkpoint")
    return [
        _row(f"a hook alone, {label}", [found[WARM:] for found in alone], 130),
        _row(f"hooks of a session as installed, {label}", installed, 45),
        _row(f"a hook with the daemon of a run, {label}", [f[WARM:] for f in served], 45),
    ]


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True)


def _row(figure: str, times: list[list[float]], most: float) -> Row:
    ours, git, bare = (median(found) for found in times)
    return Row(
        figure,
        ours=report.duration(ours),
        other=f"{report.duration(git)} shadow git",
        value=ours * 1000,
        unit="ms",
        target=at_most(most),
        note=f"medians of {len(times[0])} processes, one file edited before each; the first takes "
        f"{report.duration(times[0][0])}, and Python alone {report.duration(bare)} to start",
    )
