"""A project and its store on one disk that is nearly full: run by `test_full_disk`.

The case says how many KiB are left. What the commands answered is printed as JSON.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import hardsave
from hardsave.stores.sqlite.write.disk_reserve import SUFFIX

DISK = "size=160m"
MIB = 1 << 20
PAGE = 4096
DATA = 9 * MIB
BIG = 30 * MIB
READING = ("status", "log", "show @", "diff @~1 @", "diff @ now", "search two", "timelines")


def free(disk: Path) -> int:
    found = os.statvfs(disk)
    return found.f_bavail * found.f_frsize


def run(*words: str) -> dict[str, Any]:
    command = [str(Path(sys.executable).with_name("hardsave")), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return {"code": done.returncode, "lines": done.stderr.splitlines(), "said": done.stdout[:400]}


def begin(work: Path) -> list[str]:
    """Three checkpoints, the first of which nothing leads to any more; the backup is complete."""
    with hardsave.open() as vault:
        line = vault.timeline("main")
        for text in ("one", "two", "three"):
            (work / "a").write_text(text)
            (work / "data").write_bytes(os.urandom(DATA))
            line.save_files(work)
        run("store", "retain", "--keep", "2", "--yes")
        for store in work.parent.glob("data/**/store.db"):
            until = time.monotonic() + 30
            while not os.path.exists(f"{store}{SUFFIX}") and time.monotonic() < until:
                time.sleep(0.1)  # it comes with the next pass
    return sorted(each.name for each in work.parent.glob("data/**/store.db-reserve"))


def main(left: int, disk: Path) -> dict[str, Any]:
    work = disk / "work"
    work.mkdir()
    os.chdir(work)
    os.environ.update(HOME=str(disk), XDG_DATA_HOME=str(disk / "data"), HARDSAVE_DAEMON="off")
    os.environ.pop("HARDSAVE_STORE", None)
    found: dict[str, Any] = {"reserve": begin(work)}
    (work / "big").write_bytes(os.urandom(BIG))
    with open(disk / "ballast", "wb") as ballast:
        os.posix_fallocate(ballast.fileno(), 0, max(1, free(disk) - left * 1024))
    before = free(disk)
    found["big"] = {**run("save"), "lost": before - free(disk)}
    found["reading"] = {words: run(*words.split())["code"] for words in READING}
    (work / "big").unlink()
    (work / "b").write_text("small")
    with open(disk / "ballast", "ab") as ballast:  # as another program may
        size = os.path.getsize(disk / "ballast") + BIG - PAGE  # for the small file
        os.posix_fallocate(ballast.fileno(), 0, size)
    before = free(disk)
    found["dry run"] = run("rewind", "@~1", "--dry-run")["code"]
    found["rewind"] = {**run("rewind", "@~1", "--yes"), "lost": before - free(disk)}
    found["files"] = sorted(each.name for each in work.iterdir())
    found["text"] = (work / "a").read_text()
    found["small"] = run("save")
    before = free(disk)
    found["gc"] = {**run("store", "gc"), "gained": free(disk) - before}
    found["after gc"] = run("save")
    found["compact"] = {**run("store", "compact"), "lost": before - free(disk)}
    found["sizes"] = {each.name: each.stat().st_size for each in disk.glob("data/**/store.db*")}
    (disk / "ballast").unlink()
    found["verify"] = run("store", "verify")["code"]
    with hardsave.open() as vault:
        found["kept"] = [
            (each.files.read("a").decode(), len(each.files.read("data")))
            for each in vault.timeline("main").checkpoints()
            if each.files is not None
        ]
    return found


if __name__ == "__main__":
    left, disk = int(sys.argv[1]), Path(sys.argv[2])
    subprocess.run(["mount", "-t", "tmpfs", "-o", DISK, "tmpfs", disk], check=True)
    sys.stdout.write(json.dumps(main(left, disk)))
