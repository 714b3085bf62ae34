"""Acts on jobs that a client asks for twice, because it did not get the answer: done once."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hardsave import Conflict, Job, Jobs, NotFound, Task, aio
from hardsave.tasks import acts
from tests.unit.runtime.test_jobs import Office, paying
from tests.unit.tasks.test_requests import meet


@pytest.fixture
def office() -> Iterator[Office]:
    made = Office()
    with made.vault:
        yield made


def waiting(office: Office) -> None:
    """Job `fix` waits for an answer."""
    office.add()
    office.work({"default": paying(office)})
    assert office.jobs.get("fix").state == "waiting"


def _failed(office: Office) -> None:
    office.failed(2)


def _queued(office: Office) -> None:
    office.add()


def _nothing(office: Office) -> None:
    pass


Prepare = Callable[[Office], None]
Act = Callable[[Jobs, str], Job]

ACTS: dict[str, tuple[Prepare, Act]] = {
    "add": (_nothing, lambda jobs, key: jobs.add("fix", "Fix it", max_turns=9, key=key)),
    "resume": (_failed, lambda jobs, key: jobs.resume("fix", max_turns=9, key=key)),
    "approve": (waiting, lambda jobs, key: jobs.approve("fix", key=key)),
    "deny": (waiting, lambda jobs, key: jobs.deny("fix", "too dear", key=key)),
    "delete what failed": (_failed, lambda jobs, key: jobs.delete("fix", key=key)),
    "delete what is queued": (_queued, lambda jobs, key: jobs.delete("fix", key=key)),
    "delete what waits": (waiting, lambda jobs, key: jobs.delete("fix", key=key)),
}


def written(office: Office) -> int:
    """The number of the last commit."""
    store = office.vault._context.store
    return store.latest_number(None)


@pytest.mark.parametrize("act", ACTS)
def test_an_act_with_the_same_key_is_done_once(office: Office, act: str) -> None:
    prepare, call = ACTS[act]
    prepare(office)
    first = call(office.jobs, "request 1")
    number = written(office)
    for jobs in (office.jobs, Jobs(office.vault, now=lambda: office.now)):
        again = call(jobs, "request 1")
        assert (again.id, again.lineage) == (first.id, first.lineage)
    assert written(office) == number


@pytest.mark.parametrize("act", ACTS)
def test_of_two_threads_with_the_same_key_one_acts(
    office: Office, act: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare, call = ACTS[act]
    prepare(office)
    before = len(office.vault.tasks.happened())
    call(office.jobs, "k")
    alone = len(office.vault.tasks.happened()) - before
    other = Office()
    prepare(other)
    meet(monkeypatch)
    with other.vault, ThreadPoolExecutor(2) as threads:
        made = [threads.submit(call, other.jobs, "k") for _ in range(2)]
        first, second = (each.result() for each in made)
        assert first.id == second.id
        assert len(other.vault.tasks.happened()) - before == alone
        assert len(other.vault.operations()) == len(office.vault.operations())


def test_a_key_of_another_request_is_refused(office: Office) -> None:
    office.failed(2)
    office.jobs.add("other", "Fix another")
    jobs = office.jobs
    jobs.resume("fix", key="k")
    calls: list[Callable[[], object]] = [
        lambda: jobs.resume("fix~2", key="k"),
        lambda: jobs.resume("fix", max_turns=99, key="k"),
        lambda: jobs.resume("fix", from_ref="@", key="k"),
        lambda: jobs.resume("fix", keep_files=True, key="k"),
        lambda: jobs.resume("fix", callback="https://example.com/", key="k"),
        lambda: jobs.approve("fix", key="k"),
        lambda: jobs.deny("fix", key="k"),
        lambda: jobs.delete("fix", key="k"),
        lambda: jobs.delete("other", key="k"),
        lambda: office.vault.tasks.cancel("fix~2", key="k"),
    ]
    for call in calls:
        with pytest.raises(Conflict, match="this key is that of another request, about task"):
            call()
    jobs.delete("fix", key="gone")
    with pytest.raises(Conflict, match="that of another request, a delete of 'fix'"):
        jobs.delete("other", key="gone")
    assert jobs.get("other").state == "queued"


def test_a_key_of_another_job_is_refused(office: Office) -> None:
    jobs = office.jobs
    jobs.add("fix", "Fix it", key="k")
    calls: list[Callable[[], object]] = [
        lambda: jobs.add("other", "Fix it", key="k"),
        lambda: jobs.add("fix", "Fix another", key="k"),
        lambda: jobs.add("fix", "Fix it", agent="other", key="k"),
        lambda: jobs.add("fix", "Fix it", callback="https://example.com/", key="k"),
    ]
    for call in calls:
        with pytest.raises(Conflict, match="this key is that of another request, about task 'fix'"):
            call()
    assert [each.id for each in jobs.find()] == ["fix"]


# Resuming


def test_a_resume_that_comes_again_gives_its_job_also_when_that_has_ended(office: Office) -> None:
    office.failed(2)
    assert office.jobs.resume("fix", key="k").id == "fix~2"
    office.work()
    again = office.jobs.resume("fix", key="k")
    assert (again.id, again.state, again.output) == ("fix~2", "succeeded", "done")
    with pytest.raises(Conflict, match="it has succeeded"):
        office.jobs.resume("fix", key="another")


def test_a_resume_that_comes_again_gives_its_job_also_when_that_was_resumed(office: Office) -> None:
    office.failed(2)
    office.jobs.resume("fix", key="k")
    office.breaks_at = {3}
    office.work()
    assert office.jobs.resume("fix", key="next").id == "fix~3"
    again = office.jobs.resume("fix", key="k")
    assert (again.id, again.state, again.can_resume) == ("fix~2", "failed", False)
    assert again.why_not == "it was resumed as 'fix~3'"
    assert office.jobs.get("fix").id == "fix~3"
    office.work()
    assert office.jobs.resume("fix", key="next").state == "succeeded"


def test_a_resume_that_was_refused_is_not_remembered(office: Office) -> None:
    office.add()
    with pytest.raises(Conflict, match="it waits for a worker"):
        office.jobs.resume("fix", key="k")
    office.breaks_at = {2}
    office.work()
    assert office.jobs.resume("fix", key="k").id == "fix~2"


def test_a_resume_that_was_killed_before_it_saw_the_delete_is_taken_back(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.failed(2)
    queue = office.jobs._queue

    def after_a_delete(*given: Any) -> Task:
        Jobs(office.vault, now=lambda: office.now).delete("fix")
        queue(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(office.jobs, "_queue", after_a_delete)
        with pytest.raises(KeyboardInterrupt):
            office.jobs.resume("fix", key="k")
    assert office.vault.tasks.get("fix~2").state == "pending"
    for _ in range(2):
        with pytest.raises(NotFound, match="it was deleted meanwhile"):
            office.jobs.resume("fix", key="k")
        assert office.vault.tasks.get("fix~2").error == "cancelled"
    office.vault.tasks.retry("fix~2")
    assert office.jobs.resume("fix", key="k").state == "queued"  # newer work stays


# Answering


def test_an_approval_that_comes_again_does_not_answer_the_next_question(office: Office) -> None:
    agents = {"default": paying(office)}
    waiting(office)
    office.jobs.approve("fix", key="k")
    office.work(agents)
    assert office.noted == ["turn 1"]
    again = office.jobs.approve("fix", key="k")
    assert (again.state, again.question) == ("waiting", 'may it call note({"text": "turn 2"})?')
    office.jobs.deny("fix", "enough", key="no")
    office.work(agents)
    assert office.jobs.deny("fix", "enough", key="no").output == "done"
    assert office.noted == ["turn 1"]


def test_an_approval_that_waits_for_its_turn_does_not_answer_the_next_question(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same request was made, and the job has gone on, between its look and its commit."""
    agents = {"default": paying(office)}
    waiting(office)
    get = office.jobs.get

    def slow(id: str) -> Job:
        monkeypatch.setattr(office.jobs, "get", get)
        Jobs(office.vault, now=lambda: office.now).approve("fix", key="k")
        office.work(agents)
        return get(id)

    monkeypatch.setattr(office.jobs, "get", slow)
    assert office.jobs.approve("fix", key="k").question == 'may it call note({"text": "turn 2"})?'
    assert office.noted == ["turn 1"]


