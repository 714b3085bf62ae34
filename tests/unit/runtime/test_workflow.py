"""Workflows that go on where they were."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.errors import Conflict, LeaseLost, Misuse, NotFound, Unavailable, Unstorable
from hardsave.runtime.agent import Message, StandardAgent
from hardsave.runtime.plan import read
from hardsave.runtime.workflow import Run, StepFailed, WorkflowExecutor
from hardsave.stores.base import Batch
from hardsave.stores.memory.store import MemoryStore

TEN = "steps:\n" + "".join(f"  - {{name: s{n}, agent: count}}\n" for n in range(1, 11))


class Counting:
    def __init__(self, *, fails: int = 0) -> None:
        self.calls: list[dict[str, Any]] = []
        self._fails = fails

    def __call__(self, inputs: dict[str, Any]) -> int:
        self.calls.append(inputs)
        if len(self.calls) <= self._fails:
            raise ValueError(f"no {len(self.calls)}")
        return len(self.calls)


@pytest.fixture
def vault() -> hardsave.Vault:
    return hardsave.open("memory://")


def run(vault: hardsave.Vault, text: str, agents: dict[str, Any], **options: Any) -> Run:
    executor = WorkflowExecutor(agents, vault=vault)
    return asyncio.run(executor.run(read(text, "w.yaml"), **options))


def test_answers_flow_from_step_to_step(vault: hardsave.Vault) -> None:
    async def shout(inputs: dict[str, Any]) -> str:
        return str(inputs["what"]).upper()

    class Parrot(StandardAgent):
        async def on_running(self, msg: Message) -> dict[str, Any]:
            return {"said": msg.content["what"]}

    text = """
steps:
  - {name: one, agent: shout, inputs: {what: "${inputs.word}"}}
  - {name: two, agent: parrot, inputs: {what: "${one}!"}}
  - {name: three, agent: shout, inputs: {what: "${two.said}"}}
"""
    done = run(vault, text, {"shout": shout, "parrot": Parrot()}, inputs={"word": "hi"})
    assert done.answers == {"one": "HI", "two": {"said": "HI!"}, "three": "HI!"}
    assert done.ok
    assert len(vault.timeline(done.id)) == 3


def test_a_run_says_how_it_stands(vault: hardsave.Vault) -> None:
    done = run(vault, TEN, {"count": Counting()})
    line = vault.timeline(done.id)
    assert [each.status for each in line.checkpoints()] == ["completed", *["running"] * 9]
    again = run(vault, TEN, {"count": Counting()}, checkpoint_id=line.get("@~1").id)
    assert (again.id, line.get().status) == (done.id, "completed")


def test_only_steps_that_ask_for_it_are_saved(vault: hardsave.Vault) -> None:
    text = """
workflow: {checkpoint: false}
steps:
  - {name: a, agent: count}
  - {name: b, agent: count, checkpoint: true}
  - {name: c, agent: count}
