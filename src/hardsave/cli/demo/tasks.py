"""Four scenes with an agent server: a normal run, a crash, a retry, no duplicates."""

import hardsave
from hardsave.cli.demo import agent_server
from hardsave.cli.demo.stage import Kill, Stage, check

SERVER = agent_server.__name__
ACTIONS = 4  # of each task
KILL = Kill(after=2, last=3)  # actions of the second task
TEXTS = ("Write the parser", "Test the parser", "Ship the parser")


def play(stage: Stage) -> None:
    store, say = stage.store, stage.say
    say("1. A server works off a task, and stops.")
    check(len(stage.play(SERVER, store, TEXTS[0])) == ACTIONS, "four actions")

    say("2. It gets two more, and is killed in the middle of the first.")
    done = len(stage.play(SERVER, store, *TEXTS[1:], kill=KILL))
    with hardsave.open(store) as vault:
        task = vault.tasks.get("test-the-parser")
        progress = task.progress
        say(f"   Killed. {task.id}: {task.state}, {progress.done} of {progress.total}.")
    say("   The same command again, with nothing else to do by hand:")
    left = len(stage.play(SERVER, store, *TEXTS[1:]))
    most = 2 * ACTIONS - done
    check(left in (most - 1, most), f"{left} actions were left")  # one may have been under way

    say("3. What fails is tried again, as often as it may be.")
    _retry(stage)

    say("4. The same texts once more: they are known, and nothing runs twice.")
    check(stage.play(SERVER, store, *TEXTS) == [], "nothing was done again")
    with hardsave.open(store) as vault:
        stats = vault.tasks.stats()
        say(f"   {stats.completed} of {stats.total} tasks completed, {stats.failed} failed.")
        check(vault.store.verify().ok, "the store is sound")


def _retry(stage: Stage) -> None:
    def flaky(attempt: hardsave.Attempt) -> str:
        if attempt.number < 3 or attempt.id == "hopeless":
            attempt.fail("the model is overloaded")  # raised, it would be shown with its traceback
        return "at last"

    with hardsave.open(stage.store) as vault, vault.tasks.runner("flaky") as runner:
        for name in ("flaky", "hopeless"):
            vault.tasks.add(name, max_attempts=3)
        runner.run(flaky, until_idle=True, retry=hardsave.Retry(first_seconds=0.1))
        for name in ("flaky", "hopeless"):
            task = vault.tasks.get(name)
            end = task.result or task.error
            stage.say(f"   {name}: {task.state} after {task.attempts} attempts, {end}")
        check(vault.tasks.get("flaky").state == "completed", "it came through")
        check(vault.tasks.get("hopeless").state == "failed", "it was given up")
