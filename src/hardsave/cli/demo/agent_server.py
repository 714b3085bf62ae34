"""An agent server in forty lines: kill it whenever you like, and start it again.

    python examples/agent_server.py sqlite:///jobs.db "Write the parser" "Test the parser"

Every text is a task. Its steps are recorded as they end, so a server that comes back goes on
behind the last one; a task that was done is never done again.
"""

import logging
import sys
import time

import hardsave


def think(text: str) -> list[str]:
    """Stands for a model: what there is to do."""
    time.sleep(0.1)
    return [f"{text.lower()}: {part}" for part in ("plan it", "begin", "go on", "finish")]


def act(action: str) -> str:
    """Stands for a tool: something that must not happen twice."""
    print(f"    {action}", flush=True)
    time.sleep(0.1)
    return "done"


def handle(attempt: hardsave.Attempt) -> str:
    actions = attempt.step("think", think, attempt.task.text)
    for number, action in enumerate(actions, 1):
        attempt.step("act", act, action, unknown="skip")
        attempt.progress(number, len(actions))
    return f"{len(actions)} actions"


def main(store: str, *texts: str) -> None:
    logging.basicConfig(format="%(message)s")  # what recovery has found is a warning
    with hardsave.open(store) as vault:
        for text in texts:
            vault.tasks.add(text.lower().replace(" ", "-"), text)
        with vault.tasks.runner("agent-server") as runner:
            runner.run(handle, until_idle=True)  # without it: until SIGTERM


if __name__ == "__main__":
    main(*sys.argv[1:])
