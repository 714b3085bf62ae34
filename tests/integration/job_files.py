"""The files of jobs as tests look at them: on a disk, in a checkpoint, and by which attempt.

A file that an attempt writes says so: `stamp(job, attempt)` is its first line.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

import hardsave
from hardsave.objects.hashing import digest
from hardsave.vault.checkpoint import record_of

Tree = Mapping[str, tuple[str, int, str]]
"""Kind, mode and content (its hash; of a symlink its target) by path."""


def stamp(job: str, attempt: int) -> str:
    return f"written by {job} {attempt}\n"


def on_disk(root: Path) -> Tree:
    found: dict[str, tuple[str, int, str]] = {}
    for at, folders, names in os.walk(root):
        for name in [*folders, *names]:
            path = Path(at, name)
            mode = stat.S_IMODE(path.lstat().st_mode)
            shown = str(path.relative_to(root))
            if path.is_symlink():
                found[shown] = ("symlink", 0, str(path.readlink()))
            elif path.is_dir():
                found[shown] = ("directory", mode, "")
            else:
                found[shown] = ("file", mode, digest(path.read_bytes()).hex())
    return found


def saved(checkpoint: hardsave.Checkpoint) -> Tree:
    files = checkpoint.files
    assert files is not None
    found: dict[str, tuple[str, int, str]] = {}
    for each in files.list():
        if each.kind == "symlink":
            found[each.path] = ("symlink", 0, each.target)
        elif each.kind == "directory":
            found[each.path] = ("directory", each.mode, "")
        else:
            found[each.path] = ("file", each.mode, digest(files.read(each.path)).hex())
    return found


def strangers(vault: hardsave.Vault, job: str) -> list[str]:
    """Files in checkpoints of a job that neither the attempt that saved them has written, nor the
    checkpoint before had: those of another attempt, or of another job."""
    found: list[str] = []
    before: dict[str, bytes] = {}
    for one in reversed([*vault.timeline(job).checkpoints(limit=1_000)]):
        if one.files is None:
            continue
        attempt = record_of(one).attempt
        files = [each.path for each in one.files.list() if each.kind == "file"]
        now = {path: one.files.read(path) for path in files}
        own = stamp(job, attempt).encode()
        found += [
            f"{one.timeline}:{one.seq} (attempt {attempt}) {path}: {content[:60]!r}"
            for path, content in now.items()
            if content.startswith(b"written by ")
            and not content.startswith(own)
            and before.get(path) != content
        ]
        before = now
    return found
