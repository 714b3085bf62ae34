"""The end of a job of which nothing is to stay: its purge, as work that survives.

Contract. A worker that begins with such a job adds the task of its purge first, which waits for the
job in the ledger: it is due with the very commit that completes the job, also if the worker dies
then, and also if the job is forgotten then. Whichever worker finds it due carries it out: again
after a while if it does not work, until its tries are used, and once more whenever a worker starts.
A worker that dies over it leaves it to the next, at any point. So no search for what was left is
needed: what a worker reads when it starts does not grow with what is completed. What goes, and
what stays, is decided in `vault.purge.job`.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

from hardsave.defaults import CALLBACK_TRIES
from hardsave.errors import Conflict
from hardsave.page import every
from hardsave.tasks.task import Task
from hardsave.vault.jobs import spec as specs
from hardsave.vault.jobs.ledger import cancel_purge
from hardsave.vault.jobs.spec import JobSpec
from hardsave.vault.vault import Vault

TRIES = 10 + CALLBACK_TRIES  # it waits for callbacks, too
ANOTHERS = "the job was put back to work, or is another one by now"
PRIORITY = 2**61  # before any job, and after the callbacks: receivers wait for those

_PAGE = 500


def is_closing(task: Task) -> bool:
    found = task.metadata.get(specs.KEY)
    return isinstance(found, Mapping) and "purge_of" in found


class Closing:
    """The purges of a vault's jobs."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def want(self, id: str, spec: JobSpec) -> None:
        """A job is about to be worked on: have the task that waits for its end, if all is to go."""
        if spec.on_success != "purge":
            return
        tasks = self._vault.tasks
        task = tasks.add(
            specs.purge_id(id),
            f"purge what was saved of job {id}",
            key=f"{specs.KEY}:{id}:purge",
            max_attempts=TRIES,
            priority=PRIORITY,
            after=[id],
            metadata={specs.KEY: {"purge_of": spec.lineage}},
        )
        if task.state not in ("pending", "in_progress"):  # of an earlier end
            tasks.retry(task.id, force=True)
        if spec.resumed is not None:
            cancel_purge(tasks, spec.resumed.from_job)

    def catch_up(self) -> None:
        """Try once more what has used its tries."""
        tasks = self._vault.tasks
        failed = every(lambda after: tasks.find(state="failed", limit=_PAGE, after=after))
        for task in filter(is_closing, failed):
            if task.error != "cancelled":
                with contextlib.suppress(Conflict):  # another worker was faster
                    tasks.retry(task.id)

    def carry_out(self, task: Task) -> Any:
        """Purge what a job has left. What has come into its place meanwhile stays."""
        from hardsave.vault.purge import job  # few jobs need it

        purged = job.purge_job(self._vault, specs.of_purge(task.id))
        return {"kept": ANOTHERS} if purged is None else {"dropped": purged.dropped}
