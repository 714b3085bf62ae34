"""The five routes over jobs in every state: real workers, a scripted model, real HTTP."""

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import hardsave
from hardsave.compat.ai_coder import AgentCheckpoint, CheckpointManager
from hardsave.runtime.jobs.worker import Worker
from hardsave.runtime.scripted import Call, Fault, Reply, ScriptedModel
from hardsave.server.tokens import TokenFile
from hardsave.stores.base import Batch
from hardsave.stores.ledger import TaskQuery, Work
from hardsave.stores.registry import open_store
from tests.unit.server.job_server import LIMIT, Client, serving

AT_ONCE = hardsave.Retry(first_seconds=0, max_seconds=0)
NOTE = Reply("", (Call("note", {"text": "hello"}),))
DONE = Reply("done")
BREAKS = Fault(400)


class Site:
    """A store on disk with a worker in this process, and a server beside it."""

    def __init__(self, folder: Path, call: Client, url: str) -> None:
        self.folder, self.call, self.url = folder, call, url
        self.vault = hardsave.open(url)
        self.ends = contextlib.ExitStack()
        self.ends.enter_context(self.vault)
        self.noting, self.may_end = threading.Event(), threading.Event()

    def add(self, **options: Any) -> None:
        self.vault.jobs.add("fix", "Fix the bug", **options)

    def work(
        self, *script: Any, careful: bool = False, vault: hardsave.Vault | None = None
    ) -> None:
        """A worker, until nothing is left to do."""
        with ScriptedModel(script) as model:
            made = Worker(vault or self.vault, {"default": self._agent(model, careful)})
            made.run(until_idle=True, retry=AT_ONCE)

    def _agent(self, model: ScriptedModel, careful: bool) -> Agent[None, Any]:
        nothing_kept = httpx2.AsyncClient(limits=httpx2.Limits(max_keepalive_connections=0))
        client = AsyncOpenAI(
            base_url=model.openai_url, api_key="none", max_retries=0, http_client=nothing_kept
        )
        provider = OpenAIProvider(openai_client=client)
        agent: Agent[None, Any] = Agent(OpenAIChatModel("scripted", provider=provider))

        @agent.tool_plain(requires_approval=careful)
        def note(text: str) -> str:
            """Write down."""
            self.noting.set()
            return f"noted {text}" if self.may_end.wait(LIMIT) else "never"

        return agent

    def failed(self) -> None:
        self.may_end.set()
        self.add()
        self.work(NOTE, BREAKS)

    def forget(self) -> None:
        """The queue's row of the job is gone."""
        event = self.vault.tasks._context.entry("forgotten", None, {})
        self.vault._context.store.commit(Batch(None, event, work=Work(forget=["fix"])))

    def tasks(self) -> int:
        return self.vault.tasks.stats().total


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    url = f"sqlite:///{tmp_path}/store.db"
    hardsave.open(url).close()
    with serving(url, tmp_path) as call:
        made = Site(tmp_path, call, url)
        with made.ends:
            yield made


# Whose jobs


def test_a_token_leads_to_the_jobs_of_its_user_alone(site: Site) -> None:
    tokens, now = TokenFile(site.folder / "tokens.json"), datetime.now(UTC)
    secrets = {
        user: tokens.add(user, store=site.url, user=user, scope="act", now=now, expires_at=None)[1]
        for user in ("ada", "bob")
    }
    calls = {user: Client(site.call.port, secret) for user, secret in secrets.items()}
    site.may_end.set()
    for user in ("ada", "bob"):
        with hardsave.open(site.url, user=user) as vault:
            vault.jobs.add(f"of-{user}", "Fix the bug")
            site.work(NOTE, BREAKS, vault=vault)
    for user, other in (("ada", "bob"), ("bob", "ada")):
        call = calls[user]
        [listed] = call("GET", "checkpoints")[1]["checkpoints"]
        assert listed["jobId"] == f"of-{user}"
        assert call("GET", "checkpoints", f"of-{other}")[0] == 404
        assert call("GET", "checkpoints", f"of-{other}", "can-resume")[1]["hasCheckpoint"] is False
        assert call("POST", "checkpoints", f"of-{other}", "resume")[0] == 404
        assert call("DELETE", "checkpoints", f"of-{other}")[0] == 404
    assert site.call("GET", "checkpoints")[1]["total"] == 0
    assert calls["ada"]("POST", "checkpoints", "of-ada", "resume")[0] == 200


