"""A ledger at work, in processes that are struck: what they do, what they say, what must hold.

A process tells what has returned, and every effect of a step as it happens:

    did add TASK | did step TASK NAME | did complete TASK | did iterate COUNT | did append WORD
    effect TASK NAME
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hardsave
from hardsave.errors import HardsaveError
from tests.crash import scenarios
from tests.crash.events import Journal
from tests.crash.injector import Strike, watch

Tell = Callable[[str], None]
Body = Callable[[hardsave.Attempt, Tell], Any]

AT_ONCE = hardsave.Retry(first_seconds=0, max_seconds=0)


def _step(attempt: hardsave.Attempt, tell: Tell, name: str, unknown: Any) -> None:
    value = f"{attempt.id} {name}"

    def effect() -> str:
        tell(f"effect {value}")
        return value

    assert attempt.step(name, effect, unknown=unknown) in (value, None)  # None: it was skipped
    tell(f"did step {value}")


def plain(attempt: hardsave.Attempt, tell: Tell) -> str:
    """Steps that cost one commit, and progress."""
    for number in range(3):
        _step(attempt, tell, f"part{number}", "retry")
        attempt.progress(number + 1, 3)
    return "plain"


def careful(attempt: hardsave.Attempt, tell: Tell) -> str:
    """Steps whose start is recorded; the first attempt fails between them."""
    _step(attempt, tell, "pay", "fail")
    if attempt.number == 1:
        raise ValueError("not yet")
    _step(attempt, tell, "ship", "fail")
    return "careful"


def asking(attempt: hardsave.Attempt, tell: Tell) -> Any:
    """Steps around a question to a person."""
    _step(attempt, tell, "draft", "retry")
    answer = attempt.ask("Send it?")
    _step(attempt, tell, "send", "retry")
    return answer


SAID = ["first", "within", "last"]


def appending(attempt: hardsave.Attempt, tell: Tell, chat: hardsave.Timeline) -> str:
    """Appends in the body, and in a step between them; another step looks at the timeline."""

    def append(word: str) -> None:
        chat.append({"said": [word]})
        tell(f"did append {word}")

    append("first")
    attempt.step("within", append, "within")
    attempt.step("count", lambda: len(chat))
    append("last")
    return "appending"


BODIES: dict[str, Body] = {"plain": plain, "careful": careful, "asking": asking}
UNDER_RETRY = {"part0", "part1", "part2", "draft", "send"}


def run(
    folder: str,
    told: str,
    strike: tuple[int, Any, bool] | None = None,
    journal: str | None = None,
) -> None:
    """All of it, once, and everything is left open."""
    tell = scenarios.teller(Path(told))
    planned = None if strike is None else Strike(*strike)
    watch(Path(folder), planned, None if journal is None else Journal(Path(journal)))
    scenarios.prepare()
    vault = hardsave.open(scenarios.url(folder))
    _add(vault, tell)
    tell(f"did iterate {vault.tasks.iterate()}")
    _finish(vault, tell)


def _add(vault: hardsave.Vault, tell: Tell) -> None:
    for name in (*BODIES, "appending"):
        vault.tasks.add(name, f"do {name}")
        tell(f"did add {name}")
    vault.tasks.add("last", after=["plain", "careful"])
    tell("did add last")


def _finish(vault: hardsave.Vault, tell: Tell) -> None:
    """Run everything to its end, one after the other, answering what is asked."""
    with vault.tasks.runner("crashing") as runner:
        handler = _handler(vault, tell)
        runner.run(handler, until_idle=True, retry=AT_ONCE)
        for task in vault.tasks.find():
            if task.question is not None:
                vault.tasks.answer(task.id, "yes")
            if task.state == "failed":  # by a step that nobody knows the end of
                vault.tasks.retry(task.id, unknown="skip")
        runner.run(handler, until_idle=True, retry=AT_ONCE)


def _handler(vault: hardsave.Vault, tell: Tell) -> Callable[[hardsave.Attempt], Any]:
    def handler(attempt: hardsave.Attempt) -> Any:
        if attempt.id == "appending":
            return appending(attempt, tell, vault.timeline("chat"))
        body = BODIES.get(attempt.id)
        return "last" if body is None else body(attempt, tell)

    return handler


# What must hold


def check(folder: str, told: list[str]) -> list[str]:
    """What does not hold after a process was struck, one line each."""
    later: list[str] = []
    try:
        with hardsave.open(scenarios.url(folder)) as vault:
            faults = _lost(vault, told) + _inconsistent(vault)
            _add(vault, later.append)  # also those that it never came to
            _recover(vault, later.append)
            faults += _unfinished(vault) + _inconsistent(vault) + list(vault.store.verify().faults)
            said = vault.timeline("chat").load()["said"]
            faults += [] if said == SAID else [f"{said} was appended"]
        return faults + _repeated(told, later)
    except HardsaveError as error:
        return [f"{type(error).__name__}: {error}"]


def _lost(vault: hardsave.Vault, told: list[str]) -> list[str]:
    """What was acknowledged and is not there."""
    faults = []
    journals = {
        task.id: {
            entry.step: entry.kind
            for entry in vault._context.store.journal(None, task.id, task.generation)
        }
        for task in vault.tasks.find()
    }
    for line in told:
        match line.split():
            case ["did", "add", name] if name not in journals:
                faults.append(f"task {name} is lost")
            case ["did", "step", task, name]:
                if journals.get(task, {}).get(f"{name}#1") != "step_done":
                    faults.append(f"step {name} of {task} is lost")
            case ["did", "append", word] if word not in _said(vault):
                faults.append(f"the append of {word} is lost")
            case ["did", "iterate", count] if vault.tasks.iterations < int(count):
                faults.append("an iteration is lost")
    return faults


def _said(vault: hardsave.Vault) -> list[str]:
    head = vault.timeline("chat").head
    return [] if head is None else head.read("said")


def _inconsistent(vault: hardsave.Vault) -> list[str]:
    tasks = vault.tasks.find()
    stats = vault.tasks.stats()
    faults = [] if stats.total == len(tasks) else [f"{stats.total} tasks are counted"]
    for task in tasks:
        claims = sum(each.kind == "claimed" for each in vault.tasks.history(task.id))
        if task.attempts > claims:
            faults.append(f"{task.id} has {task.attempts} attempts and {claims} claims")
        if (task.state == "completed") != (task.result is not None):
            faults.append(f"{task.id} is {task.state} with result {task.result!r}")
    return faults


def _recover(vault: hardsave.Vault, tell: Tell) -> None:
    _finish(vault, tell)
    _finish(vault, tell)  # what was settled in the first round asks again in the second


def _unfinished(vault: hardsave.Vault) -> list[str]:
    return [
        f"{task.id} is {task.state}: {task.error or task.question}"
        for task in vault.tasks.find()
        if task.state != "completed"
    ]


def _repeated(told: list[str], later: list[str]) -> list[str]:
    """Effects that happened again although their step was recorded, or their policy forbids it."""
    effects = Counter(line for line in [*told, *later] if line.startswith("effect"))
    done = {line.removeprefix("did step ") for line in told if line.startswith("did step")}
    faults = []
    for line, count in effects.items():
        step = line.removeprefix("effect ")
        most = 2 if step.split()[1] in UNDER_RETRY and step not in done else 1
        if count > most:
            faults.append(f"{step} happened {count} times")
    return faults
