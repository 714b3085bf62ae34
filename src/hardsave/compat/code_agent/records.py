"""What CodeAgent knows of a task, made of one of ours."""

import enum
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

import hardsave
from hardsave.compat import foreign

_MOST_BITS = 10_000  # of a number that Python writes out in digits
_MOST_LISTED = 10_000  # instructions: a list of all may be longer than memory


class TaskState(enum.Enum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    ROLLED_BACK = "rolled_back"


@dataclass
class TaskCheckpoint(Mapping[str, Any]):
    """A task, as of when it was asked for: a copy, and what is set in it changes no task. It can
    be read as the mapping that `to_dict` gives, in which states and times are texts."""

    task_id: str
    task_text: str
    state: TaskState
    attempts: int = 0
    start_time: datetime | None = None
    end_time: datetime | None = None
    error_message: str | None = None
    result: Any = None
    metadata: dict[str, Any] = field(default_factory=dict)
    instruction_progress: dict[str, Any] = field(default_factory=lambda: progress_of(0, 0))

    def __getitem__(self, key: str) -> Any:
        return self.to_dict()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        """In this copy, as servers set a failed task to pending before they begin it again: here
        it can be begun as it is."""
        if key not in self:
            raise KeyError(key)
        setattr(self, key, _PARSED.get(key, _as_it_is)(value))

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def __len__(self) -> int:
        return len(fields(self))

    def to_dict(self) -> dict[str, Any]:
        return {
            "task_id": self.task_id,
            "task_text": self.task_text,
            "state": self.state.value,
            "attempts": self.attempts,
            "start_time": _text(self.start_time),
            "end_time": _text(self.end_time),
            "error_message": self.error_message,
            "result": shown(self.result),
            "metadata": shown(self.metadata),
            "instruction_progress": self.instruction_progress,
        }


def _as_it_is(value: Any) -> Any:
    return value


def _moment(value: Any) -> datetime | None:
    return None if value is None else foreign.moment(value, "a time of a task")


_PARSED: Mapping[str, Callable[[Any], Any]] = {
    "state": TaskState,
    "start_time": _moment,
    "end_time": _moment,
}


def checkpoint_of(task: hardsave.Task) -> TaskCheckpoint:
    return TaskCheckpoint(
        task_id=task.id,
        task_text=task.text,
        state=TaskState(task.state),
        attempts=task.attempts,
        start_time=task.started_at,
        end_time=task.ended_at,
        error_message=task.error,
        result=task.result,
        metadata=dict(task.metadata),
        instruction_progress=progress_of(task.progress.done, task.progress.total),
    )


def progress_of(done: int, total: int) -> dict[str, Any]:
    """So many of so many, as CodeAgent tells it."""
    return {
        "last_completed_instruction": done,
        "total_instructions": total,
        "completed_instructions": list(range(1, min(done, _MOST_LISTED) + 1)),
    }


def shown(value: Any) -> Any:
    """As JSON has it. More can be stored than that: what it has no form for is a text."""
    if value is None or isinstance(value, bool | float | str):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= _MOST_BITS else hex(value)
    if isinstance(value, Mapping):
        return {_key(key): shown(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [shown(each) for each in value]
    return str(value)


def _key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(shown(key))


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