"""
    done = run(vault, text, {"count": Counting()})
    assert len(vault.timeline(done.id)) == 1
    assert list(vault.timeline(done.id).load()["steps"]) == ["a", "b"]


def test_a_failed_step_is_tried_again_and_then_fails_the_run(vault: hardsave.Vault) -> None:
    text = "steps: [{name: a, agent: count}, {name: b, agent: bad, retry: 2}]"
    bad = Counting(fails=2)
    assert run(vault, text, {"count": Counting(), "bad": bad}).steps["b"].attempts == 3
    with pytest.raises(StepFailed, match="step 'b' failed: ValueError: no 3") as caught:
        run(vault, text, {"count": Counting(), "bad": Counting(fails=9)})
    assert caught.value.run.checkpoint_id is not None
    assert vault.get(caught.value.run.checkpoint_id).status == "failed"


def test_a_run_goes_on_after_the_step_that_failed(vault: hardsave.Vault) -> None:
    count, flaky = Counting(), Counting(fails=1)
    text = "steps: [{name: a, agent: count}, {name: b, agent: flaky}, {name: c, agent: count}]"
    with pytest.raises(StepFailed) as caught:
        run(vault, text, {"count": count, "flaky": flaky})
    done = run(
        vault, text, {"count": count, "flaky": flaky}, checkpoint_id=caught.value.run.checkpoint_id
    )
    assert done.ok
    assert (len(count.calls), len(flaky.calls)) == (2, 2)
    assert done.id == caught.value.run.id


@pytest.mark.parametrize(("way", "status"), [("skip", "skipped"), ("continue", "failed")])
def test_a_step_may_fail_and_the_rest_goes_on(vault: hardsave.Vault, way: str, status: str) -> None:
    text = f"steps: [{{name: a, agent: bad, on_error: {way}}}, {{name: b, agent: count}}]"
    done = run(vault, text, {"bad": Counting(fails=9), "count": Counting()})
    assert (done.steps["a"].status, done.steps["b"].status) == (status, "completed")


def test_a_run_goes_on_after_a_failure_that_was_no_reason_to_end(vault: hardsave.Vault) -> None:
    bad, count, flaky = Counting(fails=9), Counting(), Counting(fails=1)
    text = """steps:
    - {name: a, agent: bad, on_error: continue}
    - {name: b, agent: count}
    - {name: c, agent: flaky}
    """
    agents = {"bad": bad, "count": count, "flaky": flaky}
    with pytest.raises(StepFailed) as caught:
        run(vault, text, agents)
    done = run(vault, text, agents, checkpoint_id=caught.value.run.checkpoint_id)
    assert {name: step.status for name, step in done.steps.items()} == {
        "a": "failed",
        "b": "completed",
        "c": "completed",
    }
    assert [len(each.calls) for each in (bad, count, flaky)] == [1, 1, 2]
    run(vault, text, agents, checkpoint_id=done.checkpoint_id)
    assert [len(each.calls) for each in (bad, count, flaky)] == [1, 1, 2]


def test_a_run_does_not_go_on_with_other_inputs_unnoticed(vault: hardsave.Vault) -> None:
    count, flaky = Counting(), Counting(fails=1)
    text = "steps: [{name: a, agent: count}, {name: b, agent: flaky}]"
    agents = {"count": count, "flaky": flaky}
    with pytest.raises(StepFailed) as caught:
        run(vault, text, agents, inputs={"goal": "cats"})
    way = {"checkpoint_id": caught.value.run.checkpoint_id}
    with pytest.raises(hardsave.Conflict, match="has other inputs"):
        run(vault, text, agents, inputs={"goal": "dogs"}, **way)
    assert len(count.calls) == 1
    assert run(vault, text, agents, inputs={"goal": "cats"}, **way).ok
    assert len(count.calls) == 1
    assert run(vault, text, agents, inputs={"goal": "dogs"}, accept_changes=True, **way).ok
    assert len(count.calls) == 2


@dataclass
class Point:
    x: int


@pytest.mark.parametrize("secret", ["", "sk-ant-api03-" + "a1B2" * 24])
def test_steps_get_the_same_in_the_run_that_begins_as_in_one_that_goes_on(secret: str) -> None:
    seen: list[dict[str, Any]] = []

    def flaky(inputs: dict[str, Any]) -> str:
        seen.append(inputs)
        if len(seen) == 1:
            raise ValueError("not yet")
        return "done"

    text = """
steps:
  - {name: a, agent: point}
  - {name: b, agent: flaky, inputs: {all: "${a}", x: "${a.at.x}", given: "${inputs.point}"}}
