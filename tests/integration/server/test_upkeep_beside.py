"""Collecting, compacting and purging while clients read and write: none of them notices."""

import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from tests.integration.server.conftest import HARDSAVE, LIMIT, environment
from tests.integration.server.site import Site
from tests.unit.server.api_client import ApiClient, Got
from tests.unit.server.api_samples import STREAM, Sample, samples

SECONDS = 3.0
READERS = WRITERS = 8


class Seen:
    """What clients were answered; threads share it."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self.statuses: Counter[int] = Counter()
        self.wrong: list[Any] = []

    def add(self, what: object, got: Got, *fine: int) -> Got:
        with self._mutex:
            self.statuses[got.status] += 1
            if got.status not in fine:
                self.wrong.append((what, got))
        return got


def reads(site: Site) -> list[Sample]:
    """Of what no purge of this test is about."""
    return [
        each
        for each in samples(site.things)
        if each.route.method == "GET" and each.route.path != STREAM
    ]


def reader(site: Site, seen: Seen, number: int, is_over: threading.Event) -> None:
    asked = reads(site)
    with site.api() as client:
        at = number * len(asked) // READERS
        while not is_over.is_set():
            sample = asked[at % len(asked)]
            seen.add(sample.path, client.try_sample(sample), 200, 206)
            at += 1


def writer(site: Site, seen: Seen, number: int, is_over: threading.Event) -> int:
    """Saves, goes back and forth, forks, deletes; how many messages it has saved."""
    name, saved = f"writer-{number}", 0
    with site.api() as client:

        def act(path: str, body: Any, **headers: str) -> None:
            sent = {key.replace("_", "-"): value for key, value in headers.items()}
            seen.add((path, body), client.send("POST", f"/api/v1/{path}", body, sent), 200, 201)

        while not is_over.is_set():
            for _ in range(5):
                act("checkpoints", {"timeline": name, "delta": {"messages": [f"{name} {saved}"]}})
                saved += 1
            act("rewind", {"timeline": name, "ref": "@~2"}, if_match="*")
            act("undo", {"timeline": name})
            act("fork", {"timeline": name, "ref": "@", "name": f"{name}-{saved}"})
            path = f"/api/v1/timeline?timeline={name}-{saved}"
            seen.add(path, client.send("DELETE", path), 200)
    return saved


def keeping_up(site: Site, seen: Seen, is_over: threading.Event) -> int:
    """Collects, compacts in another process, and purges, again and again; how often."""
    rounds = 0
    with site.api() as client:
        while not is_over.is_set():
            word = f"purged-{rounds}"
            for body in ({"text": f"{word} text"}, {"timeline": word}):
                for _ in range(2):
                    save = {"timeline": word, "delta": {"messages": [f"{word} text"]}}
                    seen.add(save, client.send("POST", "/api/v1/checkpoints", save), 201)
                seen.add(body, client.send("POST", "/api/v1/purge", body), 200)
            seen.add("gc", client.send("POST", "/api/v1/gc", {}), 200)
            seen.add("verify", client.send("POST", "/api/v1/verify", {}), 200)
            compact(site)
            rounds += 1
    return rounds


def compact(site: Site) -> None:
    folder = site.server.folder
    done = subprocess.run(
        [*HARDSAVE, "store", "compact", "--store", site.server.store],
        cwd=folder,
        env=environment(folder.parent),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@contextmanager
def beside(
    pool: ThreadPoolExecutor, *calls: Callable[[threading.Event], int | None]
) -> Iterator[list[int | None]]:
    """Calls that go on until the end of the block; what they came to is there after it."""
    is_over, results = threading.Event(), list[int | None]()
    running = [pool.submit(call, is_over) for call in calls]
    try:
        yield results
    finally:
        is_over.set()
        results += [each.result(LIMIT) for each in running]


def test_clients_do_not_notice_what_is_collected_compacted_and_purged(site: Site) -> None:
    seen = Seen()
    calls: list[Callable[[threading.Event], int | None]] = [
        *(lambda over, n=n: writer(site, seen, n, over) for n in range(WRITERS)),
        *(lambda over, n=n: reader(site, seen, n, over) for n in range(READERS)),
        lambda over: keeping_up(site, seen, over),
    ]
    with ThreadPoolExecutor(len(calls)) as pool, beside(pool, *calls) as results:
        time.sleep(SECONDS)
    assert seen.wrong == []
    assert results[-1]
    assert sum(seen.statuses.values()) > 100
    with site.server.vault() as vault:
        for number in range(WRITERS):
            name = f"writer-{number}"
            assert vault.timeline(name).load()["messages"] == [
                f"{name} {each}" for each in range(results[number] or 0)
            ]
        found = vault.store.verify()
        assert found.ok, found.faults
    assert "Traceback" not in site.server.log()


def test_what_was_purged_is_in_no_answer_and_in_no_file(site: Site) -> None:
    with site.api() as client:
        purge(client, "a word that must go")
        again = client.get("/api/v1/search?text=must&wait=true")
    assert again["items"] == []
    store = site.server.folder.parent / "served.db"
    for path in store.parent.glob("served.db*"):
        assert b"a word that must go" not in path.read_bytes()


def purge(client: ApiClient, text: str) -> None:
    save = {"timeline": "to-be-purged", "state": {"messages": [text]}}
    assert client.send("POST", "/api/v1/checkpoints", save).status == 201
    done = client.send("POST", "/api/v1/purge", {"text": text})
    assert (done.status, done.data["rewritten"]) == (200, 1)
