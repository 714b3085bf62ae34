"""LangGraph's own suite for savers, unmodified."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate

import hardsave
from hardsave.adapters.langgraph import HardsaveSaver


@pytest.mark.asyncio
@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_the_suite_of_langgraph_says_full(store: str, tmp_path: Path) -> None:
    url = "memory://" if store == "memory" else f"sqlite:///{tmp_path}/store.db"

    @checkpointer_test(name="HardsaveSaver")
    async def saver() -> AsyncGenerator[HardsaveSaver, None]:
        with hardsave.open(url) as vault:
            yield HardsaveSaver(vault)

    report = await validate(saver)
    failures = [each for result in report.results.values() for each in result.failures]
    assert failures == []
    assert report.conformance_level() == "FULL"
    assert sum(result.tests_passed for result in report.results.values()) == 81
