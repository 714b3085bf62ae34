"""What CodeAgent knows of a task, made of one of ours."""

import enum
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import hardsave


class TaskState(enum.Enum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    ROLLED_BACK = "rolled_back"


@dataclass
class TaskCheckpoint:
    """A task, as of when it was asked for."""

    task_id: str
    task_text: str
    state: TaskState
    attempts: int = 0
    start_time: datetime | None = None
    end_time: datetime | None = None
    error_message: str | None = None
    result: Any = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "task_id": self.task_id,
            "task_text": self.task_text,
            "state": self.state.value,
            "attempts": self.attempts,
            "start_time": _text(self.start_time),
            "end_time": _text(self.end_time),
            "error_message": self.error_message,
            "result": self.result,
            "metadata": self.metadata,
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
    )


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
