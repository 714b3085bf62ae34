"""What was wrong once, in one place or another, and must not come back."""

import datetime
import enum
import gc
import os
import subprocess
import sys
import zoneinfo
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest

import hardsave
from hardsave.errors import Misuse, NotFound
from tests.unit.stores.processes import eventually


@pytest.fixture
def vault() -> hardsave.Vault:
    return hardsave.open("memory://")


def test_a_stored_zone_imports_nothing(tmp_path: Path) -> None:
    """`ZoneInfo` looks for a package of the name that was stored."""
    package = tmp_path / "tzdata" / "zoneinfo" / "Evil"
    package.mkdir(parents=True)
    for folder in (package, package.parent, package.parent.parent):
        (folder / "__init__.py").write_text("print('imported')")
    known = next(Path(root) / "UTC" for root in zoneinfo.TZPATH if (Path(root) / "UTC").exists())
    with known.open("rb") as file:
        evil = zoneinfo.ZoneInfo.from_file(file, key="Evil/Zone")
    url = f"sqlite:///{tmp_path}/store.db"
    moment = datetime.datetime(2020, 1, 1, tzinfo=evil)
    with hardsave.open(url) as vault:
        vault.timeline("s").save({"at": moment})
    script = f"import hardsave; print(hardsave.open({url!r}).timeline('s').load()['at'])"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "2020-01-01 00:00:00+00:00\n"


@pytest.mark.parametrize(
    ("old", "new"), [((1,), (True,)), (-0.0, 0), (frozenset({1}), frozenset({True}))]
)
def test_appending_an_equal_key_is_what_a_dict_would_do(
    vault: hardsave.Vault, old: Any, new: Any
) -> None:
    line = vault.timeline("s")
    line.save({old: "old", "pad": ["p" * 3000]})
    line.append({new: "new"})
    assert line.load() == {old: "new", "pad": ["p" * 3000]}


def test_verify_reads_the_disk_and_not_its_memory(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with hardsave.open(f"sqlite:///{path}") as vault:
        line = vault.timeline("s")
        line.save({"messages": [os.urandom(700) for _ in range(300)]})
        vault.close()
    vault = hardsave.open(f"sqlite:///{path}")
    vault.timeline("s").load()
    assert vault.store.verify().ok
    descriptor = os.open(path, os.O_RDWR)  # never closed: that would take SQLite's locks away
    for page in range(12, path.stat().st_size // 4096):
        os.pwrite(descriptor, b"oops", page * 4096 + 100)
    assert not vault.store.verify().ok


class Level(enum.Enum):
    LOW = 1


BIG = ["x" * 50] * 200


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (BIG, tuple(BIG)),
        (Level.LOW, 1),
        ({1: "a"}, {True: "a"}),
        ([1, 2], (1, 2)),
    ],
)
def test_a_change_of_type_is_a_difference(vault: hardsave.Vault, old: Any, new: Any) -> None:
    line = vault.timeline("s")
    before, after = line.save({"m": old}), line.save({"m": new})
    assert vault.diff(before, after)


def test_a_key_may_be_nested_a_thousand_deep(vault: hardsave.Vault) -> None:
    key: Any = 0
    for _ in range(1000):
        key = (key,)
    line = vault.timeline("s")
    line.save({key: 1})
    assert list(line.load().values()) == [1]


def test_handlers_that_cannot_be_called_are_refused(vault: hardsave.Vault) -> None:
    async def later(checkpoint: hardsave.Checkpoint) -> None: ...

    for handler in (later, 5):
        with pytest.raises(Misuse, match="a handler is a plain function"):
            vault.on("checkpoint_saved", handler)  # type: ignore[arg-type] # that is the test


def test_a_link_to_a_store_is_that_store(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
    with hardsave.open(f"sqlite:///{tmp_path}/real.db") as vault:
        vault.timeline("s").save({"n": 1})
    with hardsave.open(f"sqlite:///{tmp_path}/link.db") as vault:
        vault.timeline("s").save({"n": 2})
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names[0] == "link.db"
    assert all(name.startswith("real.db") for name in names[1:])


def test_a_vault_that_is_forgotten_gives_its_files_back(tmp_path: Path) -> None:
    def opened() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0

    before = opened()
    for _ in range(20):
        hardsave.open(f"sqlite:///{tmp_path}/store.db").timeline("s").save(
            {}, expect=hardsave.ANY_HEAD
        )
    assert eventually(lambda: opened() - before < 10)  # a thread may still be at its backup


def test_a_state_that_does_not_become_the_type_is_misuse(vault: hardsave.Vault) -> None:
    line = vault.timeline("s")
    line.save([1])
    with pytest.raises(Misuse, match="does not become a dict"):
        line.load(type=dict)
    with pytest.raises(Misuse, match="does not become a dict"):
        line.load(type=dict[str, int])
    anything: list[Any] = [list[int], Sequence[int], list[int] | None, Annotated[list[int], "text"]]
    for wanted in anything:
        assert line.load(type=wanted) == [1]


def test_another_users_checkpoints_cannot_be_compared(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with hardsave.open(url, user="a") as ours, hardsave.open(url, user="b") as theirs:
        one, two = ours.timeline("s").save({"n": 1}), theirs.timeline("s").save({"n": 1})
        with pytest.raises(NotFound):
            theirs.diff(one, two)


def test_what_memory_cannot_hold_is_refused_wherever_it_lies() -> None:
    vault = hardsave.open("memory://", max_value_bytes=1024)
    with pytest.raises(hardsave.Unstorable, match=r"state\.n: longer than max_value_bytes"):
        vault.timeline("s").save({"n": 1 << 20_000})
