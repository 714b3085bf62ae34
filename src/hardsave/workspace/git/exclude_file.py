"""Lines in a repository's own excludes file, so that git does not offer our files.

The only thing that is ever written into `.git` without being asked for, and only when files
of ours are put inside a project, which a user has asked for.
"""

import os
import re
from contextlib import suppress
from pathlib import Path

from hardsave.logs import log
from hardsave.workspace.filesystem.bounded_read import read_beneath
from hardsave.workspace.git.git_directory import GitDirectory, opened

_LIMIT = 16 << 20
_SPECIAL = re.compile(r"[\\*?\[]| (?= *\Z)")  # what means more than itself in a pattern


def add_pattern(top: Path, pattern: str) -> bool:
    """Have git ignore what matches; False if it does already, or there is no repository."""
    line = os.fsencode(pattern)
    with opened(top) as directory:
        if not isinstance(directory, GitDirectory):
            return False
        known, problem = read_beneath(directory.common, b"info/exclude", limit=_LIMIT)
        if problem or (known is not None and line in known.splitlines()):
            return False
        start = b"" if not known or known.endswith(b"\n") else b"\n"
        try:
            _append(directory.common, start + line + b"\n")
        except OSError as error:
            log(__name__).warning("git is not told to ignore %s: %s", pattern, error)
            return False
    return True


def exclude_store(top: Path, path: str) -> None:
    """Have git ignore a store that was put into the work tree at `top`, and the files beside it."""
    if "\n" in path:
        return  # no pattern can name it
    name = _SPECIAL.sub(r"\\\g<0>", os.path.relpath(path, top))
    for pattern in (f"/{name}", f"/{name}-*"):
        add_pattern(top, pattern)


def _append(common: int, line: bytes) -> None:
    with suppress(FileExistsError):
        os.mkdir(b"info", dir_fd=common)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(b"info/exclude", flags, 0o644, dir_fd=common)
    try:
        os.write(file, line)
    finally:
        os.close(file)
