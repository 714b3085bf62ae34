"""After any change between two processes, a stat check finds what a full scan would."""

import os
from pathlib import Path

import pytest

from hardsave.workspace.scan.capture_policy import Policy
from hardsave.workspace.scan.result import Scan
from tests.unit.moments import another_moment
from tests.unit.workspace.churn import Churn
from tests.unit.workspace.room import Room, agree, folders

POLICY = Policy(max_file_bytes=140_000)  # so that some files are too large


class GlancingRoom(Room):
    """Each snapshot begins with the cache that another process has written."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.looked_at: list[bytes] = []  # closely, by the last scan
        self.incremental = 0

    def scanned(self, found: Scan) -> None:
        self.looked_at = [each.path for each in found.found]
        self.incremental += found.is_incremental


def check(room: GlancingRoom, said: str, tracked: frozenset[bytes] = frozenset()) -> None:
    made = room.snapshot(tracked=tracked, policy=POLICY)
    anew = room.anew(tracked=tracked, policy=POLICY)
    assert (made.root, made.not_captured) == (anew.root, anew.not_captured), said
    assert agree(folders(made), folders(anew)), said


def rounds(base: Path, seed: int, count: int) -> GlancingRoom:
    for name in ("work", "outside"):
        (base / name).mkdir(parents=True)
    room = GlancingRoom(base / "work")
    room.now_ns = 10**9  # stamps count as proof at once: nothing is read twice by chance
    churn = Churn(room.root, base / "outside", seed)
    for number in range(count):
        another_moment()  # but no two edits have the same ones
        churn.steps(churn.random.choice([1, 1, 1, 2, 5, 20]))
        tracked = {b"build/log", b"a", b"sub/log"} if churn.random.random() < 0.8 else {b"b"}
        check(room, f"seed {seed}, round {number}: {churn.done}", frozenset(tracked))
    return room


def test_every_settled_state_is_what_a_full_scan_finds(tmp_path: Path) -> None:
    for seed in range(3):
        room = rounds(tmp_path / str(seed), seed, 60)
        assert room.incremental > 25


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(300, 340))
def test_every_settled_state_of_many_is_what_a_full_scan_finds(tmp_path: Path, seed: int) -> None:
    assert rounds(tmp_path, seed, 400).incremental > 200


@pytest.fixture
def room(tmp_path: Path) -> GlancingRoom:
    made = GlancingRoom(tmp_path / "work")
    for number in range(3):
        (made.root / f"d{number}/below").mkdir(parents=True)
        (made.root / f"d{number}/f").write_bytes(b"1")
        (made.root / f"d{number}/below/g").write_bytes(b"1")
    made.now_ns = 10**9
    made.snapshot(policy=POLICY)
    made.snapshot(policy=POLICY)
    assert made.looked_at == []
    return made


def test_only_what_has_other_stamps_is_looked_at_closely(room: GlancingRoom) -> None:
    (room.root / "d1/below/g").write_bytes(b"22")
    check(room, "")
    assert room.looked_at == [b"", b"d1", b"d1/below"]


def test_another_mode_of_a_directory_is_found(room: GlancingRoom) -> None:
    (room.root / "d1/below").chmod(0o700)
    check(room, "")
    assert b"d1" in room.looked_at


def test_a_directory_that_was_replaced_by_another_of_its_name_is_found(room: GlancingRoom) -> None:
    os.rename(room.root / "d1/below", room.root / "d2/away")
    os.rename(room.root / "d2/below", room.root / "d1/below")
    os.rename(room.root / "d2/away", room.root / "d2/below")
    (room.root / "d1/below/g").write_bytes(b"new")
    check(room, "")


def test_stamps_from_the_future_prove_nothing(room: GlancingRoom) -> None:
    room.now_ns = -(10**9)  # the clock was set back
    assert room.snapshot(policy=POLICY).root == room.anew(policy=POLICY).root
    assert b"d1" in room.looked_at


def test_a_workspace_that_is_another_one_is_scanned_as_a_whole(room: GlancingRoom) -> None:
    os.rename(room.root, room.root.parent / "before")
    (room.root / "d1").mkdir(parents=True)
    (room.root / "d1/f").write_bytes(b"other")
    check(room, "")
