"""Databases of LangGraph's own savers, taken over."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

import hardsave
from hardsave.adapters.langgraph import HardsaveSaver
from tests.frameworks.langgraph.strict_suite import a_config, put
from tests.frameworks.langgraph.test_time_travel import a_story
from tests.postgres_server import url_of


@contextmanager
def sqlite(folder: Path) -> Iterator[SqliteSaver]:
    with closing(sqlite3.connect(folder / "theirs.db", check_same_thread=False)) as connection:
        saver = SqliteSaver(connection)
        saver.setup()
        yield saver


@contextmanager
def postgres(folder: Path) -> Iterator[PostgresSaver]:
    where = urlsplit(url_of(folder))
    said = {key: each[0] for key, each in parse_qs(where.query).items()}
    url = f"host={said['host']} user={said['user']} dbname={where.path.strip('/')}"
    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        yield saver


@pytest.mark.parametrize("opening", [sqlite, postgres], ids=["sqlite", "postgres"])
def test_a_database_of_langgraph_is_taken_over(opening: Any, tmp_path: Path) -> None:
    with opening(tmp_path) as theirs, hardsave.open(f"sqlite:///{tmp_path}/ours.db") as vault:
        a_story(theirs, 7)
        at = put(theirs, a_config("other", "child:1"), {"x": 1}, {"source": "loop"})
        theirs.put_writes(at, [("b", 1), ("c", 2)], "z", "~a")
        theirs.put_writes(at, [("a", 1)], "y", "~b")
        theirs.put_writes(at, [("__interrupt__", "i")], "y", "~b")
        ours = HardsaveSaver(vault)
        expected = {str(one.config): one for one in theirs.list(None)}
        for _ in range(2):
            assert ours.import_from(theirs) == len(expected) > 10
            found = {str(one.config): one for one in ours.list(None)}
            assert found == expected
        newest = ours.get_tuple(a_config("t"))
        assert newest is not None
        assert newest == theirs.get_tuple(a_config("t"))
        version = max(str(each) for each in newest.checkpoint["channel_versions"].values())
        assert ours.get_next_version(version, None) > version
