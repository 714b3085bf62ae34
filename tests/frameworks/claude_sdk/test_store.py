"""Sessions of the Claude Agent SDK in a vault: their conformance suite, and what it leaves out."""

import asyncio
import itertools
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import SessionKey
from claude_agent_sdk.testing import run_session_store_conformance

import hardsave
from hardsave.adapters import claude_sdk
from hardsave.adapters.claude_sdk import HardsaveSessionStore

KEY: SessionKey = {"project_key": "-home-me-work", "session_id": "s1"}


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[hardsave.Vault]:
    with hardsave.open(f"sqlite:///{tmp_path}/s.db") as opened:
        yield opened


def entry(id: str | None, **more: Any) -> Any:
    return {"type": "user", **({} if id is None else {"uuid": id}), **more}


@pytest.mark.asyncio
async def test_it_passes_all_contracts_of_the_sdk(vault: hardsave.Vault) -> None:
    number = itertools.count()

    def make() -> HardsaveSessionStore:
        return HardsaveSessionStore(vault.as_user(f"user-{next(number)}", create=True))

    await run_session_store_conformance(make)


@pytest.mark.asyncio
async def test_an_entry_that_comes_again_is_kept_once_also_by_another_process(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    store = HardsaveSessionStore(vault)
    await store.append(KEY, [entry("a"), entry("a"), entry(None), entry(None)])
    await store.append(KEY, [entry("a"), entry("b")])
    with hardsave.open(f"sqlite:///{tmp_path}/s.db") as other:
        await HardsaveSessionStore(other).append(KEY, [entry("b"), entry("c")])
    await store.append(KEY, [entry("c"), entry("d")])
    assert await store.load(KEY) == [
        entry("a"),
        entry(None),
        entry(None),
        entry("b"),
        entry("c"),
        entry("d"),
    ]


@pytest.mark.asyncio
async def test_a_batch_that_is_repeated_writes_nothing(vault: hardsave.Vault) -> None:
    store = HardsaveSessionStore(vault)
    await store.append(KEY, [entry("a")])
    await store.append(KEY, [entry("a")])
    (session,) = vault.sessions()
    assert session.checkpoints == 1


@pytest.mark.asyncio
async def test_keys_with_any_characters_stay_apart(vault: hardsave.Vault) -> None:
    store = HardsaveSessionStore(vault)
    projects = ["a/b", "a", "a%2Fb", "@x", "x:1", "p" * 300, "p" * 299 + "q", "ünï", ".."]
    for project in projects:
        await store.append({"project_key": project, "session_id": "s/1"}, [entry(project)])
    for project in projects:
        assert await store.load({"project_key": project, "session_id": "s/1"}) == [entry(project)]
        assert [each["session_id"] for each in await store.list_sessions(project)] == ["s/1"]


@pytest.mark.asyncio
async def test_a_project_with_many_sessions_is_listed_whole(vault: hardsave.Vault) -> None:
    store = HardsaveSessionStore(vault)
    for n in range(120):
        await store.append({"project_key": "p", "session_id": str(n)}, [entry(None)])
    assert len(await store.list_sessions("p")) == 120
    assert len(await store.list_session_summaries("p")) == 120


@pytest.mark.asyncio
async def test_what_was_deleted_can_be_brought_back(vault: hardsave.Vault) -> None:
    store = HardsaveSessionStore(vault)
    await store.append(KEY, [entry("a")])
    await store.delete(KEY)
    assert await store.load(KEY) is None
    vault.undo()
    assert await store.load(KEY) == [entry("a")]


@pytest.mark.asyncio
async def test_a_session_can_begin_anew_after_it_was_deleted(vault: hardsave.Vault) -> None:
    store = HardsaveSessionStore(vault)
    await store.append(KEY, [entry("a")])
    await store.delete(KEY)
    await store.append(KEY, [entry("b")])
    assert await store.load(KEY) == [entry("b")]


@pytest.mark.asyncio
async def test_a_batch_has_the_files_of_its_moment(vault: hardsave.Vault, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    store = HardsaveSessionStore(vault, workspace=work)
    for n in range(3):
        (work / f"{n}").write_text(str(n))
        await store.append(KEY, [entry(str(n))])
    (session,) = vault.sessions()
    line = vault.timeline(session.timeline)
    line.rewind(":2", workspace=work)
    assert sorted(path.name for path in work.iterdir()) == ["0", "1"]
    assert await store.load(KEY) == [entry("0"), entry("1")]
    await store.append(KEY, [entry("2")])  # it is not there any more, so it is no repetition
    assert await store.load(KEY) == [entry("0"), entry("1"), entry("2")]


def called(store: HardsaveSessionStore, id: str) -> Any:
    """The hook of a call."""
    [matcher] = store.hooks()["PreToolUse"]
    [hook] = matcher.hooks
    given: Any = {"hook_event_name": "PreToolUse"}
    return hook(given, id, {"signal": None})


@pytest.mark.asyncio
async def test_a_tool_waits_until_its_call_is_saved(vault: hardsave.Vault) -> None:
    store = HardsaveSessionStore(vault)
    waiting = [asyncio.create_task(called(store, id)) for id in ("a", "b")]
    await store.append(KEY, [entry("1", message={"content": "of no call"})])
    content = [{"type": "tool_use", "id": "a"}, {"type": "text", "text": "b"}]
    await store.append(KEY, [entry("2", message={"content": content})])
    assert await waiting[0] == {}
    assert await called(store, "a") == {}
    assert not waiting[1].done()
    waiting[1].cancel()


@pytest.mark.asyncio
async def test_a_tool_whose_call_is_never_handed_over_runs_and_a_warning_says_why(
    vault: hardsave.Vault, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(claude_sdk, "_PATIENCE_SECONDS", 0.01)
    with caplog.at_level(logging.WARNING, "hardsave"):
        assert await called(HardsaveSessionStore(vault), "a") == {}
    assert "call a begins before it is saved" in caplog.text


@pytest.mark.asyncio
async def test_many_writers_lose_no_entry(vault: hardsave.Vault) -> None:
    stores = [HardsaveSessionStore(vault) for _ in range(4)]
    await asyncio.gather(*(stores[n % 4].append(KEY, [entry(str(n))]) for n in range(60)))
    loaded = await stores[0].load(KEY)
    assert loaded is not None
    assert sorted(int(each["uuid"]) for each in loaded) == list(range(60))


@pytest.mark.asyncio
async def test_entries_are_read_as_messages(vault: hardsave.Vault) -> None:
    store = HardsaveSessionStore(vault)
    said = {"role": "user", "content": [{"type": "text", "text": "repair the parser"}]}
    await store.append(KEY, [entry("a", message=said)])
    (session,) = vault.sessions()
    assert session.title == "repair the parser"