"""
    agents = {"point": lambda _: {"at": Point(3), "key": secret}, "flaky": flaky}
    given = {"point": Point(1), "key": secret}
    with hardsave.open("memory://", redact=bool(secret)) as vault:
        with pytest.raises(StepFailed, match="not yet") as caught:
            run(vault, text, agents, inputs=given)
        begun = caught.value.run.checkpoint_id
        assert run(vault, text, agents, inputs=given, checkpoint_id=begun).ok
    assert seen[0] == seen[1]
    assert seen[0]["x"] == 3
    assert seen[0]["given"] == {"x": 1}
    assert not secret or secret not in repr(seen)


@pytest.mark.parametrize("way", ["checkpoint: true", "checkpoint: false"])
def test_an_answer_that_cannot_be_kept_fails_its_own_step_once(
    vault: hardsave.Vault, way: str
) -> None:
    calls, count = [], Counting()

    def odd(inputs: dict[str, Any]) -> Any:
        calls.append(inputs)
        return {"client": object()}

    text = f"steps: [{{name: a, agent: odd, retry: 3, {way}}}, {{name: b, agent: count}}]"
    with pytest.raises(StepFailed, match=r"step 'a' failed: Unstorable: answer\.client"):
        run(vault, text, {"odd": odd, "count": count})
    assert (len(calls), count.calls) == (1, [])
    skipping = text.replace("retry: 3", "on_error: skip")
    assert run(vault, skipping, {"odd": odd, "count": count}).answers == {"a": None, "b": 1}


NOPE = """steps:
  - {{name: a, agent: count, checkpoint: false}}
  - {{name: b, agent: late, inputs: {{what: "${{a.nope}}"}}, {how}}}
  - {{name: c, agent: count}}
