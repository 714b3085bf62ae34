"""A workflow that is killed at any moment, and goes on when it is started again.

    PYTHONPATH=. python survivor.py STORE FOLDER

Its executor writes `N.txt` into FOLDER/work, one in each superstep. What the store has acknowledged
is logged in FOLDER/told.
"""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from agent_framework import Executor, Workflow, WorkflowBuilder, WorkflowContext, handler
from agent_framework import WorkflowCheckpoint as Checkpoint

import hardsave
from hardsave.adapters.agent_framework import HardsaveCheckpointStorage

NAME = "survivor"
NUMBERS = 12


@dataclass
class Turn:
    """What one of the two executors tells the other."""

    number: int


class Writer(Executor):
    """Writes one file, and hands over."""

    def __init__(self, id: str, folder: Path) -> None:
        super().__init__(id=id)
        self._folder = folder

    @handler
    async def write(self, turn: Turn, context: WorkflowContext[Turn, str]) -> None:
        (self._folder / "work" / f"{turn.number}.txt").write_text(str(turn.number))
        context.set_state("written", [*(context.get_state("written") or []), turn.number])
        await asyncio.sleep(0.005)
        if turn.number + 1 < NUMBERS:
            await context.send_message(Turn(turn.number + 1))
        else:
            await context.yield_output("done")


class Told(HardsaveCheckpointStorage):
    """Logs what was saved before."""

    def __init__(self, vault: hardsave.Vault, folder: Path) -> None:
        super().__init__(vault, workspace=folder / "work", types=[Turn])
        self._log = (folder / "told").open("a")

    async def save(self, checkpoint: Checkpoint) -> str:
        saved = await super().save(checkpoint)
        self._log.write(f"{saved}\n")
        self._log.flush()
        os.fsync(self._log.fileno())
        return saved


def workflow(storage: HardsaveCheckpointStorage, folder: Path) -> Workflow:
    one, other = Writer("one", folder), Writer("other", folder)
    builder = WorkflowBuilder(start_executor=one, checkpoint_storage=storage, name=NAME)
    return builder.add_edge(one, other).add_edge(other, one).build()


async def main(store: str, folder: Path) -> None:
    with hardsave.open(store) as vault:
        storage = Told(vault, folder)
        at_work = workflow(storage, folder)
        latest = await storage.get_latest(workflow_name=NAME)
        if latest is None:
            await at_work.run(Turn(0))
        else:
            await at_work.run(checkpoint_id=latest.checkpoint_id)


if __name__ == "__main__":
    # By its own name: a class of `__main__` is another one when it is stored.
    from tests.frameworks.agent_framework import survivor

    place = Path(sys.argv[2])
    (place / "work").mkdir(exist_ok=True)
    asyncio.run(survivor.main(sys.argv[1], place))
