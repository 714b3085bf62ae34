"""Tasks as people see them: rows of a list, a page of one task, and its history."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime

from rich.text import Text

from hardsave import Task, wording
from hardsave.cli.render import draw, times
from hardsave.tasks.ledger import Tasks
from hardsave.tasks.stats import TaskEvent, TaskStats
from hardsave.tasks.task import moment
from hardsave.values import text

STYLES = {
    "pending": "",
    "in_progress": "changed",
    "completed": "added",
    "failed": "error",
    "rolled_back": "warning",
}


def rows(tasks: Sequence[Task], now: datetime, over: Collection[str] = ()) -> list[Text]:
    """One line a task. `over` are those that were given up: what waits for one waits in vain."""
    return draw.columns([_row(task, now, over) for task in tasks])


def _row(task: Task, now: datetime, over: Collection[str]) -> tuple[Text, ...]:
    text = wording.line(task.text, 80) if task.text != task.id else ""
    return (
        Text(wording.shown(task.id), style="name"),
        Text(task.state, style=STYLES[task.state]),
        Text(f"{task.attempts}/{task.max_attempts}", style="quiet"),
        Text(_since(task, now), style="quiet"),
        Text.assemble(text, (f"{'  ' if text else ''}{_note(task, now, over)}", "quiet")),
    )


def _since(task: Task, now: datetime) -> str:
    moment = task.ended_at or task.started_at or task.created_at
    return wording.ago(moment, now)


def waits(task: Task, now: datetime, over: Collection[str] = ()) -> str:
    """What a pending task waits for, apart from a runner; empty: nothing."""
    if task.question is not None:
        return f"asks: {wording.line(task.question, 80)}"
    if task.waits_for is not None:
        why = ", which was given up" if task.waits_for in over else ""
        return f"waits for {wording.shown(task.waits_for)}{why}"
    if task.state == "pending" and task.not_before is not None and task.not_before > now:
        return f"not before {times.local(task.not_before)}"
    return ""


def given_up(tasks: Tasks, waiting: Iterable[Task]) -> set[str]:
    """Which of the tasks that these wait for will not be completed unless retried."""
    names = {task.waits_for for task in waiting if task.waits_for is not None}
    return {name for name in names if tasks.get(name).state in ("failed", "rolled_back")}


def _note(task: Task, now: datetime, over: Collection[str]) -> str:
    """What is most worth knowing of it now."""
    if found := waits(task, now, over):
        return found
    if task.error is not None and task.state != "completed":
        return wording.line(wording.in_our_words(task.error), 80)
    if task.progress.total and task.state != "completed":
        return f"{task.progress.done} of {task.progress.total}"
    return ""


def counted(found: TaskStats) -> str:
    """`2 pending, 1 failed`."""
    counts = {state: getattr(found, state) for state in STYLES}
    said = [f"{number:,} {state}" for state, number in counts.items() if number]
    return ", ".join(said) or "no tasks"


def page(task: Task, now: datetime) -> Iterator[Text]:
    """All that is known of one."""
    yield draw.line((wording.shown(task.id), "name"), "  ", (task.state, STYLES[task.state]))
    progress = f"{task.progress.done} of {task.progress.total}" if task.progress.total else None
    result = None if task.result is None else text.shown(task.result)
    yield from draw.fields(
        {
            "text": wording.line(task.text) if task.text != task.id else None,
            "attempts": f"{task.attempts} of {task.max_attempts}",
            "generation": str(task.generation) if task.generation > 1 else None,
            "priority": str(task.priority) if task.priority else None,
            "progress": progress,
            "added": wording.ago(task.created_at, now),
            "begun": _ago(task.started_at, now),
            "ended": _ago(task.ended_at, now),
            "not before": None if task.not_before is None else times.local(task.not_before),
            "after": ", ".join(wording.shown(name) for name in task.after),
            "waits for": task.waits_for,
            "asks": task.question,
            "error": None if task.error is None else wording.in_our_words(task.error),
            "result": None if result is None else wording.line(result, 400),
        }
    )


def _ago(then: datetime | None, now: datetime) -> str | None:
    return None if then is None else wording.ago(then, now)


def history(history: Sequence[TaskEvent]) -> Iterator[Text]:
    """What happened to one, in order; tracebacks below."""
    for one in history:
        about = {key: value for key, value in one.about.items() if key != "traceback" and value}
        said = ", ".join(_said(key, value) for key, value in about.items())
        yield draw.line(
            (f"{times.local(one.at)}  ", "quiet"), (one.kind, "name"), f"  {said}" if said else ""
        )
        if trace := one.about.get("traceback"):
            for line in wording.passage(str(trace)).rstrip().splitlines():
                yield Text(f"    {line}", style="quiet")


def _said(key: str, value: object) -> str:
    if key == "again_at" and isinstance(value, int):
        return f"again at {times.local(moment(value))}"
    if key == "was" and isinstance(value, list):  # what an undo needs to know
        return f"was {value[0]}"
    return f"{key} {wording.line(text.shown(value), 100)}"