"""


def test_an_answer_that_lacks_what_is_asked_of_it_fails_the_step_and_loses_nothing(
    vault: hardsave.Vault,
) -> None:
    count, late = Counting(), Counting()
    with pytest.raises(
        StepFailed, match=r"step 'b' failed: .*\$\{a.nope\} leads nowhere"
    ) as caught:
        run(vault, NOPE.format(how="retry: 2"), {"count": count, "late": late})
    (line,) = vault.timelines()
    assert line.get().status == "failed"
    assert line.load()["steps"]["a"]["answer"] == 1  # saved by no step of its own
    assert caught.value.run.steps["b"].attempts == 0
    assert (len(count.calls), len(late.calls)) == (1, 0)
    mended = NOPE.format(how="retry: 2").replace("${a.nope}", "${a}")
    agents = {"count": count, "late": late}
    run(vault, mended, agents, checkpoint_id=line.get().id)
    assert (len(count.calls), late.calls) == (2, [{"what": 1}])  # a was not run again


@pytest.mark.parametrize(("way", "status"), [("skip", "skipped"), ("continue", "failed")])
def test_such_a_step_may_fail_and_the_rest_goes_on(
    vault: hardsave.Vault, way: str, status: str
) -> None:
    late = Counting()
    done = run(vault, NOPE.format(how=f"on_error: {way}"), {"count": Counting(), "late": late})
    assert [each.status for each in done.steps.values()] == ["completed", status, "completed"]
    assert late.calls == []


def test_inputs_that_cannot_be_kept_are_refused_before_anything_runs(vault: hardsave.Vault) -> None:
    count = Counting()
    with pytest.raises(Unstorable, match=r"inputs\.goal"):
        run(vault, TEN, {"count": count}, inputs={"goal": object()})
    assert count.calls == []


def test_an_error_without_a_text_is_a_failure_like_any_other(vault: hardsave.Vault) -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    def fall(inputs: dict[str, Any]) -> None:
        raise Unspeakable

    with pytest.raises(StepFailed, match="step 'a' failed: Unspeakable"):
        run(vault, "steps: [{name: a, agent: fall}]", {"fall": fall})


def test_an_agent_that_is_cancelled_inside_has_failed(vault: hardsave.Vault) -> None:
    async def give_up(inputs: dict[str, Any]) -> None:
        raise asyncio.CancelledError

    with pytest.raises(StepFailed, match="step 'a' failed: CancelledError"):
        run(vault, "steps: [{name: a, agent: give_up}]", {"give_up": give_up})


def test_a_workflow_that_is_cancelled_stops(vault: hardsave.Vault) -> None:
    async def wait(inputs: dict[str, Any]) -> None:
        await asyncio.sleep(60)

    async def cancelled() -> None:
        executor = WorkflowExecutor({"wait": wait}, vault=vault)
        await asyncio.wait_for(executor.run(read("steps: [{name: a, agent: wait}]")), 0.05)

    with pytest.raises(TimeoutError):
        asyncio.run(cancelled())


class Full(MemoryStore):
    """A store on a disk that is full at times."""

    is_full = False

    def commit(self, batch: Batch) -> int:
        if self.is_full:
            raise Unavailable("no space is left")
        return super().commit(batch)


@pytest.mark.parametrize("where", ["in a step", "at the end"])
def test_a_run_whose_end_could_not_be_recorded_is_gone_on_with_once_that_can_be(where: str) -> None:
    store, count = Full(), Counting()
    broken = [True]

    def breaks(inputs: dict[str, Any]) -> str:
        store.is_full = broken.pop() if broken else False
        if store.is_full and where == "in a step":
            raise ValueError("no")
        return "done"

    text = "steps: [{name: a, agent: count}, {name: b, agent: breaks, checkpoint: false}]"
    begun: list[Run] = []
    with hardsave.Vault(store) as vault:
        executor = WorkflowExecutor({"count": count, "breaks": breaks}, vault=vault)
        with pytest.raises(Unavailable, match="no space"):
            asyncio.run(executor.run(read(text, "w.yaml"), begun=begun.append))
        head = begun[0].checkpoint_id
        with pytest.raises(Unavailable, match="no space"):  # and not that somebody is at work on it
            asyncio.run(executor.run(read(text, "w.yaml"), checkpoint_id=head))
        store.is_full = False
        assert asyncio.run(executor.run(read(text, "w.yaml"), checkpoint_id=head)).ok
        assert vault.tasks.get(begun[0].id).state == "completed"
    assert len(count.calls) == 1


def test_a_workflow_is_cancelled_also_where_that_cannot_be_recorded() -> None:
    store, begun = Full(), asyncio.Event()

    async def hang(inputs: dict[str, Any]) -> None:
        store.is_full = True
        begun.set()
        await asyncio.sleep(3600)

    async def cancelled(vault: hardsave.Vault) -> bool:
        executor = WorkflowExecutor({"hang": hang}, vault=vault)
        going = asyncio.create_task(executor.run(read("steps: [{name: a, agent: hang}]", "w.yaml")))
        await begun.wait()
        going.cancel()
        await asyncio.wait([going])
        store.is_full = False
        return going.cancelled()

    with hardsave.Vault(store) as vault:
        assert asyncio.run(cancelled(vault))


def test_a_workflow_that_changed_is_explained(vault: hardsave.Vault) -> None:
    count = Counting()
    text = "steps: [{name: a, agent: count}, {name: b, agent: count}, {name: c, agent: count}]"
    done = run(vault, text, {"count": count})
    checkpoint = vault.timeline(done.id).get("@~1").id
    for other, says in (
        (
            text.replace("a, agent: count", "a, agent: count, inputs: {x: 1}"),
            "step 'a' has another",
        ),
        (text.replace("{name: a, agent: count}, ", ""), "step 'a' is gone"),
        (text.replace("[{name: a", "[{name: z, agent: count}, {name: a"), "new before finished"),
    ):
        with pytest.raises(Conflict, match=says):
            run(vault, other, {"count": count}, checkpoint_id=checkpoint)
    before = len(count.calls)
    other = text.replace("b, agent: count", "b, agent: count, inputs: {x: 1}")
    again = run(vault, other, {"count": count}, checkpoint_id=checkpoint, accept_changes=True)
    assert again.ok
    assert len(count.calls) - before == 2  # b, which changed, and c after it


def test_what_does_not_fit_is_refused(vault: hardsave.Vault) -> None:
    with pytest.raises(NotFound, match=r"^w\.yaml:2: step 's1' wants agent 'count', which was not"):
        run(vault, TEN, {})
    spread = "steps:\n- name: a\n  agent: count\n- name: b\n  agent: lost\n"
    with pytest.raises(
        NotFound, match=r"^w\.yaml:5: step 'b' wants agent 'lost'.*there are: count"
    ):
        run(vault, spread, {"count": Counting()})
    other = vault.timeline("chat").save({"messages": []}).id
    with pytest.raises(Misuse, match="not one of a workflow's run"):
        run(vault, TEN, {"count": Counting()}, checkpoint_id=other)
    done = run(vault, "workflow: {name: x}\n" + TEN, {"count": Counting()})
    with pytest.raises(Conflict, match="is of workflow 'x', not of 'w'"):
        run(vault, TEN, {"count": Counting()}, checkpoint_id=done.checkpoint_id)


RUN = {"workflow": "w", "run": "run-1", "inputs": {}, "steps": {}}


@pytest.mark.parametrize(
    "saved",
    [
        *({key: value for key, value in RUN.items() if key != gone} for gone in RUN),
        {**RUN, "run": 5},
        {**RUN, "inputs": None},
        {**RUN, "steps": [1]},
        {**RUN, "steps": {"s1": 5}},
        {**RUN, "steps": {"s1": {"status": "completed", "odd": 1}}},
        [RUN],
    ],
    ids=repr,
)
def test_what_only_looks_like_a_run_is_refused(vault: hardsave.Vault, saved: Any) -> None:
    count = Counting()
    checkpoint = vault.timeline("run-1").save(saved).id
    with pytest.raises(Misuse, match="is not one of a workflow's run"):
        run(vault, TEN, {"count": count}, checkpoint_id=checkpoint)
    assert count.calls == []


@dataclass
class Model:
    """What is an agent to others, and shows all that it holds."""

    key: str


def test_what_cannot_be_asked_is_refused_before_anything_runs(vault: hardsave.Vault) -> None:
    text, count = "steps: [{name: a, agent: count}, {name: b, agent: odd}]", Counting()
    for odd in (5, StandardAgent, None):
        message = r"w\.yaml:1: step 'b' has agent 'odd', which is .*; give a function that takes"
        with pytest.raises(Misuse, match=message):
            run(vault, text, {"count": count, "odd": odd})
    with pytest.raises(Misuse, match=r"which is of the class .*Model; give a function") as refused:
        run(vault, text, {"count": count, "odd": Model("sk-secret")})
    assert "sk-secret" not in str(refused.value)
    with pytest.raises(Misuse, match=r"inputs is a dict, not \['x'\]"):
        run(vault, TEN, {"count": count}, inputs=["x"])
    assert count.calls == []
    assert not vault.tasks.find()


# Two at once


def test_of_two_who_go_on_with_a_run_one_does_and_the_other_is_told_who(
    vault: hardsave.Vault,
) -> None:
    text = "steps: [{name: a, agent: count}, {name: b, agent: slow}, {name: c, agent: count}]"
    plan, count, begun = read(text, "w.yaml"), Counting(), asyncio.Event()
    with pytest.raises(StepFailed) as caught:
        run(vault, text, {"count": count, "slow": Counting(fails=9)})
    start = caught.value.run.checkpoint_id

    async def both() -> Run:
        go = asyncio.Event()

        async def slow(inputs: dict[str, Any]) -> str:
            begun.set()
            await go.wait()
            return "done"

        executor = WorkflowExecutor({"count": count, "slow": slow}, vault=vault)
        first = asyncio.create_task(executor.run(plan, checkpoint_id=start))
        await begun.wait()
        with pytest.raises(
            Conflict, match=rf"process {os.getpid()} \(session 'attempts'\) is at work on it"
        ):
            await executor.run(plan, checkpoint_id=start)
        go.set()
        return await first

    assert asyncio.run(both()).ok
    assert len(count.calls) == 2


def test_a_run_that_somebody_else_has_just_finished_is_not_run_again(
    vault: hardsave.Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, text = Counting(), "steps: [{name: a, agent: count}, {name: b, agent: flaky}]"
    with pytest.raises(StepFailed) as caught:
        run(vault, text, {"count": count, "flaky": Counting(fails=1)})
    start = caught.value.run.checkpoint_id
    claim = WorkflowExecutor._claimed

    def late(self: WorkflowExecutor, held: Run) -> Any:
        monkeypatch.undo()
        options = {"checkpoint_id": start}
        other = threading.Thread(
            target=run, args=(vault, text, {"count": count, "flaky": count}), kwargs=options
        )
        other.start()  # a thread, as a loop runs here already
        other.join()
        return claim(self, held)

    monkeypatch.setattr(WorkflowExecutor, "_claimed", late)
    with pytest.raises(Conflict, match="has just gone on elsewhere"):
        run(vault, text, {"count": count, "flaky": count}, checkpoint_id=start)
    assert len(count.calls) == 2


def test_however_its_checkpoint_is_spelt_a_run_is_known_to_have_gone_on_elsewhere(
    vault: hardsave.Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run(vault, TEN, {"count": Counting()})
    assert done.checkpoint_id is not None
    again = run(vault, TEN, {"count": Counting()}, checkpoint_id=f"{done.id}:10")
    assert again.checkpoint_id == done.checkpoint_id

    claim = WorkflowExecutor._claimed

    def late(self: WorkflowExecutor, run: Run) -> Any:
        vault.timeline(done.id).save({}, expect=hardsave.ANY_HEAD)
        return claim(self, run)

    monkeypatch.setattr(WorkflowExecutor, "_claimed", late)
    with pytest.raises(Conflict, match="gone on elsewhere"):
        run(vault, TEN, {"count": Counting()}, checkpoint_id=done.checkpoint_id[:-1])


def test_who_was_taken_for_dead_saves_nothing_more(vault: hardsave.Vault) -> None:
    def steal(inputs: dict[str, Any]) -> None:
        (task,) = vault.tasks.find(state="in_progress")
        vault.tasks.cancel(task.id)  # as whoever finds its lease passed takes it away

    count = Counting()
    text = "steps: [{name: a, agent: count}, {name: b, agent: steal}, {name: c, agent: count}]"
    with pytest.raises(LeaseLost):
        run(vault, text, {"count": count, "steal": steal})
    (line,) = vault.timelines()
    assert (len(line), len(count.calls)) == (1, 1)


def test_a_runner_of_tasks_never_takes_up_a_run(vault: hardsave.Vault) -> None:
    def fail(inputs: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    for agent in (Counting(), Counting(fails=9), fail):
        with contextlib.suppress(StepFailed, KeyboardInterrupt):
            run(vault, "steps: [{name: a, agent: it}]", {"it": agent})
    ran = []
    with vault.tasks.runner("others") as runner:
        runner.run(lambda attempt: ran.append(attempt.id), until_idle=True)
    assert ran == []
    assert vault.tasks.stats().failed == 2
    assert vault.tasks.stats().completed == 1


def test_a_retry_of_a_run_by_its_task_gives_it_to_no_runner(vault: hardsave.Vault) -> None:
    text = "steps: [{name: a, agent: flaky}]"
    flaky, ran = Counting(fails=1), []
    with pytest.raises(StepFailed) as caught:
        run(vault, text, {"flaky": flaky})
    failed = caught.value.run
    with pytest.raises(Conflict, match="go on with it through what has begun it"):
        vault.tasks.retry(failed.id)
    vault.tasks.roll_back(failed.id)  # as a rewind does
    with pytest.raises(Conflict, match="taken up by no runner"):
        vault.tasks.retry(failed.id, force=True)
    assert not vault.tasks.add(failed.id).is_new
    with vault.tasks.runner("others") as runner:
        runner.run(lambda attempt: ran.append(attempt.id), until_idle=True)
    assert ran == []
    assert run(vault, text, {"flaky": flaky}, checkpoint_id=failed.checkpoint_id).ok


PROGRAM = """
import asyncio, os, signal, sys
from pathlib import Path
import hardsave
from hardsave.runtime.workflow import WorkflowExecutor

