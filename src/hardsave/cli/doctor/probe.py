"""Proves that capture and restore work on this machine, with files and a store of its own."""

import os
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import hardsave
from hardsave.stores import registry

_STATE = {"messages": [{"role": "user", "content": "a probe"}], "turn": 1}
_FILES = {"a.txt": b"one\n", "deep/down/b.bin": bytes(range(256)), "empty": b""}


def run(beside: Path | None) -> str | None:
    """Save, destroy, restore, compare; what is wrong, or None.

    In a directory `beside` the store, or where it would come to lie, so that it is the same disk.
    """
    scratch = Path(tempfile.mkdtemp(prefix="hardsave-doctor-", dir=beside))
    try:
        return _probe(scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def unwatched(folders: Iterable[Path]) -> str:
    """Why these directories cannot all be watched right now; empty if they can. Others may watch so
    much that nothing is left. One that is gone since it was saved need not be watched."""
    from hardsave.workspace.watch import event_meaning, inotify

    try:
        source = inotify.Inotify()
    except OSError as error:
        return event_meaning.refusal(error)
    try:
        for folder in folders:
            with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                source.add(os.fsencode(folder), inotify.CREATE | inotify.ONLY_DIR)
    except OSError as error:
        return event_meaning.refusal(error)
    finally:
        source.close()
    return ""


def _probe(scratch: Path) -> str | None:
    work = scratch / "work"
    _build(work)
    before = _seen(work)
    with _opened(scratch) as vault:
        line = vault.timeline("probe")
        saved = line.save(_STATE, workspace=work)
    shutil.rmtree(work)
    work.mkdir()
    (work / "new.txt").write_bytes(b"made since\n")
    with _opened(scratch) as vault:
        line = vault.timeline("probe")
        if line.load() != _STATE:
            return "the state that came back is not the one that was saved"
        line.rewind(saved.id)
        if (fault := _difference(before, _seen(work))) is not None:
            return f"after a rewind {fault}"
        line.undo()
        if list(_seen(work)) != ["new.txt"]:
            return "an undo did not bring back what was there"
    return None


def _opened(scratch: Path) -> hardsave.Vault:
    """Without `hardsave.open`, which would have the repository around it ignore the store."""
    return hardsave.Vault(registry.open_store(f"sqlite:///{scratch / 'probe.db'}"))


def _build(work: Path) -> None:
    for name, content in _FILES.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (work / "a.txt").chmod(0o755)
    (work / "link").symlink_to("a.txt")


def _seen(work: Path) -> dict[str, tuple[bool, bytes]]:
    """Every file: whether it can be run, and what is in it."""
    found = {}
    for path in sorted(work.rglob("*")):
        if path.is_symlink():
            found[str(path.relative_to(work))] = (False, os.fsencode(os.readlink(path)))
        elif path.is_file():
            can_run = bool(path.stat().st_mode & 0o100)
            found[str(path.relative_to(work))] = (can_run, path.read_bytes())
    return found


def _difference(
    before: dict[str, tuple[bool, bytes]], after: dict[str, tuple[bool, bytes]]
) -> str | None:
    wrong = sorted(path for path in before | after if before.get(path) != after.get(path))
    return f"these differ: {', '.join(wrong)}" if wrong else None