# Deleting


def test_a_delete_is_one_commit_with_its_task(office: Office) -> None:
    waiting(office)
    before = written(office)
    office.jobs.delete("fix")
    told = [(each.kind, each.task) for each in office.vault.tasks.happened(before)]
    assert told == [("cancelled", "fix")]
    (operation,) = office.vault.operations()
    assert (operation.kind, operation.about["task"]) == ("delete", "fix")
    assert written(office) == operation.number == before + 2


def test_a_delete_that_comes_again_tells_of_the_job_and_deletes_nothing_newer(
    office: Office,
) -> None:
    first = office.failed(2)
    assert office.jobs.delete("fix", key="k") == first
    again = office.jobs.delete("fix", key="k")
    assert (again.id, again.checkpoint, again.turns) == (first.id, first.checkpoint, first.turns)
    office.vault.undo()
    office.jobs.resume("fix")
    assert office.jobs.delete("fix", key="k").id == "fix"
    assert office.jobs.get("fix").id == "fix~2"
    assert office.jobs.get("fix").state == "queued"
    office.work()
    assert office.jobs.get("fix").output == "done"


def test_a_delete_that_comes_again_leaves_a_new_job_of_that_name(office: Office) -> None:
    office.add()
    office.work()
    office.jobs.delete("fix", key="k")
    office.vault.tasks.forget(keep_completed=0)
    office.breaks_at = {2}
    office.add()
    office.work()
    office.jobs.resume("fix")
    office.jobs.delete("fix", key="k")
    assert office.jobs.get("fix").state == "queued"
    assert office.vault.timeline("fix").head is not None
    office.vault.timeline("fix").delete()
    office.jobs.delete("fix", key="k")
    assert office.vault.tasks.get("fix~2").state == "pending"


