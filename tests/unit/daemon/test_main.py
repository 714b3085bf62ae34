"""The daemon from its first save to its end, in this process."""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.daemon import election
from hardsave.daemon.calls import CallLog
from hardsave.daemon.lifecycle import Lifecycle
from hardsave.daemon.main import Daemon
from hardsave.daemon.recorder import MissedSaves, Recorder


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[hardsave.Vault]:
    (tmp_path / "work").mkdir()
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as opened:
        yield opened


def address(folder: Path) -> election.Address:
    store, work = str(folder / "store.db"), str(folder / "work")
    return election.address_of(f"sqlite:///{store}", store, work, election.new_socket_path(store))


def test_a_daemon_that_is_told_twice_to_end_saves_for_the_last_time_all_the_same(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    """As by the end of its agent, and right then by a signal."""
    lifecycle, calls = Lifecycle(has_run=True), CallLog(str(tmp_path / "work"))

    class Impatient(MissedSaves):
        def about(self) -> Mapping[str, Any]:
            lifecycle.end("its agent has ended")
            return super().about()

    place = vault.workspace(tmp_path / "work")
    recording = Recorder(vault.timeline("a"), place, ["x"], Impatient(tmp_path / "notes"))
    daemon = Daemon(address(tmp_path), lifecycle, calls, recording, "a")
    assert daemon.serve(vault, nullcontext())
    assert [each.status for each in vault.timeline("a").checkpoints()] == ["ended", "running"]
    assert recording.failed_saves == 0
    assert list((tmp_path / "notes").iterdir()) == []  # nothing is missed


def test_a_daemon_without_a_run_saves_nothing_of_its_own(
    vault: hardsave.Vault, tmp_path: Path
) -> None:
    (tmp_path / "work" / "f").write_text("one")
    daemon = Daemon(address(tmp_path), Lifecycle(), CallLog(str(tmp_path / "work")))
    ready: list[bool] = []
    assert daemon.serve(vault, nullcontext(), is_ready=lambda: ready.append(True))
    assert ready == [True]
    assert list(vault.timelines()) == []
