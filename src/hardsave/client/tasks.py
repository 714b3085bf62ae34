"""The tasks of a server: looking at them, and what a person decides about them."""

from typing import TYPE_CHECKING, Any

from hardsave.client import reading
from hardsave.client.calls import Calls, given
from hardsave.page import Page
from hardsave.tasks.stats import TaskEvent
from hardsave.tasks.task import Task
from hardsave.values.spelling import to_json

if TYPE_CHECKING:
    from hardsave.tasks.steps import UnknownPolicy


class RemoteTasks:
    """The tasks of one user, with the names of `Tasks`: `vault.tasks`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def find(
        self, *, state: str | None = None, limit: int = 50, after: str | None = None
    ) -> Page[Task]:
        """A page of tasks, the newest first. `after` is the `next` of the page before."""
        told = self._calls.read("/tasks", state=state, limit=limit, cursor=after)
        return reading.page(told, task)

    def get(self, id: str) -> Task:
        """A task by its id."""
        return task(self._calls.read("/task", id=id))

    def history(self, id: str) -> list[TaskEvent]:
        """All that happened to a task, in order: every attempt, with its error and traceback."""
        told = self._calls.read("/task", id=id)
        return [reading.record(TaskEvent, each, task=id) for each in told["history"]]

    def cancel(self, id: str, *, key: str | None = None) -> Task:
        """Let it not run, or not any further."""
        return self._done("cancel", key, id=id)

    def retry(
        self,
        id: str,
        *,
        unknown: "UnknownPolicy | None" = None,
        force: bool = False,
        key: str | None = None,
    ) -> Task:
        """Put a failed or rolled back task back to work; one that is completed with `force`."""
        return self._done("retry", key, id=id, unknown=unknown, force=force)

    def answer(
        self, id: str, answer: Any, *, question: str | None = None, key: str | None = None
    ) -> Task:
        """Answer what a task has asked; it goes on with that. `question` is what was read:
        `Conflict` if the task asks something else by now."""
        body = {**given(id=id, question=question), "answer": to_json(answer)}
        return task(self._calls.act("/tasks/answer", body, key=key))

    def _done(self, what: str, key: str | None, **body: Any) -> Task:
        return task(self._calls.act(f"/tasks/{what}", given(**body), key=key))


def task(told: Any) -> Task:
    """A task out of an answer."""
    if not isinstance(told, dict):
        raise reading.Unreadable("a task that is no object")
    return reading.record(Task, told, error=told.get("error_message"))
