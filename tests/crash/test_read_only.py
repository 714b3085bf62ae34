"""A store that may only be read: all that looks works, what would write is refused, nothing is."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave.errors import Unavailable
from tests.crash.crowding import write

POWERLESS = ["unshare", "--user"] if os.geteuid() == 0 else []  # who owns the files, no more


@pytest.fixture
def found(request: pytest.FixtureRequest, on_a_disk: Callable[[str, str], Any]) -> Any:
    """What a process has found out on a read-only file system of its own."""
    return on_a_disk("tests.crash.sealed", request.param)


@pytest.mark.parametrize("found", ["closed", "killed"], indirect=True)
def test_a_store_on_a_read_only_file_system_can_be_read(
    found: Any, request: pytest.FixtureRequest
) -> None:
    was_killed = "killed" in request.node.name
    assert (found["wal"] > 0) == was_killed, "its saves lie in the WAL, which is read, too"
    assert found["looked"] == {
        "log": list(range(20, 0, -1)),
        "load": 19,
        "diff": 2,
        "verify": True,
        "stats": 20,
        "tasks": 0,
        "export": 20,
    }
    assert found["second"] == 19
    for what in ("save", "gc"):
        assert "may not be written: it is open for reading alone" in found[what]
    assert found["search"] == 1
    assert found["purge"].startswith("Unavailable: ")
    assert found["saved"] == 21, "in the same vault, once it can be written"


@pytest.mark.parametrize("found", ["commands"], indirect=True)
def test_commands_that_look_work_there(found: Any) -> None:
    refused = {"rewind": 6, "save": 6, "doctor": 1}
    word = found.pop("doctor's word")
    looks = ["log", "show", "diff", "status", "diff now", "plan", "verify", "stats"]
    assert found == {**dict.fromkeys([*looks, "timelines", "search", "export"], 0), **refused}
    assert "may not be written: it can be looked at, and nothing is saved" in word


@pytest.mark.parametrize("found", ["lost", "lost in part"], indirect=True)
def test_what_was_in_a_wal_that_is_gone_is_missed(found: Any) -> None:
    assert found["opened"].startswith("Corrupt: ")
    assert "was acknowledged" in found["opened"]


@pytest.mark.parametrize("found", ["written"], indirect=True)
def test_what_others_write_by_another_way_is_seen(found: Any) -> None:
    assert found == {"before": 3, "after": 5, "busy": 7, "ok": True}


def pictures(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.is_file() and "-search" not in path.name  # which may be made wherever it can be
    }


READ = """
import sys
import hardsave
with hardsave.open("sqlite:///" + sys.argv[1]) as vault:
    line = vault.timeline("main")
    assert len(line) == 4 and line.load()["number"] == 3 and vault.store.verify().ok
    assert [hit.timeline for hit in vault.search("main")] == ["main"]
    try:
        line.save({})
    except hardsave.Unavailable as error:
        print(error)
"""


@pytest.mark.parametrize(
    ("mode", "dies"),
    [
        ((0o444, 0o755), False),
        ((0o444, 0o755), True),
        ((0o444, 0o555), False),
        ((0o444, 0o555), True),
        ((0o644, 0o555), False),  # whoever died has left all files that a writer needs
    ],
)
def test_files_that_we_may_only_read_are_read(
    tmp_path: Path, dies: bool, mode: tuple[int, int]
) -> None:
    """Whether it is the files that may not be written, or their folder, or both."""
    folder = tmp_path / "store"
    folder.mkdir()
    write(folder, 4, dies=dies)
    for path in folder.iterdir():
        path.chmod(mode[0])
    before = pictures(folder)
    folder.chmod(mode[1])
    reading = [*POWERLESS, sys.executable, "-c", READ, str(folder / "store.db")]
    done = subprocess.run(reading, capture_output=True, text=True, timeout=60, check=False)
    folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert "open for reading alone" in done.stdout
    assert pictures(folder) == before


LOOK = """
import sys
import hardsave
with hardsave.open("sqlite:///" + sys.argv[1]) as vault:
    assert vault.timeline("main").save({}).seq == 5
    print(vault.store.verify().faults[0])
    try:
        vault.store.repair()
    except hardsave.Unavailable as error:
        print(error)
"""


def test_a_backup_that_we_may_not_even_read_is_named(tmp_path: Path) -> None:
    """As one that another user has made. Saves go on without it."""
    write(tmp_path, 4, dies=False)
    (tmp_path / "store.db-backup").chmod(0)
    looking = [*POWERLESS, sys.executable, "-c", LOOK, str(tmp_path / "store.db")]
    done = subprocess.run(looking, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    verified, repaired = done.stdout.splitlines()
    assert "store.db-backup cannot be read: [Errno 13] Permission denied" in verified
    assert "store.db cannot be repaired: [Errno 13] Permission denied" in repaired


def test_a_takeover_that_was_broken_off_is_not_read_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 2, dies=False)
    (tmp_path / "store.db-takeover").write_bytes(b"the next one")
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, how: how != os.W_OK and access(path, how))
    with pytest.raises(Unavailable, match=r"takeover of .* was broken off, and cannot be finished"):
        hardsave.open(f"sqlite:///{tmp_path}/store.db")
