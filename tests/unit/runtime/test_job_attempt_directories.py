"""Jobs on a store that hosts share: each attempt works in a new directory, with the job's files."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import hardsave
from hardsave.defaults import LEFT_DIRECTORIES, LEFT_DIRECTORY_SECONDS
from hardsave.errors import Misuse, WorkspaceTaken
from hardsave.runtime.jobs.worker import Worker
from hardsave.stores.local.turns import file_turn
from hardsave.vault.jobs.state import Job
from hardsave.vault.workspaces import attempt_directories
from hardsave.vault.workspaces.attempt_directories import AttemptDirectories
from hardsave.vault.workspaces.attempt_workspace import attempt_workspace
from tests.contract.shared_stores import SharedStore


class Site:
    """Jobs that write a file each turn, and break at the third."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        (self.folder / "given").write_text("as submitted")
        self.vault = hardsave.Vault(SharedStore(folder / "store.db"))
        self.attempts = folder / "store.db-attempts"
        self.breaks = True
        self.found: list[dict[str, str]] = []  # by each attempt, before its first tool
        self.worked_in: list[Path] = []

    def agent(self, job: Job) -> Agent[None, Any]:
        root = Path(str(job.spec.workspace))
        self.worked_in.append(root)
        self.found.append(files_in(root))

        def say(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            turn = sum(isinstance(message, ModelResponse) for message in messages) + 1
            if turn < 3:
                args = {"name": f"{job.lineage}-{turn}"}
                return ModelResponse(parts=[ToolCallPart("write", args, tool_call_id=f"id-{turn}")])
            (root / "unsaved").write_text("after the last save")
            if self.breaks:
                raise OSError("the model is gone")
            return ModelResponse(parts=[TextPart("done")])

        made: Agent[None, Any] = Agent(FunctionModel(say))

        @made.tool_plain(requires_approval=job.spec.prompt == "Ask")
        def write(name: str) -> str:
            """Write a file."""
            (root / name).write_text(name)
            return "written"

        return made

    def work(self, name: str = "fix") -> Job:
        Worker(self.vault, {"default": self.agent}).run(until_idle=True)
        return self.vault.jobs.get(name)

    def failed(self) -> Job:
        self.vault.jobs.add("fix", "Write", workspace=self.folder)
        return self.work()

    @property
    def saved(self) -> dict[str, str]:
        files = self.vault.timeline("fix").get("@").files
        assert files is not None
        return {each.path: files.read(each.path).decode() for each in files.list()}

    @property
    def left(self) -> list[Path]:
        return sorted(self.attempts.iterdir())


def files_in(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in root.iterdir()}


GIVEN = {"given": "as submitted"}
WRITTEN = {**GIVEN, "fix-1": "fix-1", "fix-2": "fix-2"}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    with made.vault:
        yield made


def test_a_job_begins_with_the_files_that_it_was_submitted_with_and_leaves_these_alone(
    site: Site,
) -> None:
    site.breaks = False
    site.vault.jobs.add("fix", "Write", workspace=site.folder)
    (site.folder / "given").write_text("changed since")
    assert site.work().state == "succeeded"
    assert site.found == [GIVEN]
    assert files_in(site.folder) == {"given": "changed since"}
    assert site.saved == {**WRITTEN, "unsaved": "after the last save"}
    site.vault.workspace(site.folder).restore(site.vault.timeline("fix").get("@"))
    assert files_in(site.folder) == site.saved


def test_a_job_whose_directory_is_not_here_begins_with_an_empty_one(site: Site) -> None:
    site.vault.jobs.add("fix", "Write", workspace=site.folder / "elsewhere")
    assert site.work().state == "failed"
    assert site.found == [{}]


def test_each_attempt_has_a_new_directory_with_the_files_of_the_last_save(site: Site) -> None:
    assert site.failed().state == "failed"
    first = site.saved
    assert first.items() >= WRITTEN.items()
    for path in site.worked_in[0].iterdir():
        path.write_text("by a process that has lost the job")
    site.vault.jobs.resume("fix")
    assert site.work().state == "failed"
    site.vault.jobs.resume("fix", from_ref="fix:5")
    site.breaks = False
    assert site.work().state == "succeeded"
    assert len(set(site.worked_in)) == 3
    assert site.found[1] == first
    assert site.found[2] == {**GIVEN, "fix-1": "fix-1"}
    assert site.saved == {**WRITTEN, "unsaved": "after the last save"}


def test_all_attempts_of_a_job_save_one_workspace_which_is_not_its_submitters(site: Site) -> None:
    site.failed()
    site.vault.jobs.resume("fix")
    site.work()
    ids = [row.workspace for row in site.vault._context.store.saved(None, 0, 100)]
    assert len(set(ids)) == 2
    assert ids.count(ids[0]) == 1
    record = site.vault._context.places.known(ids[-1] or b"")
    assert record.path == os.fsencode(site.worked_in[-1])
    assert record.epoch == 2


def test_nothing_is_saved_from_the_directory_of_an_attempt_that_is_over(site: Site) -> None:
    site.failed()
    before = site.saved
    with pytest.raises(WorkspaceTaken, match="an attempt at a job, which is over"):
        site.vault.timeline("fix").save_files(site.worked_in[0])
    assert site.saved == before


def test_captures_of_an_attempt_are_refused_once_another_has_taken_its_workspace(
    site: Site, tmp_path: Path
) -> None:
    with (
        hardsave.Vault(SharedStore(tmp_path / "store.db")) as other,
        attempt_workspace(site.vault, "fix", None) as earlier,
    ):
        (earlier.workspace.path / "file").write_text("of the earlier one")
        earlier.workspace.save_files(timeline="fix")
        with attempt_workspace(other, "fix", other.timeline("fix").get("@")) as later:
            assert files_in(later.workspace.path) == {"file": "of the earlier one"}
            for _ in range(2):
                with pytest.raises(WorkspaceTaken):
                    earlier.workspace.save_files(timeline="fix")
            later.workspace.save_files(timeline="fix")


def test_the_directory_of_a_job_that_waits_or_has_succeeded_is_removed_at_once(site: Site) -> None:
    site.breaks = False
    site.vault.jobs.add("fix", "Ask", workspace=site.folder)
    assert site.work().state == "waiting"
    assert site.left == []
    site.vault.jobs.approve("fix")
    assert site.work().state == "waiting"
    site.vault.jobs.approve("fix")
    assert site.work().state == "succeeded"
    assert site.left == []
    assert len(set(site.worked_in)) == 3
    assert site.found[0] == GIVEN
    assert site.found[-1] == {**GIVEN, "fix-1": "fix-1"}


def test_the_directory_of_a_failed_attempt_stays_for_people(site: Site) -> None:
    site.failed()
    (folder,) = site.left
    assert files_in(folder / "fix").items() >= WRITTEN.items()


def test_a_job_that_has_succeeded_keeps_its_files_when_its_outcome_is_given_again(
    site: Site,
) -> None:
    site.breaks = False
    site.vault.jobs.add("fix", "Write", workspace=site.folder)
    site.work()
    before = site.saved
    site.vault.tasks.retry("fix", force=True)
    assert site.work().state == "succeeded"
    assert site.saved == before


def test_there_are_no_files_to_keep_where_hosts_share_the_store(site: Site) -> None:
    site.failed()
    with pytest.raises(Misuse, match="Save yours on timeline 'fix', then resume it without"):
        site.vault.jobs.resume("fix", keep_files=True)
    (site.folder / "mended").write_text("by hand")
    site.vault.timeline("fix").save_files(site.folder)
    site.vault.jobs.resume("fix")
    site.work()
    assert site.found[-1] == {**GIVEN, "mended": "by hand"}


def test_a_submission_that_was_killed_after_its_files_were_saved_is_made_again(site: Site) -> None:
    site.vault.timeline("fix").save_files(site.folder)
    assert site.failed().state == "failed"
    assert site.found == [GIVEN]


def test_a_purge_removes_what_attempts_have_left(site: Site) -> None:
    site.failed()
    site.vault.store.purge(text="fix-1")
    assert site.left == []


# The directories by themselves


def test_what_is_left_of_attempts_is_bounded_and_what_is_in_use_stays(tmp_path: Path) -> None:
    directories = AttemptDirectories(tmp_path)
    with directories.new("used") as used:
        for _ in range(LEFT_DIRECTORIES + 3):
            with directories.new("left"):
                pass
        directories.clean()
        assert used.root.is_dir()
        assert len(list(tmp_path.iterdir())) == LEFT_DIRECTORIES + 1
        old = time.time() - LEFT_DIRECTORY_SECONDS - 1
        for mark in tmp_path.glob("*/left"):
            os.utime(mark, (old, old))
        directories.clean()
        assert used.root.is_dir()
        assert len(list(tmp_path.iterdir())) == 1
        directories.drop()
        assert used.root.is_dir()
    directories.drop()
    assert list(tmp_path.iterdir()) == []


def test_directories_that_may_not_be_written_are_removed_and_links_are_not_followed(
    tmp_path: Path,
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o555)
    directories = AttemptDirectories(tmp_path / "attempts")
    with directories.new("a/../b job") as made:
        assert made.root.name == "a-..-b-job"
        (made.root / "below").mkdir()
        (made.root / "below" / "file").touch()
        (made.root / "link").symlink_to(outside)
        (made.root / "below").chmod(0o555)
        made.is_saved = True
    assert list((tmp_path / "attempts").iterdir()) == []
    assert outside.stat().st_mode & 0o777 == 0o555


def test_a_directory_is_not_cleaned_away_between_being_made_and_being_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def after_another_process_has_cleaned(path: str) -> Any:
        monkeypatch.undo()
        AttemptDirectories(tmp_path).drop()
        return file_turn(path)

    monkeypatch.setattr(attempt_directories, "file_turn", after_another_process_has_cleaned)
    with AttemptDirectories(tmp_path).new("job") as made:
        AttemptDirectories(tmp_path).drop()
        assert made.root.is_dir()
        made.is_saved = True
    assert list(tmp_path.iterdir()) == []
