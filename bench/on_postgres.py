"""A store on PostgreSQL beside LangGraph's PostgresSaver and DBOS, all on one server.

The server comes from the wheel of the tests and runs with its defaults, `fsync` and
`synchronous_commit` on, on the disk that is measured. The floor is a bare INSERT of as many bytes
with its own commit. Rivals take turns.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, cast
from unittest import mock
from urllib.parse import quote

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg.rows import dict_row

import hardsave
from bench import report
from bench.machine import ROOT, Broken, check
from bench.payload import Conversation
from bench.peers import THREAD, Saver, as_objects
from bench.report import Row, at_least, at_most
from bench.setting import Setting
from bench.stopwatch import in_turns, median, timed
from hardsave.stores.postgres.news import News
from hardsave.stores.postgres.store import PostgresStore
from tests import postgres_server

_EDGE = 50  # turns at each end that are compared
_THREADS = 16


class ServerSaver(Saver):
    """LangGraph's saver on PostgreSQL: one `put` a turn, messages as a real graph has them."""

    def __init__(self, address: str, messages: list[Any]) -> None:
        self.messages = messages
        self._connection = psycopg.connect(
            address, autocommit=True, prepare_threshold=0, row_factory=dict_row
        )
        self._saver = PostgresSaver(self._connection)
        self._saver.setup()
        self._config: Any = THREAD
        self._versions: dict[str, Any] = {}

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = self._saver.get_tuple(THREAD).checkpoint["channel_values"]
        return found


def on_postgres(setting: Setting) -> list[Row]:
    with _server(setting.place / "postgres") as folder:
        return [
            *_conversation(folder, setting.turns),
            *_threads(folder, setting.choose(3_000, 400)),
            *_steps(folder, setting),
            *_files(folder, setting),
        ]


