"""Workers are killed in the middle of a job: it is resumed, or goes on by itself."""

import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hardsave.runtime.scripted import ScriptedModel
from tests.crash import talking
from tests.crash.launcher import Launcher

MOMENTS = ["inside pay 7"]
SAFE = {"look"}  # to be called again, so its beginning is not on record
FILES = {"a": "make", "b": "make", "c": "make", "paid": "pay"}
MORE_MOMENTS = [
    *("prompted", "turn 1", "begun 2", "ended 2", "ended 5", "turn 2", "paid", "turn 3"),
    "completed",
]


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    launched = Launcher(("jobbing",))
    yield launched
    launched.close()


class Site:
    """A job in a folder, with its model."""

    def __init__(self, launcher: Launcher, folder: Path, model: ScriptedModel) -> None:
        self._launcher = launcher
        self.folder = folder
        self.model = model
        self.unknown: set[str] = set()  # tools that had begun when a worker was killed
        self.ended: set[str] = set()  # and those that had ended
        (folder / "files").mkdir()

    def call(self, function: str, **given: Any) -> Any:
        return self._launcher.call(f"jobbing.{function}", folder=str(self.folder), **given)

    def killed(self, moment: str, **given: Any) -> None:
        given = {"folder": str(self.folder), "url": self.model.openai_url, **given}
        (ended,) = self._launcher.start(("jobbing.work", {**given, "moment": moment}))
        assert ended.code == -signal.SIGKILL, ended.words
        for call in self.job["calls"].values():
            (self.unknown if call["state"] == "began" else self.ended).add(call["tool"])

    def work(self, **given: Any) -> None:
        self.call("work", url=self.model.openai_url, **given)

    @property
    def job(self) -> dict[str, Any]:
        found: dict[str, Any] = self.call("look")
        return found

    @property
    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in (self.folder / "files").iterdir()}

    @property
    def effects(self) -> Counter[str]:
        return Counter((self.folder / "effects").read_text().splitlines())

    def check_done(self) -> None:
        """It has come to the end, with nothing done twice and nothing asked for twice.

        Of a tool that had begun nobody knows the end: its effect is there once, or not at all.
        """
        job = self.job
        assert (job["state"], job["output"], job["percent"]) == ("succeeded", talking.ANSWER, 100)
        assert job["turns"] == talking.TURNS
        for tool in talking.TOOLS:
            name = tool.partition(" ")[0]
            least, most = 0 if name in self.unknown else 1, 2 if name in SAFE - self.ended else 1
            assert least <= self.effects[tool] <= most, tool
        assert len(self.model.requests) == talking.TURNS
        made = {path.name for path in (self.folder / "files").iterdir()}
        sure = {name for name, tool in FILES.items() if tool not in self.unknown}
        assert sure <= made <= {*FILES}


@pytest.fixture
def site(launcher: Launcher, tmp_path: Path) -> Iterator[Site]:
    with ScriptedModel(talking.SCRIPT) as model:
        yield Site(launcher, tmp_path, model)


@pytest.mark.parametrize(
    "moment", [*MOMENTS, *(pytest.param(each, marks=pytest.mark.torture) for each in MORE_MOMENTS)]
)
def test_a_killed_job_is_resumed_under_its_next_id(site: Site, moment: str) -> None:
    site.call("add")
    site.killed(moment)
    left = site.job  # seen by somebody who comes by, with no worker anywhere
    assert (left["state"], left["can_resume"]) == ("failed", True)
    assert site.call("resume") == "fix~2"
    assert site.job["state"] == "queued"
    site.work()
    assert site.job["spec"]["resumed"]["from_job"] == "fix"
    site.check_done()
    assert not moment.startswith("inside") or site.unknown == {"pay"}


def test_a_killed_job_with_retries_goes_on_by_itself(site: Site) -> None:
    site.call("add", retries=2)
    site.killed("ended 2")
    site.killed("turn 2")
    assert site.job["state"] == "queued"
    site.work()
    assert (site.job["id"], site.job["attempts"]) == ("fix", 3)
    site.check_done()


