"""A workspace that saves itself: Pydantic AI's own suite for backends, and what it adds to one."""

import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from pydantic_ai.workspaces import Workspace, WorkspaceBackend, WorkspaceRef
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

import hardsave
from hardsave.adapters.pydantic_ai import HardsaveWorkspaceBackend


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def has_real_posix_shell() -> bool:
    return True


@pytest.fixture
def work(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path.resolve()


@pytest.fixture
def line(tmp_path: Path) -> Iterator[hardsave.Timeline]:
    with hardsave.open(f"sqlite:///{tmp_path}/s.db") as vault:
        yield vault.timeline("work")


class TestTheirSuite(WorkspaceBackendSuite):
    @pytest.fixture
    def backend(self, work: Path, line: hardsave.Timeline) -> WorkspaceBackend:
        return HardsaveWorkspaceBackend(work, line)

    @pytest.fixture
    def attach_backend(self, line: hardsave.Timeline) -> Callable[[WorkspaceRef], WorkspaceBackend]:
        return lambda ref: HardsaveWorkspaceBackend(ref.id, line)

    @pytest.fixture
    def destructive_backend(
        self, tmp_path: Path, line: hardsave.Timeline
    ) -> Callable[[], WorkspaceBackend]:
        path = tmp_path / "to go"
        path.mkdir()
        return lambda: HardsaveWorkspaceBackend(path, line)

    @pytest.fixture
    def destroy_environment(self) -> Callable[[WorkspaceBackend], Awaitable[None]]:
        async def destroy(backend: WorkspaceBackend) -> None:
            shutil.rmtree(await backend.working_dir())

        return destroy


@pytest.mark.anyio
async def test_what_a_command_did_is_taken_back(work: Path, line: hardsave.Timeline) -> None:
    workspace = Workspace(HardsaveWorkspaceBackend(work, line))
    await workspace.write_text(str(work / "kept"), "1")
    await workspace.run(["rm", "kept"])
    removed, wrote, *_ = line.checkpoints()
    assert removed.description == "ran rm kept"
    line.rewind(wrote, workspace=work)
    assert (work / "kept").read_text() == "1"
