"""The end of a job of which nothing is to stay: its purge, as work that survives.

Contract. That a job has succeeded, and what was asked for then, is in the ledger, and on its
timeline for as long as that is there. Whichever worker reads of the end adds a task for the purge
and carries it out: again after a while if it does not work, until its tries are used. A worker
that dies over it leaves it to the next, whatever it was in the middle of. One that begins looks at
the timelines, too: a task may have been forgotten before anybody came, or have used its tries.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from hardsave.errors import NotFound
from hardsave.objects.hashing import digest
from hardsave.runtime.jobs import spec as specs
from hardsave.runtime.jobs import standing
from hardsave.runtime.jobs.book import Jobs
from hardsave.runtime.jobs.spec import Spec
from hardsave.runtime.jobs.standing import Saved
from hardsave.tasks.task import Task

TRIES = 10
ANOTHERS = "what is saved there is not of that job any more"
PRIORITY = 2**61  # before any job, and after the callbacks: for those somebody waits


def is_closing(task: Task) -> bool:
    found = task.metadata.get(specs.KEY)
    return isinstance(found, Mapping) and "purge_of" in found


class Closing:
    """The purges of a vault's jobs."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._vault = jobs.vault

    def want(self, id: str, spec: Spec, end: str) -> Task | None:
        """Add the task for a job that has succeeded; None if it is to be kept. `end` tells one end
        from another, so that the task is added once however often it is read of."""
        if spec.on_success != "purge":
            return None
        return self._vault.tasks.add(
            f"{id}/purge-{digest(end.encode())[:4].hex()}",
            f"purge what was saved of job {id}",
            key=f"{specs.KEY}:{id}:purge:{end}",
            max_attempts=TRIES,
            priority=PRIORITY,
            metadata={specs.KEY: {"purge_of": spec.lineage}},
        )

    def catch_up(self) -> None:
        """Look for what nobody has purged."""
        for saved in self._left():
            task = self.want(str(saved.id), saved.spec, self._end(saved))
            if task is not None and task.state == "failed" and task.error != "cancelled":
                self._vault.tasks.retry(task.id)

    def _left(self) -> Iterator[Saved]:
        for line in self._vault.timelines():
            head = line.head
            if head is None or head.status != "completed":
                continue
            saved = standing.saved(head)
            if saved is not None and saved.spec.on_success == "purge" and self._is_meant(line.name):
                yield saved

    def _end(self, saved: Saved) -> str:
        """What its end is known by: the time of it, while the ledger has that."""
        try:
            ended_at = self._vault.tasks.get(str(saved.id)).ended_at
        except NotFound:
            ended_at = None
        return saved.checkpoint if ended_at is None else ended_at.isoformat()

    def carry_out(self, task: Task) -> Any:
        """Purge what a job has left. What has come into its place meanwhile stays."""
        lineage = task.metadata[specs.KEY]["purge_of"]
        if self._vault.timeline(lineage).head is not None and not self._is_meant(lineage):
            return {"kept": ANOTHERS}
        try:
            purged = self._vault.purge(timeline=lineage)
        except NotFound:
            return {"dropped": 0}  # nothing was ever saved
        return {"dropped": purged.dropped}

    def _is_meant(self, lineage: str) -> bool:
        try:
            job = self._jobs.get(lineage)
        except NotFound:
            return False
        return job.state == "succeeded" and job.spec.on_success == "purge"
