"""DBOS at work, as a process of its own: `python -m bench.work_dbos`. Prints JSON.

It is used as its documentation says; only the pragmas of its SQLite file are set where asked,
by an event of SQLAlchemy, and read back.
"""

import argparse
import json
import os
import signal
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import sqlalchemy
from dbos import DBOS

from bench.stopwatch import timed


def open_dbos(path: Path, pragmas: str, server: str = "") -> None:
    if pragmas:
        journal, synchronous = pragmas.split("/")

        def connected(connection: Any, record: Any) -> None:
            connection.execute(f"PRAGMA journal_mode={journal}")
            connection.execute(f"PRAGMA synchronous={synchronous}")

        sqlalchemy.event.listen(sqlalchemy.engine.Engine, "connect", connected)
    DBOS(
        config={
            "name": "bench",
            "system_database_url": server or f"sqlite:///{path}",
            "run_admin_server": False,
            "log_level": "ERROR",
            "application_version": "1",
            "executor_id": "bench",
        }
    )


@DBOS.step()  # type: ignore[untyped-decorator] # the peer is not type checked
def step(value: int) -> int:
    return value


@DBOS.workflow()  # type: ignore[untyped-decorator] # as above
def many_steps(count: int) -> float:
    """Seconds a step, in the middle of a workflow."""
    for number in range(20):
        step(number)
    return timed(lambda: [step(number) for number in range(count)])[0] / count


@DBOS.workflow()  # type: ignore[untyped-decorator] # as above
def two_steps(number: int, gate: str) -> int:
    """What is under way when the process dies: one step is recorded, the other is not."""
    step(number)
    if not os.path.exists(gate):
        time.sleep(3600)
    return int(step(number))


def steps_on(path: Path, pragmas: str, count: int, server: str) -> dict[str, Any]:
    open_dbos(path, pragmas, server)
    DBOS.launch()
    times = [many_steps(count) for _ in range(3)]
    return {"times": times, "pragmas": "" if server else _in_force()}


def steps(path: Path, pragmas: str, count: int) -> dict[str, Any]:
    return steps_on(path, pragmas, count, "")


def begin(path: Path, pragmas: str, count: int) -> None:
    """Have so many workflows in progress, and die."""
    open_dbos(path, pragmas)
    DBOS.launch()
    for number in range(count):
        DBOS.start_workflow(two_steps, number, str(path) + "-gate")
    while _recorded(path) < count:
        time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)


def finish(path: Path, pragmas: str, count: int) -> dict[str, Any]:
    """Seconds from the restart until all of them are done."""
    Path(str(path) + "-gate").touch()
    open_dbos(path, pragmas)
    start = time.perf_counter()
    DBOS.launch()
    while len(DBOS.list_workflows(status="SUCCESS", load_input=False, load_output=False)) < count:
        time.sleep(0.05)
    return {"seconds": time.perf_counter() - start, "pragmas": _in_force()}


def _recorded(path: Path) -> int:
    import sqlite3

    with closing(sqlite3.connect(path, timeout=30)) as connection:
        return int(connection.execute("SELECT count(*) FROM operation_outputs").fetchone()[0])


def _in_force() -> str:
    from dbos._dbos import _get_dbos_instance

    with _get_dbos_instance()._sys_db.engine.connect() as connection:
        found = [
            connection.execute(sqlalchemy.text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "synchronous")
        ]
    return "journal_mode={}, synchronous={}".format(*found)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["steps", "begin", "finish"])
    parser.add_argument("path", type=Path)
    parser.add_argument("count", type=int)
    parser.add_argument("--pragmas", default="")
    parser.add_argument("--server", default="", help="steps on this PostgreSQL, not on SQLite")
    options = parser.parse_args()
    if options.server:
        print(json.dumps(steps_on(options.path, "", options.count, options.server)), flush=True)
        os._exit(0)
    call = {"steps": steps, "begin": begin, "finish": finish}[options.what]
    print(json.dumps(call(options.path, options.pragmas, options.count)), flush=True)
    os._exit(0)  # without waiting for its threads


if __name__ == "__main__":
    main()
