"""What a client does to a server's store is what the library would have done, and is done once."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import hardsave
from hardsave.client import RemoteVault, connect
from hardsave.runtime.jobs.worker import Worker
from tests.integration.client.conftest import Both
from tests.integration.client.relay import Relay, relaying
from tests.unit.cli.jobs_project import agent
from tests.unit.server.job_server import OWN_TOKEN


@pytest.fixture
def main(both: Both) -> hardsave.Timeline:
    """A timeline with three checkpoints."""
    line = both.local.timeline("main")
    for number in range(3):
        line.append({"messages": [{"role": "user", "content": f"message {number}"}]})
    return line


def test_an_append_adds_to_the_head(both: Both, main: hardsave.Timeline) -> None:
    saved = both.remote.timeline("main").append({"messages": [{"role": "x"}]}, name="last")
    assert saved.seq == 4
    assert main.load()["messages"][3] == {"role": "x"}


def test_a_save_on_a_head_that_another_process_has_moved_is_a_conflict(
    both: Both, main: hardsave.Timeline
) -> None:
    line = both.remote.timeline("main")
    assert line.head is not None
    main.append({"messages": []})
    with pytest.raises(hardsave.Conflict):
        line.save({"mine": 1})
    assert line.save({"mine": 1}, expect=hardsave.ANY_HEAD).seq == 5
    assert line.save({"mine": 2}).seq == 6  # which it has seen
    with pytest.raises(hardsave.Conflict):
        line.save({"mine": 3}, expect=both.local.get("main:1").id)


def test_a_handle_that_has_seen_no_head_saves_on_whichever_there_is(
    both: Both, main: hardsave.Timeline
) -> None:
    assert both.remote.timeline("main").save({"mine": 1}).seq == 4


def test_a_rewind_does_what_its_preview_has_told_or_nothing(
    both: Both, main: hardsave.Timeline
) -> None:
    line = both.remote.timeline("main")
    planned = line.rewind("main:1", dry_run=True)
    assert (planned.moved, planned.target.seq, planned.messages_left) == (False, 1, 2)
    assert planned.before is not None
    main.append({"messages": []})
    with pytest.raises(hardsave.Conflict):
        line.rewind("main:1", expect=planned)
    again = line.rewind("main:1", dry_run=True)
    done = line.rewind("main:1", expect=again.plan)
    assert done.moved
    assert main.get().seq == 1
    with pytest.raises(hardsave.Conflict):
        line.rewind("main:2", expect=both.local.get("main:3").id)
    assert line.rewind("main:2", expect=done.target).target.seq == 2


def test_files_go_back_with_the_state(both: Both) -> None:
    note = both.workspace / "note.txt"
    line = both.remote.timeline("main")
    note.write_text("one\n")
    line.save({"n": 1}, workspace=str(both.workspace))
    note.write_text("two\n")
    line.save_files(str(both.workspace), name="files")
    planned = line.rewind("main:1", dry_run=True)
    assert planned.files is not None
    assert planned.files.changed == ("note.txt",)
    line.rewind("main:1", expect=planned)
    assert note.read_text() == "one\n"
    undone = line.undo()
    assert undone.files is not None
    assert undone.files.changed == ("note.txt",)
    assert note.read_text() == "two\n"
    found = both.remote.diff("main:1", "main:2")
    assert found.files.changed == ("note.txt",)
    note.write_text("three\n")
    assert both.remote.diff("main:2", "now").files.changed == ("note.txt",)
    assert both.remote.diff("main:2", "now").new_status is None


def test_undo_redo_clear_and_delete_are_operations(both: Both, main: hardsave.Timeline) -> None:
    vault, line = both.remote, both.remote.timeline("main")
    line.fork(name="try")
    assert vault.undo().kind == "undo"
    assert vault.redo().kind == "redo"
    assert vault.delete("main:2").seq == 2
    assert line.undo().kind == "undo"
    assert line.clear() == 3
    assert line.head is None
    line.undo()
    assert line.delete() == 3
    mine = both.local.operations()
    assert [(each.id, each.by) for each in vault.operations()] == [
        (each.id, each.by) for each in mine
    ]
    assert mine[0].by is not None
    assert [each.kind for each in vault.operations("main", limit=1)] == ["delete"]
    assert {each.timeline for each in vault.sessions(deleted=True)} == {"main", "try"}


def test_the_graph_shows_branches_that_can_be_read(both: Both, main: hardsave.Timeline) -> None:
    main.rewind("main:2")
    main.append({"messages": [{"role": "other"}]}, name="branch")
    nodes = both.remote.timeline("main").graph()
    assert [node.checkpoint.seq for node in nodes] == [4, 3, 2, 1]
    assert [node.is_current for node in nodes] == [True, False, True, True]
    (branch,) = nodes[2].branches
    assert branch.name == ("branch" if branch.seq == 4 else None)
    summary = both.remote.timeline("main").summary()
    assert summary == main.summary()


def test_searches_messages_and_diffs_say_what_the_library_says(
    both: Both, main: hardsave.Timeline
) -> None:
    found = both.remote.search("message", wait=True)
    mine = both.local.search("message", wait=True)
    assert [(hit.checkpoint.id, hit.path, hit.marks) for hit in found] == [
        (hit.checkpoint.id, hit.path, hit.marks) for hit in mine
    ]
    assert found.is_complete
    head = both.remote.timeline("main").head
    assert head is not None
    messages = head.messages(-2, 1)
    assert [(each.number, each.role, each.text) for each in messages] == [(1, "user", "message 1")]
    assert (messages.total, messages.key) == (3, "messages")
    rest = head.messages(limit=5, after=messages.next, full=True)
    assert [each.value for each in rest] == [{"role": "user", "content": "message 2"}]
    changes = both.remote.diff("main:1", "main:3")
    assert changes.added == tuple(map(str, both.local.diff("main:1", "main:3").added))


def test_tasks_are_looked_at_answered_and_retried(both: Both) -> None:
    both.local.tasks.add("ask", "Ask me", metadata={"pair": (1, 2)})
    with both.local.tasks.attempt("ask") as attempt:
        attempt.ask("may I?")
    tasks = both.remote.tasks
    assert tasks.get("ask") == both.local.tasks.get("ask")
    assert [each.id for each in tasks.find()] == ["ask"]
    assert [each.kind for each in tasks.history("ask")] == [
        each.kind for each in both.local.tasks.history("ask")
    ]
    (waiting,) = both.remote.approvals()
    assert (waiting.kind, waiting.id, waiting.question) == ("task", "ask", "may I?")
    with pytest.raises(hardsave.Conflict):
        tasks.answer("ask", "yes", question="another?")
    assert tasks.answer("ask", ("yes", b"\x00"), question="may I?").question is None
    with both.local.tasks.attempt("ask") as attempt:
        assert attempt.ask("may I?") == ("yes", b"\x00")
    assert tasks.retry("ask", force=True).state == "pending"
    assert tasks.cancel("ask").state == "failed"


def test_jobs_are_queued_looked_at_and_deleted(both: Both) -> None:
    jobs = both.remote.jobs
    added = jobs.add("fix", "Fix it", agent="coder", workspace=both.workspace, max_turns=7)
    assert (added.state, added.spec.agent, added.max_turns) == ("queued", "coder", 7)
    mine = both.local.jobs.get("fix")
    found = jobs.get("fix")
    for name in ("id", "lineage", "state", "text", "turns", "percent", "why_not", "is_unserved"):
        assert getattr(found, name) == getattr(mine, name)
    assert [job.id for job in jobs.every()] == ["fix"]
    assert jobs.health() == both.local.jobs.health()
    with pytest.raises(hardsave.Misuse, match="allow"):
        jobs.add("other", "Fix it", agent="stranger", workspace=both.workspace)
    with pytest.raises(hardsave.NotFound):
        jobs.resume("nosuch")
    assert jobs.delete("fix").id == "fix"
    assert both.local.tasks.get("fix").state == "failed"


def test_health_and_projects_are_told(both: Both, main: hardsave.Timeline) -> None:
    health = both.remote.health()
    assert health.usable
    assert health.store.checkpoints == 3
    assert health.tasks == both.local.tasks.stats()
    (project,) = both.remote.projects()
    assert project.id == both.remote.server.project
    with connect(both.remote.url, token=OWN_TOKEN, project=project.id) as vault:
        assert [each.timeline for each in vault.sessions()] == ["main"]
    with pytest.raises(hardsave.NotFound, match="'nosuch'"):
        connect(both.remote.url, token=OWN_TOKEN, project="nosuch")


def test_a_token_that_is_wrong_or_may_only_look_is_told_the_next_step(both: Both) -> None:
    with pytest.raises(hardsave.Misuse, match="hardsave token list"):
        connect(both.remote.url, token="hs_wrong")  # noqa: S106 # of this test
    with pytest.raises(hardsave.Misuse, match="hardsave token add"):
        connect(both.remote.url)


# Answers that are lost


@pytest.fixture
def relay(both: Both) -> Iterator[Relay]:
    with relaying(both.port) as relay:
        yield relay


@pytest.fixture
def far(relay: Relay) -> Iterator[RemoteVault]:
    """The vault through a relay that loses the next answer to an act, twice."""
    with connect(relay.url, token=OWN_TOKEN) as far:
        relay.lose = 2
        yield far


ACTS: dict[str, Callable[[RemoteVault], Any]] = {
    "save": lambda far: far.timeline("main").save({"a": 1}).id,
    "append": lambda far: far.timeline("main").append({"messages": [1]}).id,
    "fork": lambda far: far.timeline("main").fork(name="try").name,
    "rewind": lambda far: far.timeline("main").rewind("main:1").target.id,
    "undo": lambda far: far.timeline("main").undo().id,
    "undo of the vault": lambda far: far.undo().id,
    "clear": lambda far: far.timeline("main").clear(),
    "delete": lambda far: far.timeline("main").delete(),
    "delete a checkpoint": lambda far: far.delete("main:2").id,
}


def history(vault: hardsave.Vault) -> tuple[int, int]:
    """How many checkpoints and operations there are."""
    return vault.store.saves(), len(vault.operations(limit=1_000))


@pytest.mark.parametrize("what", ACTS)
def test_an_act_whose_answers_are_lost_is_done_once(
    what: str, both: Both, main: hardsave.Timeline, relay: Relay, far: RemoteVault
) -> None:
    main.rewind("main:2")
    saves, operations = history(both.local)
    found = ACTS[what](far)
    assert relay.replayed == [None, "true", "true"]
    is_save = what in ("save", "append")
    assert history(both.local) == (saves + is_save, operations + (not is_save))
    if what == "save":
        assert found == main.get().id


@pytest.fixture
def working(both: Both) -> hardsave.Vault:
    """A job that has failed, one that asks, one that is queued, and a task that asks."""
    vault = both.local
    for name in ("fix", "asks"):
        vault.jobs.add(name, f"Do {name}", agent=name, max_turns=10)
    Worker(vault, {"fix": agent(breaks=True), "asks": agent(careful=True)}).run(until_idle=True)
    vault.jobs.add("new", "Do new")
    vault.tasks.add("ask")
    with vault.tasks.attempt("ask") as attempt:
        attempt.ask("may I?")
    return vault


WORK: dict[str, tuple[str, str, Callable[[RemoteVault], object]]] = {
    "answer": ("ask", "answered", lambda far: far.tasks.answer("ask", "yes", question="may I?")),
    "cancel": ("ask", "cancelled", lambda far: far.tasks.cancel("ask")),
    "retry": ("fix", "retried", lambda far: far.tasks.retry("fix")),
    "approve": ("asks", "answered", lambda far: far.jobs.approve("asks")),
    "deny": ("asks", "answered", lambda far: far.jobs.deny("asks", "too dear")),
    "resume": ("fix~2", "added", lambda far: far.jobs.resume("fix")),
    "delete a job": ("new", "cancelled", lambda far: far.jobs.delete("new")),
}


@pytest.mark.parametrize("what", WORK)
def test_what_is_decided_about_work_is_done_once_though_its_answers_are_lost(
    what: str, working: hardsave.Vault, relay: Relay, far: RemoteVault
) -> None:
    task, kind, decide = WORK[what]
    decide(far)
    assert relay.replayed == [None, "true", "true"]
    assert [each.kind for each in working.tasks.history(task)].count(kind) == 1
    assert {each.id for each in working.tasks.find()} - {"fix~2"} == {"fix", "asks", "new", "ask"}


def test_a_job_whose_answer_is_lost_is_queued_once(both: Both, far: RemoteVault) -> None:
    far.jobs.add("fix", "Fix it", agent="coder", workspace=both.workspace)
    assert len(both.local.tasks.find()) == 1
