"""A tree of files to snapshot: a real one, or copies of this environment's packages, salted."""

import os
import random
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from bench.machine import check

LARGEST = 200_000  # bytes of one file: a few libraries would outweigh all the sources
GIT = ("git", "-c", "user.name=bench", "-c", "user.email=bench@example.org")


class Tree:
    """A directory of files, committed to a repository of its own."""

    def __init__(self, root: Path, count: int, source: Path | None) -> None:
        self.root = root
        self.count = 0
        if source is None:
            self._grow(count)
        else:
            shutil.copytree(source, root, symlinks=True, ignore=shutil.ignore_patterns(".git"))
            self.count = sum(len(files) for _, _, files in os.walk(root))
        self._random = random.Random(7)  # which files change is no secret
        self._texts = sorted(path for path in root.rglob("*.py") if path.is_file())
        run(["git", "init", "-q", "."], root)
        run(["git", "add", "-A", "-f"], root)
        run([*GIT, "commit", "-q", "-m", "all"], root)

    def _grow(self, count: int) -> None:
        """Copies that no deduplication finds alike: each has a line of its own."""
        packages = Path(sysconfig.get_paths()["purelib"])
        copy = 0
        while self.count < count:
            for path, data in _sources(packages):
                target = self.root / f"copy{copy}" / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data + b"# %d\n" % copy)
                self.count += 1
                if self.count == count:
                    return
            copy += 1

    def edit(self, count: int) -> list[Path]:
        """Change some files as an agent would: a line at the end."""
        chosen = self._random.sample(self._texts, count)
        for path in chosen:
            with path.open("a") as file:
                file.write(f"# {self._random.random()}\n")
        return chosen


def _sources(packages: Path) -> Iterator[tuple[Path, bytes]]:
    for folder, below, names in os.walk(packages):
        below[:] = sorted(each for each in below if each != "__pycache__")
        for name in sorted(names):
            path = Path(folder, name)
            if not path.is_symlink() and path.stat().st_size <= LARGEST:
                yield path.relative_to(packages), path.read_bytes()


def run(command: list[str], cwd: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    check(done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()[:500]}")
    return done.stdout


def allocated(path: Path) -> int:
    """Bytes that files take on the disk, as blocks."""
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return sum(file.stat().st_blocks * 512 for file in files)
