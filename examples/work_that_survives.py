"""Four scenes with the server of `agent_server.py`: a normal run, a crash, a retry, no duplicates.

    make run

The server is a process of its own, and is really killed with SIGKILL.
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import hardsave

SERVER = Path(__file__).with_name("agent_server.py")
KILL_AFTER = 2  # actions of the second task


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        store = "sqlite:///" + str(Path(folder) / "jobs.db")
        say("1. A server works off a task, and stops.")
        check(serve(store, "Write the parser") == 4, "four actions")

        say("2. It gets two more, and is killed in the middle of the first.")
        serve(store, "Test the parser", "Ship the parser", kill_after=KILL_AFTER)
        with hardsave.open(store) as vault:
            task = vault.tasks.get("test-the-parser")
            done, total = task.progress
            say(f"   Killed. {task.id}: {task.state}, {done} of {total}.")
        say("   The same command again, with nothing else to do by hand:")
        left = serve(store, "Test the parser", "Ship the parser")
        check(left in (4 + 1, 4 + 2), f"{left} actions were left")  # one may have been under way

        say("3. What fails is tried again, as often as it may be.")
        retry(store)

        say("4. The same texts once more: they are known, and nothing runs twice.")
        texts = ("Write the parser", "Test the parser", "Ship the parser")
        check(serve(store, *texts) == 0, "nothing was done again")
        with hardsave.open(store) as vault:
            stats = vault.tasks.stats()
            say(f"   {stats.completed} of {stats.total} tasks completed, {stats.failed} failed.")
            check(vault.verify().ok, "the store is sound")
    return 0


def retry(store: str) -> None:
    def flaky(attempt: hardsave.Attempt) -> str:
        if attempt.number < 3 or attempt.id == "hopeless":
            raise OSError("the model is overloaded")
        return "at last"

    with hardsave.open(store) as vault, vault.tasks.runner("flaky") as runner:
        for name in ("flaky", "hopeless"):
            vault.tasks.add(name)
        runner.run(flaky, until_idle=True, retry=hardsave.Retry(first_seconds=0.1))
        for name in ("flaky", "hopeless"):
            task = vault.tasks.get(name)
            end = task.result or task.error
            say(f"   {name}: {task.state} after {task.attempts} attempts, {end}")
        check(vault.tasks.get("flaky").state == "completed", "it came through")


def serve(store: str, *texts: str, kill_after: int = 0) -> int:
    """Run the server and show what it says; how many actions it took."""
    command = [sys.executable, str(SERVER), store, *texts]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    actions = 0
    for line in process.stdout:
        print(line, end="", flush=True)
        actions += 1
        if actions == kill_after:
            os.kill(process.pid, signal.SIGKILL)
    process.stdout.close()
    check(process.wait() == (-signal.SIGKILL if kill_after else 0), "it ended as it should")
    return actions


def say(text: str) -> None:
    print(text, flush=True)


def check(holds: bool, what: str) -> None:
    if not holds:
        raise SystemExit(f"this should not happen: {what}")


if __name__ == "__main__":
    sys.exit(main())
