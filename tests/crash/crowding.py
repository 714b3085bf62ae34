"""A process on a disk of its own, which is filled to the last byte: run by `test_full_disk`.

It runs in a mount namespace, so the disk is gone with it. What it finds out it prints as JSON.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hardsave
from hardsave.errors import HardsaveError


def crowd(disk: Path) -> None:
    """Leave no room at all."""
    file = os.open(disk / "ballast", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for size in (1 << 20, 1 << 14, 1 << 12, 1):
        try:
            while os.write(file, bytes(size)) == size:
                pass
        except OSError:
            continue
    os.close(file)


@contextmanager
def opened(disk: Path) -> Iterator[hardsave.Vault]:
    with hardsave.open(f"sqlite:///{disk}/store.db") as vault:
        yield vault


def write(disk: Path, count: int, *, dies: bool) -> None:
    """Save in another process; one that dies leaves all of it in the WAL."""
    if child := os.fork():
        os.waitpid(child, 0)
        return
    with opened(disk) as vault:
        for number in range(count):
            vault.timeline("main").save({"number": number, "text": os.urandom(2_000).hex()})
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
    os._exit(0)


def tried(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except HardsaveError as error:
        return f"{type(error).__name__}: {error}"


def looked(vault: hardsave.Vault, elsewhere: Path) -> dict[str, Any]:
    """All that can be done without a byte of room."""
    line = vault.timeline("main")
    return {
        "log": tried(lambda: [each.seq for each in line.checkpoints()]),
        "load": tried(lambda: line.load()["number"]),
        "diff": tried(lambda: len(vault.diff("main:1", "main:2").changed)),
        "verify": tried(lambda: vault.store.verify().ok),
        "stats": tried(lambda: vault.store.stats().checkpoints),
        "tasks": tried(lambda: vault.tasks.stats().total),
        "export": tried(lambda: vault.export_file(elsewhere / "export").checkpoints),
    }


def filled(disk: Path, elsewhere: Path, *, dies: bool) -> dict[str, Any]:
    """Save until nothing more can be saved, and look at it from another process."""
    reads, writes = os.pipe()
    if child := os.fork():
        os.waitpid(child, 0)
    else:
        with opened(disk) as vault:
            while isinstance(tried(lambda: _saved(vault, writes)), int):
                pass
            if dies:
                os.kill(os.getpid(), signal.SIGKILL)
        os._exit(0)
    saved = len(os.read(reads, 1 << 16))
    with opened(disk) as vault:
        found = looked(vault, elsewhere)
        save = tried(lambda: vault.timeline("main").save({"text": os.urandom(100_000).hex()}))
    return {"saved": saved, "looked": found, "save": save}


def _saved(vault: hardsave.Vault, writes: int) -> int:
    """Tell of each save that was acknowledged."""
    vault.timeline("main").save({"number": 0, "text": os.urandom(15_000).hex()})
    return os.write(writes, b".")


def read(disk: Path, elsewhere: Path, *, dies: bool) -> dict[str, Any]:
    write(disk, 20, dies=dies)
    crowd(disk)
    found: dict[str, Any] = {}
    with opened(disk) as vault:
        found["looked"] = looked(vault, elsewhere)
        found["save"] = tried(lambda: vault.timeline("main").save({"number": 20}))
        with opened(disk) as second:
            found["second"] = tried(lambda: second.timeline("main").load()["number"])
        (disk / "ballast").unlink()
        found["saved"] = tried(lambda: vault.timeline("main").save({"number": 20}).seq)
    with opened(disk) as vault:
        found["after"] = looked(vault, elsewhere)
    return found


def write_beside(disk: Path, elsewhere: Path) -> dict[str, Any]:
    """Room is made, and somebody else writes, while a store is open for reading alone."""
    write(disk, 3, dies=False)
    crowd(disk)
    with opened(disk) as vault:
        before = vault.timeline("main").load()["number"]
        (disk / "ballast").unlink()
        write(disk, 5, dies=False)
        return {
            "before": before,
            "after": tried(lambda: len(vault.timeline("main"))),
            "saved": tried(lambda: vault.timeline("main").save({"number": 9}).seq),
            "ok": tried(lambda: vault.store.verify().ok),
        }


def damage(disk: Path, elsewhere: Path) -> dict[str, Any]:
    """A bit that flips is an error here, too: one in every page, for which are read is chance."""
    write(disk, 20, dies=False)
    pages = bytearray((disk / "store.db").read_bytes())
    for place in range(4096 + 2_000, len(pages), 4096):
        pages[place] ^= 1
    (disk / "store.db").write_bytes(pages)
    (disk / "store.db-backup").unlink()  # which would have it still
    crowd(disk)

    def every() -> int:
        with opened(disk) as vault:
            return sum(vault.get(f"main:{n}").read()["number"] for n in range(1, 21))

    return {"every": tried(every)}


def commands(disk: Path, elsewhere: Path) -> dict[str, Any]:
    """The command line, with the store where it is by itself: in the user's data directory."""
    work = elsewhere / "work"
    work.mkdir()
    os.chdir(work)
    os.environ.update(HOME=str(disk), XDG_DATA_HOME=str(disk / "data"))
    os.environ.pop("HARDSAVE_STORE", None)
    (work / "file").write_text("one")
    hardsave = [Path(sys.executable).with_name("hardsave")]

    def run(*words: str) -> list[Any]:
        done = subprocess.run(
            [*hardsave, *words], capture_output=True, text=True, check=False, timeout=60
        )
        return [done.returncode, (done.stdout + done.stderr)[-400:]]

    run("save", "-m", "first")
    (work / "file").write_text("two")
    run("save", "-m", "second")
    crowd(disk)
    return {
        " ".join(words): run(*words)
        for words in (
            ("log",),
            ("show", "@"),
            ("diff", "@~1", "@"),
            ("timelines",),
            ("store", "stats"),
            ("store", "export", str(elsewhere / "out")),
            ("save", "-m", "third"),
        )
    }


