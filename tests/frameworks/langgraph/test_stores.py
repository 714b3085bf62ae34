"""The same saver on a store that several hosts share."""

from pathlib import Path

import hardsave
from hardsave.adapters.langgraph import HardsaveSaver
from tests.frameworks.langgraph.strict_suite import failures
from tests.postgres_server import url_of


def test_postgres_keeps_what_the_strict_suite_asks_for(tmp_path: Path) -> None:
    with hardsave.open(url_of(tmp_path)) as vault:
        assert failures(lambda: HardsaveSaver(vault)) == []
        again = HardsaveSaver(vault)
        assert len({one.config["configurable"]["thread_id"] for one in again.list(None)}) > 10