def test_a_delete_that_was_killed_before_it_saw_the_resume_is_finished(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.failed(2)
    let_go = office.jobs._let_go

    def after_a_resume(*given: Any) -> None:
        Jobs(office.vault, now=lambda: office.now).resume("fix")
        let_go(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(office.jobs, "_let_go", after_a_resume)
        with pytest.raises(KeyboardInterrupt):
            office.jobs.delete("fix", key="k")
    assert office.vault.tasks.get("fix~2").state == "pending"
    office.jobs.delete("fix", key="k")
    assert office.vault.tasks.get("fix~2").error == "cancelled"
    office.vault.tasks.retry("fix~2")
    office.jobs.delete("fix", key="k")
    assert office.vault.tasks.get("fix~2").state == "pending"  # newer work stays


def test_a_delete_of_which_nothing_is_left_says_so(office: Office) -> None:
    office.add()
    office.work()
    office.jobs.delete("fix", key="k")
    office.vault.tasks.forget(keep_completed=0)
    office.vault.store.purge(timeline="fix")
    with pytest.raises(NotFound, match="'fix' was deleted, and nothing is left of it"):
        office.jobs.delete("fix", key="k")


def test_a_job_that_is_put_back_to_work_meanwhile_is_not_deleted(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.failed(2)
    let_go = office.jobs._let_go

    def after_a_retry(*given: Any) -> None:
        office.vault.tasks.retry("fix")
        let_go(*given)

    monkeypatch.setattr(office.jobs, "_let_go", after_a_retry)
    with pytest.raises(Conflict, match="was put back to work meanwhile; look at it again"):
        office.jobs.delete("fix")
    assert office.vault.timeline("fix").head is not None
    assert office.vault.tasks.get("fix").state == "pending"


def test_a_delete_that_is_overtaken_looks_again(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting(office)
    cancelling = acts.cancelling

    def overtaken(*given: Any) -> Any:
        work = cancelling(*given)
        monkeypatch.setattr(acts, "cancelling", cancelling)
        office.vault.tasks.answer("fix", "no")
        return work

    monkeypatch.setattr(acts, "cancelling", overtaken)
    office.jobs.delete("fix")
    assert [each.kind for each in office.vault.tasks.history("fix")][-2:] == [
        "answered",
        "cancelled",
    ]
    assert office.vault.timeline("fix").head is None


# Adding, which is known by its id


def test_a_job_that_is_added_again_comes_back_however_it_has_gone_on(office: Office) -> None:
    office.failed(2)
    assert office.add().state == "failed"
    office.jobs.resume("fix")
    assert office.add().id == "fix~2"
    office.work()
    assert (office.add().id, office.add().output) == ("fix~2", "done")
    office.vault.tasks.forget(keep_completed=0)
    assert (office.add().id, office.add().state) == ("fix~2", "succeeded")
    office.jobs.delete("fix")
    assert office.add().id == "fix"  # its first task has failed, and is still known
    assert office.turns == [1, 2, 2, 3]


def test_of_two_threads_that_add_the_same_job_both_get_it(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = office.jobs._queue

    def after_another(*given: Any) -> Task:
        Jobs(office.vault, now=lambda: office.now).add("fix", "Fix the bug")
        return queue(*given)

    monkeypatch.setattr(office.jobs, "_queue", after_another)
    assert office.add().state == "queued"
    assert len([*office.vault.tasks.find()]) == 1
    office.vault.tasks.cancel("fix")

    def after_another_prompt(*given: Any) -> Task:
        Jobs(office.vault, now=lambda: office.now).add("other", "Something else")
        return queue(*given)

    monkeypatch.setattr(office.jobs, "_queue", after_another_prompt)
    with pytest.raises(Conflict, match="was asked something else"):
        office.jobs.add("other", "This")


def test_awaited_acts_with_the_same_key_are_done_once(office: Office) -> None:
    waiting(office)

    async def main() -> None:
        async with aio.open("memory://") as vault:
            jobs = vault.jobs
            jobs._sync = office.jobs
            for _ in range(2):
                await jobs.approve("fix", key="yes")
            await asyncio.to_thread(office.work, {"default": paying(office)})
            for _ in range(2):
                await jobs.deny("fix", "enough", key="no")
            office.vault.tasks.cancel("fix")
            for _ in range(2):
                assert (await jobs.resume("fix", key="on")).id == "fix~2"
            for _ in range(2):
                await jobs.delete("fix", key="gone")

    asyncio.run(main())
    told = [each.kind for each in office.vault.tasks.happened() if each.task in ("fix", "fix~2")]
    assert [told.count(kind) for kind in ("answered", "cancelled", "added")] == [2, 2, 2]
