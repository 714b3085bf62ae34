"""A storage for checkpoints of workflows that is a vault: each workflow is a timeline.

Each save is one checkpoint, with the files of `workspace` in the same commit, and stands on the one
that the workflow has gone on from. So branches, rewinds and diffs are those of the workflow.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agent_framework import WorkflowCheckpoint
from agent_framework.exceptions import WorkflowCheckpointException

import hardsave
from hardsave.adapters.agent_framework.values import Values
from hardsave.adapters.threads import in_thread

_ROOM = "agent-framework"
_ID = "maf_checkpoint"  # the label by which a checkpoint is found
_PAGE = 1_000


class HardsaveCheckpointStorage:
    """For `WorkflowBuilder(checkpoint_storage=…)` and `workflow.run(checkpoint_storage=…)`.

        with hardsave.open() as vault:
            storage = HardsaveCheckpointStorage(vault, workspace="work", types=[Draft])
            workflow = WorkflowBuilder(start_executor=write, checkpoint_storage=storage).build()

    The timeline of a workflow is `agent-framework/NAME`. `types` are the dataclasses, pydantic
    models and enums that its executors send and keep; a checkpoint with others is refused.
    """

    def __init__(
        self,
        vault: hardsave.Vault,
        *,
        workspace: str | Path | None = None,
        types: Iterable[type] = (),
    ) -> None:
        self._vault = vault
        self._workspace = workspace
        self._values = Values(types)

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Save it, and return its id. One that has the same id is replaced."""
        told = self._values.plain(checkpoint.to_dict())  # here: the workflow goes on changing it
        await in_thread(lambda: self._save(checkpoint, told))
        return checkpoint.checkpoint_id

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        found = await in_thread(lambda: self._find(checkpoint_id))
        if found is None:
            raise WorkflowCheckpointException(f"No checkpoint found with ID {checkpoint_id}")
        return await in_thread(lambda: self._checkpoint(found))

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        """All that are there, the oldest first, those included that were gone back from."""
        return await in_thread(
            lambda: [self._checkpoint(each) for each in self._saved(workflow_name)]
        )

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        return await in_thread(lambda: [each.labels[_ID] for each in self._saved(workflow_name)])

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """The head of the timeline: the newest, or what a rewind has gone back to."""
        return await in_thread(lambda: self._latest(workflow_name))

    async def delete(self, checkpoint_id: str) -> bool:
        """Delete it; `hardsave undo` brings it back."""
        return await in_thread(lambda: self._delete(checkpoint_id))

    # In a thread

    def _line(self, workflow_name: str) -> hardsave.Timeline:
        return self._vault.timeline(f"{_ROOM}/{quote(workflow_name, safe='')}")

    def _save(self, checkpoint: WorkflowCheckpoint, told: dict[str, Any]) -> None:
        before = checkpoint.previous_checkpoint_id
        parent = None if before is None else self._find(before)
        earlier = self._find(checkpoint.checkpoint_id)
        self._line(checkpoint.workflow_name).save(
            told,
            parent=parent,
            labels={_ID: checkpoint.checkpoint_id},
            workspace=self._workspace,
            expect=hardsave.ANY_HEAD,
            description=f"superstep {checkpoint.iteration_count}",
        )
        if earlier is not None:
            self._vault.delete(earlier)

    def _find(self, checkpoint_id: str) -> hardsave.Checkpoint | None:
        page = self._vault.checkpoints(labels={_ID: checkpoint_id}, limit=_PAGE)
        return next((each for each in page if each.timeline.startswith(f"{_ROOM}/")), None)

    def _saved(self, workflow_name: str) -> list[hardsave.Checkpoint]:
        """Oldest first."""
        found = [each for each in _all(self._line(workflow_name)) if _ID in each.labels]
        return found[::-1]

    def _latest(self, workflow_name: str) -> WorkflowCheckpoint | None:
        line = self._line(workflow_name)
        head = line.head
        path = [] if head is None else chain([head], line.ancestors(head))
        found = next((each for each in path if _ID in each.labels), None)  # not what a user saved
        if found is None:  # all of a run was deleted, and there may be others
            found = next(iter(self._saved(workflow_name)[-1:]), None)
        return None if found is None else self._checkpoint(found)

    def _checkpoint(self, saved: hardsave.Checkpoint) -> WorkflowCheckpoint:
        state = self._vault.timeline(saved.timeline).load(saved)
        return WorkflowCheckpoint.from_dict(self._values.revived(state))

    def _delete(self, checkpoint_id: str) -> bool:
        found = self._find(checkpoint_id)
        if found is None:
            return False
        self._vault.delete(found)
        return True


def _all(line: hardsave.Timeline) -> Iterator[hardsave.Checkpoint]:
    after: str | None = None
    while True:
        page = line.checkpoints(limit=_PAGE, after=after)
        yield from page
        if page.next is None:
            return
        after = page.next