folder, kills, checkpoint = Path(sys.argv[1]), sys.argv[2] == "kill", sys.argv[3] or None

def count(inputs):
    done = folder / "done.txt"
    number = inputs["number"]
    if kills and number == 6:
        os.kill(os.getpid(), signal.SIGKILL)
    with done.open("a") as file:
        file.write(f"{number}\\n")
    return number

with hardsave.open(f"sqlite:///{folder}/s.db") as vault:
    executor = WorkflowExecutor({"count": count}, vault=vault)
    run = asyncio.run(executor.run(workflow=folder / "w.yaml", checkpoint_id=checkpoint))
    print(run.answers)
"""


def test_ten_steps_killed_in_the_sixth_go_on_with_the_sixth(tmp_path: Path) -> None:
    steps = [f"  - {{name: s{n}, agent: count, inputs: {{number: {n}}}}}\n" for n in range(1, 11)]
    (tmp_path / "w.yaml").write_text("steps:\n" + "".join(steps))

    def start(how: str, checkpoint: str = "") -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-c", PROGRAM, str(tmp_path), how, checkpoint]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert start("kill").returncode == -signal.SIGKILL
    with hardsave.open(f"sqlite:///{tmp_path}/s.db") as vault:
        (line,) = vault.timelines()
        head = line.get().id
    done = start("finish", head)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "done.txt").read_text().split() == [str(n) for n in range(1, 11)]


def test_what_a_step_does_to_its_inputs_or_answer_changes_nothing_else(
    vault: hardsave.Vault,
) -> None:
    seen: list[Any] = []
    answer = ["a"]

    def plan(inputs: dict[str, Any]) -> list[str]:
        return answer

    def code(inputs: dict[str, Any]) -> str:
        seen.append({name: list(value) for name, value in inputs.items()})
        for value in inputs.values():
            value.append("spoilt")
        answer.append("spoilt")
        if len(seen) < 3:
            raise ValueError("not yet")
        return "done"

    text = """