def test_a_token_that_may_only_read_changes_nothing(site: Site) -> None:
    site.failed()
    tokens, now = TokenFile(site.folder / "tokens.json"), datetime.now(UTC)
    made = tokens.add("ci", store=site.url, user=None, scope="read", now=now, expires_at=None)
    call = Client(site.call.port, made[1])
    assert call("GET", "checkpoints", "fix", "can-resume")[1]["canResume"] is True
    for method, *rest in (("POST", "resume"), ("DELETE",)):
        status, told = call(method, "checkpoints", "fix", *rest)
        assert (status, told.keys()) == (403, {"error", "message"})
    assert call("POST", "webhook", body={})[0] == 403
    assert site.vault.jobs.get("fix").can_resume


# Every state


def unknown(site: Site) -> None:
    """Nothing was ever queued."""


def queued(site: Site) -> None:
    site.add()


def active(site: Site) -> None:
    site.add()
    working = threading.Thread(target=site.work, args=(NOTE, DONE))

    def end() -> None:
        site.may_end.set()
        working.join(LIMIT)

    working.start()
    site.ends.callback(end)
    assert site.noting.wait(LIMIT), "no worker has taken it up"


def killed_at_once(site: Site) -> None:
    """Its worker died before anything was saved."""
    site.add()
    site.vault.tasks.claim("fix")
    store = site.vault._context.store
    owner = store.tasks(None, TaskQuery(9, state="in_progress"))[-1].owner
    assert owner is not None
    store.let_go(None, owner)


def waiting_for_an_answer(site: Site) -> None:
    site.add()
    site.work(NOTE, DONE, careful=True)


def failed(site: Site) -> None:
    site.failed()


def out_of_turns(site: Site) -> None:
    site.may_end.set()
    site.add(max_turns=1)
    site.work(NOTE, DONE)


def succeeded(site: Site) -> None:
    site.may_end.set()
    site.add()
    site.work(NOTE, DONE)


def purged(site: Site) -> None:
    site.may_end.set()
    site.add(on_success="purge")
    site.work(NOTE, DONE)
    assert len(site.vault.timeline("fix")) == 0


def queue_row_gone(site: Site) -> None:
    failed(site)
    site.forget()


def queue_row_of_a_success_gone(site: Site) -> None:
    succeeded(site)
    site.forget()


def expired(site: Site) -> None:
    past = datetime.now(UTC) - timedelta(days=8)
    site.may_end.set()
    with hardsave.Vault(
        open_store(site.url), clock=lambda: int(past.timestamp() * 1_000_000)
    ) as vault:
        vault.jobs.add("fix", "Fix the bug")
        site.work(NOTE, BREAKS, vault=vault)


def deleted(site: Site) -> None:
    failed(site)
    assert site.call("DELETE", "checkpoints", "fix")[0] == 200


def deleted_while_waiting(site: Site) -> None:
    waiting_for_an_answer(site)
    assert site.call("DELETE", "checkpoints", "fix")[0] == 200


def rolled_back(site: Site) -> None:
    succeeded(site)
    site.vault.timeline("fix").rewind("fix:1", tasks=True)


def resumed(site: Site) -> None:
    failed(site)
    site.vault.jobs.resume("fix")


State = Callable[[Site], None]
STATES: dict[State, tuple[str, bool, int]] = {
    unknown: ("unknown", False, 404),
    queued: ("waiting", False, 400),
    active: ("active", True, 400),
    killed_at_once: ("failed", False, 404),
    waiting_for_an_answer: ("paused", True, 400),
    failed: ("failed", True, 200),
    out_of_turns: ("failed", True, 200),
    succeeded: ("completed", False, 400),
    purged: ("completed", False, 400),
    queue_row_gone: ("unknown", True, 200),
    queue_row_of_a_success_gone: ("completed", False, 400),
    expired: ("failed", False, 404),
    deleted: ("failed", False, 404),
    deleted_while_waiting: ("failed", False, 404),
    rolled_back: ("rolled_back", True, 200),
    resumed: ("waiting", True, 400),
}
"""How to bring a job into a state; its status, whether it has a checkpoint, how resume ends."""


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_can_resume_and_resume_never_disagree(site: Site, state: State) -> None:
    state(site)
    status, has_checkpoint, answer = STATES[state]
    known, told = site.call("GET", "checkpoints", "fix", "can-resume")
    assert known == 200
    id = "fix~2" if state is resumed else "fix"
    assert told == {
        "jobId": id,
        "canResume": answer == 200,
        "hasCheckpoint": has_checkpoint,
        "jobStatus": status,
    }
    check_listed(site, told)
    tasks = site.tasks()
    known, resumed_now = site.call("POST", "checkpoints", "fix", "resume")
    assert known == answer, resumed_now
    if answer != 200:
        assert resumed_now.keys() == {"error", "message"}
        assert site.tasks() == tasks
        return
    assert (resumed_now["originalJobId"], resumed_now["newJobId"]) == ("fix", "fix~2")
    assert site.tasks() == tasks + 1
    again = site.call("GET", "checkpoints", "fix", "can-resume")[1]
    assert (again["canResume"], again["jobStatus"]) == (False, "waiting")
    assert site.call("POST", "checkpoints", "fix", "resume")[0] == 400
    site.may_end.set()
    site.work(NOTE, DONE)
    assert site.vault.jobs.get("fix").state == "succeeded"


