"""What must hold of every batch that the database accepts, whatever happens around it. Pure."""

from collections import Counter
from dataclasses import dataclass, field

from hardsave.objects.records import EntryRecord
from hardsave.stores.base import Batch


@dataclass
class Oracle:
    """Sees each accepted batch in the order of commits, and lists what must never be."""

    wrong: list[str] = field(default_factory=list)
    finished: Counter[str] = field(default_factory=Counter)
    claims: Counter[str] = field(default_factory=Counter)
    _holders: dict[str, tuple[int, str]] = field(default_factory=dict)  # epoch and host of a task
    _steps: Counter[tuple[str, int, str | None]] = field(default_factory=Counter)

    def see(self, host: str, batch: Batch) -> None:
        work, event = batch.work, batch.event
        assert isinstance(event, EntryRecord)
        for fence in work.fences:
            self._check_holder(host, fence.task, fence.epoch, "writes a step of")
        for expect, become in work.moves:
            if become.state == "in_progress" and (expect is None or become.epoch != expect):
                self._claim(host, become.name, become.epoch)
            elif expect is not None and become.state in ("completed", "failed"):
                if event.kind != "recovered":
                    self._check_holder(host, become.name, expect, "ends")
                self._holders.pop(become.name, None)
                self.finished[become.name] += become.state == "completed"
            elif become.state == "pending":
                self._holders.pop(become.name, None)
        if event.kind == "step_done":
            key = (str(event.task), event.generation, event.step)
            self._steps[key] += 1
            if self._steps[key] > 1:
                self.wrong.append(f"step {event.step} of {event.task} was recorded again by {host}")

    def holders(self) -> dict[str, tuple[int, str]]:
        """Which attempt has each task that is in progress: its epoch, and its host."""
        return self._holders

    def _claim(self, host: str, task: str, epoch: int) -> None:
        before = self._holders.get(task)
        if before is not None:
            self.wrong.append(f"{task} was claimed by {host} while {before[1]} had it")
        if self.finished[task]:
            self.wrong.append(f"{task} was claimed by {host} after it was finished")
        self._holders[task] = (epoch, host)
        self.claims[task] += 1

    def _check_holder(self, host: str, task: str, epoch: int, does: str) -> None:
        if self._holders.get(task) != (epoch, host):
            self.wrong.append(f"{host} {does} {task}, which {self._holders.get(task)} has")
