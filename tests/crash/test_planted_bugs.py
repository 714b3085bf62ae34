"""Each check notices the bug that it is there for. A check that cannot fail checks nothing."""

import random

import pytest

from tests.crash import disk, outage
from tests.crash.damage import flips
from tests.crash.rig import Rig
from tests.crash.specimen import Specimen
from tests.crash.test_errors import strike


def noticed_by_killing(rig: Rig, scenario: str, bug: str) -> str:
    """The first fault that shows when a process with the bug is killed at one call or other."""
    points = rig.points(scenario, "before")
    for point in points[len(points) // 3 :]:
        if faults := rig.kill(scenario, point, bugs=[bug]):
            return faults[0]
    return ""


def noticed_by_failing(rig: Rig, scenario: str, bug: str) -> list[str]:
    """What shows when one call or other of a process with the bug fails."""
    points = rig.points(scenario, "EIO")
    found = (strike(rig, scenario, point, bugs=[bug]) for point in points[len(points) // 3 :])
    return next(filter(None, found), [])


def noticed_by_power_loss(rig: Rig, scenario: str, bug: str) -> list[str]:
    """What shows when power fails in a process with the bug."""
    run = rig.run(scenario, bugs=[bug])
    assert run.ended[0].code == 0, run.ended[0].words
    start = disk.files(rig.prepared(scenario) / "disk")
    return outage.faults(rig, outage.states(run, start, outage.only_lost))


def test_an_answer_before_the_commit_is_noticed(rig: Rig) -> None:
    fault = noticed_by_killing(rig, "append", "answer_before_commit")
    assert "was acknowledged" in fault


def test_a_failure_that_is_not_heeded_is_noticed(rig: Rig) -> None:
    faults = noticed_by_failing(rig, "append", "failure_not_heeded")
    assert any("another writer saved" in fault for fault in faults)  # the next save missed it


@pytest.mark.torture  # many kills are needed before one strikes between the two
def test_an_index_row_before_its_pack_is_noticed(rig: Rig) -> None:
    fault = noticed_by_killing(rig, "merge", "index_before_pack")
    assert "object" in fault


def test_a_mark_before_its_commit_is_noticed(rig: Rig) -> None:
    fault = noticed_by_killing(rig, "append", "mark_before_commit")
    assert "Corrupt" in fault


def test_commits_that_are_not_synced_are_noticed(rig: Rig) -> None:
    faults = noticed_by_power_loss(rig, "append", "synchronous_normal")
    assert any("was acknowledged" in fault for fault in faults)


def test_folders_that_are_not_synced_are_noticed(rig: Rig) -> None:
    faults = noticed_by_power_loss(rig, "first save", "folders_never_synced")
    assert any("is lost, with 1 saves" in fault for fault in faults)


def test_a_hash_that_is_not_checked_is_noticed(rig: Rig) -> None:
    forged = Specimen(rig, "closed")
    forged.forge()
    checked, unchecked = forged.read(), forged.read(bugs=["hash_not_checked"])
    assert checked.wrong == []
    assert checked.corrupt > 0
    assert any("loaded" in wrong for wrong in unchecked.wrong)


def test_a_mark_that_is_never_written_is_noticed(rig: Rig) -> None:
    unmarked = Specimen(rig, "live", bugs=["mark_never_written"])
    damages = flips(unmarked.file("-wal"), "-wal", 5, random.Random(1))
    assert any("checkpoints of side" in wrong for wrong in unmarked.wrong(damages))


def test_bytes_that_a_purge_leaves_are_noticed(rig: Rig) -> None:
    faults = rig.faults(rig.run("purge", bugs=["purge_keeps_the_bytes"]))
    assert any("is still there" in fault for fault in faults)
