"""A server that crashes, ends connections, is full or busy: nothing acknowledged is lost.

Each test is short here, and long among those that take minutes.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

import hardsave
from hardsave import Vault
from hardsave.errors import HardsaveError, LeaseLost, Misuse, Unavailable
from hardsave.logs import log
from hardsave.stores.postgres import PostgresStore
from tests.own_postgres import OwnServer, own_folder, pooler, url_of

ROUNDS = [pytest.param(2), pytest.param(100, marks=pytest.mark.torture)]
AT_ONCE = 20.0  # seconds, on a machine that is busy; the server ends what is idle after 30
OPEN = """
    SELECT count(*) FROM pg_stat_activity
    WHERE application_name = 'hardsave' AND backend_xid IS NOT NULL AND pid <> pg_backend_pid()
"""  # transactions that lock or write: one that only reads is in no caller's way


@pytest.fixture(scope="module")
def server() -> Iterator[OwnServer]:
    with own_folder() as folder:
        made = OwnServer(folder).create()
        yield made
        made.remove()


@pytest.fixture
def url(server: OwnServer, tmp_path: Path) -> str:
    name = "".join(each if each.isalnum() else "_" for each in str(tmp_path).lower())
    return f"{url_of(server)}&schema=s{name[-50:]}"


class Load:
    """Threads that save until they are told to end. What returned has to be there."""

    def __init__(self, vault: Vault, threads: int = 3) -> None:
        self.vault = vault
        self.saved: list[str] = []
        self.errors: list[HardsaveError] = []
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, args=(f"line {at}",)) for at in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def _work(self, name: str) -> None:
        line = self.vault.timeline(name)
        while not self._is_over.is_set():
            try:
                self.saved.append(line.append({"said": [name]}).id)
            except HardsaveError as error:
                self.errors.append(error)
                return

    def go_on(self, saves: int = 20) -> None:
        """Wait for so many more saves."""
        enough = len(self.saved) + saves
        while len(self.saved) < enough and not self.errors:
            self._is_over.wait(0.005)

    def end(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        assert self.errors == []
        assert self.vault.store.verify().ok
        count = sum(len(line.load()["said"]) for line in self.vault.timelines())
        assert count == len(self.saved)  # each once
        for id in self.saved:
            self.vault.get(id)


@pytest.mark.parametrize("rounds", ROUNDS)
def test_crashes_of_the_server_under_load_lose_nothing(
    server: OwnServer, url: str, rounds: int
) -> None:
    with hardsave.open(url) as vault:
        load = Load(vault)
        for _ in range(rounds):
            load.go_on()
            server.stop("immediate")
            server.start()
        load.go_on()
        load.end()
        log(__name__).warning("%d crashes, 0 of %d saves lost", rounds, len(load.saved))


@pytest.mark.parametrize("rounds", [pytest.param(20), *ROUNDS[1:]])
def test_connections_that_are_ended_under_load_are_no_error(
    server: OwnServer, url: str, rounds: int
) -> None:
    with hardsave.open(url) as vault:
        load, ended = Load(vault), 0
        for _ in range(rounds):
            load.go_on(3)
            ended += server.terminate_backends()
        load.end()
        assert ended >= rounds
        log(__name__).warning("%d connections ended, %d saves", ended, len(load.saved))


@pytest.mark.parametrize("rounds", [pytest.param(5), *ROUNDS[1:]])
def test_a_client_that_is_stopped_anywhere_leaves_no_row_locked(
    server: OwnServer, url: str, rounds: int
) -> None:
    """It is the server's turn each time: nothing waits for the one that stands still."""
    command = [sys.executable, "-m", "tests.crash.postgres_client", url, "stopped ", "6"]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    chance, longest = random.Random(7), 0.0
    try:
        with hardsave.open(url) as vault:
            for at in range(rounds):
                for _ in range(chance.randrange(1, 40)):
                    assert client.stdout.readline()
                os.kill(client.pid, signal.SIGSTOP)
                began = time.monotonic()
                vault.timeline("other").save({"round": at})
                longest = max(longest, time.monotonic() - began)
                end = time.monotonic() + AT_ONCE
                while server.ask(OPEN):
                    assert time.monotonic() < end, "a transaction of it is open"
                os.kill(client.pid, signal.SIGCONT)
    finally:
        client.kill()
        client.wait()
        client.stdout.close()
    log(__name__).warning("%d stops, the others waited %.2f s at most", rounds, longest)
    assert longest < AT_ONCE


