"""Lines in a repository's own excludes file, so that git does not offer our files.

The only thing that is ever written into `.git` without being asked for, and only when files
of ours are put inside a project, which a user has asked for.
"""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from hardsave.config import has_repository, project_root
from hardsave.logs import log
from hardsave.workspace.filesystem.bounded_read import read_beneath
from hardsave.workspace.git.git_directory import GitDirectory, opened

_LIMIT = 16 << 20
_SPECIAL = re.compile(r"[\\*?\[\]]| (?= *\Z)")  # what a rule would not take as it is
_ESCAPED = r"\\\g<0>"


def exclude(path: Path, endings: Iterable[str] = ("",)) -> None:
    """Have the repository around a path ignore it, if there is one. `endings` are patterns of what
    may follow its name, for what lies beside it."""
    top = project_root(path.parent)
    if not has_repository(top):
        return
    inside = (path.parent.resolve().relative_to(top) / path.name).as_posix()
    if "\n" in inside:  # a rule is a line
        log(__name__).warning("git is not told to ignore %r: it has two lines", inside)
        return
    for ending in endings:
        add_pattern(top, f"/{_SPECIAL.sub(_ESCAPED, inside)}{ending}")


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


def _append(common: int, line: bytes) -> None:
    with suppress(FileExistsError):
        os.mkdir(b"info", dir_fd=common)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(b"info/exclude", flags, 0o644, dir_fd=common)
    try:
        os.write(file, line)
    finally:
        os.close(file)
