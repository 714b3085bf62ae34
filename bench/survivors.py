"""`python -m bench.survivors`: the same kills, and what each keeper of agents loses by them.

One agent, three keepers: ours, Pydantic AI's StepPersistence, OpenAI Agents' SQLiteSession. The
model is scripted and talks real HTTP; processes are killed with SIGKILL and started again, until
one comes to an end. What counts is seen from outside: what the model was asked, and what the
tools did.
"""

import argparse
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from bench.machine import ROOT, check
from hardsave.runtime.scripted import Call, Reply, Request, Script, ScriptedModel, Silence

KEEPERS = {
    "ours": "Hardsave",
    "harness": "StepPersistence",
    "agents": "SQLiteSession",
}
ANSWER = "All done"
TURNS = 3
MOMENTS = {
    "before a": "after the first response, before any tool",
    "before b": "after the first of three tools that run at once",
    "turn 2": "after all three tools, while the model answers",
    "after pay": "inside a tool, after its effect",
    "turn 3": "after that tool, while the model answers",
    "at the end": "after the last response",
}
TIMEOUT_SECONDS = 120


class Went(NamedTuple):
    """What a run came to, with all its processes."""

    asked_again: int
    """Answers of the model that were there before, and were paid for once more."""
    done_again: dict[str, int]
    """Effects of tools that came about more than once."""
    missing: list[str]
    """Effects that never came about."""
    broken: int
    """Requests with calls that nothing answers: models refuse those."""
    answer: str

    @property
    def words(self) -> str:
        if self.answer != ANSWER:
            return f"does not go on: {self.answer}"
        said = []
        if self.asked_again:
            said.append(f"{_count(self.asked_again, 'answer')} asked for again")
        if self.done_again:
            said.append("done again: " + ", ".join(self.done_again))
        if self.missing:
            said.append("never done: " + ", ".join(self.missing))
        if self.broken:
            said.append(f"{_count(self.broken, 'request')} that a model refuses")
        return "; ".join(said) or "nothing"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def script(moment: str) -> Script:
    made = tuple(Call("make", {"name": name}) for name in "abc")
    replies = [
        Reply("First the files", made),
        Reply("Now the money", (Call("pay", {"amount": 7}),)),
        Reply(ANSWER),
        Reply(ANSWER),  # for whoever asks once more after the end
    ]
    return [
        [Silence(), reply] if moment == f"turn {number}" else reply
        for number, reply in enumerate(replies, 1)
    ]


def went(who: str, moment: str, folder: Path) -> Went:
    (folder / "files").mkdir(parents=True)
    with ScriptedModel(script(moment)) as model:
        _killed(who, moment, folder, model)
        ended = subprocess.run(
            _command(who, folder, model, ""),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        requests = model.requests
    lines = (ended.stdout if ended.returncode == 0 else ended.stderr).strip().splitlines()
    effects = Counter((folder / "effects").read_text().splitlines())
    in_flight = 1 if moment.startswith("turn") else 0
    return Went(
        asked_again=max(0, len(requests) - TURNS - in_flight),
        done_again={name: count for name, count in effects.items() if count > 1},
        missing=sorted({"make a", "make b", "make c", "pay"} - effects.keys()),
        broken=sum(is_broken(request) for request in requests),
        answer=lines[-1] if lines else "",
    )


def _killed(who: str, moment: str, folder: Path, model: ScriptedModel) -> None:
    process = subprocess.Popen(_command(who, folder, model, moment), cwd=ROOT)
    if moment.startswith("turn"):
        check(model.wait_for_stalls(1, timeout_seconds=TIMEOUT_SECONDS), "it came that far")
        process.kill()
    code = process.wait(TIMEOUT_SECONDS)
    check(code == -signal.SIGKILL, f"{who} ended with {code} at {moment!r}, and was not killed")


def _command(who: str, folder: Path, model: ScriptedModel, moment: str) -> list[str]:
    words = [who, str(folder), model.openai_url, f"--moment={moment}"]
    return [sys.executable, "-m", "bench.survivor", *words]


def is_broken(request: Request) -> bool:
    """Whether it has a call that nothing answers before the model speaks again."""
    waiting: set[str] = set()
    for message in request.body["messages"]:
        if message["role"] == "tool":
            waiting.discard(message["tool_call_id"])
        elif waiting:
            return True
        waiting |= {call["id"] for call in message.get("tool_calls") or ()}
    return bool(waiting)


def table(found: dict[tuple[str, str], Went]) -> str:
    head = ["killed", *KEEPERS.values()]
    rows = [
        [MOMENTS[moment], *(found[who, moment].words for who in KEEPERS)]
        for moment in MOMENTS
        if all((who, moment) in found for who in KEEPERS)
    ]
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def versions() -> str:
    named = ("pydantic-ai-slim", "pydantic-ai-harness", "openai-agents")
    return ", ".join(f"{name} {version(name)}" for name in named)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.survivors", description=__doc__)
    parser.add_argument("--only", choices=MOMENTS, action="append")
    options: Any = parser.parse_args()
    found: dict[tuple[str, str], Went] = {}
    with tempfile.TemporaryDirectory() as place:
        for moment in options.only or MOMENTS:
            for who in KEEPERS:
                found[who, moment] = went(who, moment, Path(place, who, moment.replace(" ", "-")))
                print(f"{who}, {moment}: {found[who, moment]}", file=sys.stderr, flush=True)
    print(f"{datetime.now(UTC):%Y-%m-%d}, {versions()}\n\n{table(found)}")
    return int(any(went.words != "nothing" for (who, _), went in found.items() if who == "ours"))


if __name__ == "__main__":
    sys.exit(main())
