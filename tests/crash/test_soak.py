"""Agents, servers and keepers at one store, killed all the time: nothing they were told is lost."""

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.errors import NotFound
from tests.crash.launcher import ROOT
from tests.crash.soaking import content, url

CREW = [("agent", 0), ("agent", 1), ("keeper", 0), ("keeper", 1), ("server", 0)]
_LOOKED_AT = 40  # checkpoints whose files are put down and compared


class Soak:
    """The processes of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._living = {who: self._start(who) for who in CREW}

    def _start(self, who: tuple[str, int]) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.crash.soaking", who[0], str(who[1])]
        return subprocess.Popen([*command, str(self.folder)], cwd=ROOT, stderr=subprocess.DEVNULL)

    def go_on(self, kills: int, pause: float) -> None:
        """Kill one after the other, and start it again."""
        draw = random.Random(kills)
        for _ in range(kills):
            time.sleep(draw.uniform(0, 2 * pause))
            who = draw.choice(CREW)
            self._kill(who)
            self._living[who] = self._start(who)

    def end(self) -> None:
        for who in CREW:
            self._kill(who)

    def _kill(self, who: tuple[str, int]) -> None:
        self._living[who].kill()
        self._living[who].wait()

    def wrong(self) -> list[str]:
        return [path.read_text() for path in self.folder.glob("*.wrong")]

    def told(self, role: str) -> Iterator[dict[str, Any]]:
        for path in self.folder.glob(f"{role}-*.told"):
            for line in path.read_text().splitlines(keepends=True):
                if line.endswith("\n"):  # else it was killed over it
                    yield json.loads(line)


def check_agents(soak: Soak, vault: hardsave.Vault) -> int:
    """Every checkpoint is as it was said to be, or was let go by the policy; how many are there."""
    purged = [each["purging"] for each in soak.told("keeper") if "purging" in each]
    there: list[tuple[hardsave.Checkpoint, dict[str, Any]]] = []
    for each in soak.told("agent"):
        try:
            checkpoint = vault.get(each["id"])
        except NotFound:
            assert each["name"] is None, "a checkpoint with a name stays"
            continue
        there.append((checkpoint, each))
        messages = checkpoint.read("messages")
        for message, then in zip(messages, each["state"]["messages"], strict=True):
            rest = then.removeprefix(next((text for text in purged if text in then), ""))
            assert message in (then, f"[purged]{rest}")
    some = random.Random(0).sample(there, min(_LOOKED_AT, len(there)))
    for number, (checkpoint, each) in enumerate(some):
        scratch = soak.folder / f"scratch-{number}"
        vault.workspace(soak.folder).fork(checkpoint.id, scratch, name=f"scratch-{number}")
        assert content(scratch) == each["files"]
    return len(there)


def check_server(soak: Soak, vault: hardsave.Vault) -> int:
    """Every task that was added is there, and what its step gave never changed; how many are."""
    told = [*soak.told("server")]
    added = {each["added"] for each in told if "added" in each}
    drawn: dict[str, str] = {}
    for each in told:
        if "task" in each:
            assert drawn.setdefault(each["task"], each["drawn"]) == each["drawn"]
    for name in added:
        task = vault.tasks.get(name)
        if task.state == "completed":
            assert task.result == drawn[name]
    return len(added)


@pytest.mark.torture
def test_nothing_is_lost_by_kills_while_all_processes_are_at_work(tmp_path: Path) -> None:
    soak = Soak(tmp_path)
    try:
        soak.go_on(kills=1_000, pause=0.6)
        deadline = time.monotonic() + 60
        while sum(1 for _ in soak.told("agent")) < 3 * _LOOKED_AT:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        soak.end()
    assert soak.wrong() == []
    with hardsave.open(url(tmp_path)) as vault:
        assert vault.store.verify().faults == ()
        assert check_agents(soak, vault) > 0
        assert check_server(soak, vault) > 0