steps:
  - {name: plan, agent: plan}
  - {name: code, agent: code, retry: 2, inputs: {plan: "${plan}", own: [1], given: "${inputs.of}"}}
"""
    given = {"of": ["me"]}
    done = run(vault, text, {"plan": plan, "code": code}, inputs=given)
    assert seen == [{"plan": ["a"], "own": [1], "given": ["me"]}] * 3
    assert done.answers == {"plan": ["a"], "code": "done"}
    saved = vault.get(str(done.checkpoint_id)).read()
    assert saved["steps"]["plan"]["answer"] == ["a"]
    assert saved["inputs"] == given == {"of": ["me"]}


def test_an_answer_that_is_too_deep_to_be_copied_is_an_answer(vault: hardsave.Vault) -> None:
    deep: list[Any] = []
    for _ in range(1_200):
        deep = [deep]
    text = "steps:\n  - {name: a, agent: dig}\n  - {name: b, agent: look, inputs: {d: '${a}'}}"
    done = run(vault, text, {"dig": lambda _: deep, "look": lambda inputs: len(inputs["d"])})
    assert done.answers["b"] == 1


def test_an_input_that_was_not_given_is_asked_for_before_anything_runs(
    vault: hardsave.Vault,
) -> None:
    text = """
steps:
  - {name: one, agent: count}
  - {name: two, agent: count, inputs: {what: ["for ${inputs.goal.now}", "${one}"]}}
"""
    count = Counting()
    asked = (
        r"w.yaml:4: step 'two' asks for \$\{inputs.goal\}, which was not given; give it in inputs"
    )
    with pytest.raises(Misuse, match=asked):
        run(vault, text, {"count": count})
    assert (count.calls, [*vault.timelines()], [*vault.tasks.find()]) == ([], [], [])
    done = run(vault, text.replace("]}}", "]}, on_error: skip}"), {"count": count})
    assert done.steps["two"].status == "skipped"
    with pytest.raises(StepFailed, match="there is no 'now'"):
        run(vault, text, {"count": count}, inputs={"goal": {}})


def test_an_error_of_an_agent_is_logged_once_with_its_line(
    vault: hardsave.Vault, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(StepFailed):
        run(vault, TEN, {"count": Counting(fails=1)})
    (told,) = (each.getMessage() for each in caplog.records if each.levelname == "WARNING")
    assert told.startswith("step s1, attempt 1: Traceback")
    assert 'raise ValueError(f"no {len(self.calls)}")' in told
    assert told.endswith("ValueError: no 1")
