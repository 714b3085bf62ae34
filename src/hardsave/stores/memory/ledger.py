"""The ledger of one user in memory; see `stores.ledger` for the contract."""

from hardsave.errors import Conflict, LeaseLost
from hardsave.objects.records import EntryRecord, Id, OwnerRecord, TaskRecord
from hardsave.stores.ledger import (
    OVERTAKEN,
    RECLAIMED,
    Fence,
    TaskMove,
    TaskQuery,
    Work,
    first_unmet,
    lost_message,
)
from hardsave.stores.memory.rows import LedgerRows


class MemoryLedger:
    """Tasks, entries and owners. Its store holds the lock. `apply` may be interrupted anywhere,
    and done again from the start."""

    def __init__(self) -> None:
        self.owners: dict[Id, OwnerRecord] = {}
        self._tasks: dict[str, TaskRecord] = {}  # in the order they were added
        self._by_key: dict[bytes, str] = {}
        self._entries: dict[str | None, dict[Id, EntryRecord]] = {}
        self._added = 0

    def rows(self) -> LedgerRows:
        entries = [entry for each in self._entries.values() for entry in each.values()]
        return LedgerRows(
            list(self.owners.values()), list(self._tasks.values()), self._added, entries
        )

    @classmethod
    def of(cls, rows: LedgerRows) -> "MemoryLedger":
        made = cls()
        made.owners = {owner.id: owner for owner in rows.owners}
        made._tasks = {task.name: task for task in rows.tasks}
        made._by_key = {task.key: task.name for task in rows.tasks}
        made._added = rows.added
        for entry in rows.entries:
            made.add(entry)
        return made

    # Writing

    def number_of(self, entry: EntryRecord) -> int | None:
        """The number of an entry that is there already."""
        found = self._entries.get(entry.task, {}).get(entry.id)
        return None if found is None else found.number

    def check(self, work: Work) -> None:
        for fence in work.fences:
            self._check_epoch(fence)
        if work.latest is not None:
            latest = self.latest(work.latest.kind)
            if (None if latest is None else latest.id) != work.latest.id:
                raise Conflict(OVERTAKEN.format(work.latest.kind))
        for expect, become in work.moves:
            if expect is not None:
                self._check_epoch(Fence(become.name, expect))
            elif become.name in self._tasks or become.key in self._by_key:
                raise Conflict(f"task {become.name!r} exists already, or one with its key")
        for id in work.alive:
            if id not in self.owners:
                raise LeaseLost(RECLAIMED)
        for owner in work.reclaim:
            standing = self.owners.get(owner.id)
            if standing is not None and standing.until != owner.until:
                raise Conflict(f"session {owner.session!r} is alive: it has renewed its lease")

    def _check_epoch(self, fence: Fence) -> None:
        standing = self._tasks.get(fence.task)
        if standing is None or standing.epoch != fence.epoch:
            epoch = None if standing is None else standing.epoch
            raise LeaseLost(lost_message(fence.task, epoch, fence.epoch))

    def apply(self, work: Work, number: int) -> int:
        """Do what was checked; the number of the last entry, or the one before."""
        for move in work.moves:
            self._move(move)
        for entry in work.entries:
            number += 1
            self.add(entry._replace(number=number))
        for owner in work.reclaim:
            self.owners.pop(owner.id, None)
        for name in work.forget:
            task = self._tasks.get(name)
            if task is not None:
                self._by_key.pop(task.key, None)
            self._entries.pop(name, None)
            self._tasks.pop(name, None)
            self._release(name)
        if work.keep_itself is not None:
            self._trim(work.keep_itself)
        return number

    def _trim(self, keep: int) -> None:
        own = self._entries.get(None, {})
        latest = {entry.kind: id for id, entry in own.items()}
        for id in list(own)[: max(0, len(own) - keep)]:
            if id != latest[own[id].kind]:
                del own[id]

    def add(self, entry: EntryRecord) -> None:
        self._entries.setdefault(entry.task, {})[entry.id] = entry

    def _move(self, move: TaskMove) -> None:
        standing = self._tasks.get(move.become.name)
        place = self._added + 1 if standing is None else standing.place
        task = self._waiting(move.become)._replace(place=place)
        self._tasks[task.name] = task
        self._by_key[task.key] = task.name
        self._added = max(self._added, place)
        if task.state == "completed":
            self._release(task.name)
        elif task.state == "rolled_back":
            self._hold_up(task.name)

    def _waiting(self, task: TaskRecord) -> TaskRecord:
        """A pending task as it is now, given what it has to wait for."""
        if task.state != "pending" or not task.after:
            return task
        unmet = first_unmet(task.after, self._is_completed)
        return task if unmet is None else task._replace(waits_for=unmet, due=None)

    def _is_completed(self, name: str) -> bool:
        """One that was forgotten had been completed."""
        return name not in self._tasks or self._tasks[name].state == "completed"

    def _release(self, name: str) -> None:
        for task in [task for task in self._tasks.values() if task.waits_for == name]:
            due = task.not_before if task.question is None else None
            self._tasks[task.name] = self._waiting(task._replace(waits_for=None, due=due))

    def _hold_up(self, name: str) -> None:
        for task in list(self._tasks.values()):
            is_free = task.waits_for is None and task.question is None
            if task.state == "pending" and is_free and name in task.after:
                self._tasks[task.name] = task._replace(waits_for=name, due=None)

    # Reading

    def task(self, name: str) -> TaskRecord | None:
        return self._tasks.get(name)

    def task_by_key(self, key: bytes) -> TaskRecord | None:
        name = self._by_key.get(key)
        return None if name is None else self._tasks[name]

    def tasks(self, query: TaskQuery) -> list[TaskRecord]:
        after = query.after
        tasks = list(self._tasks.values())
        found = [
            task
            for task in (tasks[::-1] if query.newest_first else tasks)
            if (task.place > after if not query.newest_first else not after or task.place < after)
            and query.state in (None, task.state)
            and query.owner in (None, task.owner)
        ]
        return found[: query.limit]

    def due(self, now: int, limit: int) -> list[TaskRecord]:
        found = [
            task
            for task in self._tasks.values()
            if task.state == "pending" and task.due is not None and task.due <= now
        ]
        return sorted(found, key=lambda task: -task.priority)[:limit]

    def retries(self, since: int, until: int, after: int, limit: int) -> list[TaskRecord]:
        found = [
            task
            for task in self._tasks.values()
            if task.state == "pending" and task.attempts > 0 and task.place > after
        ]
        return [task for task in found if since < (task.due or 0) <= until][:limit]

    def counts(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for task in self._tasks.values():
            found[task.state] = found.get(task.state, 0) + 1
        return found

    def entries(self, task: str | None, after: int, limit: int) -> list[EntryRecord]:
        entries = self._entries.get(task, {}).values()
        return [e for e in entries if e.step is None and e.number > after][:limit]

    def happened(self, after: int, limit: int) -> list[EntryRecord]:
        everything = [entry for each in self._entries.values() for entry in each.values()]
        found = [e for e in everything if e.step is None and e.number > after]
        return sorted(found, key=lambda entry: entry.number)[:limit]

    def latest(self, kind: str) -> EntryRecord | None:
        entries = self._entries.get(None, {}).values()
        return next((entry for entry in reversed(entries) if entry.kind == kind), None)

    def journal(self, task: str, generation: int) -> list[EntryRecord]:
        entries = self._entries.get(task, {}).values()
        return [e for e in entries if e.step is not None and e.generation == generation]
