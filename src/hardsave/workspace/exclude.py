"""One line in a repository's own excludes file, so that git does not offer our files.

The only thing that is ever written into `.git` without being asked for, and only when files
of ours are put inside a project.
"""

import os
from contextlib import suppress
from pathlib import Path

from hardsave.workspace.gitdir import GitDirectory, opened
from hardsave.workspace.reading import read_beneath

_LIMIT = 16 << 20


def keep_out(top: Path, pattern: str) -> bool:
    """Have git ignore what matches; False if it does already, or there is no repository."""
    line = os.fsencode(pattern)
    with opened(top) as directory:
        if not isinstance(directory, GitDirectory):
            return False
        known, problem = read_beneath(directory.common, b"info/exclude", limit=_LIMIT)
        if problem or (known is not None and line in known.splitlines()):
            return False
        with suppress(FileExistsError):
            os.mkdir(b"info", dir_fd=directory.common)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(b"info/exclude", flags, 0o644, dir_fd=directory.common)
        try:
            start = b"" if not known or known.endswith(b"\n") else b"\n"
            os.write(file, start + line + b"\n")
        finally:
            os.close(file)
    return True
