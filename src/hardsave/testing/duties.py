"""Tasks, entries and owners for tests, and the shortest way to write them."""

from hardsave.objects.hashing import digest
from hardsave.objects.records import EntryRecord, OwnerRecord, TaskRecord
from hardsave.stores.base import Batch, Store
from hardsave.stores.ledger import TaskMove, Work
from hardsave.testing.batches import MOMENT, an_id


def a_task(name: str, **about: object) -> TaskRecord:
    """A pending task that is due."""
    made = TaskRecord(
        name=name,
        text=f"do {name}",
        key=digest(name.encode()),
        state="pending",
        priority=0,
        created_at=MOMENT,
        epoch=0,
        generation=1,
        attempts=0,
        max_attempts=3,
        not_before=0,
        due=0,
        after=(),
        waits_for=None,
        owner=None,
        started_at=None,
        ended_at=None,
        done=0,
        total=0,
        error=None,
        result=None,
        question=None,
        metadata=b"\x80",
    )
    return made._replace(**about)  # type: ignore[arg-type] # as the caller says


def happened(label: str, task: str | None, *, step: str | None = None, at: int = 0) -> EntryRecord:
    kind = "step_done" if step is not None else "happened"
    return EntryRecord(0, an_id(label), task, kind, 1, at, MOMENT, step, label.encode())


def an_owner(label: str, until: int = 1_000) -> OwnerRecord:
    return OwnerRecord(
        an_id(label), label, "host", b"bootboot", 7, 42, 99, MOMENT, until, b"a clock"
    )


def add(store: Store, task: TaskRecord, user: str | None = None) -> TaskRecord:
    """Commit a new task; the row that the store made of it."""
    work = Work(moves=(TaskMove(None, task),))
    store.commit(Batch(user, happened(f"add {task.name}", task.name), work=work))
    found = store.task(user, task.name)
    assert found is not None
    return found


def move(
    store: Store, task: TaskRecord, label: str, user: str | None = None, **to: object
) -> TaskRecord:
    """Commit a change of a task; the row that the store made of it."""
    become = task._replace(**to)  # type: ignore[arg-type] # as the caller says
    work = Work(moves=(TaskMove(task.epoch, become),))
    store.commit(Batch(user, happened(label, task.name, at=become.epoch), work=work))
    found = store.task(user, task.name)
    assert found is not None
    return found


def names(tasks: list[TaskRecord]) -> list[str]:
    return [task.name for task in tasks]
