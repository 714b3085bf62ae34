"""The session service for Google ADK: as ADK's own, and what ours has besides."""

import asyncio
import copy
import functools
import logging
import sys
import threading
from asyncio.subprocess import PIPE
from collections.abc import Callable, Iterator
from contextlib import aclosing
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from google.adk.agents import LlmAgent, ParallelAgent, SequentialAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.models.llm_request import LlmRequest
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.adk.tools.tool_context import ToolContext
from google.genai import types

import hardsave
from hardsave.adapters.google_adk import HardsaveSessionService
from tests.frameworks.google_adk.scripted import Scripted, asked, calls, results, said

ADA: dict[str, Any] = {"app_name": "app", "user_id": "ada"}
BOB: dict[str, Any] = {"app_name": "app", "user_id": "bob"}
ONE: dict[str, Any] = {**ADA, "session_id": "one"}
LINE = "google-adk/app/ada/one"
LATER = 4_000_000_000.0  # behind the time at which a session begins


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[hardsave.Vault]:
    with hardsave.open(f"sqlite:///{tmp_path}/s.db") as vault:
        yield vault


@pytest.fixture
def service(vault: hardsave.Vault) -> HardsaveSessionService:
    return HardsaveSessionService(vault)


def event(id: str, at: float = 0, **state: Any) -> Event:
    actions = EventActions(state_delta={key.replace("__", ":"): v for key, v in state.items()})
    return Event(id=id, author="user", invocation_id=id, timestamp=LATER + at, actions=actions)


async def loaded(service: BaseSessionService, **place: str) -> Session:
    found = await service.get_session(**{**ONE, **place})
    assert found is not None
    return found


async def _told(service: BaseSessionService) -> list[Any]:
    """What a service answers to all that one can ask it."""
    state = {"own": [1, 2], "app:a": {"x": 1, "y": 2}, "user:u": "dark", "temp:t": 1}
    one = await service.create_session(**ADA, session_id=" one ", state=state)
    two = await service.create_session(**ADA, session_id="two", state={"app:b": 1})
    await service.create_session(**BOB, session_id="one")
    await service.create_session(**{**ADA, "app_name": "other"}, session_id="one")
    told: list[Any] = [one.id, one.state, two.state, one.events]
    delta = {"own": [3], "app__a": {"x": 3}, "user__u": None, "temp__t": 2, "flag": False}
    rich = event("1", 1, **delta)
    rich.content = types.Content(
        role="user", parts=[types.Part.from_bytes(data=b"\x00\xff", mime_type="image/png")]
    )
    rich.long_running_tool_ids = {"b", "a"}
    rich.custom_metadata = {"k": [1, None]}
    rich.grounding_metadata = types.GroundingMetadata(web_search_queries=["q"])
    rich.actions.requested_tool_confirmations = {"c": ToolConfirmation(hint="h", payload={"a": 1})}
    rich.actions.artifact_delta = {"file": 0}
    told.append(await service.append_event(one, rich))
    told.append(await service.append_event(one, Event(id="part", partial=True, timestamp=1)))
    for n in range(2, 6):
        await service.append_event(one, event(str(n), n))
    told += [one.events, one.state, one.last_update_time]
    again = await loaded(service, session_id=" one ")
    told += [again.events, again.state, again.last_update_time]
    for recent, after in ((0, None), (3, None), (9, None), (None, 4), (None, 99), (3, 4)):
        since = None if after is None else LATER + after
        config = GetSessionConfig(num_recent_events=recent, after_timestamp=since)
        found = await service.get_session(**ONE, config=config)
        assert found is not None
        told.append([each.id for each in found.events])
        told.append(found.state)
    for place in (ADA, {"app_name": "app"}, {**ADA, "user_id": ""}, {"app_name": "none"}):
        listed = await service.list_sessions(**place)
        told.append([(each.user_id, each.id, each.state, each.events) for each in listed.sessions])
    for place in (ADA, BOB, {**ADA, "app_name": "other"}):
        told.append(await service.get_user_state(**place))
    for failing in (
        service.create_session(**ADA, session_id=" one"),
        service.append_event(Session(**ADA, id="none"), event("1")),
    ):
        with pytest.raises((AlreadyExistsError, SessionNotFoundError)) as error:
            await failing
        told.append((type(error.value), str(error.value)))
    await service.delete_session(**ADA, session_id="none")
    await service.delete_session(**ADA, session_id=" one")
    told.append(await service.get_session(**ONE))
    with pytest.raises(SessionNotFoundError):
        await service.append_event(again, event("9"))
    told.append(await service.get_user_state(**ADA))
    told.append((await service.create_session(**ONE)).state)
    told.append((await loaded(service)).events)
    told.append((await service.create_session(**ADA, session_id=" ")).id.strip() != "")
    return told