class Cable:
    """Between this host and a second one, which is a network namespace: it can be pulled. Nobody
    is told: packets are lost, and connections stay open on both sides."""

    def __init__(self) -> None:
        self.host = f"hs{os.getpid()}"
        self.address = f"10.99.{os.getpid() % 250}.1"
        try:
            _ip("netns", "add", self.host)
            _ip("link", "add", self.host, "type", "veth", "peer", "eth0", "netns", self.host)
            _ip("address", "add", f"{self.address}/24", "dev", self.host)
            _ip("-n", self.host, "address", "add", f"{self.address}9/24", "dev", "eth0")
            _ip("-n", self.host, "link", "set", "eth0", "up")
            self.plug("up")
        except (OSError, subprocess.CalledProcessError):
            self.remove()
            pytest.skip("NO NETWORK NAMESPACES: this system lets tests make none")

    def plug(self, how: str) -> None:
        _ip("link", "set", self.host, how)

    def remove(self) -> None:
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            _ip("netns", "delete", self.host)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def cable() -> Iterator[Cable]:
    made = Cable()
    yield made
    made.remove()


@pytest.mark.parametrize("rounds", [pytest.param(3), *ROUNDS[1:]])
def test_a_host_whose_packets_are_lost_in_a_commit_keeps_no_other_waiting(
    cable: Cable, rounds: int
) -> None:
    chance, longest = random.Random(8), 0.0
    with own_folder() as folder, contextlib.ExitStack() as stack:
        server = OwnServer(folder, listen_addresses=cable.address).create()
        stack.callback(server.remove)
        with (server.data / "pg_hba.conf").open("a") as file:
            file.write("host all all 10.99.0.0/16 trust\n")
        server.ask("SELECT pg_reload_conf()")
        there = f"postgresql://postgres@{cable.address}/postgres"
        command = ["ip", "netns", "exec", cable.host, sys.executable, "-m"]
        client = subprocess.Popen(
            [*command, "tests.crash.postgres_client", there, "far ", "3"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert client.stdout is not None
        stack.callback(client.stdout.close)
        stack.callback(client.wait)
        stack.callback(client.kill)
        vault = stack.enter_context(hardsave.open(url_of(server)))
        told = []
        for at in range(rounds):
            told += [client.stdout.readline().strip() for _ in range(chance.randrange(1, 40))]
            cable.plug("down")
            began = time.monotonic()
            vault.timeline("near").save({"round": at})
            longest = max(longest, time.monotonic() - began)
            cable.plug("up")
        told.append(client.stdout.readline().strip())  # it goes on
        for id in told:
            vault.get(id)
        assert vault.store.verify().ok
    log(__name__).warning("%d cuts, the others waited %.2f s at most", rounds, longest)
    assert longest < AT_ONCE


@pytest.mark.parametrize(
    ("processes", "saves"), [(2, 300), pytest.param(8, 5_000, marks=pytest.mark.torture)]
)
def test_followers_beside_many_processes_miss_nothing(
    server: OwnServer, url: str, processes: int, saves: int
) -> None:
    with hardsave.open(url) as vault:
        command = [sys.executable, "-m", "tests.crash.postgres_client", url]
        clients = [
            subprocess.Popen([*command, f"process {at} ", "2"], stdout=subprocess.PIPE, text=True)
            for at in range(processes)
        ]
        followers, seen = (
            [vault.follow(0) for _ in range(3)],
            [list[Any](), list[Any](), list[Any]()],
        )
        while len(seen[0]) < saves:
            for follower, found in zip(followers, seen, strict=True):
                found += follower.read()
        for client in clients:
            client.kill()
        told = [line.strip() for client in clients for line in client.communicate()[0].split("\n")]
        for follower, found in zip(followers, seen, strict=True):
            while events := follower.read():
                found += events
            numbers = [event.number for event in found]
            assert numbers == list(range(1, len(numbers) + 1))
            ids = {event.checkpoint.id for event in found if event.checkpoint is not None}
            assert {id for id in told if len(id) == len(max(told, key=len))} <= ids
        log(__name__).warning("3 followers saw %d saves of %d processes", len(seen[0]), processes)


def take_all(server: OwnServer, held: list[psycopg.Connection[Any]]) -> None:
    while True:
        held.append(server.connect())


def take_place_of_store(server: OwnServer, held: list[psycopg.Connection[Any]]) -> None:
    """End the store's own connection, and be the first that gets another in its place."""
    before = len(held)
    while len(held) == before:
        held[0].execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
            "application_name = 'hardsave'"
        )
        with contextlib.suppress(psycopg.OperationalError):  # the store was faster
            held.append(server.connect())


def close_all(held: list[psycopg.Connection[Any]]) -> None:
    for each in held:
        each.close()


def test_a_server_without_free_connections_is_waited_for_and_named(
    server: OwnServer, url: str
) -> None:
    with own_folder() as folder:
        small = OwnServer(folder, max_connections="6", superuser_reserved_connections="0").create()
        with hardsave.open(url_of(small)) as vault:
            line = vault.timeline("main")
            line.save({"turn": 1})
            held: list[psycopg.Connection[Any]] = []
            try:
                with pytest.raises(psycopg.OperationalError):
                    take_all(small, held)
                with (
                    hardsave.deadline(1),
                    pytest.raises(Unavailable, match="too many clients"),
                ):
                    hardsave.open(url_of(small))
                take_place_of_store(small, held)
                timer = threading.Timer(0.5, close_all, [held])
                timer.start()
                line.save({"turn": 2})
                timer.join()
            finally:
                close_all(held)
        small.remove()


@pytest.mark.torture
def test_a_disk_that_is_full_is_named_and_nothing_acknowledged_is_lost() -> None:
    with own_folder() as folder:
        disk = folder / "disk"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=160m,mode=777", "tmpfs", str(disk)]
        if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
            pytest.skip("NO SMALL DISK: this system lets tests mount none")
        try:
            full_disk(OwnServer(disk, max_wal_size="32MB", min_wal_size="32MB"), disk)
        finally:
            subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(line: hardsave.Timeline, saved: list[str]) -> None:
    with hardsave.deadline(60):
        while True:
            data = random.Random(len(saved)).randbytes(200_000)
            saved.append(line.save({"turn": len(saved), "data": data}).id)


def full_disk(server: OwnServer, disk: Path) -> None:
    server.create()
    with hardsave.open(url_of(server)) as vault:
        line = vault.timeline("main")
        saved = [line.save({"turn": 0}).id]
        filler = disk / "filler"
        with filler.open("wb") as file:
            file.write(b"x" * max(0, shutil.disk_usage(disk).free - (12 << 20)))
        with pytest.raises(Unavailable) as caught:
            fill(line, saved)
        log(__name__).warning("after %d saves: %s", len(saved), caught.value)
        filler.unlink()
        while not server.is_up():  # it stops, or recovers, where it can write no log
            if not server.is_running:
                server.start()
        with hardsave.deadline(60):
            saved.append(vault.timeline("after").save({"room": "again"}).id)
        for id in saved:
            vault.get(id)
        assert vault.store.verify().ok
    server.remove()


@pytest.mark.parametrize("hours", [1, -1])
def test_a_servers_clock_that_jumps_makes_no_second_writer(
    server: OwnServer, url: str, hours: int
) -> None:
    """The server's clock cannot be moved here, so the function that a store reads it by is: it says
    so many hours more. A lease may be taken from a worker that lives, and then that one writes
    nothing any more."""
    with hardsave.open(url) as one, hardsave.open(url) as two:
        one.tasks.add("work", "do it")
        store = one._context.store
        before = store.moment()
        attempt = one.tasks.attempt("work")
        attempt.__enter__()
        jump(server, url, hours)
        assert store.moment().at >= before.at  # for this process it stands still, or goes on
        two.tasks.recover()
        if two.tasks.get("work").state == "pending":
            with two.tasks.attempt("work"):
                two.timeline("main").save({"by": "two"})
            with pytest.raises(LeaseLost):
                one.timeline("main").save({"by": "one"})
        attempt.__exit__(None, None, None)
        assert two.tasks.get("work").state == "completed"
        assert two.store.verify().ok


def jump(server: OwnServer, url: str, hours: int) -> None:
    schema = url.rpartition("=")[2]
    with server.connect() as connection:
        ahead: Any = hours * 3_600_000_000
        text = (
            "CREATE OR REPLACE FUNCTION {}.moment_1() RETURNS bigint LANGUAGE sql VOLATILE AS $$ "
            "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + {} $$"
        )
        connection.execute(sql.SQL(text).format(sql.Identifier(schema), sql.Literal(ahead)))


class HostStore(PostgresStore):
    """Has a folder of its own on each host."""

    def __init__(self, url: str, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        super().__init__(url)

    def local(self, what: str) -> str | None:
        return str(self.folder / f"store-{what}")


def test_a_purge_of_one_host_reaches_what_the_other_keeps(url: str, tmp_path: Path) -> None:
    secret = "correct-horse-battery"  # noqa: S105 # it opens nothing
    vaults = [Vault(HostStore(url, tmp_path / name)) for name in ("one", "two")]
    for at, vault in enumerate(vaults):
        work = tmp_path / f"work {at}"
        work.mkdir()
        (work / "a.txt").write_text(secret)
        vault.timeline(f"line {at}").save({"said": secret}, workspace=work)
        assert vault.search("correct-horse")
    vaults[0].store.purge(text=secret)
    assert not vaults[1].search("correct-horse")
    for vault in vaults:
        vault.close()
    for name in ("one", "two"):
        files = [each for each in (tmp_path / name).rglob("*") if each.is_file()]
        assert not [each for each in files if secret.encode() in each.read_bytes()]


_COLLECTS = """
import sys, hardsave
with hardsave.open(sys.argv[1]) as vault:
    print(sum(vault.store.gc().objects for _ in range(int(sys.argv[2]))))
"""
_CAPTURES = """
import sys, pathlib, hardsave
url, rounds, folder = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
folder.mkdir()
with hardsave.open(url) as vault:
    line = vault.timeline(folder.name)
    for at in range(rounds):
        for name in range(5):
            (folder / f"{name}.txt").write_text(f"{folder} {at} {name}" * 50)
        line.save({"at": at}, workspace=folder)
        if at % 3 == 0:
            vault.delete(f"{folder.name}:{at}") if at else None
            policy = hardsave.Policy(max_per_timeline=3)
            vault.retention.apply(vault.retention.plan(policy))
"""


@pytest.mark.parametrize("rounds", [pytest.param(4), pytest.param(150, marks=pytest.mark.torture)])
def test_collections_of_two_processes_take_nothing_from_captures_beside_them(
    url: str, tmp_path: Path, rounds: int
) -> None:
    with hardsave.open(url):
        pass
    python = [sys.executable, "-c"]
    running = [
        subprocess.Popen(
            [*python, _CAPTURES, url, str(rounds), str(tmp_path / f"host{at}")],
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / f"cache{at}")},
        )
        for at in range(2)
    ]
    running += [subprocess.Popen([*python, _COLLECTS, url, str(rounds)]) for _ in range(2)]
    assert [each.wait(600) for each in running] == [0] * 4
    with hardsave.open(url) as vault:
        assert vault.store.verify().ok
        for line in vault.timelines():
            for checkpoint in line.checkpoints(limit=1_000):
                assert checkpoint.files is not None
                assert len([checkpoint.files.read(each.path) for each in checkpoint.files.list()])


@pytest.mark.torture
def test_behind_a_pooler_sessions_are_right_and_transactions_are_refused(
    server: OwnServer,
) -> None:
    for mode in ("session", "transaction"):
        with pooler(server, mode) as at:
            target = f"postgresql:///postgres?user=postgres&host={at}&schema=behind_{mode}"
            if mode == "transaction":
                with pytest.raises(Misuse, match="session"):
                    hardsave.open(target)
                continue
            with hardsave.open(target) as vault:
                load = Load(vault)
                load.go_on(200)
                load.end()
                with vault._context.store.once("turn") as turn:
                    assert turn is not None
                    with vault._context.store.once("turn") as other:
                        assert other is None
