"""After any change in a watched workspace, an incremental scan finds what a full one would."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hardsave.workspace.scan.capture_policy import Policy
from tests.unit.moments import another_moment
from tests.unit.workspace import churn as churning
from tests.unit.workspace.churn import Churn
from tests.unit.workspace.room import WatchedRoom, agree, folders

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
    assert agree(folders(made), folders(anew)), said


def rounds(base: Path, seed: int, count: int) -> WatchedRoom:
    with watched(base) as room:
        room.now_ns = 10**9  # stamps count as proof at once: nothing is read twice by chance
        churn = Churn(room.root, base / "outside", seed)
        for number in range(count):
            another_moment()  # but no two edits have the same ones
            churn.steps(churn.random.choice([1, 1, 1, 2, 5, 20]))
            check(room, f"seed {seed}, round {number}: {churn.done}")
        return room


def test_every_settled_state_is_what_a_full_scan_finds(tmp_path: Path) -> None:
    for seed in range(4):
        room = rounds(tmp_path / str(seed), seed, 60)
        assert room.incremental > 55, room.reasons


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(100, 140))
def test_every_settled_state_of_many_is_what_a_full_scan_finds(tmp_path: Path, seed: int) -> None:
    room = rounds(tmp_path, seed, 400)
    assert room.incremental > 360, room.reasons


def test_churn_by_another_process_does_not_lead_a_scan_astray(tmp_path: Path) -> None:
    busy(tmp_path, seed=1, count=12)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(200, 210))
def test_long_churn_by_another_process_does_not_lead_a_scan_astray(
    tmp_path: Path, seed: int
) -> None:
    busy(tmp_path, seed=seed, count=300)


def busy(base: Path, *, seed: int, count: int) -> None:
    """Scan while it goes on at full speed; then stop it wherever it is, and compare."""
    roots: set[bytes] = set()
    found = last = b""  # the roots that were seen
    with watched(base) as room:
        arguments = [str(room.root), str(base / "outside"), str(seed)]
        with subprocess.Popen(
            [sys.executable, churning.__file__, *arguments], stdin=subprocess.PIPE
        ) as process:
            try:
                wait_for_the_first_file(room.root)
                for number in range(count):
                    process.send_signal(signal.SIGCONT)
                    end = time.monotonic() + 60
                    looks = 0
                    while looks < 3 or (found == last and time.monotonic() < end):
                        found = room.snapshot(policy=POLICY).root
                        looks += 1
                        time.sleep(0.005)
                    process.send_signal(signal.SIGSTOP)
                    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
                    made = room.snapshot(policy=POLICY)
                    anew = room.anew(policy=POLICY)
                    assert (made.root, made.not_captured) == (anew.root, anew.not_captured), number
                    roots.add(made.root)
                    last = made.root
            finally:
                process.send_signal(signal.SIGCONT)
                process.kill()
        assert room.incremental > 3 * count, room.reasons
        assert len(roots) > count / 2, "there was churn"


def wait_for_the_first_file(root: Path) -> None:
    while not list(root.iterdir()):
        time.sleep(0.01)
