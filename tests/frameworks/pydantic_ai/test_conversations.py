"""The conversation store does what the harness's own on SQLite does, call for call."""

import asyncio
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai_harness.step_persistence.conversations import (
    ConversationConflict,
    ConversationSummary,
    SqliteConversationStore,
)

import hardsave
from hardsave.adapters.pydantic_ai import HardsaveConversationStore
from tests.frameworks.pydantic_ai.test_steps import history

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[hardsave.Vault]:
    with hardsave.open(f"sqlite:///{tmp_path}/s.db") as opened:
        yield opened


CALLS = st.one_of(
    st.tuples(st.just("save"), st.sampled_from("ab"), st.integers(0, 3), st.integers(0, 3)),
    st.tuples(st.just("name"), st.sampled_from("ab"), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("archive"), st.sampled_from("ab"), st.booleans(), st.none()),
    st.tuples(st.just("delete"), st.sampled_from("ab"), st.integers(0, 3), st.none()),
    st.tuples(st.just("list"), st.sampled_from(["", "x 1", "ANSWER", "zzz"]), st.none(), st.none()),
)


def plain(summary: ConversationSummary) -> ConversationSummary:
    """Without the times at which each of the two stores was called."""
    archived = None if summary.archived_at is None else MOMENT
    return replace(summary, updated_at=MOMENT, archived_at=archived)


async def answer(store: Any, call: Any) -> Any:
    what, id, given_, more = call
    summary = ConversationSummary(id=id, workspace="/w", updated_at=MOMENT)
    try:
        if what == "save":
            summary = replace(summary, revision=given_)
            return plain(await store.save(summary=summary, messages=history(more, "x ")))
        if what == "name":
            summary = replace(summary, revision=given_)
            return await store.name(source=summary, title=f"t{given_}", manual=more, tokens=3)
        if what == "archive":
            return plain(await store.set_archived(conversation_id=id, archived=given_))
        if what == "delete":
            return await store.delete(source=replace(summary, revision=given_))
        return [plain(each) for each in await store.listing(query=id)]
    except (ConversationConflict, LookupError) as error:
        return type(error)


@settings(max_examples=30, deadline=None)
@given(st.lists(CALLS, max_size=14))
def test_it_answers_as_the_store_on_sqlite_does(calls: list[Any]) -> None:
    async def both() -> None:
        with hardsave.open("memory://") as vault, tempfile.TemporaryDirectory() as folder:
            ours = HardsaveConversationStore(vault)
            theirs = SqliteConversationStore(database=Path(folder) / "c.db")
            for call in calls:
                assert await answer(ours, call) == await answer(theirs, call), call
            for id in "ab":
                try:
                    expected = await theirs.get(conversation_id=id)
                except LookupError:
                    with pytest.raises(LookupError):
                        await ours.get(conversation_id=id)
                else:
                    found = await ours.get(conversation_id=id)
                    assert found.messages == expected.messages
                    assert plain(found.summary) == plain(expected.summary)

    asyncio.run(both())


@pytest.mark.asyncio
async def test_of_two_writers_one_is_told(vault: hardsave.Vault) -> None:
    store = HardsaveConversationStore(vault)
    first = await store.save(summary=ConversationSummary(workspace="/w"), messages=history(1))
    outcomes = await asyncio.gather(
        *(store.save(summary=first, messages=history(n)) for n in range(2, 10)),
        return_exceptions=True,
    )
    assert sum(isinstance(each, ConversationSummary) for each in outcomes) == 1
    assert sum(isinstance(each, ConversationConflict) for each in outcomes) == 7


@pytest.mark.asyncio
async def test_what_was_deleted_can_be_brought_back(vault: hardsave.Vault) -> None:
    store = HardsaveConversationStore(vault)
    saved = await store.save(summary=ConversationSummary(workspace="/w"), messages=history(2))
    await store.delete(source=saved)
    vault.undo()
    assert (await store.get(conversation_id=saved.id)).messages == history(2)
