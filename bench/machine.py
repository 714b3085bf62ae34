"""Where a run happens: a directory on a real disk, and the facts that its figures depend on."""

import contextlib
import os
import platform
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import apsw

from bench import report
from bench.stopwatch import median, timed

ROOT = Path(__file__).parents[1]
LIBRARIES = (
    "hardsave",
    "apsw",
    "ormsgpack",
    "blake3",
    "langgraph",
    "langgraph-checkpoint",
    "langgraph-checkpoint-sqlite",
    "stepback",
    "dbos",
)
IN_MEMORY = {"tmpfs", "ramfs"}
SYNCS = 200


class Broken(Exception):
    """The run cannot go on, or what was measured is not what was promised."""


def check(holds: bool, what: str) -> None:
    """A benchmark of wrong results measures nothing."""
    if not holds:
        raise Broken(what)


@contextlib.contextmanager
def workplace(parent: Path, *, allow_tmpfs: bool) -> Iterator[Path]:
    """A fresh directory below `parent`, removed at the end."""
    parent.mkdir(parents=True, exist_ok=True)
    if parent == ROOT / ".bench":
        (parent / ".gitignore").write_text("*\n")
    kind = file_system(parent)
    if kind in IN_MEMORY and not allow_tmpfs:
        raise Broken(
            f"{parent} lies in memory ({kind}), where syncing costs nothing: name a directory on "
            "a disk with --directory, or accept meaningless figures with --allow-tmpfs"
        )
    place = Path(tempfile.mkdtemp(prefix="run-", dir=parent))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def file_system(directory: Path) -> str:
    """The type of the file system under a directory, where the kernel says (Linux)."""
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    real = directory.resolve()
    best, kind = -1, "unknown"
    for line in lines:
        left, _, right = line.partition(" - ")
        mount = Path(left.split()[4].replace("\\040", " "))
        if real.is_relative_to(mount) and len(mount.parts) >= best:
            best, kind = len(mount.parts), right.split()[0]
    return kind


def facts(place: Path, command: str) -> dict[str, str]:
    """What to know about the machine before reading a figure."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": command,
        "machine": f"{os.cpu_count()} CPUs, {_processor()}, {platform.system()}",
        "python": platform.python_version(),
        "libraries": ", ".join(f"{name} {version(name)}" for name in LIBRARIES),
        "SQLite": f"ours {apsw.sqlite_lib_version()}, theirs {sqlite3.sqlite_version}",
        "file system": file_system(place),
        "fdatasync": f"{report.duration(fdatasync(place))}, median of {SYNCS} after 4 KB each",
    }


def fdatasync(place: Path) -> float:
    """The median time of making 4 KB of an existing file durable."""
    path = place / "fdatasync"
    page = os.urandom(4096)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    sync = getattr(os, "fdatasync", os.fsync)
    try:
        os.pwrite(descriptor, page * SYNCS, 0)
        os.fsync(descriptor)
        times = []
        for number in range(SYNCS):
            os.pwrite(descriptor, page, number * 4096)
            times.append(timed(lambda: sync(descriptor))[0])
    finally:
        os.close(descriptor)
        path.unlink()
    return median(times)


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()