def check_listed(site: Site, told: dict[str, Any]) -> None:
    """The list and the job itself say the same as `can-resume`."""
    status, listed = site.call("GET", "checkpoints")
    assert status == 200
    assert listed["total"] == len(listed["checkpoints"]) == told["hasCheckpoint"]
    status, one = site.call("GET", "checkpoints", "fix")
    if not told["hasCheckpoint"]:
        assert status == 404
        assert one.keys() == {"error", "message"}
        return
    assert status == 200
    assert one.keys() == {"jobId", "metadata"}
    assert listed["checkpoints"] == [{**one, "jobStatus": told["jobStatus"]}]
    assert one["jobId"] == told["jobId"]
    metadata = one["metadata"]
    assert metadata.keys() == {"totalCheckpoints", "lastCheckpointAt", "canResume"}
    assert metadata["canResume"] == told["canResume"]
    assert metadata["totalCheckpoints"] == len(site.vault.timeline("fix")) > 0
    assert datetime.fromisoformat(metadata["lastCheckpointAt"]).tzinfo is not None


DELETED: dict[State, int] = {
    unknown: 404,
    queued: 404,
    active: 400,
    waiting_for_an_answer: 200,
    failed: 200,
    succeeded: 404,
    queue_row_gone: 200,
    expired: 404,
    resumed: 200,
}


@pytest.mark.parametrize("state", DELETED, ids=lambda state: state.__name__)
def test_a_checkpoint_is_deleted_once(site: Site, state: State) -> None:
    state(site)
    before = len(site.vault.timeline("fix"))
    status, told = site.call("DELETE", "checkpoints", "fix")
    assert status == DELETED[state], told
    if status == 200:
        assert "deleted" in told["message"]
        assert site.call("DELETE", "checkpoints", "fix")[0] == 404
        assert site.call("GET", "checkpoints")[1]["total"] == 0
        site.work(NOTE, DONE)  # nothing is left that a worker would begin anew
        assert len(site.vault.timeline("fix")) == 0
    else:
        assert told.keys() == {"error", "message"}
        assert len(site.vault.timeline("fix")) >= before


def test_a_resumption_says_where_it_goes_on_and_whom_it_tells(site: Site) -> None:
    site.failed()
    job = site.vault.jobs.get("fix")
    url = "https://example.com/done"
    status, told = site.call(
        "POST", "checkpoints", "fix", "resume", body={"callback": {"url": url}}
    )
    assert status == 200
    assert job.updated_at is not None
    assert told["resumedFrom"] == {
        "turns": 1,
        "messageCount": job.messages,
        "lastUpdated": job.updated_at.isoformat(timespec="milliseconds"),
    }
    assert site.vault.jobs.get("fix").spec.callback == url


@pytest.mark.parametrize("body", [{"callback": {"url": "ftp://x/"}}, {"callback": "x"}, {"a": 1}])
def test_a_body_that_is_refused_queues_nothing(site: Site, body: Any) -> None:
    site.failed()
    status, told = site.call("POST", "checkpoints", "fix", "resume", body=body)
    assert (status, told.keys()) == (400, {"error", "message"})
    assert site.vault.jobs.get("fix").id == "fix"


async def _saved_by_ai_coder(vault: hardsave.Vault) -> None:
    messages = [{"role": "user", "content": "Fix the bug"}]
    checkpoint = AgentCheckpoint("123", "shop", "Fix the bug", messages, turns=3, max_turns=50)
    await CheckpointManager(vault).save_checkpoint(checkpoint)


