"""The tables of the queue, in a schema that another program may use, too."""

import asyncio
from pathlib import Path
from typing import Any, cast

import procrastinate
import pytest
from procrastinate.schema import SchemaManager

from hardsave.errors import Misuse
from hardsave.stores.dispatch import Hints, Receiver
from hardsave.stores.postgres import PostgresStore, queue
from hardsave.stores.postgres.address import address_of, session_options
from hardsave.stores.postgres.queue_thread import Queues, QueueThread
from tests.postgres_server import beside, schema_of, url_of


def test_tables_of_a_program_that_uses_procrastinate_itself_are_left_alone(tmp_path: Path) -> None:
    store = PostgresStore(url_of(tmp_path))
    made: Any = SchemaManager.get_schema()
    with beside(tmp_path) as connection:
        connection.execute(made)
        connection.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name) VALUES ('own', 'own')"
        )
        with pytest.raises(Misuse, match="a schema of its own"):
            queue.install(store._connections, schema_of(tmp_path))
        found = connection.execute("SELECT task_name FROM procrastinate_jobs").fetchall()
    store.close()
    assert found == [("own",)]


def test_what_is_left_of_the_queue_and_that_of_another_version_are_made_anew(
    tmp_path: Path,
) -> None:
    store = PostgresStore(url_of(tmp_path))
    with beside(tmp_path) as connection:
        for harm in (
            "DROP TABLE procrastinate_jobs CASCADE",
            f"COMMENT ON TABLE procrastinate_jobs IS '{queue._MARK} 0.1'",
        ):
            queue.install(store._connections, schema_of(tmp_path))
            connection.execute(harm)
            queue.install(store._connections, schema_of(tmp_path))
            found = connection.execute(queue._NOTED).fetchall()
            assert found == [(queue._OURS,)]
    store.close()


def test_the_worker_of_the_queue_has_the_options_of_the_url_and_finds_its_tables(
    tmp_path: Path,
) -> None:
    address = address_of(url_of(tmp_path, options="-c work_mem=7MB -c search_path=other"))
    hints = Hints(cast(Receiver, None), 1)
    thread = QueueThread(address, Queues("own", ()), hints, lambda: None)
    asked = "SELECT current_setting('work_mem') AS memory, current_setting('search_path') AS path"

    async def told() -> Any:
        app: procrastinate.App = thread._app(asyncio.Event())
        async with app.open_async():
            return await app.connector.execute_query_one_async(asked)

    assert asyncio.run(told()) == {"memory": "7MB", "path": schema_of(tmp_path)}


def test_options_of_the_environment_hold_where_the_url_has_none() -> None:
    given = {"PGOPTIONS": "-c work_mem=7MB"}
    plain, own = "postgresql:///a", "postgresql:///a?options=-c%20work_mem%3D8MB"
    assert session_options(address_of(plain), given) == "-c work_mem=7MB -c search_path=hardsave"
    assert session_options(address_of(own), given) == "-c work_mem=8MB -c search_path=hardsave"
    assert session_options(address_of(plain), {}) == "-c search_path=hardsave"
