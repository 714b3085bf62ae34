"""A process with a disk of its own, which can only be read after a while: run by `test_read_only`.

It runs in a mount namespace, so the disk is gone with it. What it finds out it prints as JSON.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import hardsave
from hardsave.cli.main import main as hardsave_main
from tests.crash.crowding import looked, opened, tried, write


def seal(disk: Path, how: str = "ro") -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)


def read(disk: Path, elsewhere: Path, *, dies: bool) -> dict[str, Any]:
    """Look at everything, then write again in the same process once that is possible."""
    write(disk, 20, dies=dies)
    wal = disk / "store.db-wal"
    found: dict[str, Any] = {"wal": wal.stat().st_size if wal.exists() else 0}
    seal(disk)
    with opened(disk) as vault:
        found["looked"] = looked(vault, elsewhere)
        found["search"] = tried(lambda: len(vault.search("main")))
        found["save"] = tried(lambda: vault.timeline("main").save({"number": 20}))
        found["purge"] = tried(lambda: vault.store.purge(text="nowhere"))
        found["gc"] = tried(vault.store.gc)
        with opened(disk) as second:
            found["second"] = tried(lambda: second.timeline("main").load()["number"])
        seal(disk, "rw")
        found["saved"] = tried(lambda: vault.timeline("main").save({"number": 20}).seq)
    return found


def commands(disk: Path, elsewhere: Path) -> dict[str, Any]:
    """What people type, in a workspace that they may write to."""
    (work := elsewhere / "work").mkdir()
    os.chdir(work)
    write(disk, 3, dies=True)
    os.environ["HARDSAVE_STORE"] = f"sqlite:///{disk}/store.db"
    (work / "file").write_text("one")
    with opened(disk) as vault:
        vault.timeline("files").save({}, workspace=work)
    seal(disk)
    (work / "file").write_text("two")
    wanted = {
        "log": ["log", "--timeline", "main"],
        "show": ["show", "main:2"],
        "diff": ["diff", "main:1", "main:2"],
        "status": ["status"],
        "diff now": ["diff"],
        "plan": ["rewind", "files:1", "--dry-run"],
        "verify": ["store", "verify"],
        "stats": ["store", "stats"],
        "timelines": ["timelines"],
        "search": ["search", "nowhere"],
        "export": ["store", "export", str(elsewhere / "export")],
        "doctor": ["doctor"],
        "rewind": ["rewind", "main:1", "--state", "--yes"],
        "save": ["save"],
    }
    codes: dict[str, Any] = {}
    for name, words in wanted.items():
        with contextlib.redirect_stdout(sys.stderr):
            codes[name] = hardsave_main(words)
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        hardsave_main(["doctor", "--json"])
    (codes["doctor's word"],) = [
        each["message"] for each in json.loads(told.getvalue()) if each["what"] == "store"
    ]
    return codes


def lost(disk: Path, elsewhere: Path, *, some: bool) -> dict[str, Any]:
    """A WAL is gone, with all that there was, or with some of it."""
    if some:
        write(disk, 2, dies=False)
    write(disk, 5, dies=True)
    (disk / "store.db-wal").unlink()
    seal(disk)
    return {"opened": tried(lambda: hardsave.open(f"sqlite:///{disk}/store.db"))}


def written(disk: Path, elsewhere: Path) -> dict[str, Any]:
    """Somebody writes by another way while it is open here for reading alone."""
    window = elsewhere / "window"
    window.mkdir()
    write(disk, 3, dies=False)
    subprocess.run(["mount", "--bind", str(disk), str(window)], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", str(window)], check=True)
    with opened(window) as vault:
        line = vault.timeline("main")
        before = len(line)
        write(disk, 2, dies=False)
        after = tried(lambda: len(line))
        with opened(disk) as other:
            other.timeline("main").save({"number": 7})
            busy = tried(lambda: line.load()["number"])
        ok = tried(lambda: vault.store.verify().ok)
        return {"before": before, "after": after, "busy": busy, "ok": ok}


def main(scenario: str, disk: Path, elsewhere: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(disk)], check=True)
    found = {
        "closed": lambda: read(disk, elsewhere, dies=False),
        "killed": lambda: read(disk, elsewhere, dies=True),
        "commands": lambda: commands(disk, elsewhere),
        "lost": lambda: lost(disk, elsewhere, some=False),
        "lost in part": lambda: lost(disk, elsewhere, some=True),
        "written": lambda: written(disk, elsewhere),
    }[scenario]()
    print(json.dumps(found))  # noqa: T201 # the test reads it


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
