"""The directory of a job that goes on: as its last save left it, or the job says why not."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import hardsave
from hardsave.runtime.jobs.files import shares
from hardsave.runtime.jobs.worker import Worker
from hardsave.stores.memory.store import MemoryStore
from hardsave.vault.jobs.state import Job


class Site:
    """A directory in which jobs write a file each turn, and break at the third."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.vault = hardsave.Vault(MemoryStore())
        self.breaks = True

    def agent(self, name: str) -> Agent[None, Any]:
        def say(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            turn = sum(isinstance(message, ModelResponse) for message in messages) + 1
            if turn < 3:
                args = {"name": f"{name}-{turn}"}
                return ModelResponse(parts=[ToolCallPart("write", args, tool_call_id=f"id-{turn}")])
            if self.breaks:
                raise OSError("the model is gone")
            return ModelResponse(parts=[TextPart("done")])

        made: Agent[None, Any] = Agent(FunctionModel(say))

        @made.tool_plain
        def write(name: str) -> str:
            """Write a file, and into one that all share."""
            (self.folder / name).write_text(name)
            (self.folder / "shared").write_text(name)
            return "written"

        return made

    def work(self, name: str = "fix") -> Job:
        Worker(self.vault, {name: self.agent(name)}).run(until_idle=True)
        return self.vault.jobs.get(name)

    def failed(self, name: str = "fix") -> Job:
        """A job that has written, and failed."""
        self.vault.jobs.add(name, "Write", agent=name, workspace=self.folder)
        return self.work(name)

    def resumed(self, name: str = "fix", **options: Any) -> Job:
        self.breaks = False
        self.vault.jobs.resume(name, **options)
        return self.work(name)

    @property
    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.folder.iterdir() if path.is_file()}


FIX = {"fix-1": "fix-1", "fix-2": "fix-2", "shared": "fix-2"}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    folder = tmp_path / "project"
    folder.mkdir()
    made = Site(folder)
    with made.vault:
        yield made


