"""The tables of the queue, in a schema that another program may use, too."""

from pathlib import Path
from typing import Any

import pytest
from procrastinate.schema import SchemaManager

from hardsave.errors import Misuse
from hardsave.stores.postgres import PostgresStore, queue
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
