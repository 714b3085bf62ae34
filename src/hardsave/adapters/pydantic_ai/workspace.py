"""A local workspace of Pydantic AI whose files are saved after each call that may change them."""

from collections.abc import Mapping
from pathlib import Path

from pydantic_ai.workspaces import CommandResult, WorkspaceCommand
from pydantic_ai.workspaces.local import LocalWorkspaceBackend

import hardsave
from hardsave.adapters.threads import in_thread


class HardsaveWorkspaceBackend(LocalWorkspaceBackend):
    """Pydantic AI's own backend for a directory, with a checkpoint of its files on `line` after
    each command, write and removal, so that `hardsave rewind` takes any of them back.
    """

    def __init__(
        self,
        working_dir: str | Path,
        line: hardsave.Timeline,
        *,
        env: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(working_dir, env=env)
        self._line = line

    async def run(
        self,
        command: WorkspaceCommand,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 # as the protocol has it
    ) -> CommandResult:
        shown = command if isinstance(command, str) else " ".join(command)
        try:
            return await super().run(command, shell=shell, env=env, timeout=timeout)
        finally:
            await self._save(f"ran {shown}")

    async def write_bytes(self, path: str, data: bytes) -> None:
        await super().write_bytes(path, data)
        await self._save(f"wrote {path}")

    async def make_dir(self, path: str) -> None:
        await super().make_dir(path)
        await self._save(f"made {path}")

    async def remove(self, path: str) -> None:
        await super().remove(path)
        await self._save(f"removed {path}")

    async def _save(self, done: str) -> None:
        directory = await self.working_dir()
        if Path(directory).is_dir():  # noqa: ASYNC240 # one look; else there is nothing to save
            await in_thread(lambda: self._line.save_files(directory, description=done[:200]))