def hooks(disk: Path, elsewhere: Path, *, before: bool) -> dict[str, Any]:
    """An agent whose hooks go on being called; `before`: they were also while there was room."""
    work, runtime = elsewhere / "work", elsewhere / "runtime"
    for folder in (work, runtime):
        folder.mkdir()
    os.chdir(work)
    data = {"HOME": str(disk), "XDG_DATA_HOME": str(disk / "data"), "CLAUDE_CONFIG_DIR": str(work)}
    os.environ.update(data, XDG_RUNTIME_DIR=str(runtime), HARDSAVE_DAEMON="off")
    os.environ.pop("HARDSAVE_STORE", None)
    (disk / "data").mkdir()
    event = {"session_id": "s1", "hook_event_name": "Stop", "cwd": str(work)}

    def hook() -> int:
        (work / "file").write_text(os.urandom(8).hex())
        command = [str(Path(sys.executable).with_name("hardsave-hook")), "claude-code"]
        told = json.dumps(event).encode()
        done = subprocess.run(command, input=told, stdout=subprocess.PIPE, check=False, timeout=60)
        said.append(done.stdout.decode())
        return done.returncode

    def doctor() -> Any:
        command = [str(Path(sys.executable).with_name("hardsave")), "doctor", "--json"]
        done = subprocess.run(command, capture_output=True, check=False, timeout=60)
        looked = {each["what"]: each for each in json.loads(done.stdout)}
        return [looked["missed saves"]["message"], looked["disk"]["remedy"]]

    said: list[str] = []
    found: dict[str, Any] = {"first": hook() if before else 0}
    crowd(disk)
    found["full"] = [hook(), hook()]
    found["said"] = said[-2:]
    found["doctor"] = doctor()
    found["runtime"] = [path.name for path in runtime.iterdir()]
    (disk / "ballast").unlink()
    found["after"] = hook()
    found["doctor after"] = doctor()
    with hardsave.open() as vault:
        (line,) = vault.timelines()
        found["saved"] = len(line)
        found["missed"] = line.head and line.head.metadata.get("missed_count")
    return found


CASES: dict[str, Callable[[Path, Path], dict[str, Any]]] = {
    "closed": lambda disk, elsewhere: read(disk, elsewhere, dies=False),
    "killed": lambda disk, elsewhere: read(disk, elsewhere, dies=True),
    "filled": lambda disk, elsewhere: filled(disk, elsewhere, dies=False),
    "filled and killed": lambda disk, elsewhere: filled(disk, elsewhere, dies=True),
    "beside": write_beside,
    "damage": damage,
    "commands": commands,
    "hooks": lambda disk, elsewhere: hooks(disk, elsewhere, before=True),
    "hooks from then on": lambda disk, elsewhere: hooks(disk, elsewhere, before=False),
}

if __name__ == "__main__":
    case, disk, elsewhere = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], check=True)
    sys.stdout.write(json.dumps(CASES[case](disk, elsewhere)))
