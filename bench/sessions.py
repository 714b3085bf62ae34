"""A directory with many sessions of an agent in it, for measuring what lists them.

    python -m bench.sessions DIR [--checkpoints 3000] [--sessions 40]

Written through the public API, as hooks would: a checkpoint at every prompt, one before and one
after each tool call, one with the answer; a file is edited by every other call. What is in DIR
already stays, and the store is the one that commands in DIR use.
"""

import argparse
import os
import random
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import hardsave
from hardsave.agents.claude_code.spec import CLAUDE_CODE

FILES = 60
CALLS = 6  # after each prompt
WORDS = (
    "fix the parser",
    "add tests for the cache",
    "why does the login fail",
    "rename the module",
    "make the build faster",
    "write a changelog",
)
COMMANDS = ("make test", "git status", "rm -f build.log", "git push origin main", "ls src")


class AgentSession:
    """One conversation: what it says and does, step by step."""

    def __init__(self, vault: hardsave.Vault, root: Path, number: int) -> None:
        self._id = str(uuid.UUID(int=random.Random(number).getrandbits(128), version=4))
        self._line = vault.timeline(f"{CLAUDE_CODE.program}-{self._id}")
        self._random = random.Random(number)
        self._root = root
        self._number = number
        self._calls = 0
        self.steps = self._steps()

    def _steps(self) -> Iterator[hardsave.Checkpoint]:
        """Each is one checkpoint; it never ends."""
        for turn in range(sys.maxsize):
            prompt = f"{WORDS[(self._number + turn) % len(WORDS)]} ({self._number}.{turn})"
            step = hardsave.StepSummary(prompt=prompt)
            yield self._save([], "UserPromptSubmit", f"before: {prompt}", step, title=prompt)
            said = [{"role": "user", "content": prompt}]
            for _ in range(CALLS):
                yield from self._call(said)
                said = []
            answer = {"role": "assistant", "content": f"Done with {prompt}. " * 4}
            yield self._save([answer], "Stop", "answered", hardsave.StepSummary())

    def _call(self, said: list[dict[str, Any]]) -> Iterator[hardsave.Checkpoint]:
        self._calls += 1
        id, target = f"toolu_{self._number}_{self._calls}", self._random.randrange(FILES)
        if self._calls % 2:
            tool, about = "Edit", f"src/f{target}.py"
        else:
            tool, about = "Bash", self._random.choice(COMMANDS)
        call = {"type": "tool_use", "id": id, "name": tool, "input": {"target": about}}
        before = hardsave.StepSummary(call=f"{tool}({about})", call_id=id, phase="before")
        asked = [*said, {"role": "assistant", "content": [call]}]
        yield self._save(asked, "PreToolUse", f"before {tool}: {about}", before)
        if tool == "Edit":
            (self._root / about).write_text(f"n = {self._number}\ncalls = {self._calls}\n")
        result = {"type": "tool_result", "tool_use_id": id, "content": "ok\n" * 5}
        outside = ("git push",) if "push" in about else ()
        after = before.replace(phase="after", outside=outside)
        answer = [{"role": "user", "content": [result]}]
        yield self._save(answer, "PostToolUse", f"after {tool}: {about}", after)

    def _save(
        self,
        messages: list[dict[str, Any]],
        hook: str,
        description: str,
        step: hardsave.StepSummary,
        title: str = "",
    ) -> hardsave.Checkpoint:
        transcript = {"agent": CLAUDE_CODE.name, "session": self._id, "path": "", "offset": 0}
        return self._line.append(
            {"transcript": transcript, "messages": messages, "lines": []},
            description=description,
            metadata={"agent": CLAUDE_CODE.name, "session": self._id, "hook": hook},
            workspace=self._root,
            step=step,
            title=title,
        )


def write(root: Path, checkpoints: int, sessions: int) -> None:
    """Fill a directory, and the store that commands in it use. Three sessions work at a time."""
    (root / "src").mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        (root / f"src/f{number}.py").write_text(f"n = {number}\n")
    os.chdir(root)
    each = -(-checkpoints // sessions)
    with hardsave.open(durability="process") as vault:
        every = [AgentSession(vault, root, number) for number in range(sessions)]
        left = checkpoints
        for start in range(0, sessions, 3):
            some = every[start : start + 3]
            for one in islice(cycle(some), min(left, each * len(some))):
                next(one.steps)
            left -= min(left, each * len(some))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.sessions", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--checkpoints", type=int, default=3_000)
    parser.add_argument("--sessions", type=int, default=40)
    options = parser.parse_args(arguments)
    begin = time.perf_counter()
    write(options.directory.resolve(), options.checkpoints, options.sessions)
    print(f"{options.checkpoints} checkpoints in {time.perf_counter() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
