"""A session on a vault, under the SDK's own runner and its scripted model."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, function_tool
from agents.memory import SessionSettings
from agents.run_config import RunConfig
from agents.testing import ScriptedModel
from agents.testing.model import assistant_message, function_call

import hardsave
from hardsave.adapters.openai_agents import HardsaveSession, turn

QUIET = RunConfig(tracing_disabled=True)


def user(text: str) -> Any:
    return {"role": "user", "content": text}


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[hardsave.Vault]:
    with hardsave.open(f"sqlite:///{tmp_path}/s.db") as opened:
        yield opened


@pytest.fixture
def session(vault: hardsave.Vault) -> HardsaveSession:
    return HardsaveSession("talk", vault)


async def said(session: HardsaveSession) -> list[Any]:
    """Its items, as plain data."""
    return list(await session.get_items())


@pytest.mark.asyncio
async def test_items_come_back_in_order_and_as_they_were(session: HardsaveSession) -> None:
    odd: Any = {"type": "reasoning", "id": "r", "summary": [], "n": 2**70, "text": "\ud800 \x00"}
    await session.add_items([user("1"), user("2")])
    await session.add_items([odd])
    assert await session.get_items() == [user("1"), user("2"), odd]
    assert await session.get_items(limit=2) == [user("2"), odd]
    assert await session.get_items(limit=0) == []


@pytest.mark.asyncio
async def test_an_empty_session_has_no_items_and_nothing_to_pop(session: HardsaveSession) -> None:
    assert await session.get_items() == []
    assert await session.pop_item() is None
    await session.add_items([])
    assert await session.get_items() == []


@pytest.mark.asyncio
async def test_the_newest_is_popped_until_none_is_left(session: HardsaveSession) -> None:
    await session.add_items([user("1"), user("2")])
    assert await session.pop_item() == user("2")
    assert await session.get_items() == [user("1")]
    assert await session.pop_item() == user("1")
    assert await session.pop_item() is None


@pytest.mark.asyncio
async def test_clearing_forgets_nothing_that_a_rewind_could_not_bring_back(
    session: HardsaveSession, vault: hardsave.Vault
) -> None:
    await session.add_items([user("1")])
    await session.clear_session()
    assert await session.get_items() == []
    vault.timeline("talk").rewind(":1")
    assert await session.get_items() == [user("1")]


@pytest.mark.asyncio
async def test_settings_limit_what_is_read(vault: hardsave.Vault) -> None:
    session = HardsaveSession("talk", vault, session_settings=SessionSettings(limit=1))
    await session.add_items([user("1"), user("2")])
    assert await session.get_items() == [user("2")]
    assert await session.get_items(limit=5) == [user("1"), user("2")]


@pytest.mark.asyncio
async def test_a_batch_is_one_checkpoint(session: HardsaveSession, vault: hardsave.Vault) -> None:
    await session.add_items([user(str(n)) for n in range(10)])
    assert [each.seq for each in vault.timeline("talk").checkpoints()] == [1]


@pytest.mark.asyncio
async def test_many_tasks_write_to_one_session_and_no_item_is_lost(vault: hardsave.Vault) -> None:
    handles = [HardsaveSession("talk", vault) for _ in range(4)]
    await asyncio.gather(*(handles[n % 4].add_items([user(str(n))]) for n in range(80)))
    texts = [item["content"] for item in await said(handles[0])]
    assert sorted(texts, key=int) == [str(n) for n in range(80)]


@pytest.mark.asyncio
async def test_two_vaults_on_one_store_see_each_others_items(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    with hardsave.open(url) as one, hardsave.open(url) as other:
        first, second = HardsaveSession("talk", one), HardsaveSession("talk", other)
        await first.add_items([user("1")])
        await second.add_items([user("2")])
        await first.add_items([user("3")])
        assert await second.get_items() == [user("1"), user("2"), user("3")]


@pytest.mark.asyncio
async def test_a_cancelled_write_is_known_to_have_been_made(session: HardsaveSession) -> None:
    writing = asyncio.ensure_future(session.add_items([user("1")]))
    await asyncio.sleep(0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert await session.get_items() in ([user("1")], [])
    before = await session.get_items()
    await asyncio.sleep(0.05)
    assert await session.get_items() == before  # nothing was still on its way


def agent(work: Path, *steps: Any, fails: bool = False) -> Agent[Any]:
    @function_tool(failure_error_function=None)
    async def write(name: str) -> str:
        if fails and name == "2":
            raise RuntimeError("the disk burns")
        (work / name).write_text(name)
        return f"wrote {name}"

    return Agent(name="writer", model=ScriptedModel(steps), tools=[write])


def calls(*names: str) -> list[Any]:
    return [function_call("write", {"name": name}, call_id=f"call-{name}") for name in names]


@pytest.mark.asyncio
async def test_a_run_saves_conversation_and_files_in_one_checkpoint(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    session = HardsaveSession("talk", vault, workspace=work)
    writer = agent(work, calls("1"), calls("2"), [assistant_message("done")])
    done = await Runner.run(
        writer, "write", session=session, hooks=session.hooks(), run_config=QUIET
    )
    assert done.final_output == "done"
    items = await said(session)
    assert [item.get("type", "message") for item in items] == [
        "message",
        "function_call",
        "function_call_output",
        "function_call",
        "function_call_output",
        "message",
    ]
    head = vault.timeline("talk").head
    assert head is not None
    assert head.files is not None
    assert sorted(each.path for each in head.files.list()) == ["1", "2"]
    assert head.state["turn"] is None


@pytest.mark.asyncio
async def test_a_rewind_takes_back_files_and_conversation_of_a_run(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    session = HardsaveSession("talk", vault, workspace=work)
    writer = agent(work, calls("1"), calls("2"), [assistant_message("done")])
    await Runner.run(writer, "write", session=session, hooks=session.hooks(), run_config=QUIET)
    line = vault.timeline("talk")
    target = next(
        each
        for each in reversed(line.checkpoints(limit=100))
        if each.files is not None and [f.path for f in each.files.list()] == ["1"]
    )
    line.rewind(target, workspace=work)
    assert [path.name for path in work.iterdir()] == ["1"]
    items = await said(session)
    assert items[-1] == {"type": "function_call_output", "call_id": "call-1", "output": "wrote 1"}


@pytest.mark.asyncio
async def test_a_run_that_fails_leaves_its_answer_and_results_to_the_next_one(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    session = HardsaveSession("talk", vault)
    failing = agent(tmp_path, calls("1", "2"), fails=True)
    with pytest.raises(Exception, match="burns"):
        await Runner.run(failing, "write", session=session, hooks=session.hooks(), run_config=QUIET)
    items = await said(session)
    asked = [item["call_id"] for item in items if item.get("type") == "function_call"]
    answered = [item for item in items if item.get("type") == "function_call_output"]
    assert sorted(asked) == sorted(item["call_id"] for item in answered) == ["call-1", "call-2"]
    outputs = {item["call_id"]: item["output"] for item in answered}
    assert outputs["call-2"] == turn.UNKNOWN
    assert outputs["call-1"] in ("wrote 1", turn.UNKNOWN)  # the SDK may have cancelled it
    writer = agent(tmp_path, [assistant_message("sorry")])
    await Runner.run(writer, "go on", session=session, hooks=session.hooks(), run_config=QUIET)
    assert len(await session.get_items()) == len(items) + 2


@pytest.mark.asyncio
async def test_an_approval_that_is_given_to_another_process_adds_no_call_twice(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    def asking() -> Agent[Any]:
        @function_tool(needs_approval=True)
        async def write(name: str) -> str:
            return f"wrote {name}"

        steps = [calls("1"), [assistant_message("done")]]
        return Agent(name="writer", model=ScriptedModel(steps), tools=[write])

    first = HardsaveSession("talk", vault)
    stopped = await Runner.run(
        asking(), "write", session=first, hooks=first.hooks(), run_config=QUIET
    )
    (question,) = stopped.interruptions
    state = stopped.to_state()
    state.approve(question)
    second, again = HardsaveSession("talk", vault), asking()
    again.model = ScriptedModel([[assistant_message("done")]])
    await Runner.run(again, state, session=second, hooks=second.hooks(), run_config=QUIET)
    items = await said(second)
    kinds = [(item.get("type", "message"), item.get("call_id")) for item in items]
    assert kinds == [
        ("message", None),
        ("function_call", "call-1"),
        ("function_call_output", "call-1"),
        ("message", None),
    ]


@pytest.mark.asyncio
async def test_a_session_that_is_read_while_its_run_is_under_way_stays_as_it_is(
    vault: hardsave.Vault,
) -> None:
    session = HardsaveSession("talk", vault)
    read: list[Any] = []

    @function_tool
    async def look() -> str:
        read.extend([await said(each) for each in (session, HardsaveSession("talk", vault))])
        return "looked"

    steps = [[function_call("look", {}, call_id="call-1")], [assistant_message("done")]]
    looker = Agent(name="looker", model=ScriptedModel(steps), tools=[look])
    await Runner.run(looker, "look", session=session, hooks=session.hooks(), run_config=QUIET)
    assert [item["output"] for (*_, item) in read] == [turn.UNKNOWN] * 2  # as things were then
    kinds = [(item.get("type", "message"), item.get("output")) for item in await said(session)]
    assert kinds == [
        ("message", None),
        ("function_call", None),
        ("function_call_output", "looked"),
        ("message", None),
    ]


@pytest.mark.asyncio
async def test_what_a_run_has_left_comes_before_the_turn_of_the_next(
    vault: hardsave.Vault,
) -> None:
    dead = HardsaveSession("talk", vault).hooks()
    dead._note(lambda _: turn.begun(dead.run, [call("a")]))
    session = HardsaveSession("talk", vault)
    hooks = session.hooks()
    hooks._note(lambda _: turn.begun(hooks.run, [call("b")]))
    told = [(item["type"], item["call_id"]) for item in await said(session)]
    assert told == [
        ("function_call", "a"),
        ("function_call_output", "a"),
        ("function_call", "b"),
        ("function_call_output", "b"),
    ]


@pytest.mark.asyncio
async def test_streamed_runs_save_as_others_do(vault: hardsave.Vault, tmp_path: Path) -> None:
    session = HardsaveSession("talk", vault)
    writer = agent(tmp_path, calls("1"), [assistant_message("done")])
    streamed = Runner.run_streamed(
        writer, "write", session=session, hooks=session.hooks(), run_config=QUIET
    )
    async for _ in streamed.stream_events():
        pass
    assert [item.get("type", "message") for item in await said(session)] == [
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]


def call(id: str, kind: str = "function_call") -> dict[str, Any]:
    return {"type": kind, "call_id": id, "name": "write", "arguments": "{}"}


def test_a_call_that_was_begun_is_unknown_and_one_that_was_not_has_not_run() -> None:
    at = {**turn.begun("run", [call("a"), call("b")]), "started": ["a"]}
    assert [item.get("output") for item in turn.settled(at)] == [
        None,
        None,
        turn.UNKNOWN,
        turn.NEVER_RUN,
    ]


def test_what_comes_with_the_batch_is_not_added_twice() -> None:
    at = turn.begun("run", [call("a")])
    output = {"type": "function_call_output", "call_id": "a", "output": "done"}
    assert turn.settled(at, [call("a"), output]) == []
    assert turn.settled(at, [output]) == [call("a")]


def test_of_a_turn_that_is_handed_over_in_part_the_other_calls_are_left() -> None:
    at = turn.begun("run", [{"type": "reasoning", "id": "r"}, call("a"), call("b")])
    output = {"type": "function_call_output", "call_id": "a", "output": "done"}
    assert turn.rest(at, [call("a"), output, call("b")]) is None
    assert turn.rest(at, [call("a"), output]) == {**at, "response": [call("b")]}
    assert turn.rest(at, [user("a note of the program's own")]) == at
    assert turn.rest(turn.begun("run", [user("the end")]), [user("the end")]) is None


def test_a_turn_that_called_a_tool_of_another_kind_adds_nothing() -> None:
    assert turn.settled(turn.begun("run", [call("a", "computer_call"), call("b")])) == []


@pytest.mark.asyncio
async def test_the_first_prompt_is_the_title(
    session: HardsaveSession, vault: hardsave.Vault
) -> None:
    await session.add_items([user("repair the parser")])
    await session.add_items([user("and the printer")])
    assert vault.timeline("talk").title == "repair the parser"
