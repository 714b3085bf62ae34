"""Ids that other systems give out, and those of jobs and tasks: each leads to a checkpoint."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.compat import breakpilot, flowagent, skill
from hardsave.errors import Misuse, NotFound
from hardsave.runtime.jobs.worker import Worker
from tests.unit.cli.conftest import Run
from tests.unit.cli.jobs_project import agent, make_jobs


def shown(run: Run, ref: str) -> Any:
    """The number of what `show` shows, and of what Python finds."""
    with hardsave.open() as vault:
        found = f"{vault.get(ref).timeline}:{vault.get(ref).seq}"
    data = run("show", ref, "--json").data
    assert data["ref"] == found
    return found


def test_a_job_leads_to_where_it_stood_at_each_of_its_resumptions(run: Run, project: Path) -> None:
    make_jobs(project)
    run("jobs", "resume", "fix")
    first = shown(run, "fix")
    assert shown(run, "fix~2") == first  # it has not begun
    with hardsave.open() as vault:
        Worker(vault, {"fix": agent()}).run(until_idle=True)
        head = vault.timeline("fix").head
        assert head is not None
        assert vault.get("fix~2") == head
        assert vault.timeline("done").get("fix") == vault.get(first)
        with pytest.raises(NotFound):
            vault.get("fix~3")
    assert shown(run, "fix") == first != shown(run, "fix~2") == f"fix:{head.seq}"
    assert run("diff", "fix", "fix~2").code == 0
    back = run("rewind", "fix", "--yes", "--json").data
    assert back["target"]["ref"] == first


def test_a_task_leads_to_the_last_that_it_has_saved(run: Run, project: Path) -> None:
    with hardsave.open() as vault:
        for name in ("task_1", "both", "none"):
            vault.tasks.add(name)
        for number in (1, 2):
            with vault.tasks.attempt("task_1", force=True):
                vault.timeline("main").save({"attempt": number})
        vault.timeline("main").save({"attempt": None})
        with vault.tasks.attempt("both"):
            vault.timeline("main").save({"by": "both"})
            vault.timeline("other").save({"by": "both"})
        with pytest.raises(Misuse, match=r"'both' leads to several.*main:4 .*other:1 "):
            vault.get("both")
        with pytest.raises(NotFound):
            vault.get("none")
    assert shown(run, "task_1") == "main:2"
    refused = run("show", "both")
    assert (refused.code, "main:4" in refused.err, "other:1" in refused.err) == (2, True, True)


def test_the_ids_of_other_systems_lead_to_what_they_have_saved(run: Run, project: Path) -> None:
    (project / "b.txt").write_text("one\n")
    with hardsave.open() as vault:
        copies = skill.CheckpointManager(project, vault=vault)
        first = asyncio.run(copies.create_checkpoint("before"))
        (project / "b.txt").write_text("two\n")
        second = asyncio.run(copies.create_checkpoint("after"))
        session = breakpilot.CheckpointManager("s1", vault=vault)
        for number in range(3):
            session.create("step", {"number": number})
    assert re.fullmatch(r"checkpoint-\d{8}-\d{6}.*", first.id)
    assert shown(run, first.id) == "checkpoints:1"
    assert shown(run, second.id) == "checkpoints:2"
    assert "-one" in run("diff", first.id, second.id).out
    assert run("rewind", first.id, "--yes").code == 0
    assert (project / "b.txt").read_text() == "one\n"
    assert shown(run, "s1:2") == "breakpilot/s1:2"
    assert run("show", "s1:9").code == 3


def test_numbers_of_a_session_are_its_own_also_after_an_import(run: Run, project: Path) -> None:
    there = breakpilot.CheckpointManager("s1")
    for number in range(4):
        there.create("step", {"number": number})
    there.clear()
    there.create("step", {"number": "fifth"})
    with hardsave.open() as vault:
        here = breakpilot.CheckpointManager("s1", vault=vault)
        here.create("own", {"number": "own"})
        here.import_checkpoints(there.export())
        last = here.create("last", {"number": "last"})
        assert last.id == "s1:6"
        for one in here:
            assert vault.get(one.id).state["data"]["number"] == one.data["number"]
    assert run("show", last.id, "--state", "--json").data["data"]["number"] == "last"


def test_the_id_of_an_agent_s_checkpoint_leads_to_it_for_its_user_alone(project: Path) -> None:
    class Clerk(flowagent.StandardAgent):
        async def on_running(self, msg: Any) -> str:
            return "done"

    storage = flowagent.SQLiteCheckpointStorage("agents.db")
    keeper = flowagent.CheckpointManager(storage=storage)
    ids = [asyncio.run(keeper.save(Clerk("a", user_id="ann"))) for _ in range(2)]
    asyncio.run(storage.close())
    with hardsave.open("sqlite:///agents.db", user="ann") as vault:
        assert [vault.get(each).seq for each in ids] == [1, 2]
        assert vault.diff(*ids) is not None
    with (
        hardsave.open("sqlite:///agents.db", user="ben") as vault,
        pytest.raises(NotFound, match=ids[0]),
    ):
        vault.get(ids[0])