@pytest.mark.asyncio
@pytest.mark.parametrize("own", [InMemorySessionService, SqliteSessionService])
async def test_it_answers_as_the_services_of_adk(
    service: HardsaveSessionService, own: Callable[..., BaseSessionService], tmp_path: Path
) -> None:
    theirs = own() if own is InMemorySessionService else own(str(tmp_path / "adk.db"))
    expected = await _told(theirs)
    for ours, other in zip(await _told(service), expected, strict=True):
        assert ours == other


@pytest.mark.asyncio
async def test_a_session_comes_back_equal_to_the_one_that_was_appended_to(
    service: HardsaveSessionService,
) -> None:
    session = await service.create_session(**ONE)
    assert await loaded(service) == session
    await service.append_event(session, event("1", own=1, user__u=2))
    assert await loaded(service) == session


@pytest.mark.asyncio
async def test_a_stale_session_is_refused_and_nothing_is_saved(
    vault: hardsave.Vault, service: HardsaveSessionService
) -> None:
    session = await service.create_session(**ONE)
    stale = copy.deepcopy(session)
    unmarked = Session.model_validate_json(session.model_dump_json())
    await service.append_event(session, event("1"))
    for each in (stale, unmarked):
        with pytest.raises(StaleSessionError, match="modified in storage"):
            await service.append_event(each, event("2", own=1, app__a=1))
        assert each.events == []
    assert [each.id for each in (await loaded(service)).events] == ["1"]
    assert [line.name for line in vault.timelines()] == [LINE]


@pytest.mark.asyncio
async def test_a_session_that_went_through_json_or_has_only_some_events_is_not_stale(
    service: HardsaveSessionService,
) -> None:
    session = await service.create_session(**ONE)
    await service.append_event(session, event("1"))
    through_json = Session.model_validate_json(session.model_dump_json())
    await service.append_event(through_json, event("2"))
    no_events = GetSessionConfig(num_recent_events=0)
    found = await service.get_session(**ONE, config=no_events)
    assert found is not None
    await service.append_event(found, event("3"))
    assert [each.id for each in (await loaded(service)).events] == ["1", "2", "3"]


@pytest.mark.asyncio
async def test_what_is_saved_beside_the_events_makes_no_session_stale(
    vault: hardsave.Vault, service: HardsaveSessionService, tmp_path: Path
) -> None:
    session = await service.create_session(**ONE)
    await service.append_event(session, event("1"))
    (tmp_path / "work").mkdir()
    vault.timeline(LINE).save_files(tmp_path / "work", name="by hand")
    await service.append_event(session, event("2"))
    assert [each.id for each in (await loaded(service)).events] == ["1", "2"]


@pytest.mark.asyncio
async def test_of_two_copies_at_once_one_is_saved_and_the_other_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    with hardsave.open(url) as first, hardsave.open(url) as second:
        services = HardsaveSessionService(first), HardsaveSessionService(second)
        await services[0].create_session(**ONE)
        for round in range(8):
            copies = [await loaded(service) for service in services]
            appended = [
                service.append_event(each, event(f"{round}-{n}"))
                for n, (service, each) in enumerate(zip(services, copies, strict=True))
            ]
            ended = await asyncio.gather(*appended, return_exceptions=True)
            assert {type(each) for each in ended} == {Event, StaleSessionError}
        assert len((await loaded(services[0])).events) == 8


