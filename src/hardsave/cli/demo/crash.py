"""An agent that is killed in the middle of its work, and goes on.

A scripted agent saves its conversation after every step. It is killed with SIGKILL, started
again, and continues with the step after the last one it saved. Then its past is forked into
another timeline, and the two are compared.
"""

import sys
import time
from typing import Any

import hardsave
from hardsave.cli.demo.stage import Kill, Stage, check

STEPS = [
    "read the failing test",
    "find the function it calls",
    "write down a plan",
    "change the parser",
    "run the tests",
    "fix the off-by-one",
    "run the tests again",
    "write the summary",
]
KILL = Kill(after=4, last=len(STEPS) - 1)


def agent(store: str) -> None:
    """What a user would write: load, work, save after each step."""
    with hardsave.open(store) as vault:
        line = vault.timeline("fix-the-parser")
        state: dict[str, Any] = line.load() if line.head else {"messages": [], "turn": 0}
        for turn in range(state["turn"], len(STEPS)):
            time.sleep(0.1)  # the model thinks
            state["messages"].append({"role": "assistant", "content": f"I will {STEPS[turn]}."})
            state["messages"].append({"role": "tool", "content": f"done: {STEPS[turn]}"})
            state["turn"] = turn + 1
            name = "plan-ready" if STEPS[turn] == "write down a plan" else None
            line.save(state, name=name, status="running" if turn < 7 else "done")
            print(f"    turn {turn + 1}: {STEPS[turn]}", flush=True)


def play(stage: Stage) -> None:
    store, say = stage.store, stage.say
    say("1. An agent starts to work, and saves after every turn.")
    stage.play(__name__, store, kill=KILL)
    with hardsave.open(store) as vault:
        saved = vault.timeline("fix-the-parser").load()["turn"]
    say(f"   Killed with SIGKILL. Turn {saved} was the last one saved.")

    say("2. The same command again: it goes on where it was.")
    first = int(stage.play(__name__, store)[0].split()[1].rstrip(":"))
    check(first == saved + 1, f"the second run began with turn {first}, not {saved + 1}")

    with hardsave.open(store) as vault:
        line = vault.timeline("fix-the-parser")
        state = line.load()
        turns = [m["content"] for m in state["messages"] if m["role"] == "tool"]
        check(turns == [f"done: {step}" for step in STEPS], "every turn is there exactly once")
        say(f"   {len(line)} checkpoints, {len(state['messages'])} messages, nothing twice.")

        say("3. Back to the plan, on a timeline of its own.")
        other = line.fork("plan-ready", name="another-way")
        other.append({"messages": [{"role": "user", "content": "use a library instead"}]})
        found = vault.diff(line.get(), other.get())
        for what, paths in (("added", found.added), ("removed", found.removed)):
            say(f"   {what}: {', '.join(map(str, paths)) or 'nothing'}")
        say(f"   changed: {', '.join(map(str, found.changed)) or 'nothing'}")

        report = vault.store.verify()
        check(report.ok, f"faults: {report.faults}")
        say(f"4. Verified: {report.checkpoints} checkpoints and {report.objects} objects.")


if __name__ == "__main__":
    agent(sys.argv[1])
