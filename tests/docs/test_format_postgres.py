"""docs/format.md says enough of the PostgreSQL schema: states are read by what it says alone."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from blake3 import blake3

import hardsave
from tests.docs.format_reader import States, unpacked
from tests.docs.pages import DOCS, blocks
from tests.postgres_server import beside, schema_of, url_of

CHAPTER = (DOCS / "format.md").read_text().partition("## 14. The PostgreSQL schema")[2]
TABLE = re.compile(r"^\| `(\w+)` \| (.*) \|$", re.MULTILINE)
OF_OBJECT = """
    SELECT p.size, p.directory, p.body FROM users AS u
    JOIN objects AS o ON o."user" = u.id JOIN packs AS p ON p."user" = u.id AND p.id = o.pack
    WHERE u.name IS NOT DISTINCT FROM %s AND o.hash = %s
"""


class StoreOnServer(States):
    """One user's part of a store."""

    def __init__(self, connection: psycopg.Connection[Any], user: str | None) -> None:
        self._connection = connection
        self._user = user

    def object(self, address: bytes) -> bytes:
        row = self._connection.execute(OF_OBJECT, (self._user, address)).fetchone()
        assert row is not None
        found = unpacked(*row)[address]
        assert blake3(found).digest(length=20) == address
        return found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[psycopg.Connection[Any]]:
    for user in (None, "kim"):
        with hardsave.open(url_of(tmp_path), user=user) as vault:
            line = vault.timeline("main")
            for turn in range(60):
                line.append({"messages": [f"{user} {turn} " + "." * 30 * turn], "turn": turn})
    with beside(tmp_path) as connection:
        yield connection


def test_each_table_has_these_columns(server: psycopg.Connection[Any]) -> None:
    told = {name: re.findall(r"`(\w+)`", columns) for name, columns in TABLE.findall(CHAPTER)}
    rows = server.execute(
        "SELECT table_name, column_name FROM information_schema.columns "
        "WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position"
    )
    found: dict[str, list[str]] = {}
    for table, column in rows:
        found.setdefault(table, []).append(column)
    assert found == told


@pytest.mark.parametrize("user", [None, "kim"])
def test_states_are_read_by_what_the_page_says(
    server: psycopg.Connection[Any], user: str | None
) -> None:
    roots = server.execute(
        'SELECT c.seq, c.root FROM checkpoints AS c JOIN users AS u ON u.id = c."user" '
        "WHERE u.name IS NOT DISTINCT FROM %s ORDER BY c.number",
        (user,),
    ).fetchall()
    store = StoreOnServer(server, user)
    assert [seq for seq, _ in roots] == list(range(1, 61))
    messages = [f"{user} {turn} " + "." * 30 * turn for turn in range(60)]
    for seq, root in roots:
        assert store.state(root) == {"messages": messages[:seq], "turn": seq - 1}


def test_the_statements_of_the_page_run(server: psycopg.Connection[Any], tmp_path: Path) -> None:
    first, second = [
        found.replace("hardsave.", f"{schema_of(tmp_path)}.")
        for found in blocks(DOCS / "format.md", "sql")
        if "hardsave.checkpoints" in found
    ]
    listed: Any = first
    assert [row[0] for row in server.execute(listed).fetchall()] == list(range(60, 50, -1))
    packed: Any = second
    ((size, directory, body),) = server.execute(packed).fetchall()
    assert unpacked(size, directory, body)