@pytest.mark.asyncio
async def test_of_two_that_begin_one_session_one_is_told(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    with hardsave.open(url) as first, hardsave.open(url) as second:
        for n in range(5):
            begun = [
                HardsaveSessionService(vault).create_session(**ADA, session_id=str(n))
                for vault in (first, second)
            ]
            ended = await asyncio.gather(*begun, return_exceptions=True)
            assert {type(each) for each in ended} == {Session, AlreadyExistsError}


@pytest.mark.asyncio
async def test_branches_that_share_a_session_lose_nothing(service: HardsaveSessionService) -> None:
    session = await service.create_session(**ONE)
    branches = [service.append_event(session, event(str(n), own=n)) for n in range(20)]
    await asyncio.gather(*branches)
    assert await loaded(service) == session
    assert len(session.events) == 20


def test_what_sessions_share_loses_no_key_to_threads_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"

    async def run(vault: hardsave.Vault, name: str) -> None:
        service = HardsaveSessionService(vault)
        session = await service.create_session(**ADA, session_id=name)
        for n in range(10):
            await service.append_event(session, event(str(n), **{f"user__{name}{n}": n}))

    with hardsave.open(url) as first, hardsave.open(url) as second:
        threads = [
            threading.Thread(target=lambda v=vault, n=name: asyncio.run(run(v, n)))
            for name, vault in zip("abcd", (first, second) * 2, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        shared = asyncio.run(HardsaveSessionService(first).get_user_state(**ADA))
    assert shared == {f"{name}{n}": n for name in "abcd" for n in range(10)}


@pytest.mark.asyncio
async def test_an_event_that_is_told_again_is_saved_once(
    vault: hardsave.Vault, service: HardsaveSessionService
) -> None:
    session = await service.create_session(**ONE)
    unanswered = copy.deepcopy(session)
    await service.append_event(session, event("1", own=1))
    await service.append_event(session, event("1", own=1))
    assert len(session.events) == 1
    await service.append_event(unanswered, event("1", own=1))  # its answer was lost
    assert unanswered == session
    await service.append_event(unanswered, event("2"))
    assert [each.id for each in (await loaded(service)).events] == ["1", "2"]
    assert len(vault.timeline(LINE)) == 3


@pytest.mark.asyncio
async def test_an_event_costs_what_is_new(vault: hardsave.Vault) -> None:
    service = HardsaveSessionService(vault)
    session = await service.create_session(**ONE, state={"document": "x" * 10_000})
    sizes = []
    for n in range(300):
        told = event(f"{n:03}", n, own=n)
        told.content = asked(f"{n} " + "what was said " * 20)
        await service.append_event(session, told)
        if n in (99, 199, 299):
            sizes.append(vault.store.stats().object_bytes)
    first, second, third = sizes
    assert third - second < 1.3 * (second - first)
    assert third - second < 100 * 3_000


@pytest.mark.asyncio
async def test_what_is_no_json_becomes_text_as_with_adk_and_no_event_is_lost(
    service: HardsaveSessionService, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        session = await service.create_session(**ONE, state={"made": test_branches})
        await service.append_event(session, event("1", call=test_branches, fine=2))
    assert "not JSON-serializable" in caplog.text
    found = await loaded(service)
    assert found.state["fine"] == 2
    assert isinstance(found.state["call"], str)
    assert isinstance(found.state["made"], str)
    assert [each.id for each in found.events] == ["1"]


def test_branches() -> None:
    """A function, which no state can hold."""


@pytest.mark.asyncio
async def test_no_two_places_are_one(service: HardsaveSessionService) -> None:
    long = "x" * 300
    forged = f"{long[:30]}~{blake2b(long.encode(), digest_size=12).hexdigest()}"
    odd = ["", "a", "a/b", "a%2Fb", "A", "é:@", "a\nb", long, long[1:] + "y", forged]
    places = [(app, user, id) for app in odd for user in odd[:3] for id in odd[1:]]
    places += [("a", user, "1") for user in odd]
    for app, user, id in places:
        created = await service.create_session(app_name=app, user_id=user, session_id=id)
        assert created.id == id
        await service.append_event(created, event(f"{app} {user} {id}"))
    for app, user, id in places:
        found = await loaded(service, app_name=app, user_id=user, session_id=id)
        assert [each.id for each in found.events] == [f"{app} {user} {id}"]
    for app in odd:
        listed = await service.list_sessions(app_name=app)
        assert len(listed.sessions) == sum(each == app for each, _, _ in places)


# What ours has besides


@pytest.mark.asyncio
async def test_what_sessions_share_is_there_before_the_event_that_says_so(
    vault: hardsave.Vault, service: HardsaveSessionService
) -> None:
    session = await service.create_session(**ONE)
    saved = list[str]()
    vault.on("checkpoint_saved", lambda each: saved.append(each.timeline))
    await service.append_event(session, event("1", own=1, user__u=2, app__a=3))
    assert saved == ["google-adk/app", "google-adk/app/ada", LINE]


@pytest.mark.asyncio
async def test_a_caller_that_goes_away_leaves_no_write_half_known(
    service: HardsaveSessionService,
) -> None:
    session = await service.create_session(**ONE)
    appending = asyncio.ensure_future(service.append_event(session, event("1")))
    await asyncio.sleep(0)
    appending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await appending
    assert [each.id for each in (await loaded(service)).events] == ["1"]
    await service.append_event(session, event("1"))
    assert session == await loaded(service)


def notes(work: Path) -> LlmAgent:
    """Writes `one`, then `two`, one at a time."""

    def write(note: str, tool_context: ToolContext) -> str:
        """Write a note."""
        (work / note).write_text(note)
        tool_context.state["newest"] = note
        tool_context.state["user:newest"] = note
        return f"wrote {note}"

    def answer(request: LlmRequest) -> types.Content:
        there = {*results(request.contents)}
        left = [note for note in ("one", "two") if f"wrote {note}" not in there]
        return calls("write", {"note": left[0]}) if left else said("All written.")

    return LlmAgent(name="notes", model=Scripted(answer=answer), tools=[write])


async def run(runner: Runner, text: str, **more: Any) -> list[Event]:
    place: dict[str, Any] = {"user_id": "ada", "session_id": "one"}
    async with aclosing(runner.run_async(**place, new_message=asked(text), **more)) as events:
        return [each async for each in events]


@pytest_asyncio.fixture
async def noted(vault: hardsave.Vault, tmp_path: Path) -> Runner:
    work = tmp_path / "work"
    work.mkdir()
    sessions = HardsaveSessionService(vault, workspace=work)
    runner = Runner(
        app_name="app", agent=notes(work), session_service=sessions, auto_create_session=True
    )
    await run(runner, "Write about herons.")
    return runner


def paths(work: Path) -> set[str]:
    return {each.name for each in work.iterdir()}


@pytest.mark.asyncio
async def test_a_rewind_takes_events_state_and_files_back_and_a_run_goes_on_from_there(
    vault: hardsave.Vault, noted: Runner, tmp_path: Path
) -> None:
    held = await loaded(noted.session_service)
    assert held.state == {"newest": "two", "user:newest": "two"}
    line = vault.timeline(LINE)
    (after_one,) = (each for each in line.checkpoints() if len(each.read("messages")) == 3)
    line.rewind(after_one)
    assert paths(tmp_path / "work") == {"one"}
    session = await loaded(noted.session_service)
    assert session.state == {"newest": "one", "user:newest": "two"}
    assert len(session.events) == 3
    with pytest.raises(StaleSessionError):
        await noted.session_service.append_event(held, event("9"))
    await run(noted, "Go on.")
    assert paths(tmp_path / "work") == {"one", "two"}
    assert (await loaded(noted.session_service)).state["newest"] == "two"


@pytest.mark.asyncio
async def test_a_fork_is_a_session_of_its_own(vault: hardsave.Vault, noted: Runner) -> None:
    line = vault.timeline(LINE)
    (after_one,) = (each for each in line.checkpoints() if len(each.read("messages")) == 3)
    line.fork(after_one, name="google-adk/app/ada/other%2F1")
    fork = await loaded(noted.session_service, session_id="other/1")
    assert (fork.id, len(fork.events), fork.state["newest"]) == ("other/1", 3, "one")
    await noted.session_service.append_event(fork, event("9"))
    listed = await noted.session_service.list_sessions(**ADA)
    assert sorted(each.id for each in listed.sessions) == ["one", "other/1"]
    assert (await loaded(noted.session_service)).events[-1].id != "9"


@pytest.mark.asyncio
async def test_a_rewind_of_adks_own_works(noted: Runner) -> None:
    first = (await loaded(noted.session_service)).events[0].invocation_id
    await noted.rewind_async(user_id="ada", session_id="one", rewind_before_invocation_id=first)
    session = await loaded(noted.session_service)
    assert session.state == {"newest": None, "user:newest": "two"}
    assert session.events[-1].actions.rewind_before_invocation_id == first


@pytest.mark.asyncio
async def test_commands_show_a_session_as_a_conversation(
    vault: hardsave.Vault, noted: Runner, tmp_path: Path
) -> None:
    assert vault.timeline(LINE).title == "Write about herons."
    assert [hit.timeline for hit in vault.search("herons")][:1] == [LINE]
    command = ["-m", "hardsave", "log", "--store", str(tmp_path / "s.db"), "--timeline", LINE]
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=PIPE)
    logged = (await process.communicate())[0].decode()
    for text in ("Write about herons.", "write", "All written."):
        assert text in logged


@pytest.mark.asyncio
async def test_a_session_that_was_deleted_comes_back(
    vault: hardsave.Vault, service: HardsaveSessionService
) -> None:
    session = await service.create_session(**ONE)
    await service.append_event(session, event("1"))
    await service.delete_session(**ONE)
    vault.undo()
    assert await loaded(service) == session


@pytest.mark.asyncio
async def test_what_was_saved_by_others_is_refused_with_a_sentence(
    vault: hardsave.Vault, service: HardsaveSessionService
) -> None:
    await service.create_session(**ONE)
    vault.timeline(LINE).append({"messages": [{"timestamp": "late"}]})
    with pytest.raises(hardsave.Misuse, match="no event of ADK"):
        await service.get_session(**ONE)


def talk() -> SequentialAgent:
    """Two that speak at once, and one that hears them."""

    def speaks(name: str, request: LlmRequest) -> types.Content:
        return said(f"{name} heard {len(request.contents)}")

    ada, bob, eve = (
        LlmAgent(
            name=name,
            model=Scripted(answer=functools.partial(speaks, name)),
            output_key=f"temp:{name}",
        )
        for name in ("ada", "bob", "eve")
    )
    both = ParallelAgent(name="both", sub_agents=[ada, bob])
    return SequentialAgent(name="talk", sub_agents=[both, eve])


@pytest.mark.filterwarnings("ignore:.*Agent is deprecated:DeprecationWarning")
@pytest.mark.asyncio
async def test_agents_say_what_they_say_with_the_service_in_memory(
    service: HardsaveSessionService,
) -> None:
    heard = []
    for each in (service, InMemorySessionService()):
        runner = Runner(
            app_name="app", agent=talk(), session_service=each, auto_create_session=True
        )
        for _ in range(2):
            await run(runner, "Speak.")
        session = await loaded(each)
        assert not any(key.startswith("temp:") for key in session.state)
        said = [e.content.parts[0].text for e in session.events if e.content and e.content.parts]
        heard.append(sorted(str(text) for text in said))
    assert heard[0] == heard[1]
    assert len(heard[0]) == 8


@pytest.mark.filterwarnings("ignore:.*ResumabilityConfig:UserWarning")
def test_an_invocation_that_died_is_resumed_by_another_process(tmp_path: Path) -> None:
    url, work = f"sqlite:///{tmp_path}/s.db", tmp_path / "work"
    work.mkdir()

    class Died(Exception):
        """Stands for the end of a process."""

    class Dying(HardsaveSessionService):
        async def append_event(self, session: Session, event: Event) -> Event:
            if event.get_function_responses():
                raise Died
            return await super().append_event(session, event)

    def runner(service: BaseSessionService) -> Runner:
        app = App(
            name="app",
            root_agent=notes(work),
            resumability_config=ResumabilityConfig(is_resumable=True),
        )
        return Runner(app=app, session_service=service, auto_create_session=True)

    async def resumed(service: BaseSessionService) -> list[Event]:
        invocation = (await loaded(service)).events[0].invocation_id
        place: dict[str, Any] = {"user_id": "ada", "session_id": "one"}
        events = runner(service).run_async(**place, invocation_id=invocation)
        return [each async for each in events]

    with hardsave.open(url) as vault, pytest.raises(Died):
        asyncio.run(run(runner(Dying(vault, workspace=work)), "Write."))
    with hardsave.open(url) as vault:
        events = asyncio.run(resumed(HardsaveSessionService(vault, workspace=work)))
    assert {*results([each.content for each in events if each.content])} == {
        "wrote one",
        "wrote two",
    }
    assert paths(work) == {"one", "two"}