def _conversation(folder: Path, turns: int) -> list[Row]:
    conversation = Conversation(turns)
    theirs = ServerSaver(_address(folder, "theirs"), as_objects(conversation.messages))
    data = bytes(conversation.size // turns)
    with (
        hardsave.open(_url(folder, "ours")) as vault,
        closing(psycopg.connect(_address(folder, "floor"), autocommit=True)) as bare,
    ):
        bare.execute("CREATE TABLE floor (n bigserial PRIMARY KEY, data bytea)")
        line = vault.timeline("main")
        times: list[list[float]] = [[], [], []]
        line.append(conversation.delta(1))
        theirs.write(1)
        for turn in range(2, turns + 1):
            rivals = (
                lambda turn=turn: timed(lambda: line.append(conversation.delta(turn)))[0],
                lambda: timed(lambda: _insert(bare, data))[0],
                lambda turn=turn: theirs.write(turn),
            )
            for each, found in zip(times, in_turns(1, *rivals), strict=True):
                each += found
        ours, floor, put = times
        trips, commits = _counted(vault, line, conversation, bare)
    return [
        Row(
            "statements of an append, a round trip each",
            ours=str(trips),
            value=trips,
            unit="",
            target=at_most(1),
            note="without hints for followers: one every 20 ms, on a connection of its own",
        ),
        Row("commits of an append", ours=str(commits), value=commits, unit="", target=at_most(1)),
        _growth(folder, conversation),
        report.growth("append / bare INSERT + commit", median(ours), median(floor), at_most(6)),
        report.ratio(
            f"append at {turns} turns, against PostgresSaver.put",
            median(ours[-_EDGE:]),
            median(put[-_EDGE:]),
            at_least(10),
        ),
        _sizes(folder, turns),
        *_loads(folder, conversation, theirs),
    ]


def _growth(folder: Path, conversation: Conversation) -> Row:
    """By itself: a rival whose rows grow takes the caches of the processor and the disk's time."""
    with hardsave.open(_url(folder, "flat")) as vault:
        line = vault.timeline("main")
        line.append(conversation.delta(1))
        times = [
            timed(partial(line.append, conversation.delta(turn)))[0]
            for turn in range(2, conversation.turns + 1)
        ]
    return report.growth(
        f"append, the last {_EDGE} of {conversation.turns} / the first {_EDGE}, by itself",
        median(times[-_EDGE:]),
        median(times[:_EDGE]),
        at_most(1.2),
    )


def _insert(connection: psycopg.Connection[Any], data: bytes) -> None:
    connection.execute("INSERT INTO floor (data) VALUES (%s)", (data,))


def _counted(
    vault: hardsave.Vault,
    line: hardsave.Timeline,
    conversation: Conversation,
    watch: psycopg.Connection[Any],
) -> tuple[float, float]:
    """Statements and commits of an append, over twenty. Hints for followers are left out: one
    every 20 ms, for all appends of that time, on a connection of its own."""
    sent = 0
    original = psycopg.Cursor.execute

    def counting(self: Any, *arguments: Any, **options: Any) -> Any:
        nonlocal sent
        sent += 1
        return original(self, *arguments, **options)

    rounds = 20
    with ExitStack() as patched:
        patched.enter_context(mock.patch.object(psycopg.Cursor, "execute", counting))
        patched.enter_context(mock.patch.object(News, "tell"))
        before = _position(watch)
        start = sent
        for turn in range(rounds):
            line.append(conversation.delta(turn + 1))
        trips = (sent - start) / rounds
        commits = (_position(watch) - before) / rounds
    return trips, commits


def _position(watch: psycopg.Connection[Any]) -> int:
    """How many transactions have written so far: the next one's number."""
    found = watch.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").fetchone()
    assert found is not None
    return int(found[0])


def _sizes(folder: Path, turns: int) -> Row:
    with closing(psycopg.connect(_address(folder, "theirs"), autocommit=True)) as connection:
        ours, theirs = (_bytes_of(connection, schema) for schema in ("ours", "theirs"))
    return Row(
        f"bytes of {turns} turns, ours / PostgresSaver's",
        report.size(ours),
        report.size(theirs),
        ours / theirs,
        "×",
        at_most(1 / 50),
        "tables, indexes and TOAST, as the server counts them",
    )


def _bytes_of(connection: psycopg.Connection[Any], schema: str) -> int:
    row = connection.execute(
        "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n "
        "ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind = 'r'",
        (schema,),
    ).fetchone()
    assert row is not None
    return int(row[0])


def _loads(folder: Path, conversation: Conversation, theirs: ServerSaver) -> list[Row]:
    def ours() -> float:
        with hardsave.open(_url(folder, "ours")) as vault:
            line = vault.timeline("main")
            line.head  # noqa: B018 # the connection is there, as theirs is
            seconds, state = timed(lambda: cast(Any, line.load()))
            check(len(state["messages"]) >= 2 * conversation.turns, "what was loaded is wrong")
            return seconds

    found = in_turns(9, ours, lambda: timed(theirs.read)[0])
    return [
        report.growth(
            f"load of {2 * conversation.turns:,} messages, new vault / get_tuple",
            median(found[0]),
            median(found[1]),
            at_most(1.2),
        )
    ]


def _threads(folder: Path, saves: int) -> list[Row]:
    """Saves a second of sixteen threads of one user, in groups and one by one."""
    grouped = _saves_a_second(_url(folder, "grouped"), saves)
    with mock.patch.object(PostgresStore, "commit", _alone(PostgresStore.commit)):
        ungrouped = _saves_a_second(_url(folder, "alone"), saves)
    return [
        Row(
            f"{_THREADS} threads of one user, in groups / one by one",
            f"{report.number(grouped)}/s",
            f"{report.number(ungrouped)}/s",
            grouped / ungrouped,
            "×",
            at_least(2),
        )
    ]


def _alone(commit: Callable[..., int]) -> Callable[..., int]:
    turn = threading.Lock()

    def one(self: PostgresStore, batch: Any) -> int:
        with turn:  # no two callers are there at once, so none is grouped
            return commit(self, batch)

    return one


def _saves_a_second(url: str, saves: int) -> float:
    with hardsave.open(url) as vault:
        lines = [vault.timeline(f"line-{n}") for n in range(_THREADS)]
        for line in lines:
            line.append({"messages": ["first"]})

        def work(line: hardsave.Timeline) -> None:
            for n in range(saves // _THREADS):
                line.append({"messages": [{"role": "user", "content": f"message {n}"}]})

        crew = [threading.Thread(target=partial(work, line)) for line in lines]

        def all_of_them() -> None:
            for thread in crew:
                thread.start()
            for thread in crew:
                thread.join()

        seconds, _ = timed(all_of_them)
    return saves // _THREADS * _THREADS / seconds


def _steps(folder: Path, setting: Setting) -> list[Row]:
    steps = setting.choose(300, 60)
    with hardsave.open(_url(folder, "steps")) as vault:
        vault.tasks.add("many")
        with vault.tasks.claim("many") as attempt:
            for n in range(20):
                attempt.step(f"warm-{n}", int, n)
            times = [timed(partial(_many, attempt, f"s{at}", steps))[0] / steps for at in range(3)]
    address = f"postgresql://postgres@/dbos_bench?host={quote(str(folder))}"
    answer = subprocess.run(
        [
            *(sys.executable, "-m", "bench.work_dbos", "steps", setting.place / "dbos", str(steps)),
            *("--server", address),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    if answer.returncode:
        raise Broken(f"DBOS does not run: {answer.stderr[-500:]}")
    theirs = min(json.loads(answer.stdout.splitlines()[-1])["times"])
    return [report.ratio("a durable step, against DBOS", min(times), theirs, at_least(2))]


def _files(folder: Path, setting: Setting) -> list[Row]:
    """A directory made anew out of a checkpoint, from either store."""
    files = setting.choose(7_000, 500)
    work = setting.place / "postgres-files"
    for n in range(files):
        path = work / f"d{n // 100}" / f"f{n}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"value = {n}\n" * 40)
    with ExitStack() as opened:
        vaults = []
        for url in (_url(folder, "files"), f"sqlite:///{setting.place}/files.db"):
            vaults.append(opened.enter_context(hardsave.open(url)))
            vaults[-1].timeline("main").save_files(work)
        number = count(1)

        def made(vault: hardsave.Vault) -> float:
            name = f"made-{next(number)}"
            workspace = vault.workspace(work)
            return timed(lambda: workspace.fork("main:1", setting.place / name, name=name))[0]

        found = in_turns(5, *(partial(made, vault) for vault in vaults))
    return [
        report.growth(
            f"{files:,} files materialised, from PostgreSQL / from SQLite",
            median(found[0]),
            median(found[1]),
            at_most(1.3),
        )
    ]


def _many(attempt: hardsave.Attempt, name: str, steps: int) -> None:
    for n in range(steps):
        attempt.step(f"{name}-{n}", int, n)


# The server


@contextmanager
def _server(folder: Path) -> Iterator[Path]:
    folder.mkdir(mode=0o755)
    place = postgres_server.as_server()
    if place:
        os.chown(folder, place["user"], place["group"])
        folder.parent.chmod(0o711)  # the server, which is another user, has to get there
    data = folder / "data"
    _run("initdb", "-D", data, "-U", "postgres", "-E", "UTF8", "--no-locale")
    options = f"-k {folder} -c listen_addresses="
    _run("pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start")
    try:
        yield folder
    finally:
        _run("pg_ctl", "-D", data, "-m", "immediate", "stop")


def _run(program: str, *arguments: object) -> None:
    done = subprocess.run(
        [postgres_server.tool(program), *map(str, arguments)],
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd="/",
        text=True,
        timeout=120,
        **postgres_server.as_server(),
    )
    if done.returncode:
        raise Broken(f"{program} does not run here: {done.stderr[-300:]}")


def _address(folder: Path, schema: str) -> str:
    admin = f"postgresql://postgres@/postgres?host={quote(str(folder))}"
    with closing(psycopg.connect(admin, autocommit=True)) as connection:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    return f"{admin}&options={quote(f'-c search_path={schema}')}"


def _url(folder: Path, schema: str) -> str:
    return f"postgresql:///postgres?host={quote(str(folder))}&user=postgres&schema={schema}"