def test_a_job_of_ai_coder_is_a_job_like_others(site: Site) -> None:
    asyncio.run(_saved_by_ai_coder(site.vault))
    known = {"jobId": "123", "canResume": True, "hasCheckpoint": True, "jobStatus": "unknown"}
    assert site.call("GET", "checkpoints", "123", "can-resume") == (200, known)
    [listed] = site.call("GET", "checkpoints")[1]["checkpoints"]
    assert (listed["jobId"], listed["metadata"]["totalCheckpoints"]) == ("123", 1)
    told = site.call("POST", "checkpoints", "123", "resume")[1]
    assert (told["newJobId"], told["resumedFrom"]["turns"]) == ("123~2", 3)
    assert told["resumedFrom"]["messageCount"] == 1
    assert site.call("DELETE", "checkpoints", "123")[0] == 200
    assert site.call("DELETE", "checkpoints", "123")[0] == 404


def test_of_callers_that_resume_at_once_one_wins(site: Site) -> None:
    site.failed()
    start = threading.Barrier(8)

    def resume(_: int) -> int:
        start.wait(LIMIT)
        return site.call("POST", "checkpoints", "fix", "resume")[0]

    with ThreadPoolExecutor(8) as threads:
        answers = Counter(threads.map(resume, range(8)))
    assert answers == {200: 1, 400: 7}
    assert site.tasks() == 2


def test_of_callers_that_delete_at_once_one_wins(site: Site) -> None:
    site.failed()
    start = threading.Barrier(4)

    def delete(_: int) -> int:
        start.wait(LIMIT)
        return site.call("DELETE", "checkpoints", "fix")[0]

    with ThreadPoolExecutor(4) as threads:
        assert Counter(threads.map(delete, range(4))) == {200: 1, 404: 3}


def test_what_changes_between_two_calls_ends_in_a_documented_answer(site: Site) -> None:
    """Resumed, worked on, deleted and looked at all at once: each answer is a documented one."""
    site.may_end.set()
    ids = [f"job-{number}" for number in range(6)]
    for id in ids:
        site.vault.jobs.add(id, "Fix the bug")
    site.work(NOTE, BREAKS)
    answers: Counter[tuple[str, int]] = Counter()
    deeds = [
        *((id, "POST", ("resume",)) for id in ids * 4),
        *((id, "GET", ("can-resume",)) for id in ids * 2),
        *((id, "GET", ()) for id in ids * 2),
        *((id, "DELETE", ()) for id in ids[:3]),
    ]

    def do(deed: tuple[str, str, tuple[str, ...]]) -> None:
        id, method, rest = deed
        status, told = site.call(method, "checkpoints", id, *rest)
        answers[method, status] += 1
        assert status == 200 or told.keys() == {"error", "message"}

    with ThreadPoolExecutor(9) as threads:
        working = threads.submit(site.work, NOTE, BREAKS)
        list(threads.map(do, deeds))
        working.result(LIMIT)
    assert {status for _, status in answers} <= {200, 400, 404}
    assert answers["POST", 200] >= 1
    for id in ids:
        told = site.call("GET", "checkpoints", id, "can-resume")[1]
        expected = 200 if told["canResume"] else 400 if told["hasCheckpoint"] else 404
        assert site.call("POST", "checkpoints", id, "resume")[0] == expected, told


def test_any_id_is_one_segment_and_leads_to_its_own_job(site: Site) -> None:
    site.may_end.set()
    ids = ["..", "a/b?c#d", "a%2Fb", "ünïcode ✓", ".", "a+b&c=d"]
    for id in [*ids, "a", "b"]:
        site.vault.jobs.add(id, "Fix the bug")
    site.work(NOTE, BREAKS)
    for id in ids:
        assert site.call("GET", "checkpoints", id)[1]["jobId"] == id
        assert site.call("POST", "checkpoints", id, "resume")[1]["newJobId"] == f"{id}~2"
        assert site.call("DELETE", "checkpoints", id)[1]["jobId"] == f"{id}~2"
    left = site.call("GET", "checkpoints")[1]["checkpoints"]
    assert {each["jobId"] for each in left} == {"a", "b"}


def test_an_id_that_no_job_can_have_is_refused_everywhere(site: Site) -> None:
    for id in ["a:b", "@x", " x", "x" * 2000, "a\nb", "a\0b"]:
        asked = [("GET",), ("GET", "can-resume"), ("POST", "resume"), ("DELETE",)]
        answers = {site.call(method, "checkpoints", id, *rest)[0] for method, *rest in asked}
        assert answers == {400}, id
