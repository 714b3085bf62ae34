"""Whatever happens to a watched workspace, a narrow scan finds what a full one would."""

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hardsave.workspace.policy import Policy
from tests.unit.workspace.churn import Churn
from tests.unit.workspace.room import WatchedRoom

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
POLICY = Policy(max_file_bytes=140_000)  # so that some files are too large


@contextlib.contextmanager
def watched(base: Path) -> Iterator[WatchedRoom]:
    for name in ("work", "outside", "cookies"):
        (base / name).mkdir(parents=True)
    with WatchedRoom(base / "work", base / "cookies") as room:
        yield room


def check(room: WatchedRoom, said: str) -> None:
    tracked = frozenset({b"build/log", b"a", b"sub/log"}) if len(said) % 3 else frozenset()
    made = room.snapshot(tracked=tracked, policy=POLICY)
    anew = room.anew(tracked=tracked, policy=POLICY)
    assert (made.root, made.not_captured) == (anew.root, anew.not_captured), said
    assert room.folders(made) == room.folders(anew), said


def rounds(base: Path, seed: int, count: int) -> WatchedRoom:
    with watched(base) as room:
        room.now_ns = 10**9  # stamps count as proof at once: nobody looks twice by chance
        churn = Churn(room.root, base / "outside", seed)
        for number in range(count):
            time.sleep(0.011)  # but no two edits have the same ones
            churn.steps(churn.random.choice([1, 1, 1, 2, 5, 20]))
            check(room, f"seed {seed}, round {number}: {churn.done}")
        return room


def test_every_settled_state_is_what_a_full_scan_finds(tmp_path: Path) -> None:
    for seed in range(4):
        room = rounds(tmp_path / str(seed), seed, 60)
        assert room.narrow > 55, room.reasons


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(100, 140))
def test_every_settled_state_of_many_is_what_a_full_scan_finds(tmp_path: Path, seed: int) -> None:
    room = rounds(tmp_path, seed, 400)
    assert room.narrow > 360, room.reasons