def test_files_and_conversation_are_there_where_the_job_goes_on(site: Site) -> None:
    site.call("add")
    site.killed("turn 2")
    shutil.rmtree(site.folder / "files")  # as on another machine
    assert site.job["messages"] == 4
    site.call("resume")
    site.work()
    site.check_done()


FILES_AT_TURN_2 = {"a": "file a", "b": "file b", "c": "file c"}
SPOILT = {"a": "changed", "left": "over", "c": "file c"}


@pytest.mark.parametrize("by_a_job", [True, False])
def test_files_that_another_run_has_changed_are_brought_back(site: Site, by_a_job: bool) -> None:
    site.call("add")
    site.killed("turn 2")
    site.call("spoil", by_a_job=by_a_job)
    assert site.files == SPOILT
    site.call("resume")
    site.killed("inside pay 7")
    assert site.files == FILES_AT_TURN_2
    site.call("resume")
    site.work()
    site.check_done()
    assert site.files.items() >= FILES_AT_TURN_2.items()
    assert site.call("undone").items() >= SPOILT.items()  # nothing was lost


@pytest.mark.parametrize("moment", ["saved", "staged", "replaced"])
def test_a_worker_that_is_killed_while_it_brings_files_back_leaves_it_to_the_next(
    site: Site, moment: str
) -> None:
    site.call("add", retries=3)
    site.killed("turn 2")
    site.call("spoil", by_a_job=True)
    site.killed(moment)
    site.killed("inside pay 7")
    assert site.files == FILES_AT_TURN_2
    site.work()
    site.check_done()


def test_what_a_tool_had_written_when_it_was_killed_is_kept_beside_the_files_of_the_last_save(
    site: Site,
) -> None:
    site.call("add")
    site.killed("inside pay 7")
    (site.folder / "files" / "half").write_text("written by the tool that was killed")
    site.call("resume")
    site.work()
    site.check_done()
    assert "half" not in site.files
    assert site.call("undone")["half"] == "written by the tool that was killed"


@pytest.mark.parametrize("allowed", [True, False])
def test_a_pause_for_approval_survives_kills_before_and_after_the_word(
    site: Site, allowed: bool
) -> None:
    site.call("add", retries=3)
    site.killed("waiting", careful=True)  # it has stopped, and has asked nobody yet
    site.work(careful=True)
    job = site.job
    assert (job["state"], job["can_resume"]) == ("waiting", False)
    assert job["question"] == 'may it call pay({"amount": 7})?'
    assert site.effects["pay 7"] == 0
    site.call("answer", allowed=allowed)
    if allowed:
        site.killed("approved", careful=True)
        site.work(careful=True)
        site.check_done()
    else:
        site.work(careful=True)
        assert site.job["output"] == talking.ANSWER
        assert site.effects["pay 7"] == 0
    assert len(site.model.requests) == talking.TURNS
    told = [
        message for message in site.model.requests[-1].body["messages"] if message["role"] == "tool"
    ]
    assert told[-1]["content"] == ("paid" if allowed else "too dear")


def test_a_purge_that_was_asked_for_survives_the_end_of_the_worker(site: Site) -> None:
    site.call("add", on_success="purge")
    site.killed("over")  # its end is on record, and nothing that follows from it
    left = site.call("left")
    assert left["saved"] > 0
    assert left["purges"] == []
    site.work()
    assert site.call("left") == {"saved": 0, "purges": [{"dropped": left["saved"]}]}
    assert (site.job["state"], site.job["output"]) == ("succeeded", None)
    assert len(site.model.requests) == talking.TURNS


def test_health_tells_of_a_job_whose_worker_was_killed(site: Site) -> None:
    site.call("add", max_turns=3)
    site.killed("turn 3")
    health = site.job["health"]
    assert (health["failed"], health["resumable"], health["near_limit"]) == (1, 1, 1)
