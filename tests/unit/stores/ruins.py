"""Stores with a history that is known, and ways to ruin their files.

Their packs stay as they were saved: when they are merged depends on the moment, and with it on
which pages they lie.
"""

import os
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import apsw

import hardsave
from hardsave.stores.sqlite import schema
from hardsave.stores.sqlite.gc.merge import Merger
from tests.unit.stores.processes import fresh

SAVES = 40
LATER = 5  # saves that the backup of a half copied store has not seen


def url(path: Path) -> str:
    return f"sqlite:///{path}"


def state(number: int) -> dict[str, Any]:
    return {"messages": [{"n": n, "text": f"{n} " * 40} for n in range(number)], "turn": number}


def built(path: Path) -> Path:
    """A closed store, copied in full: SAVES on `main`, and a fork of it."""
    with mock.patch.object(Merger, "_count"), hardsave.open(url(path)) as vault:
        _fill(vault, 1, SAVES)
        vault.timeline("main").fork("@~10", name="fork").save({"other": "way"})
    return path


def half_copied(path: Path) -> Path:
    """As left by a process that was killed: LATER saves are in the WAL, and not in the backup."""
    built(path)
    fresh(_KILLED, str(path))
    return path


_KILLED = f"""
import os, sys
from pathlib import Path
from unittest import mock
import hardsave
from hardsave.stores.sqlite.backup.copier import Copier
from hardsave.stores.sqlite.gc.merge import Merger
from tests.unit.stores import ruins
mock.patch.object(Copier, "saw").start()
mock.patch.object(Merger, "_count").start()
vault = hardsave.open(ruins.url(Path(sys.argv[1])))
ruins._fill(vault, {SAVES + 1}, {SAVES + LATER})
os._exit(0)
"""


def _fill(vault: hardsave.Vault, first: int, last: int) -> None:
    line = vault.timeline("main")
    for number in range(first, last + 1):
        line.save(state(number))


def ruined(path: Path, where: Path) -> Path:
    """A copy of a store with all its files, to be ruined."""
    where.mkdir()
    for file in path.parent.iterdir():
        if file.is_file() and not file.name.endswith("-shm"):
            shutil.copy(file, where / file.name)
    return where / path.name


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def cut(path: Path, size: int) -> None:
    os.truncate(path, size)


def overwrite(path: Path, data: bytes = b"garbage ") -> None:
    size = path.stat().st_size
    path.write_bytes((data * (size // len(data) + 1))[:size])


def assert_intact(path: Path, saves: int = SAVES) -> None:
    """All of it is there, as it was saved; it goes on, and verifies."""
    with hardsave.open(url(path)) as vault:
        line = vault.timeline("main")
        assert [each.seq for each in line.checkpoints(limit=999)] == [*range(saves, 0, -1)]
        for number in (1, saves // 2, saves):
            assert line.load(f"main:{number}") == state(number)
        assert vault.timeline("fork").load() == {"other": "way"}
        assert vault.store.verify().faults == ()
        line.save(state(saves + 1))
    with hardsave.open(url(path)) as vault:
        assert vault.timeline("main").load() == state(saves + 1)
        assert vault.store.verify().faults == ()


def told(path: Path, kind: str = "takeover") -> list[dict[str, Any]]:
    """What the store's own log says about it."""
    with hardsave.open(url(path)) as vault:
        entries = vault._context.store.log(None, 0, 1_000)
        decode = vault._context.objects.codec.decode
        return [decode(each.data) for each in entries if each.kind == kind]


def set_aside(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.iterdir() if ".damaged-" in each.name)


_ADDED = {  # by each migration: tables, then columns, with the indexes that are in their way
    2: (
        ("tombstones", "pins", "changes"),
        ("timelines.deleted", "checkpoints.hidden", "users.swept"),
        ("checkpoints_hidden", "log_by_user"),
    ),
    3: ((), ("checkpoints.snapshot", "checkpoints.workspace"), ("checkpoints_by_workspace",)),
    4: (("tasks", "ledger", "owners"), (), ()),
    5: ((), ("checkpoints.task", "checkpoints.generation", "checkpoints.attempt"), ()),
    6: ((), (), ()),
    7: ((), ("checkpoints.summary", "timelines.title"), ()),
    8: (
        ("labels", "notes", "workspaces"),
        (
            *("timelines.saved", "timelines.updated_at", "timelines.moved", "checkpoints.branch"),
            *("users.purged", "users.objects", "users.object_bytes", "users.pack_bytes"),
            "users.compacted",
            "owners.clock",
        ),
        ("checkpoints_branching",),
    ),
}


def age(direct: apsw.Connection, version: int, shape: int = 0) -> None:
    """Take away what later versions have added to a store, or to a backup of this `shape`."""
    direct.pragma("foreign_keys", 0)
    there = {row[0] for row in direct.execute("SELECT name FROM sqlite_schema")}
    for added in range(schema.VERSION, version, -1):
        if added == 8:
            for trigger in ("packs_indexed", "packs_removed", "packs_rewritten"):
                direct.execute(f"DROP TRIGGER IF EXISTS {trigger}")
            if "pins" in there:
                direct.execute("ALTER TABLE pins RENAME COLUMN clock TO boot")
        tables, columns, indexes = _ADDED[added]
        for index in indexes:
            direct.execute(f"DROP INDEX IF EXISTS {index}")
        for table in tables:
            direct.execute(f"DROP TABLE IF EXISTS {table}")
        for table, _, column in (each.partition(".") for each in columns):
            if table in there:
                direct.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    direct.pragma("user_version", shape + version)