def test_a_directory_that_is_as_it_was_left_is_left_alone(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.failed()
    before = len(site.vault.timeline("fix"))
    assert site.resumed().state == "succeeded"
    assert "was not as its last save left it" not in caplog.text
    assert list(site.vault.operations("fix")) == []
    assert len(site.vault.timeline("fix")) == before + 2  # what was said, and the end


def test_a_fresh_checkout_becomes_the_jobs_own_and_what_lay_there_is_kept(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.failed()
    for path in site.folder.iterdir():
        path.unlink()
    (site.folder / "shared").write_text("as cloned")
    (site.folder / "README").write_text("as cloned")
    (site.folder / ".env").write_text("TOKEN=1")
    (site.folder / ".gitignore").write_text("*.log\n")
    (site.folder / "own.log").write_text("ignored")
    assert site.resumed().state == "succeeded"
    assert site.files == {**FIX, ".env": "TOKEN=1", "own.log": "ignored"}
    assert "was not as its last save left it (2 created, 1 changed, 2 removed)" in caplog.text
    site.vault.timeline("fix").undo()
    assert site.files["README"] == site.files["shared"] == "as cloned"


def test_jobs_that_share_a_directory_one_after_the_other_have_their_files_each(site: Site) -> None:
    site.failed("fix")
    site.failed("other")
    assert site.files["shared"] == "other-2"
    assert site.resumed("fix").state == "succeeded"
    assert site.files == FIX
    assert site.resumed("other").state == "succeeded"
    assert site.files["shared"] == "other-2"


def test_a_directory_that_is_gone_is_made_again(site: Site) -> None:
    site.failed()
    for path in site.folder.iterdir():
        path.unlink()
    site.folder.rmdir()
    assert site.resumed().state == "succeeded"
    assert site.files == FIX


def test_a_user_may_have_the_job_go_on_with_the_files_as_they_are(site: Site) -> None:
    site.failed()
    (site.folder / "shared").write_text("mended by hand")
    assert site.resumed(keep_files=True).state == "succeeded"
    assert site.files == {**FIX, "shared": "mended by hand"}


def test_a_job_that_waited_for_a_word_has_its_files_too(site: Site) -> None:
    agent: Agent[None, Any] = Agent(site.agent("fix").model)
    site.breaks = False

    @agent.tool_plain(requires_approval=True)
    def write(name: str) -> str:
        """Write a file."""
        (site.folder / name).write_text(name)
        return "written"

    site.vault.jobs.add("fix", "Write", agent="fix", workspace=site.folder)
    (site.folder / "given").write_text("before")
    worker = Worker(site.vault, {"fix": agent})
    worker.run(until_idle=True)
    assert site.vault.jobs.get("fix").state == "waiting"
    (site.folder / "given").write_text("by another job")
    site.vault.jobs.approve("fix")
    worker.run(until_idle=True)
    assert site.files == {"given": "before", "fix-1": "fix-1"}


def test_a_job_says_who_works_in_its_directory_now_and_touches_nothing(site: Site) -> None:
    site.failed("fix")
    (site.folder / "shared").write_text("of the other job")
    site.vault.jobs.add("other", "Write", agent="other", workspace=site.folder / "below" / "..")
    with site.vault.tasks.claim("other"):
        job = site.resumed()
        assert (job.state, job.can_resume) == ("failed", True)
        assert f"cannot be brought back into {str(site.folder)!r}: job 'other' works" in str(
            job.error
        )
        assert site.files["shared"] == "of the other job"
    assert site.resumed().state == "succeeded"
    assert site.files == FIX


def test_a_job_beside_another_goes_on_if_its_files_are_there(site: Site) -> None:
    site.failed()
    site.vault.jobs.add("other", "Read", agent="other", workspace=site.folder)
    with site.vault.tasks.claim("other"):
        assert site.resumed().state == "succeeded"


def test_a_job_says_what_is_in_the_way_of_its_directory(site: Site) -> None:
    site.failed()
    for path in site.folder.iterdir():
        path.unlink()
    site.folder.rmdir()
    site.folder.write_text("a file by now")
    job = site.resumed()
    assert (job.state, job.can_resume) == ("failed", True)
    assert f"job 'fix~2' cannot work in {str(site.folder)!r}: File exists" in str(job.error)
    assert "then resume the job" in str(job.error)


def test_a_job_says_which_files_could_not_be_brought_back(site: Site) -> None:
    site.failed()
    (site.folder / "shared").unlink()
    (site.folder / "shared").mkdir()
    (site.folder / "shared" / ".env").write_text("TOKEN=1")  # never saved, so never removed
    job = site.resumed()
    assert (job.state, job.can_resume) == ("failed", True)
    assert "cannot be brought back" in str(job.error)
    assert "shared (" in str(job.error)
    assert (site.folder / "shared" / ".env").read_text() == "TOKEN=1"
    (site.folder / "shared" / ".env").unlink()
    assert site.resumed().state == "succeeded"
    assert site.files == FIX


def test_a_checkpoint_that_was_saved_for_a_restore_may_be_chosen(site: Site) -> None:
    site.failed()
    (site.folder / "shared").write_text("mended by hand")
    site.breaks = True
    site.vault.jobs.resume("fix")
    site.work()
    assert site.files["shared"] == "fix-2"
    aside = [one for one in site.vault.timeline("fix").checkpoints() if one.summary is not None]
    (mended,) = [one for one in aside if one.summary is not None and one.summary.phase == "safety"]
    site.vault.timeline("fix").rewind(mended.id)
    assert site.resumed().state == "succeeded"
    assert site.files["shared"] == "mended by hand"


def test_where_a_job_goes_on_is_logged(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.failed()
    with caplog.at_level(logging.INFO, logger="hardsave"):
        site.resumed()
    assert "job 'fix' is resumed as 'fix~2', from turn 2 of 50" in caplog.text
    assert "job 'fix~2' goes on from fix:" in caplog.text


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("/a/b", "/a/b", True),
        ("/a/b", "/a/b/c", True),
        ("/a/b/c", "/a/b", True),
        ("/a/b", "/a/bc", False),
        ("/a/b", "/a/c", False),
        ("/", "/a", True),
    ],
)
def test_directories_share_what_lies_in_both(one: str, other: str, found: bool) -> None:
    assert shares(one, other) is found
